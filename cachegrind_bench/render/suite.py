"""The report of a suite: one row for each benchmark, then one line that counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.model.result import Status
from cachegrind_bench.render.layouts import spans
from cachegrind_bench.render.names import plain
from cachegrind_bench.render.numbers import duration, grouped, spread
from cachegrind_bench.render.report import Report, Row, Section

if TYPE_CHECKING:
    from collections.abc import Collection

    from cachegrind_bench.model.result import Benchmark, Result

_NOISE = 4  # its column


def report(result: Result, *, unfinished: Collection[str] = (), reused: Collection[str] = ()) -> Report:
    """Return the report; `unfinished` benchmarks did not come to their end, `reused` ones were not measured again."""
    failed = sum(item.status is not Status.OK for item in result.benchmarks)
    total = len(result.benchmarks)
    parts = [f"{total} benchmark{'' if total == 1 else 's'}"]
    parts += [f"{failed} failed"] * bool(failed)
    parts += [f"{len(reused)} re-used"] * bool(reused)
    parts += [f"{len(unfinished)} not finished"] * bool(unfinished)
    columns: Row = ("benchmark", "score", "Ir", "RAM hits", "noise", "measured in")
    rows = [tuple(map(plain, _row(item, item.id in reused))) for item in result.benchmarks]
    if not any(map(_noise, result.benchmarks)):  # nothing was measured twice
        columns, *rows = [(*row[:_NOISE], *row[_NOISE + 1 :]) for row in (columns, *rows)]
    sections = [Section(title="", columns=columns, rows=tuple(rows)), _failures(result)]
    warnings = [f"{plain(item.id)}: {plain(text)}" for item in result.benchmarks for text in item.warnings]
    warnings += [f"{plain(name)} did not finish" for name in unfinished]
    return Report(
        title=", ".join(parts), sections=tuple(item for item in sections if item.rows), warnings=tuple(warnings)
    )


def _row(item: Benchmark, reused: bool) -> tuple[str, ...]:  # noqa: FBT001 - one of two facts about a row
    if item.counts is None or item.score is None:
        return item.id, item.status.value
    when = "re-used" if reused else duration(item.wall_ms)
    return (
        item.id,
        grouped(item.score.value),
        grouped(item.counts.Ir),
        grouped(item.counts.ram_hits),
        _noise(item),
        when,
    )


def _failures(result: Result) -> Section:
    """Return why benchmarks have no score: below the table, whose columns are for numbers."""
    failed = [item for item in result.benchmarks if item.status is not Status.OK]
    rows = [(plain(item.id), plain((item.error or "").partition("\n")[0])) for item in failed]
    return Section(title="not measured", columns=(), rows=tuple(rows))


def _noise(item: Benchmark) -> str:
    """Return the spread of the score within one memory layout; nothing where no layout was measured twice."""
    found = spans(item)
    return "" if found is None or len(item.runs) == found.layouts else spread(*found.noise)
