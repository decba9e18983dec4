"""`cg-bench run`: measure one command and report it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cachegrind_bench._version import __version__
from cachegrind_bench.cli import output
from cachegrind_bench.cli.options import command_argument, execution_options, execution_plan, format_option, geometry
from cachegrind_bench.cli.report import report_text
from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from cachegrind_bench.measure.run import Plan
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.valgrind.options import Geometry

_EPILOG = """\b
The command is executed warm-up + repeat times: by default twice, once natively to fill caches on disk (compiled
Python files, for one) and once under Valgrind, which takes about a hundred times as long. A command that leaves state
behind needs --prepare or --cleanup.

\b
Examples:
  cg-bench run -- python benchmark.py
  cg-bench run --id startup -o result.json -- ./server --check-config
  cg-bench run --repeat 3 --env DATABASE_URL -- pytest -q tests/test_speed.py
  cg-bench run --prepare 'rm -rf build' -- make -s
  cg-bench run --model ir -o - -- sort data.txt > result.json
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reporting:
    """Where the outcome goes."""

    output: str | None
    form: str
    quiet: bool


@click.command(
    "run",
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False},
    epilog=_EPILOG,
)
@click.option("--id", "benchmark_id", metavar="TEXT", help="Name of the benchmark. [default: made from the command]")
@click.option("-o", "--output", metavar="FILE", help="Write the result file here; '-' is stdout.")
@click.option("--repeat", type=click.IntRange(1, 1000), default=1, show_default=True, help="Measured executions.")
@click.option("--warmup", type=click.IntRange(0, 100), default=1, show_default=True, help="Native executions before.")
@execution_options
@click.option("--require-sealed", is_flag=True, help="Fail where any part of the seal is unavailable.")
@click.option("--keep-out-files", metavar="DIR", help="Copy Valgrind's out files here, for cg_annotate or KCachegrind.")
@format_option
@click.option("-q", "--quiet", is_flag=True, help="No report and no output of the program.")
@command_argument
def command(**options: Any) -> None:
    """Measure a command and print its score.

    The program sees a sealed environment: few variables (PATH, HOME, VIRTUAL_ENV, LD_LIBRARY_PATH, PYTHONPATH and what
    --env names), fixed randomness, one CPU. Its output goes to stderr; stdout carries only the report.
    """
    from cachegrind_bench.store import check_writable

    reporting = _Reporting(output=options["output"], form=options["form"], quiet=options["quiet"])
    if reporting.output not in (None, "-"):
        check_writable(Path(reporting.output))
    plan = replace(
        execution_plan(options),
        id=_printable(options["benchmark_id"]),
        repeat=options["repeat"],
        warmup=options["warmup"],
        require_sealed=options["require_sealed"],
    )
    keep = None if options["keep_out_files"] is None else _directory(Path(options["keep_out_files"]))
    result = _measure(plan, geometry(options), options["valgrind"], keep, reporting)
    _deliver(result, reporting)


def _measure(plan: Plan, caches: Geometry, valgrind: str | None, keep: Path | None, reporting: _Reporting) -> Result:
    """Measure with progress on stderr, and add what else a result tells."""
    from cachegrind_bench.measure.result import measured_result
    from cachegrind_bench.render.progress import progress

    with progress(sys.stderr, quiet=reporting.quiet) as display:
        return measured_result(
            plan,
            geometry=caches,
            valgrind=valgrind,
            keep=keep,
            echo=display.write,
            progress=display,
            now=datetime.now(UTC),
            version=__version__,
        )


def _deliver(result: Result, reporting: _Reporting) -> None:
    from cachegrind_bench.model.codec import encode
    from cachegrind_bench.store import write_atomic

    if reporting.output == "-":
        output.write(encode(result))
    elif reporting.output is not None:
        write_atomic(Path(reporting.output), encode(result))
    if reporting.quiet:
        return
    from cachegrind_bench.render.report import measured

    report = report_text(result, result.benchmarks, reporting.form, lambda benchmark: measured(benchmark, result.env))
    if reporting.output == "-":
        output.write_error(report)
    else:
        output.write(report)


def _printable(text: str | None) -> str | None:
    return None if text is None else os.fsencode(text).decode("utf-8", "backslashreplace")


def _directory(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the directory {path}: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"cannot keep out files in {path}: permission denied", hint="choose another directory")
    return path
