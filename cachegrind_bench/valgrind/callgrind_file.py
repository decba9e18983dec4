"""Reader of Callgrind's out files: one or more parts, each with the self cost of its functions, and with their calls if asked.

Knows the grammar of the file (Valgrind manual, "Callgrind format specification"); must not know what the parts of a run
mean together. Costs of calls are inclusive and belong to the callee's own lines, so the profile is without them.

    version: 1, creator:, pid:, cmd:, part:, thread:, desc:, positions:, events:, summary:        the header of a part
    ob=(3) libc.so    fl=(1) file    fn=(2) name     "(2)" alone repeats a name; cob, cfi, cfl, cfn name the callee
    fi=(4) file, fe=(1)                              the code below was inlined from there: other file, same function
    +3 100 20         * 5                            position (one or two columns), counts; missing ones are zero
    calls=1 +5        then a line of inclusive cost; without cob= or cfi= the callee is in the object of the caller, and in
                      the file of its code here
    jump=, jcnd=      then a line with a position only
    totals: 120 20    the end of a part
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.symbols import UNKNOWN
from cachegrind_bench.valgrind.out_format import (
    CUT_HINT,
    DAMAGED_HINT,
    NOBODY,
    UNNAMED,
    UNWANTED,
    CostTable,
    OutFile,
    Positions,
    decode,
    event_names,
    expand,
    line_number,
    reading,
    shown,
    unescaped,
)

if TYPE_CHECKING:
    from cachegrind_bench.model.call_graph import CallGraph
    from cachegrind_bench.valgrind.call_records import CallRecords
    from cachegrind_bench.valgrind.code_log import CompiledCode

Wanted = Callable[[str, str], bool] | None  # of object and name of what is called

_HEADER = frozenset(
    [b"version", b"creator", b"pid", b"cmd", b"part", b"thread", b"desc", b"positions", b"events", b"summary"]
)
# Names are numbered per kind: a file is the same "(4)" after fl=, fi= and cfi=.
_KINDS = {
    **dict.fromkeys([b"fl", b"fi", b"fe", b"cfi", b"cfl", b"jfi"], "file"),
    **dict.fromkeys([b"fn", b"cfn", b"jfn"], "function"),
    **dict.fromkeys([b"ob", b"cob"], "object"),
}


class CallgrindPart(OutFile, frozen=True, kw_only=True):
    """One part: what was counted since the part before, or since the fork.

    `summary` is the `totals:` line, the sum of the cost lines. A part may be empty, with totals of zero. A file cut off
    between two parts looks complete: for the whole run, demand the trigger "Program termination" at its end.
    """

    part: int
    # Why this part was written: "Program termination", "--dump-before=fork", "Client Request", ...
    trigger: str
    # The header's `summary:` line, in the order of `events`. It also has the basic block each thread ended in, which no
    # cost line has: a few events more than `summary`, and then what Cachegrind counts.
    header_summary: tuple[int, ...]
    # None unless calls were asked for. Names are as in the file: code without a name has its address for one.
    calls: CallGraph | None = None


def parse_callgrind(
    path: Path, *, lines: bool = False, calls: Wanted = None, code: CompiledCode | None = None
) -> tuple[CallgrindPart, ...]:
    """Read all parts of one out file, in their order; with `lines` keep the counts of these too.

    `calls` says whether to keep the calls of a function, `code` what instructions without a name are, if their addresses are known.
    """
    with reading(path) as stream:
        return _Reader(shown(path), lines=lines, calls=calls, code=code).read(stream)


def parse_callgrind_bytes(
    data: bytes, name: str, *, lines: bool = False, calls: Wanted = None
) -> tuple[CallgrindPart, ...]:
    """Read the content of an out file; messages have `name` for its path."""
    return _Reader(name, lines=lines, calls=calls).read(BytesIO(data))


class _Reader:
    """State while reading. What is per file comes first, what is per part is set anew by `_begin_part`."""

    def __init__(self, path: str, *, lines: bool, calls: Wanted, code: CompiledCode | None = None) -> None:
        self._path = path
        self._calls: CallRecords | None = None
        if calls is not None:
            from cachegrind_bench.valgrind.call_records import CallRecords

            self._calls = CallRecords(path, calls)
        # What a whole line such as "cfn=(12)" stands for in this part: a third of the lines, and most of them were read before.
        self._callees: dict[bytes, int] = {}
        self._line = 0
        self._parts: list[CallgrindPart] = []
        # With --combine-dumps=yes, later parts repeat neither the command nor the names.
        self._command_line = ""
        self._names: dict[tuple[str, bytes], str] = {}
        self._source = Positions() if lines else None
        self._code = code
        self._instructions = None if code is None else Positions(b"instr")
        # Of instructions, by which calls are counted where Callgrind did not count all of the time.
        self._addresses: Positions | None = None
        self._entries = (
            Positions() if self._calls is not None and self._calls.is_whole else None
        )  # lines of functions called
        self._tracked = any((self._source, self._instructions, self._entries))
        self._complete = False
        self._begin_part()

    def _begin_part(self) -> None:
        self._header: dict[bytes, bytes] = {}
        self._trigger = ""
        self._events: tuple[str, ...] = ()
        self._positions = 1
        self._table = CostTable(self._path, (), lines=False)
        self._own_file: str | None = None  # of the function
        self._file: str | None = None  # in effect
        self._function: str | None = None
        self._costs: dict[int, bytes] = {}  # by line number, of the function and file in effect
        self._call_line = b""  # whose cost comes in the next line
        self._ir = 0  # the place of Ir among the events
        self._object = UNKNOWN
        self._called_object: str | None = None
        self._called_file: str | None = None
        self._callee = NOBODY
        self._callees.clear()
        if self._calls is not None:
            self._calls.begin_part()

    def read(self, lines: Iterable[bytes]) -> tuple[CallgrindPart, ...]:
        """Read the file."""
        skip = False
        line = b""
        costs, callees = self._costs, self._callees
        for self._line, line in enumerate(lines, 1):
            # The hot path first: digits, and the + - * of a relative position.
            if 42 <= line[0] <= 57:
                if skip:  # after calls= it is the inclusive cost of these
                    skip = False
                    place = self._called_at(line.split()) if self._tracked else (0, 0)
                    if self._callee != UNWANTED and self._calls is not None:
                        self._calls.call(self._callee, self._line, self._call_line, line, place)
                    self._callee, self._called_object, self._called_file = NOBODY, None, None
                else:
                    costs[self._line] = line
                continue
            if skip:
                raise self._error("the line with the cost of a call is missing", hint=DAMAGED_HINT)
            # Then the two lines before the cost of a call.
            callee = callees.get(line)
            if callee is not None:
                self._callee = callee
            elif line.startswith(b"calls="):
                self._call_line, skip = line, True
            else:
                skip = self._other_line(line)
                costs = self._costs
        if self._line == 0:
            raise FileFormatError("the file is empty", path=self._path, hint=CUT_HINT)
        if not self._complete or self._costs or not line.endswith(b"\n"):
            raise self._error("the file does not end with a `totals:` line", hint=CUT_HINT)
        return tuple(self._parts)

    def _called_at(self, cost: list[bytes]) -> tuple[int, int]:
        """Take in the position of a call, which others may be relative to.

        Return the address of its instruction, and the line where the function that is called begins; 0 if unknown.
        """
        self._book()
        line = 0
        if self._source is not None:
            self._source.read(cost)
        if self._instructions is not None:
            self._instructions.read(cost)
        if self._entries is not None:
            line = self._entries.of_target(self._call_line.split()[1:])
            self._entries.read(cost)
        return 0 if self._addresses is None else self._addresses.read(cost), line

    def _other_line(self, line: bytes) -> bool:
        """Read a line that is not of counts; return whether the next one is not self cost."""
        text = line.removesuffix(b"\n")
        if not text.strip() or text.startswith(b"#"):
            return False
        key, equals, value = text.partition(b"=")
        if equals and key in _KINDS:
            self._name(key, value)
            if key == b"cfn" and value.startswith(b"(") and value[1:-1].isdigit():
                self._callees[line] = self._callee
        elif equals and key in {b"jump", b"jcnd"}:
            self._callee = UNWANTED
            return True
        else:
            key, colon, value = text.partition(b":")
            if colon and key in _HEADER:
                self._header_line(key, value.strip(b" ") if key != b"cmd" else value)
            elif colon and key == b"totals":
                self._end_part(value)
            else:
                raise self._error(f"not a line of a Callgrind out file: {decode(text[:80])!r}", hint=DAMAGED_HINT)
        return False

    def _name(self, key: bytes, value: bytes) -> None:
        if not self._events or self._complete:
            raise self._error("a name outside of a part", hint=DAMAGED_HINT)
        name = expand(self._names, _KINDS[key], value)
        if name is None:
            raise self._error(f"{_KINDS[key]} {decode(value)} has no name yet", hint=DAMAGED_HINT)
        if key == b"fn":
            self._book()
            # Callgrind prints fl= only when it differs from the last fl=, whatever fi= and fe= came between.
            self._function, self._file = name, self._own_file
        elif key == b"fl":
            self._book()
            self._function, self._file, self._own_file = None, name, name
        elif key in {b"fi", b"fe"}:
            self._book()
            self._file = name
        if self._calls is not None:
            self._name_of_calls(self._calls, key, value, name)

    def _name_of_calls(self, calls: CallRecords, key: bytes, value: bytes, name: str) -> None:
        if key == b"fn":
            file, name = self._compiled(self._own_file, name)
            calls.enter(value, name, self._object, file)
        elif key == b"cfn":
            file, name = self._compiled(self._called_file or self._file, name)
            self._callee = calls.callee(value, name, self._called_object or self._object, file)
        elif key == b"ob":
            self._object = name
        elif key == b"cob":
            self._called_object = name
        elif key in {b"cfi", b"cfl"}:
            self._called_file = name

    def _book(self) -> None:
        """Add the collected lines to the row of the function and file in effect."""
        if not self._costs:
            return
        if self._file is None or self._function is None:
            first = next(iter(self._costs))
            raise self._error("counts without `fl=` and `fn=` lines before them", line=first)
        if self._source is None and self._code is None:
            counts = self._table.add_lines(self._file, self._function, self._costs, skip=self._positions)
            if self._calls is not None:
                self._calls.book(counts[self._ir])
        else:
            for number, tokens in ((number, line.split()) for number, line in self._costs.items()):
                counts = self._table.read(tokens[self._positions :], number)
                file, function, at = self._place(self._file, self._function, tokens)
                self._table.add(file, function, counts, at)
                if self._calls is not None:
                    self._calls.book(counts[self._ir])
        if self._calls is not None and self._entries is not None:
            for tokens in map(bytes.split, self._costs.values()):
                self._entries.read(tokens)
                if self._addresses is not None:
                    (ir,) = tokens[self._positions + self._ir :][:1] or (b"0",)
                    self._calls.execute(self._addresses.read(tokens), int(ir))
        self._costs.clear()

    def _compiled(self, file: str | None, function: str) -> tuple[str | None, str]:
        """Return file and name of a function, which for one without a name is the address where it begins."""
        found = self._code.at(int(function, 16)) if self._code is not None and UNNAMED.fullmatch(function) else None
        return (file, function) if found is None else found[:2]

    def _place(self, file: str, function: str, tokens: list[bytes]) -> tuple[str, str, int]:
        """Return the file, function and line that this line of costs belongs to, in code of a function that is called so."""
        line = 0 if self._source is None else self._source.read(tokens)
        address = 0 if self._instructions is None else self._instructions.read(tokens)
        found = self._code.at(address) if self._code is not None and UNNAMED.fullmatch(function) else None
        if self._code is None or found is None:
            return file, function, line
        return *found[:2], 0 if self._source is None else self._code.line(found)

    def _header_line(self, key: bytes, value: bytes) -> None:
        if self._costs or (self._function is not None and not self._complete):
            raise self._error(f"a `{decode(key)}:` line among the counts", hint=DAMAGED_HINT)
        if self._complete:
            self._complete = False
            self._begin_part()
        if key == b"desc":
            name, _, text = decode(value).partition(": ")
            if name == "Trigger":
                self._trigger = text
            return
        self._header[key] = value
        if key == b"cmd":
            self._command_line = decode(unescaped(value.removeprefix(b"  ")))
        elif key == b"events":
            self._events = event_names(value, path=self._path, line=self._line)
            self._ir = self._events.index("Ir") if "Ir" in self._events else 0
            self._table = CostTable(self._path, self._events, lines=self._source is not None)
        elif key == b"positions":
            self._set_positions(value.split())
        if self._calls is not None:
            self._calls.column = self._positions + self._ir

    def _set_positions(self, columns: list[bytes]) -> None:
        self._positions = len(columns)
        if self._entries is not None and b"instr" in columns:
            self._addresses = Positions(b"instr")
        for positions in (self._source, self._entries, self._addresses, self._instructions):
            if positions is not None:
                positions.columns = columns

    def _end_part(self, value: bytes) -> None:
        if not self._events or self._complete:
            raise self._error("`totals:` outside of a part", hint=DAMAGED_HINT)
        self._book()
        totals = self._table.read(value.split(), self._line)
        self._parts.append(
            CallgrindPart(
                command_line=self._command_line,
                events=self._events,
                summary=totals,
                profile=self._table.profile(totals, line=self._line, label="totals:"),
                part=line_number(self._header.get(b"part", b"")) or 1,
                trigger=self._trigger,
                header_summary=self._table.read(self._header.get(b"summary", b"").split(), self._line),
                calls=None if self._calls is None else self._calls.graph(),
            )
        )
        self._complete = True

    def _error(self, message: str, *, line: int | None = None, hint: str | None = None) -> FileFormatError:
        return FileFormatError(message, path=self._path, line=line or self._line, hint=hint)
