"""Which stored run a candidate is compared with: the nearest on a line of commits that was measured in the same way.

Knows results and the order of commits; must not know where runs are stored or how commits are found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cachegrind_bench.model.result import Result

# How far back a baseline may lie: further away, a difference says little about the candidate.
MOST_ANCESTORS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run of a clean checkout as it is stored: the name of its record, and its result without profiles."""

    name: str
    result: Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The run to compare with, and so many commits it lies before the one that was wanted.

    `other_keys` are nearer runs that were passed over, as they do not compare with the candidate.
    """

    run: StoredRun | None
    distance: int
    other_keys: tuple[StoredRun, ...]


def choose(shas: Sequence[str], runs_of: Callable[[str], Iterable[StoredRun]], key: str | None) -> Choice:
    """Choose among the runs of these commits, nearest first; of one commit, the last that was measured.

    Only runs whose machine has this comparability key are taken, or any without one.
    """
    passed_over: list[StoredRun] = []
    for distance, sha in enumerate(shas):
        runs = sorted(runs_of(sha), key=lambda run: (run.result.created_at, run.name), reverse=True)
        for run in runs:
            if key is None or run.result.env.key == key:
                return Choice(run=run, distance=distance, other_keys=tuple(passed_over))
        passed_over += runs[:1]
    return Choice(run=None, distance=0, other_keys=tuple(passed_over))
