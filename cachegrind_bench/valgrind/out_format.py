"""The text layer of the out files of Cachegrind and Callgrind: names, positions, event lists, sums, and the value of both parsers.

Knows how Callgrind spells what Cachegrind writes in full (Valgrind manual, "Callgrind format specification"): numbered,
relative and escaped. Must not know the lines of either file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from operator import add
from pathlib import Path
from typing import BinaryIO

import msgspec

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.metrics import FunctionCost, LineCost, Profile

CUT_HINT = "the run was killed or the disk is full: measure again"
_ADDRESS = re.compile(rb"0x[0-9a-f]{1,16}")
UNNAMED = re.compile(r"0x[0-9a-f]+")  # what Callgrind calls a function without a name
NOBODY, UNWANTED = -1, -2  # instead of the place of a function that is called
DAMAGED_HINT = "the file is damaged or cut off: measure again"


class OutFile(msgspec.Struct, frozen=True, kw_only=True):
    """One out file, or one part of it, checked: the rows of `profile` add up to `summary`, event by event."""

    # As Valgrind wrote it: joined by spaces, unquoted. For the eye only, the arguments cannot be separated again.
    command_line: str
    # In the order of the file, which differs between options and tools: go by name.
    events: tuple[str, ...]
    summary: tuple[int, ...]
    profile: Profile


def decode(text: bytes) -> str:
    r"""Return text for people and for JSON: what is not UTF-8 becomes `\xNN`."""
    return text.decode("utf-8", "backslashreplace")


def line_number(text: bytes) -> int | None:
    """Return the number of a source line; None for anything else."""
    return int(text) if text.isdigit() else None


def shown(path: Path) -> str:
    """Return a path as messages and results spell it; a path need not be UTF-8 either."""
    return decode(os.fsencode(path))


@contextmanager
def reading(path: Path) -> Generator[BinaryIO]:
    """Open an out file. FileFormatError if it cannot be opened, or read within the block."""
    try:
        with path.open("rb") as stream:
            yield stream
    except OSError as error:
        hint = "Valgrind's log says why it wrote no out file" if isinstance(error, FileNotFoundError) else None
        message = f"the out file cannot be read: {error.strerror}"
        raise FileFormatError(message, path=shown(path), hint=hint) from error


def event_names(text: bytes, *, path: str, line: int) -> tuple[str, ...]:
    """Read the names of an `events:` line."""
    names = tuple(decode(text).split())
    if not names:
        raise FileFormatError("the `events:` line does not name any event", path=path, line=line)
    return names


class CostTable:
    """Counts by file and function while a file is being read; by source line too where `lines` are wanted."""

    def __init__(self, path: str, events: tuple[str, ...], *, lines: bool) -> None:
        self._path = path
        self._events = events
        self._keep_lines = lines
        self._costs: dict[tuple[str, str, int], tuple[int, ...]] = {}

    def read(self, tokens: Sequence[bytes], line: int) -> tuple[int, ...]:
        """Read the counts of one line, exactly; missing ones at its end are zero, as both tools may leave them out."""
        try:
            counts = tuple(map(int, tokens))
        except ValueError:
            message = f"not a line of counts: {decode(b' '.join(tokens)[:80])!r}"
            raise FileFormatError(message, path=self._path, line=line, hint=DAMAGED_HINT) from None
        if len(counts) > len(self._events):
            message = f"{len(counts)} counts, but only {len(self._events)} events: {' '.join(self._events)}"
            raise FileFormatError(message, path=self._path, line=line)
        return self._padded(counts)

    def add(self, file: str, function: str, counts: tuple[int, ...], line: int = 0) -> tuple[int, ...]:
        """Add counts to a row, which may occur many times in a file; also return them."""
        key = (file, function, line if self._keep_lines else 0)
        seen = self._costs.get(key)
        padded = self._padded(counts)
        self._costs[key] = padded if seen is None else tuple(map(add, seen, padded))
        return padded

    def add_lines(self, file: str, function: str, lines: Mapping[int, bytes], *, skip: int) -> tuple[int, ...]:
        """Add whole lines, given by line number, without their first `skip` columns; also return their sum."""
        columns = list(zip_longest(*map(bytes.split, lines.values()), fillvalue=b"0"))[skip:]
        if len(columns) <= len(self._events):
            with suppress(ValueError):  # which the line-by-line reader reports with its place
                return self.add(file, function, tuple([sum(map(int, column)) for column in columns]))
        rows = [self.read(line.split()[skip:], number) for number, line in lines.items()]
        return self.add(file, function, tuple(map(sum, zip(*rows, strict=True))))

    def profile(self, expected: tuple[int, ...], *, line: int, label: str) -> Profile:
        """Make the profile, and demand that it adds up to what the file says under `label`."""
        costs = sorted(self._costs.items())
        rows: dict[tuple[str, str], tuple[int, ...]] = {}
        for (file, name, _line), counts in costs:
            seen = rows.get((file, name))
            rows[file, name] = counts if seen is None else tuple(map(add, seen, counts))
        functions = tuple(FunctionCost(*key, counts) for key, counts in rows.items())
        lines = tuple(LineCost(*key, counts) for key, counts in costs) if self._keep_lines else ()
        profile = Profile(events=self._events, functions=functions, lines=lines)
        for event, counted, wanted in zip(self._events, profile.totals(), expected, strict=True):
            if counted != wanted:
                message = f"the lines add up to {counted} {event}, but `{label}` says {wanted}"
                raise FileFormatError(message, path=self._path, line=line, hint=DAMAGED_HINT)
        return profile

    def _padded(self, counts: tuple[int, ...]) -> tuple[int, ...]:
        return counts + (0,) * (len(self._events) - len(counts))


_NUMBERED = re.compile(rb"\(([0-9]+)\)(?: (.*))?", re.DOTALL)


def expand(names: dict[tuple[str, bytes], str], kind: str, value: bytes) -> str | None:
    """Return the name that is written as "(2) name", or "(2)" once it is in `names`; None for a number without a name."""
    found = numbered(value)
    if found is None:  # written in full, as with --compress-strings=no
        return decode(value)
    number, text = found
    if text is not None:
        names[kind, number] = decode(text)
    return names.get((kind, number))


def numbered(value: bytes) -> tuple[bytes, bytes | None] | None:
    """Return the number of "(2) name" and its name, None where it only repeats; None for a name without a number."""
    match = _NUMBERED.fullmatch(value)
    return None if match is None else (match[1], match[2])


def unescaped(text: bytes) -> bytes:
    r"""Undo what Callgrind, unlike Cachegrind, does to the command line: \n for a line break, \\ for a backslash."""
    return re.sub(rb"\\([n\\])", lambda match: b"\n" if match[1] == b"n" else b"\\", text)


class Positions:
    """The source line (or address, by `column`) of one line of costs after the other, each perhaps relative to the one before.

    That is the line before in the file, whatever names and calls are between; the inclusive cost of a call and the
    second line of a jump count, too. A line that cannot be known is 0, and so are those relative to it.
    """

    def __init__(self, column: bytes = b"line") -> None:
        self._column = column
        self.columns: Sequence[bytes] = [b"line"]  # of the positions: "line", "instr line" or "instr"
        self._last: int | None = None

    def read(self, tokens: Sequence[bytes]) -> int:
        """Return the position of the next line of costs."""
        place = self.columns.index(self._column) if self._column in self.columns else len(tokens)
        self._last = self._absolute(tokens[place]) if place < len(tokens) else None
        return self._last or 0

    def of_target(self, tokens: Sequence[bytes]) -> int:
        """Return the position of a function that is called, to which no other is relative."""
        last, found = self._last, self.read(tokens)
        self._last = last
        return found

    def _absolute(self, token: bytes) -> int | None:
        if token[:1] not in {b"+", b"-", b"*"}:
            return int(token, 16) if _ADDRESS.fullmatch(token) else line_number(token)
        distance = 0 if token == b"*" else line_number(token[1:])
        if self._last is None or distance is None:
            return None
        line = self._last - distance if token[:1] == b"-" else self._last + distance
        return line if line >= 0 else None
