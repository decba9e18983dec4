"""A result's benchmarks as text, in the format that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cachegrind_bench.cli import output

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cachegrind_bench.model.result import Benchmark, Result
    from cachegrind_bench.render.table import Report


def report_text(
    result: Result, benchmarks: Sequence[Benchmark], form: str, report_of: Callable[[Benchmark], Report]
) -> str:
    """Return the reports of these benchmarks of a result, made by `report_of`; JSON has a form of its own."""
    from cachegrind_bench.render import documents, table

    if form == "json":
        return documents.summary(replace(result, benchmarks=tuple(benchmarks)))
    return "\n".join(table.render(report_of(benchmark), form) for benchmark in benchmarks)


def deliver_report(text: Callable[[], str], options: Mapping[str, Any]) -> None:
    """Write the report: to stderr where the result itself went to stdout, nowhere with --quiet."""
    if options["quiet"]:
        return
    (output.write_error if options["output"] == "-" else output.write)(text())
