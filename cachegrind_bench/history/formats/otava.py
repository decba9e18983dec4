"""A history as the CSV file that Apache Otava (once Hunter) imports: a row for each run, two columns for each benchmark.

Otava takes no empty cell, so a file has runs with all of the same benchmarks only. Of a file with several branches, Otava
looks at the one that its --branch names. Carries scores and Ir; nothing can be read back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.history.formats.csvformat import guarded, line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cachegrind_bench.model.history import Snapshot
    from cachegrind_bench.model.result import Commit

# What git calls a checkout of no branch: no branch can be called so, and Otava cannot choose an empty cell.
DETACHED = "HEAD"
ATTRIBUTES = ("commit", "branch", "run", "environment")


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """The text of the file, its branches, and how many runs are not in it, as they lack a benchmark of the last run."""

    text: str
    branches: tuple[str, ...]
    left_out: int


def write(runs: Iterable[Snapshot]) -> Table:
    """Return the table of the benchmarks that went well in the last run, one column for the score, one for Ir.

    Runs of dirty checkouts are left out, and those without a commit; they come in the order they are given in, which is
    that of their commits.
    """
    found = list(runs)
    clean = [(run, run.commit) for run in found if run.commit is not None and not run.commit.dirty]
    names = sorted(point.id for point in clean[-1][0].points if point.counts is not None) if clean else []
    columns = [guarded(f"{name}{suffix}") for name in names for suffix in (".score", ".Ir")]
    rows = [(*_head(run, commit), *numbers) for run, commit in clean if (numbers := _numbers(run, names)) is not None]
    lines = [line(("time", *ATTRIBUTES, *columns)), *map(line, rows)]
    branches = sorted({row[1 + ATTRIBUTES.index("branch")] for row in rows})
    return Table(text="".join(lines), branches=tuple(branches), left_out=len(found) - len(rows))


def _head(run: Snapshot, commit: Commit) -> tuple[str, ...]:
    return commit.committed_at, commit.sha, guarded(commit.branch or DETACHED), run.uid, run.env_key


def _numbers(run: Snapshot, names: list[str]) -> list[str] | None:
    """Return the cells of these benchmarks; None if the run lacks one of them."""
    points = {point.id: point for point in run.points}
    numbers: list[str] = []
    for name in names:
        point = points.get(name)
        if point is None or point.counts is None or point.score is None:
            return None
        numbers += [str(point.score.value), str(point.counts.Ir)]
    return numbers
