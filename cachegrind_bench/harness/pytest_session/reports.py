"""Reads what processes that execute tests have written, where a test may have put anything in its place."""

from __future__ import annotations

import marshal
import os
import stat
from collections.abc import Callable
from typing import Annotated, Any, Final, cast

import msgspec

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.startup.exchange import translated

_MOST_BYTES = 1 << 29  # of a report, which has what a test printed up to three times, once for each of its phases
_MOST_VALUES = 1_000_000
# What became of a benchmark that wrote over what should say that.
_WHY = "wrote over a file by which cg-bench follows it"
OVERWRITTEN: dict[str, Any] = {"reports": [], "died": _WHY, "text": f"a benchmark {_WHY}"}
TOO_LONG: dict[str, Any] = {
    "reports": [],
    "died": f"has a report of more than {_MOST_BYTES >> 20} MiB, with all that it printed",
}
# Of marshal's format 2 (Python/marshal.c), by the bytes that such a value has after its kind, or that follow a length of four bytes
# for each of its parts. None refers to another one: a value in itself ends Python by a signal when it is hashed.
_FIXED: Final = {b"N": 0, b"T": 0, b"F": 0, b".": 0, b"0": 0, b"{": 0, b"i": 4, b"g": 8, b"y": 16}
_PARTS: Final = {b"u": 1, b"s": 1, b"l": 2, b"(": 0, b"[": 0, b"<": 0, b">": 0}
_LENGTH: Final = 4


class _Part(msgspec.Struct):
    """What pytest reports of one phase of a test, as far as it is read here."""

    when: str
    outcome: str
    longrepr: Any = None
    sections: list[tuple[str, str]] = []
    nodeid: str = ""
    duration: float = 0
    user_properties: list[Any] = []
    keywords: dict[str, Any] = {}


_Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]


class _Meter(msgspec.Struct):
    """What a meter recorded: for each layout a process, the part before its calls, how many there are, and whether they agree."""

    name: str = ""
    layouts: list[tuple[_Number, _Number, _Number, bool]] = []
    look_ups: dict[str, list[str]] = {}


class Report(msgspec.Struct):
    """What a measured process reports of a benchmark, as far as it is read here."""

    reports: list[_Part]
    wall_ms: _Number = 0
    meter: _Meter | None = None
    died: str | None = None
    exit: str = ""
    text: str = ""
    status: _Number = 0
    log: str = ""


class Trouble(msgspec.Struct):
    """Why nothing more comes from a file of tests: in words, or how its process ended, and at which benchmark."""

    text: str = ""
    at: int = -1
    status: _Number = 0
    log: str = ""


class Caches(msgspec.Struct):
    """Where Python looked for compiled modules before the first file of tests."""

    folders: list[str] = []


def overwritten() -> MeasurementError:
    """Return the error for a benchmark whose report cannot be its own."""
    return MeasurementError(f"it {_WHY}")


def take_report(path: str, most: int = _MOST_VALUES) -> dict[str, Any] | None:
    """Read a report; None if it has not come yet. OVERWRITTEN if it is something else, or has more values than `most`."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:
        return OVERWRITTEN
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            return OVERWRITTEN
        if found.st_size > _MOST_BYTES:
            return TOO_LONG
        with open(number, "rb", closefd=False) as file:
            data = file.read(_MOST_BYTES)
        _check(data, most)
        report: Any = marshal.loads(data)
    except (OSError, EOFError, ValueError, TypeError, MemoryError, RecursionError):
        return OVERWRITTEN
    finally:
        os.close(number)
    return cast("dict[str, Any]", report) if isinstance(report, dict) else OVERWRITTEN


def taken(path: str, kind: type[msgspec.Struct], real: Callable[[str], str]) -> dict[str, Any] | None:
    """Return the report of a measured process with real paths, or None before it has come; OVERWRITTEN if a test wrote something else there."""
    found = take_report(path)
    try:
        if found is not None:
            found = translated(found, real)
            msgspec.convert(found, kind)
    except (ValueError, RecursionError):
        return OVERWRITTEN
    return found


def _check(data: bytes, most: int) -> None:
    """ValueError for what marshal must not load: more values, longer ones than there are bytes, and kinds that are in no report."""
    at = values = claimed = 0
    while at < len(data):
        kind = data[at : at + 1]
        at += 1
        parts = _PARTS.get(kind)
        if parts is None:
            if kind not in _FIXED:
                raise ValueError(kind)
            at += _FIXED[kind]
        else:
            length = abs(int.from_bytes(data[at : at + _LENGTH], "little", signed=True))
            claimed += 0 if parts else length
            at += _LENGTH + parts * length
        values += 1
        if values > most or claimed > min(most, len(data)) or at > len(data):
            raise ValueError(values)
