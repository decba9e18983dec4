"""A history as a table, one row for each benchmark of each run, and back.

Carries runs, commits, keys, statuses, counts and scores; not commands, seals, single runs or what failed. No cell can be
taken for a formula by a spreadsheet.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.errors import FileFormatError, UsageError
from cachegrind_bench.history.formats import fields
from cachegrind_bench.model.history import Point, Snapshot
from cachegrind_bench.model.metrics import EVENTS
from cachegrind_bench.model.result import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

COLUMNS = (
    *("run", "created_at", "sha", "parent", "branch", "dirty", "committed_at", "environment", "tool_version"),
    *("benchmark", "key", "status", *EVENTS, "model", "score"),
)

# A cell that begins with one of these, after spaces, may be taken for a formula; a quote is what says that it is none.
_FORMULA = "=+-@'＝＋－＠"
_BLANK = "\t\r\n"
_DELIMITERS = ",;\t"  # European spreadsheets write semicolons


def guarded(text: str) -> str:
    """Return text that no spreadsheet runs: with a quote before it where that is needed."""
    return f"'{text}" if _dangerous(text) else text


def unguarded(cell: str) -> str:
    """Return the text that `guarded` made this cell of."""
    return cell[1:] if cell.startswith("'") and _dangerous(cell[1:]) else cell


def line(cells: Iterable[str]) -> str:
    """Return one line of a CSV file."""
    text = io.StringIO()
    # The two characters: only then are both quoted where they stand in a cell.
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue()


def write(runs: Iterable[Snapshot]) -> Iterator[str]:
    """Return the lines of the table, the first with the names of the columns."""
    yield line(COLUMNS)
    for run in runs:
        commit = run.commit
        known = ("",) * 5
        if commit is not None:
            dirty = str(commit.dirty).lower()
            known = commit.sha, commit.parent or "", guarded(commit.branch or ""), dirty, commit.committed_at
        head = run.uid, run.created_at, *known, run.env_key, guarded(run.tool_version)
        for point in run.points:
            yield line((*head, guarded(point.id), guarded(point.key), point.status.value, *_numbers(point)))


def read(text: str, name: str) -> list[Snapshot]:
    """Return the runs of a table. Columns may stand in any order, others are passed over. FileFormatError with the line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    rows: dict[str, tuple[Snapshot, dict[str, Point]]] = {}
    try:
        heading = _heading(next(reader, None))
        for row in reader:
            if row:
                _add(rows, _cells(heading, row))
    except (ValueError, csv.Error, UsageError) as error:
        raise FileFormatError(
            str(error),
            path=name,
            line=max(reader.line_num, 1),
            hint="such files are written by 'cg-bench history export --format csv'",
        ) from error
    return [replace(run, points=tuple(points.values())) for run, points in rows.values()]


def _heading(row: list[str] | None) -> list[str]:
    missing = [column for column in COLUMNS if column not in (row or ())]
    if row is None or missing:
        raise ValueError(f"no column {missing[0]!r}: the first line has the names of the columns")
    return row


def _cells(heading: list[str], row: list[str]) -> dict[str, str]:
    if len(row) != len(heading):
        raise ValueError(f"{len(row)} cells, and {len(heading)} columns")
    return dict(zip(heading, row, strict=True))


def _dangerous(text: str) -> bool:
    return text.startswith(tuple(_BLANK)) or text.lstrip().startswith(tuple(_FORMULA))


def _numbers(point: Point) -> tuple[str, ...]:
    if point.counts is None or point.score is None:
        return ("",) * (len(EVENTS) + 2)
    return (*map(str, point.counts.as_tuple()), guarded(point.score.model), str(point.score.value))


def _delimiter(text: str) -> str:
    first = text[:10_000].partition("\n")[0]
    return max(_DELIMITERS, key=lambda sign: (first.count(sign), -_DELIMITERS.index(sign)))


def _add(rows: dict[str, tuple[Snapshot, dict[str, Point]]], cells: dict[str, str]) -> None:
    run = Snapshot(
        uid=fields.uid(cells["run"]),
        tool_version=unguarded(cells["tool_version"]),
        created_at=fields.time(cells["created_at"]),
        commit=fields.commit(
            cells["sha"], cells["parent"], unguarded(cells["branch"]), cells["dirty"].lower(), cells["committed_at"]
        ),
        env_key=fields.environment_key(cells["environment"]),
        points=(),
    )
    known, points = rows.setdefault(run.uid, (run, {}))
    if known != run:
        raise ValueError(f"the rows of run {run.uid} describe different runs")
    point = _point(cells)
    if point.id in points:
        raise ValueError(f"a second row of {point.id[:80]!r} in run {run.uid}")
    points[point.id] = point


def _point(cells: dict[str, str]) -> Point:
    status = Status(cells["status"])
    counts = fields.counts(cells) if status is Status.OK else None
    if counts is None and any(cells[event] for event in EVENTS):
        raise ValueError(f"counts of a benchmark with status {status.value}")
    return Point(
        id=unguarded(cells["benchmark"]),
        key=unguarded(cells["key"]),
        status=status,
        counts=counts,
        score=None if counts is None else fields.score(unguarded(cells["model"]), cells["score"], counts),
    )
