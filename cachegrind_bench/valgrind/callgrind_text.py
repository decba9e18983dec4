"""How Callgrind spells a name, a position and a command line: numbered, relative and escaped.

Knows these three (Valgrind manual, "Callgrind format specification"); must not know the lines that they stand in.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cachegrind_bench.valgrind.out_format import decode, line_number

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBERED = re.compile(rb"\(([0-9]+)\)(?: (.*))?", re.DOTALL)


def expand(names: dict[tuple[str, bytes], str], kind: str, value: bytes) -> str | None:
    """Return the name that stands as "(2) name", or "(2)" once it is in `names`; None for a number without a name."""
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


class SourceLines:
    """The source line of one line of costs after the other, as each may be relative to the one before.

    That is the line before in the file, whatever names and calls stand between; the inclusive cost of a call and the
    second line of a jump count, too. A line that cannot be known is 0, and so are those relative to it.
    """

    def __init__(self) -> None:
        self.columns: Sequence[bytes] = [b"line"]  # of the positions: "line", "instr line" or "instr"
        self._last: int | None = None

    def read(self, tokens: Sequence[bytes]) -> int:
        """Return the source line of the next line of costs."""
        place = self.columns.index(b"line") if b"line" in self.columns else len(tokens)
        self._last = self._absolute(tokens[place]) if place < len(tokens) else None
        return self._last or 0

    def _absolute(self, token: bytes) -> int | None:
        if token[:1] not in {b"+", b"-", b"*"}:
            return line_number(token)
        distance = 0 if token == b"*" else line_number(token[1:])
        if self._last is None or distance is None:
            return None
        line = self._last - distance if token[:1] == b"-" else self._last + distance
        return line if line >= 0 else None
