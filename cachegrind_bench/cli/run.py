"""`cg-bench run`: measure a command, or the suite, and report it."""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from cachegrind_bench.cli import output
from cachegrind_bench.cli.measuring import (
    check_output,
    measured,
    measuring_plan,
    refuse_to_drop,
    write_result,
)
from cachegrind_bench.cli.options import format_option, measuring_options, require_command
from cachegrind_bench.cli.report import deliver_report, report_text
from cachegrind_bench.cli.saving import save_options, saving, storing_failure
from cachegrind_bench.cli.suite import refuse_options_of_a_suite, run_suite, suite_options
from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.valgrind.options import Collect

_EPILOG = """\b
The command is executed warm-up + repeat x layouts times: by default twice, once natively to fill caches on disk
(compiled Python files, for one) and once under Valgrind, which takes about a hundred times as long. A command that
leaves state behind needs --prepare or --cleanup.

Without a command, the suite of the configuration is measured (cg-bench.toml or pyproject.toml): on every CPU at once,
since counts do not care about load. 'cg-bench list' shows it, 'cg-bench init' writes one to start from.

\b
Examples:
  cg-bench run -- python benchmark.py
  cg-bench run -o result.json -k 'json and not slow' -j 4
  cg-bench run --id startup -o result.json -- ./server --check-config
  cg-bench run --repeat 3 --env DATABASE_URL -- pytest -q tests/test_speed.py
  cg-bench run --save-baseline main -- python benchmark.py
  cg-bench run --save --store git:cg-bench-data@origin
  cg-bench run --prepare 'rm -rf build' -- make -s
  cg-bench run --model ir -o - -- sort data.txt > result.json
"""


@click.command(
    "run",
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False},
    epilog=_EPILOG,
)
@suite_options
@save_options
@click.option("--save-baseline", metavar="NAME", help="Keep the result as a baseline, for 'cg-bench diff NAME ...'.")
@measuring_options
@click.option("--keep-out-files", metavar="DIR", help="Copy Valgrind's out files here, for cg_annotate or KCachegrind.")
@click.option("--lines", is_flag=True, help="Record source lines too, for 'diff --lines' (a larger file).")
@click.option("--regions", is_flag=True, help="Measure the regions that the program marks, a benchmark for each.")
@click.option(
    "--toggle",
    "toggles",
    multiple=True,
    metavar="FUNCTION",
    help="Count only what happens inside of this function (* and ? are wildcards). Repeatable.",
)
@click.option(
    "--python-profile",
    is_flag=True,
    help="Also report what each Python function cost, from further executions (CPython 3.12+).",
)
@format_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND [ARG]...]")
def command(**options: Any) -> int:
    """Measure a command, or without one the project's suite, and print the scores.

    The program sees a sealed environment: few variables (PATH, HOME, VIRTUAL_ENV, LD_LIBRARY_PATH, PYTHONPATH and what
    --env names), fixed randomness, one CPU. Its output goes to stderr; stdout carries only the report.
    """
    check_output(options)
    if options["command"] in ((), ("--",)):
        return run_suite(options)
    refuse_options_of_a_suite()
    _run_command(options)
    return 0


def _run_command(options: dict[str, Any]) -> None:
    from cachegrind_bench.model.codec import encode
    from cachegrind_bench.render import report
    from cachegrind_bench.store.baselines import Baselines
    from cachegrind_bench.store.durable import make_folder

    plan = replace(
        _plan(options), lines=options["lines"], collect=_collect(options), python_profile=options["python_profile"]
    )
    saved, name = Baselines.find(plan.cwd), options["save_baseline"]
    if name is not None:
        saved.prepare(name)
        regions = f"{plan.benchmark_id}::" if options["regions"] else None
        refuse_to_drop(
            saved, name, lambda item: item == plan.benchmark_id if regions is None else item.startswith(regions)
        )
    keep = None if options["keep_out_files"] is None else make_folder(Path(options["keep_out_files"]))
    history = saving(options)
    with storing_failure(history, plan, options):
        result = measured(plan, options, keep=keep)
    with ExitStack() as others:  # the last one first; what fails, as on a full disk, must not cost the others
        if history is not None:
            others.callback(history.keep, result)
        others.callback(
            deliver_report,
            lambda: report_text(result, result.benchmarks, options["form"], partial(report.measured, env=result.env)),
            options,
        )
        if name is not None:
            saved.save(name, encode(result))
            if not options["quiet"]:
                output.write_error(f"cg-bench: saved as baseline {name}\n")
        write_result(result, options)


def _collect(options: dict[str, Any]) -> Collect:
    """Return which part of the execution is to be counted. UsageError where options contradict each other."""
    from cachegrind_bench.valgrind.options import Collect, Scope

    if options["regions"] and options["toggles"]:
        raise UsageError("--regions and --toggle cannot be combined", hint="measure the one, then the other")
    if options["regions"] and options["lines"]:
        raise UsageError("--lines cannot be combined with --regions")
    if options["toggles"]:
        from cachegrind_bench.config.schema import function

        for name in options["toggles"]:
            function(name, "--toggle")
    return Collect(scope=Scope.REGIONS) if options["regions"] else Collect.inside(toggles=options["toggles"])


def _plan(options: dict[str, Any]) -> Plan:
    """Return the plan, made where --prepare has done its work if the program is what that builds, and is not there yet."""
    from cachegrind_bench.measure.hooks import surrounded

    program = require_command(options["command"])[0]
    if options["prepare"] is None or os.sep not in program or os.path.lexists(program):
        return measuring_plan(options)
    with surrounded(measuring_plan({**options, "command": ("sh",)})):
        return measuring_plan(options)
