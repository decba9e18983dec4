r"""Reader of the logs of code that V8 and the JVM compile: of which function, and of which source line, an instruction is.

Knows the lines of V8's `--log-code`, in which `\x2C` is a comma, and of the JVM's `-XX:+LogCompilation`; must not know what is counted.

    code-creation,JS,13,181698,0x7f356d00,376,work file:///w/a.mjs:1:21,0x16ac0468,*
                                                     kind, time, address, bytes, function, its address, and compiler: ~ is bytecode
    code-source-info,0x7f356d00,143,283,301,C0O283C39O289I0,F0O289,S0x16ac0468
                                                     from byte 39 on it is from position 289 in inlined call 0, which is (F)
                                                     of function 0 of those that follow (S)
    code-move,0x7f356d00,0x7f3a0000                  the garbage collector moved code, or (sfi-move) a function

    <nmethod compile_id='7' compiler='c1' size='904' address='0x00007f356d00' method='a.B$C &lt;init&gt; (I)V' ... />
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote
from xml.sax.saxutils import unescape

import msgspec

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.symbols import UNKNOWN
from cachegrind_bench.valgrind.out_format import decode, reading

Place = tuple[str, str, int]  # file, function, and the place of a character in the file, -1 if unknown
CODE_LOG = "code.log"  # how the names of the logs end
_ANONYMOUS = "(anonymous)"
_JVM_FOLDER = Path("/tmp")  # noqa: S108 - the JVM's choice
_CREATION = re.compile(
    rb"code-creation,\w+,\d{1,9},\d{1,19},(0x[0-9a-f]{1,16}),(\d{1,9}),([^,]*)(?:,(0x[0-9a-f]{1,16}),(.*))?"
)
_INFO = re.compile(rb"code-source-info,(0x[0-9a-f]{1,16}),\d+,\d+,\d+,([^,]*),([^,]*),((?:S0x[0-9a-f]{1,16})*)")
_MOVE = re.compile(rb"(code|sfi)-move,(0x[0-9a-f]{1,16}),(0x[0-9a-f]{1,16})")
_POSITION = re.compile(rb"C(\d{1,9})O(\d{1,9})(?:I(\d{1,9}))?")
_INLINED = re.compile(rb"F(\d{1,9})?O\d+(?:I\d+)?")
_FUNCTION = re.compile(r"(?s)(.*?) (/.*|[a-z-]+:.*|\S*):\d+:\d+")
_ATTRIBUTE = re.compile(rb" (\w+)='([^']*)'")
# What comes after it in the name of a hidden class is a number or an address: `L$$Lambda$1/0x00007f14ec000a08`.
_HIDDEN = re.compile(r"(?<=\$\$Lambda).*|[/.+]0x[0-9a-f]+$")
_PLACE = re.compile(rb"0x([0-9a-f]{1,16}) (\d{1,9})")
_ESCAPE = re.compile(rb"\\(n|\\|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})")


class _Code(msgspec.Struct):
    """Compiled code, and where in it code of which function begins, at which position of its source."""

    end: int
    function: tuple[str, str]
    offsets: list[int] = []
    positions: list[tuple[tuple[str, str], int]] = []


class CompiledCode:
    """What a process compiled, as it was in the end."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._codes: dict[int, _Code] = {}
        self._functions: dict[int, tuple[str, str]] = {}
        self._ends: dict[str, list[int]] = {}

    def at(self, address: int) -> Place | None:
        """Return what the instruction at this address is of, None if nothing was compiled there."""
        place = bisect_right(self._starts, address)
        start = self._starts[place - 1] if place else 0
        code = self._codes.get(start)
        if code is None or address >= code.end:
            return None
        at = bisect_right(code.offsets, address - start)
        function, position = code.positions[at - 1] if at else (code.function, -1)
        return *function, position

    def line(self, place: Place) -> int:
        """Return the line in the file, which is read; 0 if it is unknown."""
        file, _, position = place
        if file not in self._ends:
            self._ends[file] = _ends_of_lines(Path(file)) if file.startswith("/") else []
        ends = self._ends[file]
        return bisect_left(ends, position) + 1 if ends and 0 <= position <= ends[-1] else 0

    def read(self, lines: Iterable[bytes]) -> None:
        """Take in the lines of a log."""
        for line in lines:
            if match := _CREATION.fullmatch(line := line.rstrip(b"\n")):
                self._created(*match.groups())
            elif match := _INFO.fullmatch(line):
                self._located(*match.groups())
            elif match := _MOVE.fullmatch(line):
                self._moved(match[1], int(match[2], 16), int(match[3], 16))
            elif line.startswith(b"<nmethod "):
                self._compiled(dict(_ATTRIBUTE.findall(line)))

    def _compiled(self, said: dict[bytes, bytes]) -> None:
        """Take in a method of Java."""
        place = _PLACE.fullmatch(said.get(b"address", b"") + b" " + said.get(b"size", b""))
        owner, name, *_signature = (*unescape(decode(said.get(b"method", b""))).split(" "), "")
        owner = _HIDDEN.sub("", owner).replace("/", ".")  # as until Java 8
        if place and name:
            file = f"{owner.partition('$')[0].replace('.', '/')}.java"  # as a compiler would look for it
            self._put(start := int(place[1], 16), _Code(start + int(place[2]), (file, f"{owner}.{name}")))

    def _created(self, start: bytes, size: bytes, text: bytes, function: bytes | None, compiler: bytes | None) -> None:
        found = _function(_unescaped(text))
        if function is not None:
            self._functions[int(function, 16)] = found
        if compiler != b"~":  # bytecode
            self._put(int(start, 16), _Code(int(start, 16) + int(size), found))

    def _put(self, start: int, code: _Code) -> None:
        """Put code in the place of what was there."""
        first, last = bisect_left(self._starts, start), bisect_left(self._starts, code.end)
        if first and self._codes[self._starts[first - 1]].end > start:
            first -= 1
        for other in self._starts[first:last]:
            del self._codes[other]
        self._starts[first:last] = [start]
        self._codes[start] = code

    def _located(self, start: bytes, positions: bytes, inlined: bytes, functions: bytes) -> None:
        code = self._codes.get(int(start, 16))
        if code is None:
            return
        known = [self._functions.get(int(name, 16), code.function) for name in functions.split(b"S")[1:]]
        numbers = [int(match[1] or len(known)) for match in _INLINED.finditer(inlined)]
        of_calls = [known[number] if number < len(known) else code.function for number in numbers]
        for match in _POSITION.finditer(positions):
            call = len(of_calls) if match[3] is None else int(match[3])
            code.offsets.append(int(match[1]))
            code.positions.append((of_calls[call] if call < len(of_calls) else code.function, int(match[2])))

    def _moved(self, kind: bytes, start: int, to: int) -> None:
        if kind == b"sfi":
            if (function := self._functions.get(start)) is not None:
                self._functions[to] = function
        elif (code := self._codes.get(start)) is not None:
            self._put(to, msgspec.structs.replace(code, end=code.end - start + to))


def read_code(out: Path, pid: int) -> CompiledCode | None:
    """Read the logs of a process in this folder, one for each thread with JavaScript, or of a JVM; None if it wrote none."""
    paths = sorted(itertools.chain(out.glob(f"isolate-*-{pid}-{CODE_LOG}"), out.glob(f"pid{pid}-{CODE_LOG}")))
    found = CompiledCode()
    for path in paths:
        with suppress(FileFormatError), reading(path) as stream:  # it is for names only
            found.read(stream)
    return found if paths else None


def remove_unfinished(out: Path) -> None:
    """Remove what JVMs of this folder have left if they were killed: each writes here, whatever TMPDIR is, before its log."""
    for log in out.glob("log.*"):
        pid = log.suffix[1:]
        for left in _JVM_FOLDER.glob(f"hs_c*_pid{pid}.log") if pid.isdecimal() else ():
            with suppress(OSError):
                left.unlink()


def _ends_of_lines(path: Path) -> list[int]:
    with suppress(FileFormatError), reading(path) as stream:
        ends = list(
            itertools.accumulate(_units(line) + 1 for line in stream.read().decode("utf-8", "replace").split("\n"))
        )
        return [end - 1 for end in ends]
    return []


def _units(line: str) -> int:
    """Return the length of text as JavaScript counts it."""
    return len(line.encode("utf-16-le", "surrogatepass")) // 2


def _function(text: str) -> tuple[str, str]:
    """Return file and name, of a function or other code."""
    match = _FUNCTION.fullmatch(text)
    if match is None:
        return UNKNOWN, text or _ANONYMOUS
    return _file(match[2]), match[1] or _ANONYMOUS


def _file(name: str) -> str:
    return unquote(name.removeprefix("file://")) if name.startswith("file:///") else name or UNKNOWN


def _unescaped(text: bytes) -> str:
    return decode(_ESCAPE.sub(_character, text))


def _character(match: re.Match[bytes]) -> bytes:
    kind = match[1]
    if kind in {b"n", b"\\"}:
        return b"\n" if kind == b"n" else kind
    code = int(kind[1:], 16)
    return bytes((code,)) if code < 0x80 else b"?"
