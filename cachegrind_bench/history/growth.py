"""How benchmarks with sizes grow, as series of their own: the exponent between the two largest sizes, commit by commit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from cachegrind_bench.history.findings import Options
from cachegrind_bench.history.values import Reading, Series
from cachegrind_bench.model.growth import fit
from cachegrind_bench.model.result import CommitNote, Point, Snapshot
from cachegrind_bench.model.sizes import LEAST_SIZES

# In place of a cost model: what the values of these series are.
EXPONENT = "exponent x 1000"
# An exponent moves a little with every change of the cost; by this much, with what is called another class.
LIMITS = Options(minimum_step=50_000, creep_budget=100_000)

_At = tuple[int, str]  # place on the line, and key


def growth_series(
    readings: Iterable[Mapping[_At, tuple[Snapshot, Point]]], commits: Sequence[CommitNote]
) -> list[Series]:
    """Return a series for each group, of the readings of single sizes; where fewer than four were measured it has none."""
    groups = defaultdict[str, dict[_At, dict[int, tuple[Snapshot, Point]]]](lambda: defaultdict(dict))
    for of_benchmark in readings:
        for at, (run, point) in of_benchmark.items():
            if point.scale is not None:
                groups[point.scale.group][at][point.scale.size] = run, point
    found: list[Series] = []
    for name, by_place in sorted(groups.items()):
        whole = sorted((at, sizes) for at, sizes in by_place.items() if len(sizes) >= LEAST_SIZES)
        rows = [_reading(at, sizes, commits[at[0]].sha) for at, sizes in whole]
        if rows:
            found.append(Series(id=f"{name} (growth)", model=EXPONENT, readings=tuple(rows)))
    return found


def _reading(at: _At, sizes: Mapping[int, tuple[Snapshot, Point]], sha: str) -> Reading:
    ordered = [(size, *sizes[size]) for size in sorted(sizes)]
    counts = [point.counts for _, _, point in ordered if point.counts is not None]
    curve = tuple(zip(sorted(sizes), (item.Ir for item in counts), strict=True))
    run = ordered[-1][1]
    exponent = fit(curve).exponents[-1]
    return Reading(
        index=at[0],
        sha=sha,
        key=at[1],
        value=max(exponent or 0, 0),
        counts=counts[-1],
        created_at=run.created_at,
        uid=run.uid,
        curve=curve,
    )
