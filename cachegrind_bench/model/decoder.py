"""From a parsed result file to the values of `result`, refusing whatever is not exactly that.

Format history: `cg-bench.run/1` is the first. Within a schema number, readers ignore keys they do not know. A
profile may have `lines`, rows of file, name, line and counts, which add up to its `functions`; a benchmark may have
`output`, the last part of what its program wrote, and `python`, what its Python functions cost.
Knows the keys of the format; profiles are `stored`'s and `storedpython`'s. Must not know files, or how JSON is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cachegrind_bench.errors import FileFormatError, UsageError
from cachegrind_bench.model.json_reader import Node
from cachegrind_bench.model.metrics import EVENTS, ZERO, Counts
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
from cachegrind_bench.model.stored import StoredProfile
from cachegrind_bench.model.storedpython import StoredPython

FAMILY = "cg-bench.run/"
SCHEMA = FAMILY + "1"
_NEWER = re.compile(re.escape(FAMILY) + r"[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a result file holds: the result without its profiles, and these, still stored, by benchmark id."""

    result: Result
    profiles: dict[str, StoredProfile]
    pythons: dict[str, StoredPython]
    strings: list[str]


def read_result(value: object, name: str) -> Document:
    """Read a parsed file. SchemaError for a wrong value; FileFormatError, with `name`, if it is of another schema."""
    root = Node(value, "")
    _check_schema(root, name)
    commit, env, items = root.get("commit"), root.get("env"), list(root.get("benchmarks").items())
    strings = [item.text() for item in root.get("strings").items()]
    known: set[str] = set()
    for item in items:
        identity = item.get("id")
        if identity.text() in known:
            identity.fail(f"a second benchmark {identity.text()!r}")
        known.add(identity.text())
    benchmarks = [_benchmark(item) for item in items]
    result = Result(
        tool_version=root.get("tool").get("version").text(),
        created_at=root.get("created_at").text(),
        commit=None if commit.is_null() else _commit(commit),
        env=Environment(key=env.get("key").text(), fields=env.get("fields").texts(), info=env.get("info").scalars()),
        benchmarks=tuple(benchmarks),
    )
    profiles = {
        benchmark.id: StoredProfile.of(item.get("profile"), benchmark.counts)
        for item, benchmark in zip(items, benchmarks, strict=True)
        if benchmark.counts is not None and not item.get("profile").is_null()
    }
    pythons = {
        benchmark.id: StoredPython.of(item.get("python"))
        for item, benchmark in zip(items, benchmarks, strict=True)
        if item.has("python") and not item.get("python").is_null()
    }
    return Document(result=result, profiles=profiles, pythons=pythons, strings=strings)


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


def _commit(node: Node) -> Commit:
    return Commit(
        sha=node.get("sha").text(),
        parent=node.get("parent").optional_text(),
        branch=node.get("branch").optional_text(),
        dirty=node.get("dirty").boolean(),
        committed_at=node.get("committed_at").text(),
    )


def _benchmark(node: Node) -> Benchmark:
    status = node.get("status").choice(Status)
    counts, score, profile = node.get("counts"), node.get("score"), node.get("profile")
    if (status is Status.OK) == counts.is_null():
        counts.fail(f"a benchmark with status {status.value!r} has {'no ' if counts.is_null() else ''}counts")
    if score.is_null() != counts.is_null():
        score.fail("counts and score go together")
    if counts.is_null() and not profile.is_null():
        profile.fail("a profile without counts")
    found = None if counts.is_null() else _counts(counts)
    runs = tuple(
        Run(layout=run.get("layout").count(), counts=_counts(run.get("counts"))) for run in node.get("runs").items()
    )
    if found is not None:
        _check_possible(counts, found, of_a_part="measured" in node.get("key_fields").texts())
        if all(run.counts != found for run in runs):
            counts.fail("they are those of none of its runs")
    return Benchmark(
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
        counts=found,
        score=None if found is None else _score(score, found),
        runs=runs,
        processes=tuple(
            ProcessCost(executable=item.get("executable").text(), counts=_counts(item.get("counts")))
            for item in node.get("processes").items()
        ),
        processes_exact=node.get("processes_exact").boolean(),
        objects=tuple(
            ObjectFile(path=item.get("path").text(), build_id=item.get("build_id").text())
            for item in node.get("objects").items()
        ),
        wall_ms=node.get("wall_ms").count(),
        seal={name: _seal(part) for name, part in node.get("seal").members()},
        output=node.get("output").optional_text() if node.has("output") else None,
    )


def _check_possible(node: Node, counts: Counts, *, of_a_part: bool) -> None:
    """Refuse counts that no simulation can give: a verdict on them would be one on nothing.

    A part of a program may be empty, and then has no counts at all.
    """
    pairs = ((counts.ILmr, counts.I1mr), (counts.DLmr, counts.D1mr), (counts.DLmw, counts.D1mw))
    if not counts.Ir and not (of_a_part and counts == ZERO):
        node.get("Ir").fail("a program that executed no instruction was not measured")
    if any(last > first for last, first in pairs):
        node.fail("more misses in the last level of the cache than in the first")
    if counts.l1_hits < 0:
        node.fail("more misses than accesses")


def _score(node: Node, counts: Counts) -> Score:
    model, value = node.get("model"), node.get("value")
    score = Score(model=model.text(), value=value.integer())
    try:
        parsed = CostModel.parse(score.model)
    except UsageError as error:
        model.fail(error.message)
    if parsed.name != score.model:
        model.fail(f"{score.model!r} is written {parsed.name!r}")
    if parsed.score(counts) != score.value:
        value.fail(f"these counts give {parsed.score(counts)} under {parsed.name}, not {score.value}")
    return score


def _seal(node: Node) -> SealPart:
    return SealPart(state=node.get("state").choice(SealState), why=node.get("why").optional_text())


def _counts(node: Node) -> Counts:
    return Counts.from_mapping({name: node.get(name).count() for name in EVENTS})
