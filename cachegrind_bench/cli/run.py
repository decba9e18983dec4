"""`cg-bench run`: measure a command, or the suite, and report it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.core import ParameterSource
from msgspec.structs import replace

from cachegrind_bench.cli import output
from cachegrind_bench.cli.fleet import clone_option, workers_option, workforce
from cachegrind_bench.cli.help import Command, options_group
from cachegrind_bench.cli.options import (
    REPORT,
    Configured,
    color_option,
    configured,
    format_option,
    harness_option,
    is_suite,
    measure_request,
    measuring_options,
    names_of,
    opened_destination,
    optional_command_argument,
    project_root,
    refuse_typed,
    repository,
    store_option,
    struct_of,
    suite_options,
    typed,
    typed_words,
    with_profile_option,
)
from cachegrind_bench.errors import UsageError
from cachegrind_bench.log import LOG

if TYPE_CHECKING:
    from cachegrind_bench.compare.verdict import Gates
    from cachegrind_bench.config.benchmarks import BenchmarkSpec
    from cachegrind_bench.model.result import Result, Since
    from cachegrind_bench.store.baselines import Baselines
    from cachegrind_bench.usecases.measurement import MeasureRequest
    from cachegrind_bench.usecases.saving import SaveRequest
    from cachegrind_bench.usecases.selection import Selection
    from cachegrind_bench.usecases.suite import SuiteRun
    from cachegrind_bench.valgrind.options import Collect

_EPILOG = """\b
The command is executed warm-up + repeat x layouts times: by default twice, once natively to fill caches on disk
(compiled Python files, for one) and once under Valgrind, which takes about a hundred times as long. A command that
leaves state behind needs --prepare or --cleanup.

Unless the result goes to a file (-o), the report says how the score changed since the last run of the same benchmark in the
same folder. What that cost is kept in cg-bench/last-runs.json in the user's cache folder (XDG_CACHE_HOME, ~/.cache).

Without a command, the suite of the configuration is measured (cg-bench.toml or pyproject.toml): on every CPU at once,
since counts do not depend on load. 'cg-bench list' shows it, 'cg-bench init' writes one to start from.

\b
Examples:
  cg-bench run -- python benchmark.py
  cg-bench run -o result.json -k 'json and not slow' -j 4
  cg-bench run --id startup --save-baseline main -- ./server --check-config
  cg-bench run --harness google-benchmark -- build/bench
  cg-bench run --prepare 'rm -rf build' -- make -s
"""

_save_options = options_group(
    click.option("--save", is_flag=True, help="Add the result to the history (see 'cg-bench history')."),
    store_option,
    with_profile_option,
    click.option(
        "--save-baseline", metavar="NAME", help="Keep the result as a baseline, for 'cg-bench diff NAME ...'."
    ),
    heading="History and baselines",
)
_detail_options = options_group(
    click.option("--lines", is_flag=True, help="Record source lines too, for 'diff --lines' (a larger file)."),
    click.option(
        "--call-tree",
        is_flag=True,
        help="Record which function called which, for 'diff' to say what is called more often (under Cachegrind, in one "
        "more execution).",
    ),
    harness_option,
    click.option("--regions", is_flag=True, help="Measure the regions that the program marks, each as a benchmark."),
    click.option(
        "--toggle",
        "toggles",
        multiple=True,
        metavar="FUNCTION",
        help="Count only what happens inside this function (* and ? are wildcards). Repeatable.",
    ),
    click.option(
        "--python-profile",
        is_flag=True,
        help="Also report what each Python function cost, from further executions (CPython 3.12+).",
    ),
    click.option(
        "--python-optional", is_flag=True, hidden=True, help="No Python profile of what is not Python; for 'ab'."
    ),
    heading="What is counted",
)
_report_options = options_group(
    format_option,
    color_option,
    click.option(
        "--keep-out-files",
        type=Path,
        metavar="DIR",
        help="Copy Valgrind's out files here, for cg_annotate or KCachegrind.",
    ),
    heading=REPORT,
)
_OF_THIS_MACHINE = ("jobs", "shard", "fail_fast", "cached", "harness", "keep_out_files")


@click.command("run", cls=Command, context_settings={"allow_interspersed_args": False}, epilog=_EPILOG)
@_report_options
@_save_options
@measuring_options
@_detail_options
@suite_options
@options_group(workers_option, clone_option, heading="The suite")
@optional_command_argument
def command(**options: Any) -> int:
    """Measure a command, or without one the project's suite, and print the scores.

    The program sees a sealed environment: few variables (PATH, HOME, VIRTUAL_ENV, LD_LIBRARY_PATH, PYTHONPATH and what
    --env names), fixed randomness, one CPU. Its output goes to stderr; stdout carries only the report.
    """
    output.check_result_file(options["output"])
    return _run(options)[1]


def measured_in(folder: Path, environ: Mapping[str, str], words: Sequence[str]) -> Result:
    """Return what `cg-bench run` with these words measures in this folder, by the configuration found there.

    None of our own variables (CG_BENCH_SAVE) is obeyed: they are meant for the command that calls this.
    """
    from cachegrind_bench.config.load import load
    from cachegrind_bench.config.source import find

    file = find(folder)
    found = None if file is None else load(file, check_files=False)
    here = Configured(command="run", found=found, cwd=folder, environ=environ)
    words = ["--color", "never", *words]

    def run() -> Result:
        with command.make_context("run", words, default_map=here.defaults().get("run"), obj=here) as context:
            return _run(context.params)[0]

    return copy_context().run(run)  # -q is for this measurement alone


def _run(options: dict[str, Any]) -> tuple[Result, int]:
    return _run_suite(options) if is_suite(options) else _run_command(options)


def _run_command(options: dict[str, Any]) -> tuple[Result, int]:
    from cachegrind_bench.render import report
    from cachegrind_bench.render.progress import Display
    from cachegrind_bench.store.baselines import Baselines
    from cachegrind_bench.usecases.measurement import measured, plan_of, prepared_plan
    from cachegrind_bench.usecases.saving import failure_saved
    from cachegrind_bench.valgrind.options import Scope

    request = measure_request(options, collect=_collect(options))
    program = request.command[0]
    is_missing = os.sep in program and not os.path.lexists(request.cwd / program)
    plan = prepared_plan(request) if is_missing else plan_of(request)
    gates = _gates(request)
    by_region = plan.collect.scope is Scope.REGIONS  # whose ids are known when they have been entered
    if gates.needs_calls(plan.benchmark_id) or (by_region and gates.counts_allocations):
        plan = replace(plan, call_tree=True)
    whole, regions = plan.benchmark_id, f"{plan.benchmark_id}::"

    def is_measured(item: str) -> bool:
        return item.startswith(regions) if options["regions"] else item == whole

    targets = _targets(request, options, Baselines.find(plan.cwd), is_measured)
    keep_failure = failure_saved(targets.history, plan) if targets.history else nullcontext()
    with keep_failure, Display(None if options["quiet"] else sys.stderr) as display:
        result = measured(request, plan, display.phase, display.write)
    since = _since(result, plan.cwd, options)

    def text() -> str:
        if len(result.benchmarks) > 1 and not options["python_profile"]:  # regions
            return output.report_text(result, options["form"], [report.suite(result, since=since)], options["color"])
        reports = (report.measured(item, result.env, since.get(item.id)) for item in result.benchmarks)
        return output.report_text(result, options["form"], reports, options["color"])

    targets.deliver(result, text)
    return result, 0


def _since(result: Result, project: Path, options: dict[str, Any]) -> dict[str, Since]:
    """Return what changed since the last run, and remember this one: only for whoever reads it now, and keeps no result."""
    from cachegrind_bench.usecases.last_run import remembered

    plain = (
        configured().cwd is None and options["output"] is None and options["form"] == "table" and not options["quiet"]
    )
    return remembered(result, project, dict(os.environ)) if plain else {}


def _run_suite(options: dict[str, Any]) -> tuple[Result, int]:
    """Measure the suite, write and report what came to its end, and return that with the exit code."""
    from cachegrind_bench.render import report as reports
    from cachegrind_bench.render.progress import SuiteDisplay
    from cachegrind_bench.store.baselines import Baselines, make_store
    from cachegrind_bench.usecases.comparison import InMemory, growths_in
    from cachegrind_bench.usecases.numbers import stored
    from cachegrind_bench.usecases.selection import SelectRequest, selected, suite_of
    from cachegrind_bench.usecases.suite import SuiteRequest, measure_suite

    each = measure_request(options)
    request = struct_of(SuiteRequest, options, each=each, typed=frozenset(filter(typed, names_of(measuring_options))))
    found = suite_of(each, options["harness"])
    saved = Baselines.find(found.root)
    selection = selected(found.benchmarks, struct_of(SelectRequest, options), saved.store)
    gates, ids = _gates(each, selection.specs), {spec.id for spec in selection.specs}
    targets = _targets(each, options, saved, ids.__contains__ if selection.partial else None)
    with suppress(UsageError):  # only to remember how long each takes
        make_store(saved.store)
    if typed("workers"):  # one in the configuration is for a past: here it would leave out what is not committed
        run = _run_on_workers(options, each, selection)
    else:
        show = partial(SuiteDisplay, None if options["quiet"] else sys.stderr)
        looping = {spec.id for spec in selection.specs if spec.loop is not None}
        if targets.history and looping:
            request = replace(request, iterations=stored(targets.history.destination.store, looping))
        request = replace(request, needs_calls=gates.needs_calls)
        run = measure_suite(request, selection, found.root, saved.store, show)
    since = _since(run.result, found.root, options)

    def report() -> str:
        shown = reports.suite(
            run.result,
            unfinished=run.outcome.unfinished,
            skipped=run.outcome.skipped,
            reused=run.reused,
            remarks=remarks_on_limits(run.result, gates),
            since=since,
        )
        growth = growths_in(InMemory(run.result)).values()
        return output.report_text(
            run.result, options["form"], [shown], options["color"], growth=growth, root=project_root()
        )

    targets.deliver(run.result, report, run)
    code = run.exit_code()
    if code and run.outcome.skipped and not run.result.benchmarks:
        LOG.warning("nothing was measured: every benchmark skips itself")
    return run.result, code


def _gates(request: MeasureRequest, specs: Sequence[BenchmarkSpec] = ()) -> Gates:
    """Return what the configuration limits, and where it limits allocations, for which calls are to be recorded.

    UsageError for a limit of what is not measured.
    """
    from cachegrind_bench.cli.options import configured_texts
    from cachegrind_bench.usecases.comparison import GateOptions

    held = configured_texts("threshold_allocations")
    gates = GateOptions(limit=configured_texts("limit"), threshold_allocations=held).gates(specs)
    for limit in gates.limits:
        limit.check(with_caches=request.geometry.simulated)
    return gates


def remarks_on_limits(result: Result, gates: Gates) -> Iterator[str]:
    """Say which limits were exceeded. It is for comparisons to fail on them."""
    from cachegrind_bench.compare.allocations import counted
    from cachegrind_bench.compare.verdict import exceeded
    from cachegrind_bench.model.metrics import CostModel
    from cachegrind_bench.model.text import grouped

    for item in result.benchmarks:
        if item.score is not None:
            calls = item.calls if gates.needs_calls(item.id) else None
            made = None if calls is None or not calls.is_whole else counted(None, calls).made.candidate
            for over in exceeded(gates.limits, item, CostModel.parse(item.score.model), made):
                yield f"{item.id}: {over.name} {grouped(over.value)} exceeds the limit of {grouped(over.limit)}"


def _run_on_workers(options: dict[str, Any], request: MeasureRequest, selection: Selection) -> SuiteRun:
    from cachegrind_bench.usecases.selection import SelectRequest
    from cachegrind_bench.usecases.spread import measured_by, order_of

    refuse_typed(_OF_THIS_MACHINE, "cannot be combined with --workers", "leave one out")
    here = repository()
    chosen = {*names_of(measuring_options, _detail_options, suite_options)} - {*_OF_THIS_MACHINE, "output", "quiet"}
    order = order_of(here, struct_of(SelectRequest, options), typed_words(chosen))
    with workforce(options, request, here, None, measured_in) as force:
        return measured_by(force, order, [spec.id for spec in selection.specs], here)


class _Targets(msgspec.Struct, frozen=True, kw_only=True):
    """Where a result goes: baseline, history, file and report, which were found to work before anything is measured in `cwd`."""

    cwd: Path
    output: str | None
    baseline: str | None
    saved: Baselines
    history: SaveRequest | None
    quiet: bool
    is_asked_for: bool  # the report, by its format

    def deliver(self, result: Result, report: Callable[[], str], run: SuiteRun | None = None) -> None:
        """Save, write and report a result, that of a suite as far as its `run` came."""
        from cachegrind_bench.model.codec import encode
        from cachegrind_bench.usecases.saving import left_if_unwritten, save

        whole = run is None or run.whole
        unfinished = run is not None and bool(run.outcome.unfinished)
        with ExitStack() as others:  # the last one first; what fails, as on a full disk, must not cost the others
            if self.history is not None and (run is None or (result.benchmarks and not run.outcome.interrupted)):
                others.callback(save, self.history, result)
            others.callback(self._report, report, run)
            others.enter_context(left_if_unwritten(self.cwd, result))
            if self.baseline is not None:
                if whole:
                    self.saved.save(self.baseline, encode(result))
                did = "saved as" if whole else "not everything was measured, so there is no new"
                LOG.info(f"{did} baseline {self.baseline}")
            if self.output is not None and (result.benchmarks or not unfinished):  # a shard may be empty
                output.write_file(self.output, encode(result))
                if run is not None and unfinished and self.output != "-":
                    wanted = len(run.outcome.unfinished) + len(run.outcome.benchmarks)
                    output.write_error(f"cg-bench: {self.output} has {len(result.benchmarks)} of {wanted} benchmarks\n")

    def _report(self, report: Callable[[], str], run: SuiteRun | None) -> None:
        if not self.quiet or self.is_asked_for:
            if configured().cwd is None:
                output.write_beside(self.output, report())
            else:  # stdout is for the report of the command that called this one
                output.write_error(report())
        elif run is not None and run.result.failed:
            failed, count = run.result.failed, len(run.result.benchmarks)
            LOG.warning(f"{len(failed)} of {count} benchmarks failed: {', '.join(failed)}")


def _targets(
    request: MeasureRequest, options: dict[str, Any], saved: Baselines, is_measured: Callable[[str], bool] | None
) -> _Targets:
    """Return what the options name. UsageError if it cannot be used, or a baseline would lose what is not measured."""
    from cachegrind_bench.store.durable import make_folder
    from cachegrind_bench.usecases.saving import refuse_to_drop

    name = options["save_baseline"]
    if name is not None:
        saved.prepare(name)
        if is_measured is not None:
            refuse_to_drop(saved, name, is_measured)
    if request.keep_out_files is not None:
        make_folder(request.keep_out_files)
    return _Targets(
        cwd=request.cwd,
        output=options["output"],
        baseline=name,
        saved=saved,
        history=_history(request, options),
        quiet=options["quiet"],
        is_asked_for=typed("form"),
    )


def _history(request: MeasureRequest, options: dict[str, Any]) -> SaveRequest | None:
    """Return where to store what will be measured, None if that was not asked for."""
    with_profile = options["with_profile"]
    if not options["save"]:
        if click.get_current_context().get_parameter_source("with_profile") is ParameterSource.COMMANDLINE:
            raise UsageError("--with-profile has an effect only together with --save", hint="add --save")
        return None
    from cachegrind_bench.usecases.saving import SaveRequest, check_store

    destination = opened_destination(options, with_profile=with_profile)
    check_store(destination)
    return SaveRequest(destination=destination, measure=request)


def _collect(options: dict[str, Any]) -> Collect:
    """Return which part of the execution is to be counted. UsageError where options contradict each other."""
    from cachegrind_bench.valgrind.options import WHOLE, Collect, Scope

    if options["regions"] and options["toggles"]:
        raise UsageError("--regions and --toggle cannot be combined", hint="measure with one, then with the other")
    if options["regions"] and options["lines"]:
        raise UsageError("--lines cannot be combined with --regions")
    if options["toggles"]:
        from cachegrind_bench.config.schema import function

        for name in options["toggles"]:
            function(name, "--toggle")
        return Collect.inside(toggles=options["toggles"])
    return Collect(scope=Scope.REGIONS) if options["regions"] else WHOLE
