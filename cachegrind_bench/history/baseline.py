"""Which stored runs a candidate is compared with: the nearest on a line of commits that was measured in the same way.

Knows runs of clean checkouts and the order of commits; must not know where runs are stored or how commits are found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from cachegrind_bench.model.result import Point, Result, Snapshot, Status

MOST_ANCESTORS = 50  # commits that are searched for a baseline: further back, a difference says little of the candidate


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark of a baseline, the run it is of, and how many commits that lies before the one that was wanted."""

    point: Point
    run: Snapshot
    distance: int


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What to compare with, by benchmark; nothing if there is nothing.

    Shards and repeats of one commit are one baseline, and what the nearest commit lacks comes from one further back.
    `other_keys` are nearer runs that were passed over, as they do not compare with the candidate.
    """

    pieces: Mapping[str, Piece]
    other_keys: tuple[Snapshot, ...] = ()

    @property
    def distance(self) -> int:
        """How many commits the nearest piece lies before the commit that was wanted; 0 if there is none."""
        return min((piece.distance for piece in self.pieces.values()), default=0)

    @property
    def runs(self) -> tuple[Snapshot, ...]:
        """The runs that the pieces are of, the nearest and of these the last first."""
        found = {piece.run.uid: piece for piece in self.pieces.values()}
        latest = sorted(found.values(), key=lambda piece: _age(piece.run), reverse=True)
        return tuple(piece.run for piece in sorted(latest, key=lambda piece: piece.distance))


def of_commit(runs: Sequence[Snapshot], candidate: Result | None) -> Choice:
    """Join the runs of one commit: those that compare with the candidate, else those measured like the last one."""
    if not runs:
        return Choice(pieces={})
    keys = {run.env_key for run in runs}
    last = max(runs, key=_age).env_key
    key = last if candidate is None or candidate.env.key not in keys else candidate.env.key
    return Choice(pieces=_joined(runs, key, {} if candidate is None else _keys(candidate), 0))


def choose(shas: Iterable[str], runs_of: Callable[[str], Sequence[Snapshot]], candidate: Result) -> Choice:
    """Choose among the runs of these commits, nearest first, until each benchmark of the candidate has one that compares.

    Where nothing compares, what was measured on the same kind of machine is chosen all the same, as it shows what differs.
    """
    wanted = _keys(candidate)
    pieces: dict[str, Piece] = {}
    second: dict[str, Piece] = {}
    fit: set[str] = set()  # the benchmarks whose piece compares
    passed_over: list[Snapshot] = []
    for distance, sha in enumerate(shas):
        runs = runs_of(sha)
        here = _joined(runs, candidate.env.key, wanted, distance)
        fitting = {name: piece for name, piece in here.items() if _fits(piece.point, wanted)}
        if pieces:
            pieces |= {name: piece for name, piece in fitting.items() if name not in fit}
        elif fitting:
            pieces = here
        else:
            second = second or here
            passed_over += sorted((run for run in runs if run.env_key != candidate.env.key), key=_age)[-1:]
        fit |= fitting.keys()
        if fit >= wanted.keys():
            break
    return Choice(pieces=pieces or second, other_keys=tuple(passed_over))


def _joined(runs: Iterable[Snapshot], key: str, wanted: Mapping[str, str], distance: int) -> dict[str, Piece]:
    """Return of each benchmark in the runs of this machine's key the last reading that fits, else the last that went well."""

    def rank(point: Point) -> tuple[bool, bool]:
        return _fits(point, wanted), point.status is Status.OK

    found: dict[str, Piece] = {}
    for run in sorted(runs, key=_age):
        for point in run.points if run.env_key == key else ():
            known = found.get(point.id)
            if known is None or rank(point) >= rank(known.point):
                found[point.id] = Piece(point=point, run=run, distance=distance)
    return found


def _keys(candidate: Result) -> dict[str, str]:
    return {benchmark.id: benchmark.key for benchmark in candidate.benchmarks}


def _fits(point: Point, wanted: Mapping[str, str]) -> bool:
    return point.status is Status.OK and wanted.get(point.id) == point.key


def _age(run: Snapshot) -> tuple[str, str]:
    return run.created_at, run.uid
