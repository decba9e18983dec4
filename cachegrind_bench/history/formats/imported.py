"""Runs that were read from a format which carries only a part of them, as results that say so.

Knows how to mark what is not known; must not know the formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.result import (
    Benchmark,
    Environment,
    Result,
    Run,
    SealPart,
    SealState,
    comparability_key,
)
from cachegrind_bench.store.record import run_record

if TYPE_CHECKING:
    from cachegrind_bench.model.history import Point, Snapshot
    from cachegrind_bench.store.record import Record


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
