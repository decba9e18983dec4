"""`cg-bench show`: a result file as a report again, without measuring."""

from __future__ import annotations

import fnmatch
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.options import format_option
from cachegrind_bench.cli.report import report_text
from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Benchmark, Result

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
@click.argument("file")
def command(file: str, top: int, sort: str, pattern: str | None, form: str) -> None:
    """Show a result FILE ('-' is stdin): score, hits, events, hottest functions, seal and origin."""
    from cachegrind_bench.render.report import shown, sort_name

    sort_name(sort)
    result = read_result(file)
    chosen = [item for item in result.benchmarks if pattern is None or matches(item, pattern)]
    if not chosen:
        known = ", ".join(item.id for item in result.benchmarks[:10]) or "none at all"
        raise UsageError(
            f"{file} has no benchmark {pattern!r}" if pattern else f"{file} has no benchmarks", hint=f"it has: {known}"
        )
    output.write(report_text(result, chosen, form, lambda item: shown(result, item, top=top, sort=sort)))


def read_result(name: str) -> Result:
    """Read a result file, '-' being stdin. UsageError if it cannot be read, FileFormatError if it is no result."""
    from cachegrind_bench.model.codec import decode

    if name == "-":
        return decode(sys.stdin.buffer.read(), "<stdin>")
    try:
        return decode(Path(name).read_bytes(), name)
    except OSError as error:
        raise UsageError(
            f"cannot read {name}: {error.strerror}", hint="result files are written by 'cg-bench run -o FILE'"
        ) from error


def matches(benchmark: Benchmark, pattern: str) -> bool:
    """Tell whether an id is exactly this, or fits its `*` and `?`; brackets are literal, since ids contain them."""
    return benchmark.id == pattern or fnmatch.fnmatchcase(benchmark.id, pattern.replace("[", "[[]"))
