"""Sees to it that numbers of processes have five digits or more, and as many at the end of a run: programs write theirs down.

A shell makes text of its own number and of its parent's, 19 instructions for each digit. On a fresh machine or in a new
container numbers begin with one digit; where the kernel gives out few, they begin again after some thousand processes.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

from cachegrind_bench.interruption import cancellation

_LEAST = 10_000  # five digits: many systems have no more than 32,768 numbers
_SPARE = 2_000  # numbers that a run, and what is beside it, may take before those with another number of digits
_AT_ONCE = 50  # to wait for each thread takes longer than to start it
_MOST_TRIES = 1000


def is_steady(number: int, limit: int) -> bool:
    """Tell whether this and the numbers that come next have the same number of digits, and no fewer than five."""
    last = number + _SPARE
    return number >= _LEAST and last < limit and len(str(number)) == len(str(last))


def steady_numbers() -> None:
    """Use up numbers until those that come next are steady, as far as the system lets us.

    A thread takes a number, too, and costs least: all that there are below five digits take about a second.
    KeyboardInterrupt if this thread is interrupted.
    """
    cancel = cancellation()
    with suppress(OSError, ValueError, RuntimeError):  # RuntimeError: no thread may be started
        limit = _limit()
        if not is_steady(_LEAST, limit):
            return
        count = 1
        for _ in range(_MOST_TRIES):
            if is_steady(_use_up(count), limit):
                return
            if cancel is not None:
                cancel.check()
            count = _AT_ONCE


def _limit() -> int:
    return int(Path("/proc/sys/kernel/pid_max").read_text("ascii"))


def _use_up(count: int) -> int:
    """Have so many threads take numbers, or as many as may be started, and return the last one's. RuntimeError if none may."""
    threads: list[threading.Thread] = []
    with suppress(RuntimeError):
        for _ in range(count):
            thread = threading.Thread(target=int, daemon=True)
            thread.start()
            threads.append(thread)
    for thread in threads:
        thread.join()
    if not threads:
        raise RuntimeError("no thread may be started")
    return threads[-1].native_id or 0
