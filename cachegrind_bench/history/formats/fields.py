"""What formats carry of a history, as named texts: written from runs, checked and gathered to runs when read.

Runs that carry only a part of what was measured become results that say so. Must not know which file a text is in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec.structs import replace

from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.metrics import EVENTS, CostModel, Counts
from cachegrind_bench.model.result import (
    Benchmark,
    Commit,
    Environment,
    Point,
    Result,
    Run,
    Score,
    SealPart,
    SealState,
    Snapshot,
    Status,
    comparability_key,
)
from cachegrind_bench.store.record import Record, run_record

COMMIT = "sha", "parent", "branch", "dirty", "committed_at"
NAMES = (
    *("run", "created_at", *COMMIT, "environment", "tool_version"),
    *("benchmark", "key", "status", *EVENTS, "model", "score"),
)
_COMMIT_ID = re.compile(r"[0-9a-f]{12,64}"), "the id of a commit"
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"), "a time, as 2026-01-31T12:00:00Z"
_FORMS = {
    "run": (re.compile(r"[0-9a-f]{16}"), "the uid of a run, 16 hex digits"),
    "environment": (re.compile(r"[0-9a-f]{8,64}"), "a key, 8 to 64 hex digits"),
    "sha": _COMMIT_ID,
    "parent": _COMMIT_ID,
    "created_at": _TIME,
    "committed_at": _TIME,
    **{event: (re.compile(r"[0-9]{1,18}"), f"a count of {event}") for event in EVENTS},
}


def texts_of(run: Snapshot, point: Point) -> dict[str, str]:
    """Return the texts of one benchmark of a run, by `NAMES`; empty where something is not known."""
    found = {
        "run": run.uid,
        "created_at": run.created_at,
        "environment": run.env_key,
        "tool_version": run.tool_version,
        "benchmark": point.id,
        "key": point.key,
        "status": point.status.value,
    }
    commit = run.commit
    if commit is not None:
        values = commit.sha, commit.parent, commit.branch, str(commit.dirty).lower(), commit.committed_at
        found |= {name: value or "" for name, value in zip(COMMIT, values, strict=True)}
    if point.counts is not None and point.score is not None:
        found |= {event: str(count) for event, count in point.counts.as_dict().items()}
        found |= {"model": point.score.model, "score": str(point.score.value)}
    return dict.fromkeys(NAMES, "") | found


class Runs:
    """Gathers runs from the texts of their benchmarks."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[Snapshot, dict[str, Point]]] = {}

    def add(self, texts: Mapping[str, str], *, score: float | None = None, repeated: bool = False) -> None:
        """Add one benchmark of a run. ValueError or UsageError for texts that make no sense, or contradict earlier ones.

        The score may be given as a number. `repeated` entries may come again as they were.
        """
        point = _point(texts, score)
        run = Snapshot(
            uid=_checked(texts, "run"),
            tool_version=texts["tool_version"],
            created_at=_checked(texts, "created_at"),
            commit=_commit(texts) if texts["sha"] else None,
            env_key=_checked(texts, "environment"),
            points=(),
        )
        known, points = self._runs.setdefault(run.uid, (run, {}))
        if known != run:
            raise ValueError(f"run {run.uid} is described differently before")
        earlier = points.setdefault(point.id, point)
        if earlier is not point and not (repeated and earlier == point):
            raise ValueError(f"there is another entry of {point.id[:80]!r} in run {run.uid}")

    def all(self) -> list[Snapshot]:
        """Return the runs in the order in which they were first added."""
        return [replace(run, points=tuple(points.values())) for run, points in self._runs.values()]


def _point(texts: Mapping[str, str], score: float | None) -> Point:
    status = Status(texts["status"])
    ok = status is Status.OK
    for event in EVENTS:
        if event not in texts:
            raise ValueError(f"{event} is missing")
        if texts[event] and not ok:
            raise ValueError(f"counts of a benchmark with status {status.value}")
    counts = Counts.of([int(_checked(texts, event)) for event in EVENTS]) if ok else None
    return Point(
        id=texts["benchmark"],
        key=texts["key"],
        status=status,
        counts=counts,
        score=None if counts is None else _score(texts["model"], texts["score"] if score is None else score, counts),
    )


def seconds(text: str) -> int:
    """Return a time as seconds since 1970. ValueError if there is no such day or hour."""
    try:
        return int(datetime.fromisoformat(text.removesuffix("Z")).replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not a valid time") from None


def _commit(texts: Mapping[str, str]) -> Commit:
    dirty = texts["dirty"]
    if dirty not in {"true", "false"}:
        raise ValueError(f"{dirty[:40]!r} is neither true nor false")
    return Commit(
        sha=_checked(texts, "sha"),
        parent=_checked(texts, "parent") if texts["parent"] else None,
        branch=texts["branch"] or None,
        dirty=dirty == "true",
        committed_at=_checked(texts, "committed_at"),
    )


def _score(model: str, value: str | float, counts: Counts) -> Score:
    """Return the score under the model of this name. ValueError unless it is that of the counts.

    Of a number, only what a double keeps is compared: JavaScript knows no more of it.
    """
    weights = CostModel.parse(model)
    if weights.name != model:
        raise ValueError(f"the model {model[:40]!r} is written {weights.name!r}")
    wanted = weights.score(counts)
    if value != str(wanted) if isinstance(value, str) else _double(value) != _double(wanted):
        raise ValueError(f"these counts give {wanted} under {model}, not {str(value)[:40]}")
    return Score(model=model, value=wanted)


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _checked(texts: Mapping[str, str], name: str) -> str:
    text, (pattern, what) = texts[name], _FORMS[name]
    if pattern.fullmatch(text) is None:
        raise ValueError(f"{text[:40]!r} is not {what}")
    if pattern is _TIME[0]:
        seconds(text)
    return text


def imported_record(run: Snapshot, origin: str, name: str) -> Record:
    """Return the record of a run that was read from the file `name`, of the format `origin`.

    Its keys are made of the format and of the keys the run had: imported numbers compare with each other where the
    measured ones did, and never with measured ones, since it is unknown what became of them on the way. FileFormatError
    for counts that no program can have.
    """
    fields = {"imported_from": origin, "original_environment": run.env_key}
    result = Result(
        tool_version=run.tool_version,
        created_at=run.created_at,
        commit=run.commit,
        env=Environment(key=comparability_key(fields), fields=fields, info={"original_run": run.uid}),
        benchmarks=tuple(_benchmark(point, fields, origin) for point in run.points),
    )
    return run_record(decode(encode(result), f"{name}: run {run.uid}"))


def _benchmark(point: Point, fields: dict[str, str], origin: str) -> Benchmark:
    own = {"original_key": point.key}
    unknown = SealPart(state=SealState.UNAVAILABLE, why=f"not known: imported from {origin}")
    return Benchmark(
        id=point.id,
        key=comparability_key({**fields, **own}),
        key_fields=own,
        command=(),
        status=point.status,
        error=None if point.counts is not None else f"not known: imported from {origin}",
        warnings=(f"imported from {origin}, which carries neither command nor seal nor single runs",),
        tool="imported",
        counts=point.counts,
        score=point.score,
        runs=() if point.counts is None else (Run(layout=0, counts=point.counts),),
        processes_exact=False,
        seal={"all": unknown},
    )
