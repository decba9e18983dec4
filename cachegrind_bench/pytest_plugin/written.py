"""What Callgrind has written of a process so far: its regions, each with its parts and the sum of their totals.

For the measured process, which only wants to know whether two calls cost the same: no more is read than the last lines.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import zip_longest
from typing import Any, Final

from cachegrind_bench.startup.real import Real

# The texts of the requests around a call.
BEGIN: Final = b"cg-bench begin"
END: Final = b"cg-bench end"
_TAIL_BYTES, _HEAD_BYTES = 1 << 10, 1 << 14

Region = tuple[list[int], list[int]]  # the numbers of its parts, and the sum of their totals: Ir, Dr, Dw, then misses


def regions(out: str, pid: int) -> list[Region]:
    """Return all regions in their order. Usually one is one part; before a process starts, Callgrind writes one as well."""
    prefix = _prefix(pid)
    numbers = (int(name.removeprefix(prefix)) for name in Real.listdir(out) if name.startswith(prefix))
    found: list[Region] = []
    parts: list[int] = []
    sums: list[int] = []
    for number in sorted(numbers):
        with Real.open(f"{out}/{prefix}{number}", "rb") as file:
            head = file.read(_HEAD_BYTES)
            file.seek(-min(_TAIL_BYTES, file.seek(0, os.SEEK_END)), os.SEEK_END)
            totals = [int(word) for word in file.read().rpartition(b"totals:")[2].split()]
        if BEGIN in head:
            parts, sums = [], []
            continue
        parts.append(number)
        sums = [a + b for a, b in zip_longest(sums, totals, fillvalue=0)]
        if END in head:
            found.append((parts, sums))
    return found


def forget(out: str, pid: int) -> int:
    """Remove what an earlier process of this number has left. Returns 0."""
    for name in Real.listdir(out):
        if name.startswith(_prefix(pid)):
            Real.unlink(f"{out}/{name}")
    return 0


def keep(out: str, record: dict[str, Any] | None, name: str) -> None:
    """Give the parts in a meter's record a name of their own: the system may give the process' number to another one."""
    if not record or "calls" not in record:
        return
    record["name"] = name
    for number in [number for call in record["calls"] for numbers, _ in call.values() for number in numbers]:
        with suppress(OSError):  # who reads them tells that they are not there
            Real.rename(f"{out}/{_prefix(record['pid'])}{number}", kept(out, name, number))


def kept(out: str, name: str, number: int) -> str:
    """Return the file with this part of what was kept by this name."""
    return f"{out}/kept.out.{name}.{number}"


def path(region: Region) -> tuple[int, ...]:
    """Return Ir, Dr and Dw of a region, whose totals lack zeros at their end."""
    return (*region[1], 0, 0, 0)[:3]


def last_log(out: str, pid: int) -> str:
    """Return the end of what Valgrind has said in this process; empty outside of Valgrind."""
    try:
        with Real.open(f"{out}/log.{pid}", "rb") as file:
            file.seek(-min(_HEAD_BYTES, file.seek(0, os.SEEK_END)), os.SEEK_END)
            return file.read().decode("utf-8", "backslashreplace")
    except OSError:
        return ""


def _prefix(pid: int) -> str:
    return f"out.{pid}."
