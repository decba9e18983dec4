"""`cg-bench show`: a result file as a report again, without measuring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from cachegrind_bench.cli import output
from cachegrind_bench.cli.options import format_option, size_limit_option, working_directory
from cachegrind_bench.cli.python_files import python_file_options, wants_files, write_files
from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.text import matches, some
from cachegrind_bench.usecases.comparison_inputs import resolve
from cachegrind_bench.usecases.result_files import read_result

if TYPE_CHECKING:
    from cachegrind_bench.model.codec import ResultFile
    from cachegrind_bench.model.result import Benchmark, Result
    from cachegrind_bench.render.table import Report

_EPILOG = """\b
Examples:
  cg-bench show result.json
  cg-bench show result.json --top 30 --sort D1mr
  cg-bench show - --format markdown < result.json
  cg-bench show result.json --benchmark parse --flame parse.html
  cg-bench show result.json --export speedscope -o parse.speedscope.json
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
@python_file_options
@size_limit_option
@click.argument("file")
def command(*, file: str, top: int, sort: str, pattern: str | None, form: str, max_size: int, **options: Any) -> None:
    """Show a result FILE ('-' is stdin) or saved baseline: score, hits, events, hottest functions, seal and origin."""
    from cachegrind_bench.render.report import sort_name

    sort_name(sort)
    path = resolve(file, working_directory())
    files = wants_files(options, path)
    source = read_result(path, limit=max_size)
    if files:
        write_files(source, file, chosen(source.result, file, pattern), options)
        return
    text = shown_text(source, file, top=top, sort=sort, pattern=pattern, form=form)
    output.write(text)


def shown_text(source: ResultFile, name: str, *, top: int, sort: str, pattern: str | None, form: str) -> str:
    """Return the report of an opened result, which the user knows by this name. UsageError if nothing in it is meant."""
    from cachegrind_bench.render.report import shown

    result = source.result

    def report_of(benchmark: Benchmark) -> Report:
        whole = replace(benchmark, profile=source.profile(benchmark.id), python=source.python(benchmark.id))
        return shown(result, whole, top=top, sort=sort)

    return output.report_text(result, chosen(result, name, pattern), form, report_of)


def chosen(result: Result, name: str, pattern: str | None) -> list[Benchmark]:
    """Return the benchmarks of a result whose ids fit the pattern, or all. UsageError if there are none."""
    found = [item for item in result.benchmarks if pattern is None or matches(item.id, pattern)]
    if not found:
        known = some([item.id for item in result.benchmarks], 10) or "none at all"
        raise UsageError(
            f"{name} has no benchmark {pattern!r}" if pattern else f"{name} has no benchmarks",
            hint=f"it has: {known}",
        )
    return found
