"""The runs of a history as a list, and what is wrong with it, for people and for scripts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cachegrind_bench.model.text import counted, grouped, plain, shortened
from cachegrind_bench.render import markdown, table
from cachegrind_bench.render.report import Report, Section

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from cachegrind_bench.model.history import Point, Snapshot
    from cachegrind_bench.render.report import Row
    from cachegrind_bench.store.protocol import Problem

_SHOWN_IDS = 2
_LONGEST_ID = 30
_SHOWN_UID = 8
_SHRINKABLE = 5, 2  # the benchmarks give way first, then the branch


def render(
    runs: Sequence[Snapshot], total: int, place: str, form: str, stream: TextIO, *, width: int | None = None
) -> None:
    """Write these runs, of `total` that there are at this place, in one of the forms json, markdown and table."""
    if form == "json":
        _dump(
            {"schema": "cg-bench.history/1", "store": place, "total": total, "runs": list(map(_object, runs))}, stream
        )
        return
    count = counted(total, "run")
    title = f"{count if len(runs) == total else f'{grouped(len(runs))} of {count}'} in {plain(place)}"
    rows: list[Row] = [("run", "commit", "branch", "committed", "measured", "benchmarks", "environment")]
    rows += map(_row, runs)
    if form == "table":
        rows = table.fitted(rows, width and width - 2, _SHRINKABLE)  # 2: the indent
    section = Section(title="", columns=rows[0], rows=tuple(rows[1:]))
    layout = markdown if form == "markdown" else table
    layout.render(Report(title=title, sections=(section,) if runs else (), warnings=()), stream)


def render_problems(problems: Sequence[Problem], total: int, place: str, form: str, stream: TextIO) -> None:
    """Write what is wrong with the store at this place, which has `total` records, in the same forms."""
    if form == "json":
        found = [{"where": problem.where, "what": problem.what} for problem in problems]
        _dump({"schema": "cg-bench.fsck/1", "store": place, "records": total, "problems": found}, stream)
        return
    verdict = counted(len(problems), "problem") if problems else "nothing wrong"
    rows = tuple((plain(problem.where), plain(problem.what)) for problem in problems)
    section = Section(title="", columns=("where", "what is wrong"), rows=rows)
    layout = markdown if form == "markdown" else table
    title = f"{verdict} with {counted(total, 'record')} in {plain(place)}"
    layout.render(Report(title=title, sections=(section,) if rows else (), warnings=()), stream)


def _row(run: Snapshot) -> Row:
    commit = run.commit
    dirty = " with changes" if commit is not None and commit.dirty else ""
    return (
        run.uid[:_SHOWN_UID],
        "none" if commit is None else f"{plain(commit.sha[:12])}{dirty}",
        "" if commit is None else plain(commit.branch or ""),
        "" if commit is None else _minute(commit.committed_at),
        _minute(run.created_at),
        _benchmarks(run.points),
        plain(run.env_key),
    )


def _benchmarks(points: Sequence[Point]) -> str:
    """Return what a run measured: some names, how many more, how many failed."""
    names = [shortened(plain(point.id), _LONGEST_ID) for point in points[:_SHOWN_IDS]]
    more = len(points) - len(names)
    failed = sum(point.counts is None for point in points)
    told = ", ".join(names) + (f" and {more} more" if more else "")
    return f"{told or 'none'} ({failed} failed)" if failed else told or "none"


def _minute(time: str) -> str:
    """Return 2026-01-31T12:00:00Z as 2026-01-31 12:00."""
    return plain(time[:16].replace("T", " "))


def _object(run: Snapshot) -> dict[str, object]:
    commit = run.commit
    return {
        "uid": run.uid,
        "created_at": run.created_at,
        "tool_version": run.tool_version,
        "environment": run.env_key,
        "commit": None
        if commit is None
        else {
            "sha": commit.sha,
            "parent": commit.parent,
            "branch": commit.branch,
            "dirty": commit.dirty,
            "committed_at": commit.committed_at,
        },
        "benchmarks": [
            {
                "id": point.id,
                "key": point.key,
                "status": point.status.value,
                "counts": None if point.counts is None else point.counts.as_dict(),
                "score": None if point.score is None else {"model": point.score.model, "value": point.score.value},
            }
            for point in run.points
        ],
    }


def _dump(document: dict[str, object], stream: TextIO) -> None:
    json.dump(document, stream, indent=2, sort_keys=True, ensure_ascii=True)
    stream.write("\n")
