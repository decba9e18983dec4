"""Reader of a Callgrind out file with addresses: adds up Ir, and those of a first instruction, by name of function.

Knows the lines of the file, as `callgrind_file` does, and that names and parts are many; must not know what names mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.valgrind.callgrind_text import numbered
from cachegrind_bench.valgrind.out_format import CUT_HINT, DAMAGED_HINT, decode, shown, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

_NAMES = (b"ob=", b"fl=", b"fi=", b"fe=", b"cob=", b"cfi=", b"cfl=")
_TRIGGER = b"desc: Trigger: "


class PartHead(msgspec.Struct, frozen=True):
    """A file of one part: its number, and why Callgrind wrote it."""

    path: Path
    part: int
    trigger: str


def part_head(path: Path) -> PartHead:
    """Read the beginning of an out file. FileFormatError if it cannot be read, or has no number."""
    number, trigger = b"", ""
    try:
        with path.open("rb") as stream:
            for line in stream:
                if line.startswith(b"part:"):
                    number = line[5:].strip()
                elif line.startswith(_TRIGGER):
                    trigger = decode(line[len(_TRIGGER) :].rstrip(b"\n"))
                elif line.startswith(b"events:"):
                    break
    except OSError as error:
        raise unreadable(path, error) from error
    if not number.isdigit() or len(number) > 9:
        raise FileFormatError("its part has no number", path=shown(path), hint=DAMAGED_HINT)
    return PartHead(path, int(number), trigger)


class ContextFile:
    """State while reading one file, a line at a time: files of hundreds of megabytes are usual.

    `place` tells for the name of a function where in `calls` and `ir` its costs belong (below 0: nowhere), and the address
    of the instruction whose Ir are its calls.
    """

    def __init__(self, path: str, place: Callable[[bytes], tuple[int, int]], calls: list[int], ir: list[int]) -> None:
        self._path, self._place_of, self._calls, self._ir = path, place, calls, ir
        self._line = 0
        self._places: dict[bytes, tuple[int, int]] = {}
        self._columns, self._column = 1, -1  # of positions, and the one of Ir
        self._address = 0
        self._place: tuple[int, int] | None = None
        self._sum = self._total = 0
        self._complete = False

    def read(self, lines: Iterable[bytes]) -> int:
        """Read all parts, and return their Ir."""
        skip = False
        for self._line, line in enumerate(lines, 1):
            if b"*" <= line[:1] <= b"9":
                self._cost(line.split(), of_call=skip)
                skip = False
            elif line.startswith(b"fn="):
                self._place = self._defined(line[3:])
            elif line.startswith(b"cfn="):
                self._defined(line[4:])
            elif line.startswith((b"calls=", b"jump=", b"jcnd=")):
                skip = True
            else:
                self._other(line)
        if not self._complete:
            raise self._error("the file does not end with a `totals:` line", hint=CUT_HINT)
        return self._total

    def _defined(self, value: bytes) -> tuple[int, int]:
        number, name = numbered(value.rstrip(b"\n")) or (value, value.rstrip(b"\n"))
        if name is not None:
            self._places[number] = self._place_of(name)
        elif number not in self._places:
            raise self._error(f"function {decode(number[:80])} has no name yet", hint=DAMAGED_HINT)
        return self._places[number]

    def _cost(self, tokens: list[bytes], *, of_call: bool) -> None:
        """Book a line of costs; the inclusive cost of a call counts only as a position."""
        try:
            self._move(tokens[0])
            place = self._columns + self._column
            cost = int(tokens[place]) if place < len(tokens) and not of_call else 0
        except ValueError:
            raise self._error("not a line of costs", hint=DAMAGED_HINT) from None
        if of_call:
            return
        if self._place is None or self._column < 0 or cost < 0:
            raise self._error("a line of costs that belongs to no function, or is negative", hint=DAMAGED_HINT)
        path, first = self._place
        self._sum += cost
        if path >= 0:
            self._ir[path] += cost
            if self._address == first:
                self._calls[path] += cost

    def _move(self, token: bytes) -> None:
        """Go to a position: absolute in hex, or relative to the one before in decimal."""
        if token[:1] in {b"+", b"-"}:
            self._address += int(token)
        elif token != b"*":
            self._address = int(token, 16)

    def _other(self, line: bytes) -> None:
        key, colon, value = line.partition(b":")
        if colon and key == b"events":
            if b"Ir" not in value.split():
                raise self._error("it has no counts of Ir")
            self._column = value.split().index(b"Ir")
            self._complete, self._place, self._sum, self._address = False, None, 0, 0
        elif colon and key == b"positions":
            self._columns = len(value.split())
            if value.split()[:1] != [b"instr"]:
                raise self._error("it has no addresses of instructions")
        elif colon and key == b"totals":
            self._end(value.split())
        elif not line.strip() or line.startswith((b"#", *_NAMES)) or (colon and b"=" not in key):
            return
        else:
            raise self._error(f"not a line of a Callgrind out file: {decode(line[:80].strip())!r}", hint=DAMAGED_HINT)

    def _end(self, totals: list[bytes]) -> None:
        told = totals[self._column] if 0 <= self._column < len(totals) else b"0"
        if not told.isdigit() or len(told) > 18 or int(told) != self._sum:
            message = f"the lines add up to {self._sum} Ir, but `totals:` says {decode(told[:80])}"
            raise self._error(message, hint=DAMAGED_HINT)
        self._total += self._sum
        self._complete, self._place = True, None

    def _error(self, message: str, *, hint: str | None = None) -> FileFormatError:
        return FileFormatError(message, path=self._path, line=self._line, hint=hint)
