"""Stored runs as series: each benchmark's readings along one line of commits, and what had to be left out of them.

Knows values only; must not know where runs are stored or where the line comes from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec

from cachegrind_bench.history.growth import growth_series
from cachegrind_bench.history.values import Differing, LeftOut, Reading, Series
from cachegrind_bench.model.metrics import DEFAULT_MODEL, IR_MODEL, CostModel
from cachegrind_bench.model.result import Commit, CommitNote, Point, Snapshot


class SeriesSet(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All series, by the name of the benchmark, over one line of commits, oldest first."""

    line: tuple[CommitNote, ...]
    series: tuple[Series, ...]
    left_out: LeftOut

    @cached_property  # asked for once for each series
    def newest(self) -> int:
        """The place on the line of the newest commit at which any benchmark was run; -1 if none was."""
        return max((series.last_run for series in self.series), default=-1)


def series_set(
    snapshots: Iterable[Snapshot], line: Sequence[CommitNote] | None = None, *, model: CostModel | None = None
) -> SeriesSet:
    """Arrange runs along a line of commits, or if it is not known, in the order of the commits' times.

    Of several runs of one commit under one key the last counts in which a benchmark did not fail, on each machine. Values are
    scores under `model`, or under the one of the newest reading of each benchmark.
    """
    runs = sorted(snapshots, key=lambda run: (run.created_at, run.uid))
    clean = [(run.commit, run) for run in runs if run.commit is not None and not run.commit.dirty]
    commits = tuple(line) if line is not None else _line_of(commit for commit, _ in clean)
    place = {note.sha: number for number, note in enumerate(commits)}
    on_line = [(place[commit.sha], run) for commit, run in clean if commit.sha in place]
    readings = defaultdict[str, dict[tuple[int, str], tuple[Snapshot, Point]]](dict)
    # Whether a benchmark went well at this place, on the machine of this key.
    well: dict[tuple[str, int, str], bool] = {}
    differing = set[Differing]()
    for index, run in on_line:
        for point in run.points:
            machine = point.id, index, run.env_key
            well[machine] = well.get(machine, False) or point.counts is not None
            if point.counts is None:
                continue
            earlier = readings[point.id].get((index, point.key))
            if earlier is not None and earlier[1].counts != point.counts:
                differing.add(Differing(benchmark=point.id, sha=commits[index].sha))
            readings[point.id][index, point.key] = run, point
    failed = {name: set[int]() for name, _, _ in sorted(well)}
    for (name, index, _), is_well in well.items():
        if not is_well:
            failed[name].add(index)
    found = [_series(name, readings.get(name, {}), indices, commits, model) for name, indices in failed.items()]
    found += growth_series(readings.values(), commits)
    left_out = LeftOut(
        dirty=sum(run.commit is not None and run.commit.dirty for run in runs),
        elsewhere=len(clean) - len(on_line),
        without_commit=sum(run.commit is None for run in runs),
        differing=tuple(sorted(differing)),
    )
    return SeriesSet(line=commits, series=tuple(found), left_out=left_out)


def _is_only_ir(point: Point) -> bool:
    """Return whether no caches were simulated when this was measured."""
    is_ir = point.score is not None and point.score.model == IR_MODEL.name
    return is_ir and point.counts is not None and not point.counts.with_caches


def _series(
    name: str,
    at: Mapping[tuple[int, str], tuple[Snapshot, Point]],
    failed: set[int],
    commits: Sequence[CommitNote],
    model: CostModel | None,
) -> Series:
    newest = max(at.items(), key=lambda item: (item[0][0], item[1][0].created_at))[1][1].score if at else None
    weights = model or (CostModel.parse(newest.model) if newest is not None else DEFAULT_MODEL)
    readings = [
        Reading(
            index=index,
            sha=commits[index].sha,
            key=point.key,
            value=weights.score(point.counts),
            counts=point.counts,
            created_at=run.created_at,
            uid=run.uid,
            taken_over=point.taken_over is True,
        )
        for (index, _), (run, point) in sorted(at.items(), key=lambda item: item[0])
        # A score of caches is not known where none were simulated.
        if point.counts is not None and (weights == IR_MODEL or not _is_only_ir(point))
    ]
    return Series(id=name, model=weights.name, readings=tuple(readings), failed=tuple(sorted(failed)))


def _line_of(commits: Iterable[Commit]) -> tuple[CommitNote, ...]:
    """Return the commits of clean runs by their time: what is known of the line without its repository."""
    known = {commit.sha: commit for commit in commits}
    return tuple(
        CommitNote(
            sha=commit.sha,
            parents=() if commit.parent is None else (commit.parent,),
            committed_at=commit.committed_at,
            author="",
            subject="",
        )
        for commit in sorted(known.values(), key=lambda commit: (commit.committed_at, commit.sha))
    )
