"""What Callgrind has written of a process so far: its regions, each with its parts and the sum of their totals.

For the measured process, which only wants to know whether two calls cost the same: no more is read than the last lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import count, islice, zip_longest
from typing import Final

from cachegrind_bench.startup.os_functions import Real

# The texts of the requests around a call.
BEGIN: Final = b"cg-bench begin"
END: Final = b"cg-bench end"
# `out.PID` is written when a process ends, and `out.PID.NUMBER` before.
_PARTS, _DOTS_OF_WHOLE = "out.", 1
_TAIL_BYTES, _HEAD_BYTES = 1 << 10, 1 << 14

Region = tuple[list[int], list[int]]  # the numbers of its parts, and the sum of their totals: Ir, Dr, Dw, then misses


def calls(out: str, prefix: str, after: int, number: int) -> list[tuple[Region, Region]]:
    """Return the first `number` calls after part `after` of those whose names have this prefix; with each the empty one before it.

    There are fewer where Callgrind could not write all parts.
    """
    regions = list(islice(_regions(out, prefix, after), 2 * number))
    return list(zip(regions[::2], regions[1::2], strict=False))


def last(out: str, prefix: str) -> int:
    """Return the number of the last part whose name has this prefix; without any part it is 0, as they are numbered from 1 on."""
    number = 0
    with suppress(FileNotFoundError):
        while Real.stat(f"{out}/{prefix}{number + 1}"):
            number += 1
    return number


def _regions(out: str, prefix: str, after: int) -> Iterator[Region]:
    """Yield the regions after a part in their order. Usually one is one part; before a process starts, Callgrind writes one as well."""
    parts: list[int] = []
    sums: list[int] = []
    for number in count(after + 1):
        path = f"{out}/{prefix}{number}"
        try:
            file = Real.open(path, "rb")
        except FileNotFoundError:
            return
        with file:
            head = file.read(_HEAD_BYTES)
            file.seek(-min(_TAIL_BYTES, file.seek(0, os.SEEK_END)), os.SEEK_END)
            totals = [int(word) for word in file.read().rpartition(b"totals:")[2].split()]
        if BEGIN in head:
            parts, sums = [], []
            continue
        parts.append(number)
        sums = [a + b for a, b in zip_longest(sums, totals, fillvalue=0)]
        if END in head:
            yield parts, sums
            parts, sums = [], []


def write_sample(path: str) -> None:
    """Write a part such as Callgrind's, to be read before there are any."""
    with Real.open(path, "wb") as file:
        file.write(b"desc: Trigger: Client Request: %s\ntotals: 3 2 1\n" % END)


def keep(out: str, name: str, pids: Iterable[int]) -> None:
    """Rename the parts of these processes, by a benchmark's name, and remove all others: a later process may get their number."""
    own = tuple(map(of_process, pids))
    with suppress(OSError):
        for part in Real.listdir(out):
            if not part.startswith(_PARTS) or part.count(".") <= _DOTS_OF_WHOLE:
                continue
            with suppress(OSError):  # whoever reads them reports that they are missing
                if part.startswith(own):
                    Real.rename(f"{out}/{part}", f"{out}/kept.{name}.{part}")
                else:
                    Real.unlink(f"{out}/{part}")


def kept(name: str) -> str:
    """Return the prefix of the parts that were kept by this name."""
    return f"kept.{name}."


def kept_as(name: str, pid: int) -> str:
    """Return the prefix of the parts of this process that were kept by this name."""
    return f"{kept(name)}{of_process(pid)}"


def of_process(pid: int) -> str:
    """Return the prefix of the parts that Callgrind writes of this process."""
    return f"out.{pid}."


def path(region: Region) -> tuple[int, ...]:
    """Return Ir, Dr and Dw of a region, whose totals lack zeros at their end."""
    return (*region[1], 0, 0, 0)[:3]


def last_log(out: str, pid: int) -> str:
    """Return the end of what Valgrind has said in this process; empty outside of Valgrind."""
    try:
        number = Real.open_number(f"{out}/log.{pid}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        os.lseek(number, -min(_HEAD_BYTES, os.lseek(number, 0, os.SEEK_END)), os.SEEK_END)
        return Real.read(number, _HEAD_BYTES).decode("utf-8", "backslashreplace")
    finally:
        Real.close(number)
