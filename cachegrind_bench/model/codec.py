"""The result file `cg-bench.run/1`: values to canonical JSON, and back.

Knows the format and the values of `result`; must not know files, folders or stores.

Format history: `cg-bench.run/1` is the first. Within a schema number, readers ignore keys they do not know. A
profile may have `lines`, rows of file, name, line and counts, which add up to its `functions`; a benchmark may have
`output`, the last part of what its program wrote, `python`, what its Python functions cost, `calls`, which of its
functions called which, and `scale`, the size of its input and the group it is in:

    "profile": {"events": [NAME, ...], "functions": [[FILE, NAME, COUNT, ...], ...], "lines": [[FILE, NAME, LINE, COUNT, ...], ...]}
    "python": {"total": IR, "cut": false, "functions": [[FILE, NAME, LINE], ...], "paths": [[CALLER, FUNCTION, CALLS, IR], ...],
               "parts": [[PATH, CALLER, NAME, CALLS, IR], ...]}
    "calls": {"functions": [[OBJECT, FILE, NAME, IR], ...], "calls": [[FUNCTION, FUNCTION, CALLS, IR], ...]}

OBJECT, FILE and NAME are places among the document's `strings`, FUNCTION one among the functions; of two, the first is the
caller. CALLER is that of an earlier path counted from 1, and 0 where no Python function called; of parts, it is an earlier part
of the same PATH, and 0 where that path's function called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import msgspec
from msgspec.structs import asdict, replace

from cachegrind_bench.errors import FileFormatError, UsageError
from cachegrind_bench.model.metrics import EVENTS, ZERO, Branches, CostModel, Counts, FunctionCost, LineCost, Profile
from cachegrind_bench.model.parsing import parse, refuse, without_mark
from cachegrind_bench.model.python_profile import TOP, NativePart, PythonFunction, PythonPath, PythonProfile
from cachegrind_bench.model.result import (
    Benchmark,
    Commit,
    Environment,
    ObjectFile,
    ProcessCost,
    Result,
    Run,
    Scale,
    Score,
    SealPart,
    Status,
)

if TYPE_CHECKING:
    from cachegrind_bench.model.call_graph import CallGraph

WRITTEN = "'cg-bench run -o FILE' writes result files"
FAMILY = "cg-bench.run/"
SCHEMA = FAMILY + "1"
_OPTIONAL = ("output", "python", "iterations", "calls", "taken_over", "scale", "branches")  # of a benchmark
_NEWER = re.compile(re.escape(FAMILY) + r"[1-9][0-9]{0,8}")

# Far above any count a simulated program can reach (a century of Cachegrind), far below what makes arithmetic slow.
_LARGEST = (1 << 63) - 1
_Count = Annotated[int, msgspec.Meta(ge=0, le=_LARGEST)]
_Integer = Annotated[int, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]
_Rows = list[list[_Count]]
_FEW = msgspec.Meta(max_length=10_000)  # each is a line of reports
_Fields = Annotated[dict[str, str], _FEW]


def encode(result: Result) -> bytes:
    """Return the canonical bytes: sorted keys, no floats, UTF-8, one newline at the end."""
    strings: dict[str, int] = {}
    document: dict[str, object] = {
        "schema": SCHEMA,
        "tool": {"version": result.tool_version},
        "created_at": result.created_at,
        "commit": result.commit,
        "env": {"key": result.env.key, "fields": dict(result.env.fields), "info": dict(result.env.info)},
        "benchmarks": [_benchmark(benchmark, strings) for benchmark in result.benchmarks],
    }
    document["strings"] = list(strings)
    return msgspec.json.encode(document, order="sorted") + b"\n"


def _benchmark(benchmark: Benchmark, strings: dict[str, int]) -> dict[str, object]:
    def place(text: str) -> int:
        return strings.setdefault(text, len(strings))

    document = asdict(benchmark)
    document |= {name: dict(document[name]) for name in ("key_fields", "parameters", "seal")}
    document["profile"] = benchmark.profile and _profile(benchmark.profile, place)
    document["python"] = benchmark.python and _python(benchmark.python, place)
    document["calls"] = benchmark.calls and _calls(benchmark.calls, place)
    return {name: value for name, value in document.items() if value is not None or name not in _OPTIONAL}


def _profile(profile: Profile, place: Callable[[str], int]) -> dict[str, object]:
    functions = [[place(row.file), place(row.name), *row.counts] for row in profile.functions]
    lines = [[place(row.file), place(row.name), row.line, *row.counts] for row in profile.lines]
    document: dict[str, object] = {"events": profile.events, "functions": functions}
    return document | {"lines": lines} if lines else document


def _python(profile: PythonProfile, place: Callable[[str], int]) -> dict[str, object]:
    document: dict[str, object] = {
        "total": profile.total,
        "cut": profile.cut,
        "functions": [[place(item.file), place(item.name), item.line] for item in profile.functions],
        "paths": [[path.parent - TOP, path.function, path.calls, path.ir] for path in profile.paths],
    }
    parts = [[part.path, part.parent - TOP, place(part.name), part.calls, part.ir] for part in profile.parts]
    return document | {"parts": parts} if parts else document


def _calls(graph: CallGraph, place: Callable[[str], int]) -> dict[str, object]:
    known = {code for pair in graph.calls for code in pair} | graph.own.keys()
    places = {code: index for index, code in enumerate(sorted(known))}
    rows = ((places[pair[0]], places[pair[1]], found.number, found.ir) for pair, found in graph.calls.items())
    return {
        "functions": [[*map(place, code), graph.own.get(code, 0)] for code in places],
        "calls": sorted(rows),
        "lines": [graph.lines.get(code, 0) for code in places] if graph.lines else [],
    }


class _Head(msgspec.Struct):
    schema: str = ""


class _Tool(msgspec.Struct):
    version: str


class _Environment(msgspec.Struct):
    key: str
    fields: _Fields
    info: Annotated[dict[str, str | _Integer], _FEW]


class _Profile(msgspec.Struct):
    """Its rows are parsed when they are asked for."""

    events: tuple[str, ...]
    functions: msgspec.Raw
    lines: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class _Python(msgspec.Struct):
    total: _Count
    cut: bool
    functions: msgspec.Raw
    paths: msgspec.Raw
    parts: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class _Calls(msgspec.Struct):
    functions: msgspec.Raw
    calls: msgspec.Raw
    lines: list[int] = []  # one for each function, 0 if unknown, or none


class _Benchmark(msgspec.Struct):
    id: str
    key: str
    key_fields: _Fields
    command: tuple[str, ...]
    parameters: _Fields
    tags: tuple[str, ...]
    status: Status
    exit_status: _Integer | None
    error: str | None
    warnings: tuple[str, ...]
    tool: str
    counts: Counts | None
    score: Score | None
    runs: tuple[Run, ...]
    processes: tuple[ProcessCost, ...]
    processes_exact: bool
    objects: tuple[ObjectFile, ...]
    wall_ms: _Count
    seal: Annotated[dict[str, SealPart], _FEW]
    profile: _Profile | None
    output: str | None = None
    python: _Python | None = None
    iterations: Annotated[int, msgspec.Meta(ge=1, le=_LARGEST)] | None = None
    calls: _Calls | None = None
    taken_over: bool | None = None
    scale: Scale | None = None
    branches: Branches | None = None


class _Document(msgspec.Struct):
    tool: _Tool
    created_at: str
    commit: Commit | None
    env: _Environment
    benchmarks: tuple[_Benchmark, ...]
    strings: list[str]


class ResultFile:
    """A result file that was read: `result` has no profiles. These are parsed and checked when they are asked for."""

    def __init__(self, data: bytes, name: str) -> None:
        """Read the bytes of a file; `name` is how errors call it. FileFormatError on anything but a valid result."""
        data = without_mark(data)
        if not data:
            raise FileFormatError("the file is empty", path=name, hint=WRITTEN)
        _check_schema(parse(data, _Head, name).schema, name)
        document = parse(data, _Document, name)
        self.name = name
        self._strings = document.strings
        unread: dict[str, Any] = {"profile": None, "python": None, "calls": None}
        self._stored: dict[str, tuple[str, _Benchmark]] = {}
        for index, benchmark in enumerate(document.benchmarks):
            path = f"benchmarks[{index}]"
            if benchmark.id in self._stored:
                refuse(name, f"{path}.id", f"a second benchmark {benchmark.id!r}")
            _check_benchmark(benchmark, name, path)
            self._stored[benchmark.id] = path, benchmark
        self.result = Result(
            tool_version=document.tool.version,
            created_at=document.created_at,
            commit=document.commit,
            env=Environment(**asdict(document.env)),
            benchmarks=tuple(Benchmark(**asdict(item) | unread) for item in document.benchmarks),
        )

    def whole(self) -> Result:
        """Return the result with all its profiles. FileFormatError if one is not what it should be."""
        return replace(self.result, benchmarks=tuple(map(self.with_evidence, self.result.benchmarks)))

    def with_evidence(self, benchmark: Benchmark) -> Benchmark:
        """Return the benchmark of this id with all its profiles. FileFormatError if one is not what it should be."""
        name = benchmark.id
        return replace(benchmark, profile=self.profile(name), python=self.python(name), calls=self.calls(name))

    def profile(self, identity: str) -> Profile | None:
        """Parse the profile of the benchmark of this id. FileFormatError if it is wrong."""
        path, benchmark = self._stored.get(identity, ("", None))
        if benchmark is None or benchmark.profile is None:
            return None
        stored, events, path = benchmark.profile, benchmark.profile.events, f"{path}.profile"
        if len(set(events)) < len(events):
            self._refuse(f"{path}.events", "it has an event twice")
        missing = [name for name in EVENTS if name not in events]
        if missing:
            self._refuse(path, f"its events lack {missing[0]}")
        rows = self._rows(stored.functions, f"{path}.functions", 2 + len(events))
        functions = {(row[0], row[1]): tuple(row[2:]) for row in rows}
        text = self._strings
        if len(functions) < len(rows):
            places = {(row[0], row[1]): index for index, row in reversed([*enumerate(rows)])}  # of the first of each
            index = next(index for index, row in enumerate(rows) if places[row[0], row[1]] != index)
            file, name = rows[index][:2]
            self._refuse(f"{path}.functions[{index}]", f"a second row of {text[name]!r} in {text[file]!r}")
        profile = Profile(
            events=events,
            functions=tuple([FunctionCost(text[file], text[name], row) for (file, name), row in functions.items()]),
            lines=self._lines(stored.lines, f"{path}.lines", functions, len(events)) if bytes(stored.lines) else (),
        )
        if profile.counts() != benchmark.counts:
            self._refuse(path, "its rows do not add up to the benchmark's counts")
        return profile

    def _lines(
        self, raw: msgspec.Raw, path: str, functions: dict[tuple[int, int], tuple[int, ...]], events: int
    ) -> tuple[LineCost, ...]:
        found: list[LineCost] = []
        known: set[tuple[int, int, int]] = set()
        sums: dict[tuple[int, int], tuple[int, ...]] = dict.fromkeys(functions, (0,) * events)
        for index, (file, name, line, *counts) in enumerate(self._rows(raw, path, 3 + events)):
            if (file, name) not in functions or (file, name, line) in known:
                where = f"{self._strings[name]!r} in {self._strings[file]!r}"
                again = f"a second row of line {line} of {where}"
                stray = f"a line of {where}, which is not a function of this profile"
                self._refuse(f"{path}[{index}]", again if (file, name) in functions else stray)
            known.add((file, name, line))
            sums[file, name] = tuple(map(int.__add__, sums[file, name], counts))
            found.append(LineCost(self._strings[file], self._strings[name], line, tuple(counts)))
        wrong = next((key for key in functions if found and sums[key] != functions[key]), None)
        if wrong is not None:
            function, file_name = self._strings[wrong[1]], self._strings[wrong[0]]
            self._refuse(path, f"the lines of {function!r} in {file_name!r} do not add up to its row")
        return tuple(found)

    def python(self, identity: str) -> PythonProfile | None:
        """Parse what the Python functions of the benchmark of this id cost. FileFormatError if it is wrong."""
        path, benchmark = self._stored.get(identity, ("", None))
        if benchmark is None or benchmark.python is None:
            return None
        stored, path = benchmark.python, f"{path}.python"
        functions: dict[PythonFunction, None] = {}
        for index, (file, name, line) in enumerate(self._rows(stored.functions, f"{path}.functions", 3)):
            function = PythonFunction(self._strings[file], self._strings[name], line)
            if function in functions:
                self._refuse(f"{path}.functions[{index}]", f"a second row of {function.name!r} in {function.file!r}")
            functions[function] = None
        paths: dict[tuple[int, int], PythonPath] = {}
        rows = self._rows(stored.paths, f"{path}.paths", 4, strings=0)
        for index, (caller, place, calls, ir) in enumerate(rows):
            if caller > len(paths):
                self._refuse(f"{path}.paths[{index}]", f"its caller is path {caller} of {len(paths)} before it")
            if place >= len(functions):
                self._refuse(f"{path}.paths[{index}]", f"it points to function {place} of {len(functions)}")
            if (caller, place) in paths:
                self._refuse(f"{path}.paths[{index}]", "a second row of this path")
            paths[caller, place] = PythonPath(caller + TOP, place, calls, ir)
        profile = PythonProfile(
            total=stored.total,
            functions=tuple(functions),
            paths=tuple(paths.values()),
            cut=stored.cut,
            parts=self._parts(stored.parts, f"{path}.parts", [*paths.values()]) if bytes(stored.parts) else (),
        )
        if profile.native < 0:
            self._refuse(path, "its paths cost more than its total")
        return profile

    def _parts(self, raw: msgspec.Raw, path: str, paths: Sequence[PythonPath]) -> tuple[NativePart, ...]:
        found = list[NativePart]()
        left = [item.ir for item in paths]
        for index, (place, caller, name, calls, ir) in enumerate(self._rows(raw, path, 5, strings=0)):
            where = f"{path}[{index}]"
            if place >= len(paths):
                self._refuse(where, f"it points to path {place} of {len(paths)}")
            if caller > len(found) or (caller and found[caller - 1].path != place):
                self._refuse(where, f"its caller is part {caller}, which is not one before it on its path")
            if name >= len(self._strings):
                self._refuse(where, f"it points to string {name} of {len(self._strings)}")
            left[place] -= ir
            if left[place] < 0:
                self._refuse(where, "with it, the parts of its path cost more than the path")
            found.append(NativePart(place, caller + TOP, self._strings[name], calls, ir))
        return tuple(found)

    def calls(self, identity: str) -> CallGraph | None:
        """Parse which functions of the benchmark of this id called which. FileFormatError if that is wrong."""
        path, benchmark = self._stored.get(identity, ("", None))
        if benchmark is None or benchmark.calls is None:
            return None
        from cachegrind_bench.model.call_graph import CallGraph, Calls, Code

        stored, path, text = benchmark.calls, f"{path}.calls", self._strings
        rows = self._rows(stored.functions, f"{path}.functions", 4, strings=3)
        codes = [Code(text[row[0]], text[row[1]], text[row[2]]) for row in rows]
        own = dict(zip(codes, (row[3] for row in rows), strict=True))
        if len(own) < len(codes):
            twice = next(index for index, code in enumerate(codes) if code in codes[:index])
            self._refuse(
                f"{path}.functions[{twice}]", f"a second row of {codes[twice].name!r} in {codes[twice].file!r}"
            )
        pairs = self._rows(stored.calls, f"{path}.calls", 4, strings=0)
        calls = dict[tuple[Code, Code], Calls]()
        for index, (caller, callee, number, ir) in enumerate(pairs):
            if max(caller, callee) >= len(codes):
                self._refuse(f"{path}.calls[{index}]", f"it points to function {max(caller, callee)} of {len(codes)}")
            if (codes[caller], codes[callee]) in calls:
                self._refuse(f"{path}.calls[{index}]", "a second row of these calls")
            calls[codes[caller], codes[callee]] = Calls(number, ir)
        if stored.lines and (len(stored.lines) != len(codes) or min(stored.lines) < 0):
            self._refuse(f"{path}.lines", f"it is not a line for each of {len(codes)} functions")
        lines = {code: line for code, line in zip(codes, stored.lines, strict=False) if line}
        return CallGraph(own, calls, lines)

    def _rows(self, raw: msgspec.Raw, path: str, width: int, *, strings: int = 2) -> _Rows:
        """Return rows of the right width, whose first numbers point to `strings`."""
        rows = parse(raw, _Rows, self.name, path=path)
        many = len(self._strings)
        if {*map(len, rows)} <= {width} and all(max(row[:strings], default=-1) < many for row in rows):
            return rows
        index, row = next(
            (index, row)
            for index, row in enumerate(rows)
            if len(row) != width or max(row[:strings], default=-1) >= many
        )
        if len(row) != width:
            self._refuse(f"{path}[{index}]", f"it has {len(row)} numbers instead of {width}")
        self._refuse(f"{path}[{index}]", f"it points to string {max(row[:strings])} of {many}")

    def _refuse(self, path: str, message: str) -> NoReturn:
        refuse(self.name, path, message)


def decode(data: bytes, name: str) -> Result:
    """Read a result file's bytes with all its profiles. FileFormatError, with this `name`, on anything but a valid result."""
    return ResultFile(data, name).whole()


def _check_schema(schema: str, name: str) -> None:
    if schema == SCHEMA:
        return
    if _NEWER.fullmatch(schema):
        raise FileFormatError(
            f"schema {schema} is newer than this cg-bench can read ({SCHEMA})",
            path=name,
            hint="install a newer cachegrind-bench",
        )
    raise FileFormatError(
        f"not a result file: its schema is {schema[:80] or 'missing'!r}, not {SCHEMA!r}", path=name, hint=WRITTEN
    )


def _check_benchmark(benchmark: _Benchmark, name: str, path: str) -> None:
    counts, score = benchmark.counts, benchmark.score
    if (benchmark.status is Status.OK) != (counts is not None):
        has = "no " if counts is None else ""
        refuse(name, f"{path}.counts", f"a benchmark with status {benchmark.status.value!r} has {has}counts")
    if (score is None) != (counts is None):
        refuse(name, f"{path}.score", "counts and score go together")
    if counts is None and benchmark.profile is not None:
        refuse(name, f"{path}.profile", "a profile without counts")
    for index, run in enumerate(benchmark.runs):
        _check_counts(run.counts, name, f"{path}.runs[{index}].counts")
        if not 0 <= run.layout <= _LARGEST:
            refuse(name, f"{path}.runs[{index}].layout", f"{run.layout} is not the number of a layout")
    for index, process in enumerate(benchmark.processes):
        _check_counts(process.counts, name, f"{path}.processes[{index}].counts")
    if counts is not None and score is not None:
        _check_counts(counts, name, f"{path}.counts")
        _check_possible(counts, name, f"{path}.counts", of_a_part="measured" in benchmark.key_fields)
        _check_score(score, counts, name, f"{path}.score")
        if all(run.counts != counts for run in benchmark.runs):
            refuse(name, f"{path}.counts", "they are those of none of its runs")


def _check_counts(counts: Counts, name: str, path: str) -> None:
    for event, count in counts.as_dict().items():
        if not 0 <= count <= _LARGEST:
            refuse(name, f"{path}.{event}", f"{count} is negative" if count < 0 else "the number is absurdly large")


def _check_possible(counts: Counts, name: str, path: str, *, of_a_part: bool) -> None:
    """Refuse counts that no simulation can give: a verdict on them would be one on nothing.

    A part of a program may be empty, and then has no counts at all.
    """
    pairs = ((counts.ILmr, counts.I1mr), (counts.DLmr, counts.D1mr), (counts.DLmw, counts.D1mw))
    if not counts.Ir and not (of_a_part and counts == ZERO):
        refuse(name, f"{path}.Ir", "a program that executed no instruction was not measured")
    if any(last > first for last, first in pairs):
        refuse(name, path, "more misses in the last level of the cache than in the first")
    if counts.l1_hits < 0:
        refuse(name, path, "more misses than accesses")


def _check_score(score: Score, counts: Counts, name: str, path: str) -> None:
    try:
        model = CostModel.parse(score.model)
    except UsageError as error:
        refuse(name, f"{path}.model", error.message)
    if model.name != score.model:
        refuse(name, f"{path}.model", f"{score.model!r} is written {model.name!r}")
    if abs(score.value) > _LARGEST:
        refuse(name, f"{path}.value", "the number is absurdly large")
    if model.score(counts) != score.value:
        refuse(name, f"{path}.value", f"these counts give {model.score(counts)} under {model.name}, not {score.value}")
