"""The report of a suite: one row for each benchmark, then one line that counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.model.result import Status
from cachegrind_bench.model.text import duration, grouped, plain, spread
from cachegrind_bench.render.layouts import spans
from cachegrind_bench.render.report import Report, Row, Section

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from cachegrind_bench.model.result import Benchmark, Result

# Columns that are shown where any benchmark has something in them.
_OPTIONAL = ("noise", "over layouts")


def report(
    result: Result, *, unfinished: Collection[str] = (), reused: Collection[str] = (), remarks: Iterable[str] = ()
) -> Report:
    """Return the report; `unfinished` benchmarks were not measured to their end, `reused` ones not measured again."""
    failed = sum(item.status is not Status.OK for item in result.benchmarks)
    total = len(result.benchmarks)
    parts = [f"{total} benchmark{'' if total == 1 else 's'}"]
    parts += [f"{failed} failed"] * bool(failed)
    parts += [f"{len(reused)} re-used"] * bool(reused)
    parts += [f"{len(unfinished)} not measured"] * bool(unfinished)
    sections = [_table(result, reused), _failures(result)]
    warnings = [f"{plain(item.id)}: {plain(text)}" for item in result.benchmarks for text in item.warnings]
    warnings += map(plain, remarks)
    warnings += [f"{plain(name)} was not measured" for name in unfinished]
    return Report(
        title=", ".join(parts), sections=tuple(item for item in sections if item.rows), warnings=tuple(warnings)
    )


def _table(result: Result, reused: Collection[str]) -> Section:
    columns: Row = ("benchmark", "score", "Ir", "RAM hits", *_OPTIONAL, "measured in")
    rows = [tuple(map(plain, _row(item, item.id in reused))) for item in result.benchmarks]
    for name in _OPTIONAL:
        place = columns.index(name)
        if not any(row[place:] and row[place] for row in rows):
            columns, *rows = [(*row[:place], *row[place + 1 :]) for row in (columns, *rows)]
    return Section(title="", columns=columns, rows=tuple(rows))


def _row(item: Benchmark, reused: bool) -> tuple[str, ...]:  # noqa: FBT001 - one of two facts about a row
    found = spans(item)
    if item.counts is None or item.score is None or found is None:
        return item.id, item.status.value
    return (
        item.id,
        grouped(item.score.value),
        grouped(item.counts.Ir),
        grouped(item.counts.ram_hits),
        "" if len(item.runs) == found.layouts else spread(*found.noise),  # nothing was measured twice in one layout
        "" if found.layouts == 1 else spread(*found.score),
        "re-used" if reused else duration(item.wall_ms),
    )


def _failures(result: Result) -> Section:
    """Return why benchmarks have no score: below the table, whose columns are for numbers."""
    failed = [item for item in result.benchmarks if item.status is not Status.OK]
    rows = [(plain(item.id), plain((item.error or "").partition("\n")[0])) for item in failed]
    return Section(title="not measured", columns=(), rows=tuple(rows))
