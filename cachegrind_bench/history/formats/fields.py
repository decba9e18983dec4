"""Texts from foreign files as the fields of a run, each checked, and runs that carry only a part of them as results that say so.

Must not know which file they are in.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.metrics import EVENTS, Counts
from cachegrind_bench.model.result import (
    Benchmark,
    Commit,
    Environment,
    Result,
    Run,
    Score,
    SealPart,
    SealState,
    comparability_key,
)
from cachegrind_bench.model.score import CostModel
from cachegrind_bench.store.record import run_record

if TYPE_CHECKING:
    from cachegrind_bench.model.history import Point, Snapshot
    from cachegrind_bench.store.record import Record

_UID = re.compile(r"[0-9a-f]{16}", re.ASCII)
_KEY = re.compile(r"[0-9a-f]{8,64}", re.ASCII)
_SHA = re.compile(r"[0-9a-f]{12,64}", re.ASCII)
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,18}", re.ASCII)


def uid(text: str) -> str:
    """Return this uid of a run. ValueError for what is none, as below."""
    return _matching(_UID, text, "the uid of a run, 16 hex digits")


def environment_key(text: str) -> str:
    """Return this key of an environment."""
    return _matching(_KEY, text, "a key, 8 to 64 hex digits")


def time(text: str) -> str:
    """Return this time, which is UTC, as 2026-01-31T12:00:00Z."""
    seconds(_matching(_TIME, text, "a time, as 2026-01-31T12:00:00Z"))
    return text


def seconds(text: str) -> int:
    """Return a time as seconds since 1970. ValueError if there is no such day or hour."""
    try:
        return int(datetime.fromisoformat(text.removesuffix("Z")).replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not a valid time") from None


def commit(sha: str, parent: str, branch: str, dirty: str, committed_at: str) -> Commit | None:
    """Return the commit of these texts, empty where something is not known; None without an id."""
    if not sha:
        return None
    if dirty not in {"true", "false"}:
        raise ValueError(f"{dirty[:40]!r} is neither true nor false")
    return Commit(
        sha=_matching(_SHA, sha, "the id of a commit"),
        parent=_matching(_SHA, parent, "the id of a commit") if parent else None,
        branch=branch or None,
        dirty=dirty == "true",
        committed_at=time(committed_at),
    )


def counts(texts: dict[str, str]) -> Counts:
    """Return the nine counts of these texts by event."""
    missing = [event for event in EVENTS if event not in texts]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    return Counts.of([int(_matching(_COUNT, texts[event], f"a count of {event}")) for event in EVENTS])


def score(model: str, value: str | float, found: Counts) -> Score:
    """Return the score under the model of this name. ValueError unless it is that of the counts.

    Of a number, only what a double keeps is compared: to JavaScript, that is all there is of it.
    """
    weights = CostModel.parse(model)
    if weights.name != model:
        raise ValueError(f"the model {model[:40]!r} is written {weights.name!r}")
    wanted = weights.score(found)
    if value != str(wanted) if isinstance(value, str) else _double(value) != _double(wanted):
        raise ValueError(f"these counts give {wanted} under {model}, not {str(value)[:40]}")
    return Score(model=model, value=wanted)


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _matching(pattern: re.Pattern[str], text: str, what: str) -> str:
    if pattern.fullmatch(text) is None:
        raise ValueError(f"{text[:40]!r} is not {what}")
    return text


def imported_record(run: Snapshot, origin: str, name: str) -> Record:
    """Return the record of a run that was read from the file `name`, of the format `origin`.

    Its keys are made of the format and of the keys the run had: imported numbers compare with each other where the
    measured ones did, and never with measured ones, since nobody can tell what became of them on the way. FileFormatError
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
