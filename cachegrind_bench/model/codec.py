"""The result file `cg-bench.run/1`: values to canonical JSON and back, refusing whatever is not exactly that.

Format history: /1 is the first. Within a schema number, readers ignore keys they do not know.
Knows JSON and the values of `result`; must not know files, folders or stores.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NoReturn

from cachegrind_bench.errors import FileFormatError, UsageError
from cachegrind_bench.model.json_reader import Node, SchemaError
from cachegrind_bench.model.metrics import EVENTS, Counts, FunctionCost, Profile
from cachegrind_bench.model.result import (
    Benchmark,
    Commit,
    Environment,
    ObjectFile,
    ProcessCost,
    Result,
    Run,
    Score,
    SealPart,
    SealState,
    Status,
)
from cachegrind_bench.model.score import CostModel

if TYPE_CHECKING:
    from collections.abc import Sequence

FAMILY = "cg-bench.run/"
SCHEMA = FAMILY + "1"
_NEWER = re.compile(re.escape(FAMILY) + r"[1-9][0-9]{0,8}")


def encode(result: Result) -> bytes:
    """Return the canonical bytes: sorted keys, no floats, UTF-8, one newline at the end."""
    strings: dict[str, int] = {}
    document: dict[str, object] = {
        "schema": SCHEMA,
        "tool": {"version": result.tool_version},
        "created_at": result.created_at,
        "commit": None if result.commit is None else _commit(result.commit),
        "env": {"key": result.env.key, "fields": dict(result.env.fields), "info": dict(result.env.info)},
        "benchmarks": [_benchmark(benchmark, strings) for benchmark in result.benchmarks],
    }
    document["strings"] = list(strings)
    return json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def decode(data: bytes, name: str) -> Result:
    """Read a result file's bytes; `name` stands in the errors. FileFormatError on anything but a valid result."""
    try:
        document: object = json.loads(
            data, parse_float=_no_float, parse_constant=_no_float, object_pairs_hook=_distinct
        )
    except json.JSONDecodeError as error:
        raise FileFormatError(f"not JSON: {error.msg}", path=name, line=error.lineno) from None
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise FileFormatError(f"not a result file: {error}", path=name) from None
    try:
        root = Node(document, "")
        _check_schema(root, name)
        return _result(root)
    except SchemaError as error:
        raise FileFormatError(
            str(error), path=name, hint="the file was altered or cut off; measure again to make a new one"
        ) from None


def _no_float(text: str) -> NoReturn:
    raise ValueError(f"it holds the number {text[:40]}; a result file has whole numbers only")


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse an object that has a key twice: readers differ in which one they believe."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _value in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise ValueError(f"the key {twice[:80]!r} stands twice in one object")
    return found


def _check_schema(root: Node, name: str) -> None:
    schema = root.get("schema").text() if root.has("schema") else ""
    if schema == SCHEMA:
        return
    if _NEWER.fullmatch(schema):
        raise FileFormatError(
            f"schema {schema} is newer than this cg-bench can read ({SCHEMA})",
            path=name,
            hint="install a newer cachegrind-bench",
        )
    raise FileFormatError(
        f"not a result file: its schema is {schema[:80] or 'missing'!r}, not {SCHEMA!r}",
        path=name,
        hint="result files are written by 'cg-bench run -o FILE'",
    )


def _commit(commit: Commit) -> dict[str, object]:
    return {
        "sha": commit.sha,
        "parent": commit.parent,
        "branch": commit.branch,
        "dirty": commit.dirty,
        "committed_at": commit.committed_at,
    }


def _benchmark(benchmark: Benchmark, strings: dict[str, int]) -> dict[str, object]:
    score = benchmark.score
    return {
        "id": benchmark.id,
        "key": benchmark.key,
        "key_fields": dict(benchmark.key_fields),
        "command": list(benchmark.command),
        "parameters": dict(benchmark.parameters),
        "tags": list(benchmark.tags),
        "status": benchmark.status.value,
        "exit_status": benchmark.exit_status,
        "error": benchmark.error,
        "warnings": list(benchmark.warnings),
        "tool": benchmark.tool,
        "counts": None if benchmark.counts is None else benchmark.counts.as_dict(),
        "score": None if score is None else {"model": score.model, "value": score.value},
        "runs": [{"layout": run.layout, "counts": run.counts.as_dict()} for run in benchmark.runs],
        "processes": [
            {"executable": process.executable, "counts": process.counts.as_dict()} for process in benchmark.processes
        ],
        "processes_exact": benchmark.processes_exact,
        "objects": [{"path": item.path, "build_id": item.build_id} for item in benchmark.objects],
        "wall_ms": benchmark.wall_ms,
        "seal": {part: {"state": state.state.value, "why": state.why} for part, state in benchmark.seal.items()},
        "profile": None if benchmark.profile is None else _profile(benchmark.profile, strings),
    }


def _profile(profile: Profile, strings: dict[str, int]) -> dict[str, object]:
    rows = [
        [strings.setdefault(row.file, len(strings)), strings.setdefault(row.name, len(strings)), *row.counts]
        for row in profile.functions
    ]
    return {"events": list(profile.events), "functions": rows}


def _result(root: Node) -> Result:
    commit = root.get("commit")
    env = root.get("env")
    strings = [item.text() for item in root.get("strings").items()]
    benchmarks = root.get("benchmarks")
    known: set[str] = set()
    for item in benchmarks.items():
        name = item.get("id")
        if name.text() in known:
            name.fail(f"a second benchmark {name.text()!r}")
        known.add(name.text())
    return Result(
        tool_version=root.get("tool").get("version").text(),
        created_at=root.get("created_at").text(),
        commit=None if commit.is_null() else _read_commit(commit),
        env=Environment(key=env.get("key").text(), fields=env.get("fields").texts(), info=env.get("info").scalars()),
        benchmarks=tuple(_read_benchmark(item, strings) for item in benchmarks.items()),
    )


def _read_commit(node: Node) -> Commit:
    return Commit(
        sha=node.get("sha").text(),
        parent=node.get("parent").optional_text(),
        branch=node.get("branch").optional_text(),
        dirty=node.get("dirty").boolean(),
        committed_at=node.get("committed_at").text(),
    )


def _read_benchmark(node: Node, strings: Sequence[str]) -> Benchmark:
    status = node.get("status").choice(Status)
    counts, score, profile = node.get("counts"), node.get("score"), node.get("profile")
    if (status is Status.OK) == counts.is_null():
        counts.fail(f"a benchmark with status {status.value!r} has {'no ' if counts.is_null() else ''}counts")
    if score.is_null() != counts.is_null():
        score.fail("counts and score go together")
    if counts.is_null() and not profile.is_null():
        profile.fail("a profile without counts")
    benchmark = Benchmark(
        id=node.get("id").text(),
        key=node.get("key").text(),
        key_fields=node.get("key_fields").texts(),
        command=tuple(item.text() for item in node.get("command").items()),
        parameters=node.get("parameters").texts(),
        tags=tuple(item.text() for item in node.get("tags").items()),
        status=status,
        exit_status=node.get("exit_status").optional_integer(),
        error=node.get("error").optional_text(),
        warnings=tuple(item.text() for item in node.get("warnings").items()),
        tool=node.get("tool").text(),
        counts=None if counts.is_null() else _read_counts(counts),
        score=None if score.is_null() else Score(model=score.get("model").text(), value=score.get("value").integer()),
        runs=tuple(
            Run(layout=run.get("layout").count(), counts=_read_counts(run.get("counts")))
            for run in node.get("runs").items()
        ),
        processes=tuple(
            ProcessCost(executable=item.get("executable").text(), counts=_read_counts(item.get("counts")))
            for item in node.get("processes").items()
        ),
        processes_exact=node.get("processes_exact").boolean(),
        objects=tuple(
            ObjectFile(path=item.get("path").text(), build_id=item.get("build_id").text())
            for item in node.get("objects").items()
        ),
        wall_ms=node.get("wall_ms").count(),
        seal={name: _read_seal(part) for name, part in node.get("seal").members()},
        profile=None if profile.is_null() else _read_profile(profile, strings),
    )
    if benchmark.counts is not None:
        if benchmark.score is not None:
            _check_score(score, benchmark.score, benchmark.counts)
        if benchmark.profile is not None:
            _check_profile_adds_up(profile, benchmark.profile, benchmark.counts)
    return benchmark


def _check_score(node: Node, score: Score, counts: Counts) -> None:
    model = node.get("model")
    try:
        parsed = CostModel.parse(score.model)
    except UsageError as error:
        model.fail(error.message)
    if parsed.name != score.model:
        model.fail(f"{score.model!r} is written {parsed.name!r}")
    if parsed.score(counts) != score.value:
        node.get("value").fail(f"these counts give {parsed.score(counts)} under {parsed.name}, not {score.value}")


def _check_profile_adds_up(node: Node, profile: Profile, counts: Counts) -> None:
    missing = [name for name in EVENTS if name not in profile.events]
    if missing:
        node.fail(f"its events lack {missing[0]}")
    if profile.counts() != counts:
        node.fail("its rows do not add up to the benchmark's counts")


def _read_seal(node: Node) -> SealPart:
    return SealPart(state=node.get("state").choice(SealState), why=node.get("why").optional_text())


def _read_counts(node: Node) -> Counts:
    return Counts.from_mapping({name: node.get(name).count() for name in EVENTS})


def _read_profile(node: Node, strings: Sequence[str]) -> Profile:
    events = tuple(item.text() for item in node.get("events").items())
    if len(set(events)) < len(events):
        node.get("events").fail("an event stands there twice")
    width = len(events) + 2
    rows: list[FunctionCost] = []
    known: set[tuple[int, int]] = set()
    for row in node.get("functions").items():
        numbers = row.counts()
        if len(numbers) != width:
            row.fail(f"it has {len(numbers)} numbers instead of {width}")
        file, name, *counts = numbers
        if max(file, name) >= len(strings):
            row.fail(f"it points to string {max(file, name)} of {len(strings)}")
        if (file, name) in known:
            row.fail(f"a second row of {strings[name]!r} in {strings[file]!r}")
        known.add((file, name))
        rows.append(FunctionCost(strings[file], strings[name], tuple(counts)))
    return Profile(events=events, functions=tuple(rows))
