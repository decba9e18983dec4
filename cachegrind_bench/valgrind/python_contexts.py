"""Reader of Callgrind's out files of a run with `options.python_paths`: what each path of Python calls cost itself.

Knows how Callgrind names contexts, `fn=(2) OWN'LEVEL'CALLER'CALLER'S_CALLER...` with the innermost caller first, and
which of them are trampolines; must not know where out files and maps come from. Names that are not an address are of
functions that nobody called or that are kept apart, addresses that are not a trampoline of code without a name: these cost their
Python caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.python_profile import (
    TOP,
    NativePart,
    PythonFunction,
    PythonProfile,
    PythonRow,
    profile_of,
)
from cachegrind_bench.valgrind.out_format import CUT_HINT, DAMAGED_HINT, decode, numbered, reading, shown

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.valgrind.perf_map import Trampolines
    from cachegrind_bench.valgrind.processes import OutPath

    Hide = Callable[[PythonFunction], bool]

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
    with reading(path) as stream:
        for line in stream:
            if line.startswith(b"part:"):
                number = line[5:].strip()
            elif line.startswith(_TRIGGER):
                trigger = decode(line[len(_TRIGGER) :].rstrip(b"\n"))
            elif line.startswith(b"events:"):
                break
    if not number.isdigit():
        raise FileFormatError("its part has no number", path=shown(path), hint=DAMAGED_HINT)
    return PartHead(path, int(number), trigger)


class ContextFile:
    """State while reading one file, a line at a time: files of hundreds of megabytes are usual.

    `place` says for the name of a function where in `calls` and `ir` its costs belong (below 0: nowhere), and the address
    of the instruction whose Ir are its calls; BY_CALLER, if those that its callers count are.
    """

    def __init__(self, path: str, place: Callable[[bytes], tuple[int, int]], calls: list[int], ir: list[int]) -> None:
        self._path, self._place_of, self._calls, self._ir = path, place, calls, ir
        self._line = 0
        self._places: dict[bytes, tuple[int, int]] = {}
        self._columns, self._column = 1, -1  # of positions, and the one of Ir
        self._address = 0
        self._place: tuple[int, int] | None = None
        self._callee = (-1, -1)
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
                self._callee = self._defined(line[4:])
            elif line.startswith((b"calls=", b"jump=", b"jcnd=")):
                skip = True
                if self._callee[1] == BY_CALLER and line.startswith(b"calls="):
                    self._called(line)
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

    def _called(self, line: bytes) -> None:
        try:
            self._calls[self._callee[0]] += int(line[6:].split()[0])
        except (IndexError, ValueError):
            raise self._error("not a number of calls", hint=DAMAGED_HINT) from None

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
        if self._place is None or self._column < 0:
            raise self._error("a line of costs that belongs to no function", hint=DAMAGED_HINT)
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
        stated = totals[self._column] if 0 <= self._column < len(totals) else b"0"
        if stated != b"%d" % self._sum:
            message = f"the lines add up to {self._sum} Ir, but `totals:` says {decode(stated[:80])}"
            raise self._error(message, hint=DAMAGED_HINT)
        self._total += self._sum
        self._complete, self._place, self._column = True, None, -1  # no costs until the next part says its events

    def _error(self, message: str, *, hint: str | None = None) -> FileFormatError:
        return FileFormatError(message, path=self._path, line=self._line, hint=hint)


NATIVE = -2  # the path of what is under no Python function
BY_CALLER = -3
_ADDRESS = re.compile(rb"0x[0-9a-f]+")
_STUB = re.compile(rb"0x[0-9a-f]{1,16} \[PLT\]")
_NAMED = re.compile(rb"[A-Za-z_]")


class PathReader:
    """A tree of paths that grows with each out file."""

    def __init__(self, *, depth: int | None = None, hide: Hide | None = None, kept: Collection[str] = ()) -> None:
        """`depth` is the number of callers that was asked for, to recognise paths that were cut.

        Native functions that are `kept` have rows below the Python function that ran them. Functions that are to `hide` disappear: what they called belongs to their callers, and what they cost themselves
        is native.
        """
        self.cut = False
        self._depth, self._hide = depth, hide
        self.kept = frozenset(name.encode() for name in kept)
        self._total = 0
        self._parents: list[int] = []
        self._functions: list[PythonFunction | str] = []  # or the name of a native one
        self._calls: list[int] = []
        self._ir: list[int] = []
        self._places: dict[tuple[int, PythonFunction | str], int] = {}
        self._stubs: set[bytes] = set()
        self._outermost: set[bytes] = set()

    @property
    def stubs(self) -> tuple[str, ...]:
        """The stubs between callers, which can be skipped: others are called where nothing else is that is not skipped."""
        return tuple(sorted(map(decode, self._stubs - self._outermost)))

    def profile(self) -> PythonProfile:
        """Return what was read so far."""
        rows, parts = list[PythonRow](), list[NativePart]()
        places: list[int] = []  # of each, in rows or in parts
        for parent, function, calls, ir in zip(self._parents, self._functions, self._calls, self._ir, strict=True):
            if isinstance(function, PythonFunction):
                places.append(len(rows))
                rows.append(PythonRow(parent if parent == TOP else places[parent], function, calls, ir))
                continue
            above, is_part = places[parent], isinstance(self._functions[parent], str)
            path = parts[above].path if is_part else above
            places.append(len(parts))
            parts.append(NativePart(path, above if is_part else TOP, function, calls, ir))
            rows[path] = rows[path]._replace(ir=rows[path].ir + ir)
        return profile_of(rows, total=self._total, cut=self.cut, parts=parts)

    def read_all(self, files: Iterable[OutPath], trampolines: Callable[[int], Trampolines]) -> None:
        """Add the out files of several processes, each with the trampolines of its own."""
        for file in files:
            self.read(file.path, trampolines(file.pid))

    def read(self, path: Path, trampolines: Trampolines, counter: int = -1) -> None:
        """Add an out file with all its parts. Ir at the address `counter` are calls of the function that runs it.

        FileFormatError for a file that cannot be used.
        """
        contexts = _Contexts(self, trampolines, counter)
        with reading(path) as stream:
            self._total += ContextFile(shown(path), contexts.place, self._calls, self._ir).read(stream)

    def below(self, parent: int, function: PythonFunction | str) -> int:
        """Return the path of a function that was called from another path; a native one is named.

        A function that calls itself has two paths, one for the first call and one for all others: Callgrind keeps no
        more of them apart, unless something without a name comes between.
        """
        again = parent != TOP and self._functions[parent] == function and self._parents[parent] != TOP
        if again and self._functions[self._parents[parent]] == function:
            return parent
        place = self._places.setdefault((parent, function), len(self._parents))
        if place == len(self._parents):
            self._parents.append(parent)
            self._functions.append(function)
            self._calls.append(0)
            self._ir.append(0)
        return place

    def native(self, above: int, name: str) -> int:
        """Return the place of a native function that ran below a path or another one; one that calls itself has one."""
        return above if self._functions[above] == name else self.below(above, name)

    def hidden(self, function: PythonFunction) -> bool:
        """Return whether a function is to disappear."""
        return self._hide is not None and self._hide(function)

    def seen(self, elements: list[bytes]) -> None:
        """Note the functions that a context names; with all callers that were asked for, there may have been more."""
        self.cut = self.cut or (self._depth is not None and len(elements) > self._depth)
        # Those with a name are skipped anyway; they are in a context only where nobody called them.
        called = [item for item in elements if not _NAMED.match(item)]
        if len(called) == 1 or len(called) < len(elements):
            self._outermost.update(called[-1:])
        self._stubs.update(filter(_STUB.fullmatch, elements))


class _Contexts:
    """The contexts of one file: what each means in the tree."""

    def __init__(self, tree: PathReader, trampolines: Trampolines, counter: int) -> None:
        self._tree, self._trampolines, self._counter = tree, trampolines, counter
        self._known: dict[bytes, PythonFunction | None] = {}
        self._hidden: dict[PythonFunction, bool] = {}

    def place(self, name: bytes) -> tuple[int, int]:
        """Return the path that a context's cost belongs to, and the address whose Ir are its calls (-1: none)."""
        own, *callers = name.split(b"'")
        again = bool(callers) and callers[0].isdigit()
        if again:
            del callers[0]
        self._tree.seen([own, *callers])
        found = [function for function in map(self._function, callers) if function is not None]
        called = self._function(own)
        if self._is_hidden(called or (found[0] if found else None)):
            return NATIVE, -1
        path = part = TOP
        for element in reversed(callers):
            function = self._function(element)
            if function is not None and not self._is_hidden(function):
                path = part = self._tree.below(path, function)
            elif element in self._tree.kept:
                part = self._part(part, element)
        if called is None and own in self._tree.kept and part != TOP:
            return self._part(part, own), BY_CALLER
        if called is None:
            return part, self._counter if self._address(own) == self._counter else -1
        path = self._tree.below(path, called)
        if again and own not in callers:
            path = self._tree.below(path, called)
        start = int(own, 16)
        return path, start if start in self._trampolines.functions else -1

    def _part(self, above: int, name: bytes) -> int:
        """Return the place of a native function, which is that of its caller if it calls itself; TOP under no Python function."""
        return above if above == TOP else self._tree.native(above, decode(name))

    def _is_hidden(self, function: PythonFunction | None) -> bool:
        if function is None:
            return True
        if function not in self._hidden:
            self._hidden[function] = self._tree.hidden(function)
        return self._hidden[function]

    def _function(self, element: bytes) -> PythonFunction | None:
        if element not in self._known:
            self._known[element] = self._trampolines.at(self._address(element))
        return self._known[element]

    @staticmethod
    def _address(element: bytes) -> int:
        return int(element, 16) if _ADDRESS.fullmatch(element) else -1
