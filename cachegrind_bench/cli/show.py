"""`cg-bench show`: a result file as a report again, without measuring."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.inputs import open_result_file, size_limit_option
from cachegrind_bench.cli.options import format_option, working_directory
from cachegrind_bench.cli.references import resolve
from cachegrind_bench.cli.report import report_text
from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.patterns import matches

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Benchmark
    from cachegrind_bench.model.resultfile import ResultFile
    from cachegrind_bench.render.report import Report

_EPILOG = """\b
Examples:
  cg-bench show result.json
  cg-bench show result.json --top 30 --sort D1mr
  cg-bench show - --format markdown < result.json
"""


@click.command("show", epilog=_EPILOG)
@click.option(
    "--top", type=click.IntRange(0, 100_000), default=10, show_default=True, help="How many functions to list."
)
@click.option(
    "--sort", default="score", show_default=True, metavar="EVENT", help="Order functions by score, Ir, D1mr, ..."
)
@click.option("--benchmark", "pattern", metavar="PATTERN", help="Only benchmarks with this id (* and ? are wildcards).")
@format_option
@size_limit_option
@click.argument("file")
def command(*, file: str, top: int, sort: str, pattern: str | None, form: str, max_size: int) -> None:
    """Show a result FILE ('-' is stdin) or saved baseline: score, hits, events, hottest functions, seal and origin."""
    from cachegrind_bench.render.report import sort_name

    sort_name(sort)
    with open_result_file(resolve(file, working_directory()), limit=max_size) as source:
        text = shown_text(source, file, top=top, sort=sort, pattern=pattern, form=form)
    output.write(text)


def shown_text(source: ResultFile, name: str, *, top: int, sort: str, pattern: str | None, form: str) -> str:
    """Return the report of an opened result, which the user knows by this name. UsageError if nothing in it is meant."""
    from cachegrind_bench.render.report import shown

    result = source.result
    chosen = [item for item in result.benchmarks if pattern is None or matches(item.id, pattern)]
    if not chosen:
        known = ", ".join(item.id for item in result.benchmarks[:10]) or "none at all"
        raise UsageError(
            f"{name} has no benchmark {pattern!r}" if pattern else f"{name} has no benchmarks",
            hint=f"it has: {known}",
        )

    def report_of(benchmark: Benchmark) -> Report:
        whole = replace(benchmark, profile=source.profile(benchmark.id))
        return shown(result, whole, top=top, sort=sort)

    return report_text(result, chosen, form, report_of)
