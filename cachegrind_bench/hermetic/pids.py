"""Sees to it that numbers of processes have the same number of digits in every run: programs write theirs down.

A shell makes text of its own number and of its parent's, 19 instructions for each digit. On a fresh machine or in a new
container numbers begin with one digit; where the kernel gives out few, they begin again after some thousand processes.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

_LEAST = 10_000  # five digits, also where there are no more than 32,768 numbers, the least that a kernel gives out
_SPARE = 2_000  # numbers that a run may take until it comes to those with another number of digits
_MOST_TRIES = 4 * _LEAST


def is_steady(number: int, limit: int) -> bool:
    """Tell whether this and the numbers that come next have the same number of digits, and no fewer than five."""
    last = number + _SPARE
    return number >= _LEAST and last < limit and len(str(number)) == len(str(last))


def steady_numbers() -> None:
    """Use up numbers until those that come next are steady, as far as the system lets us.

    A thread takes a number, too, and costs least: all that there are below five digits take a second, once.
    """
    with suppress(OSError, ValueError, RuntimeError):  # RuntimeError: no more threads may be started
        limit = _limit()
        if not is_steady(_LEAST, limit):
            return
        for _ in range(_MOST_TRIES):
            if is_steady(_next_number(), limit):
                return


def _limit() -> int:
    return int(Path("/proc/sys/kernel/pid_max").read_text("ascii"))


def _next_number() -> int:
    """Have a thread take the next number, and return that."""
    thread = threading.Thread(target=int, daemon=True)
    thread.start()
    thread.join()
    return thread.native_id or 0
