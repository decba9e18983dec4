"""The suite of a project: from its configuration and the options of `run` to one result of all benchmarks."""

from __future__ import annotations

import io
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.configured import configured_limits
from cachegrind_bench.cli.gating import own_limits
from cachegrind_bench.cli.measuring import refuse_to_drop, write_result
from cachegrind_bench.cli.options import typed, working_directory
from cachegrind_bench.cli.report import deliver_report
from cachegrind_bench.cli.selection import configuration, selected, selection_options
from cachegrind_bench.cli.storing import saving
from cachegrind_bench.cli.suitejobs import measure_suite
from cachegrind_bench.errors import MeasurementError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cachegrind_bench.model.result import Result
    from cachegrind_bench.model.thresholds import Limit
    from cachegrind_bench.suite.schedule import Outcome

Function = TypeVar("Function", bound="Callable[..., Any]")

# Options of one command that make no sense for a suite, whose benchmarks say it for themselves; and the other way round.
_OF_ONE_COMMAND = ("benchmark_id", "stdin", "prepare", "cleanup", "keep_out_files", "regions", "toggles")
_OF_A_SUITE = ("expression", "patterns", "tags", "shard", "jobs", "fail_fast", "capture_output", "cached")


jobs_option = click.option(
    "-j", "--jobs", type=click.IntRange(1), metavar="N", help="Measured at once. [default: all CPUs]"
)


def suite_options(function: Function) -> Function:
    """Take the options that choose benchmarks of a suite and say how they are measured together."""
    for option in reversed(
        (
            *selection_options,
            jobs_option,
            click.option("--fail-fast", is_flag=True, help="End the suite with the first benchmark that fails."),
            click.option(
                "--cached", is_flag=True, help="Do not measure again what has read only files that are unchanged since."
            ),
            click.option("--capture-output", is_flag=True, help="Keep what the programs wrote in the result."),
        )
    ):
        function = option(function)
    return function


def run_suite(options: dict[str, Any]) -> int:
    """Measure the suite, write and report what came to its end, and return the exit code."""
    from cachegrind_bench.model.codec import encode
    from cachegrind_bench.model.result import Status
    from cachegrind_bench.model.score import CostModel
    from cachegrind_bench.model.thresholds import limit
    from cachegrind_bench.store.baselines import Baselines, make_store

    _refuse(_OF_ONE_COMMAND, "belongs to one command", "write it into the benchmark's table of the configuration")
    CostModel.parse(options["model"])  # a typing error is bad usage, not the failure of every benchmark
    found = configuration(working_directory())
    saved, name = Baselines.find(found.root), options["save_baseline"]
    selection = selected(found.benchmarks, options, saved.store)
    if name is not None:
        saved.prepare(name)
        if selection.partial:
            refuse_to_drop(saved, name, {spec.id for spec in selection.specs}.__contains__)
    with suppress(UsageError):  # only to remember how long each takes
        make_store(saved.store)
    history = saving(options)
    result, outcome, reused = measure_suite(selection, options, found.root, saved.store)
    failed = [item.id for item in result.benchmarks if item.status is not Status.OK]
    whole = not failed and not outcome.unfinished
    limits = [*map(limit, configured_limits()), *own_limits(selection.specs)]
    with ExitStack() as others:  # the last one first; what fails, as on a full disk, must not cost the others
        if history is not None and result.benchmarks and not outcome.interrupted:
            others.callback(history.keep, result)
        if failed and options["quiet"]:
            told = f"{len(failed)} of {len(result.benchmarks)} benchmarks failed: {', '.join(failed)}"
            others.callback(output.write_error, f"cg-bench: {told}\n")
        others.callback(deliver_report, lambda: _report(result, outcome, reused, limits, options["form"]), options)
        if name is not None and whole:
            saved.save(name, encode(result))
        if name is not None and not options["quiet"]:
            told = "saved as" if whole else "not everything was measured, so nothing was saved as"
            output.write_error(f"cg-bench: {told} baseline {name}\n")
        _write_result(result, outcome, len(selection.specs), options)
    if outcome.interrupted:
        raise KeyboardInterrupt
    return MeasurementError.exit_code if failed or outcome.unfinished else 0


def _write_result(result: Result, outcome: Outcome, wanted: int, options: dict[str, Any]) -> None:
    if not result.benchmarks and outcome.unfinished:  # but a shard may be empty
        return
    write_result(result, options)
    if outcome.unfinished and options["output"] not in (None, "-"):
        output.write_error(f"cg-bench: {options['output']} has {len(result.benchmarks)} of {wanted} benchmarks\n")


def _report(result: Result, outcome: Outcome, reused: frozenset[str], limits: Sequence[Limit], form: str) -> str:
    from cachegrind_bench.render import markdown, suite, summary, table

    text = io.StringIO()
    if form == "json":
        summary.render(result, text)
    else:
        layout = markdown if form == "markdown" else table
        remarks = _exceeded(result, limits)
        shown = suite.report(result, unfinished=outcome.unfinished, reused=reused, remarks=remarks)
        layout.render(shown, text)
    return text.getvalue()


def _exceeded(result: Result, limits: Sequence[Limit]) -> list[str]:
    """Say which limits were exceeded. It is for comparisons to fail on them."""
    from cachegrind_bench.model.score import CostModel
    from cachegrind_bench.render.numbers import grouped

    found: list[str] = []
    for item in result.benchmarks:
        for bound in limits:
            if item.counts is None or item.score is None or not bound.holds_for(item.id):
                continue
            value = bound.measured(item.counts, CostModel.parse(item.score.model))
            if value > bound.value:
                found.append(f"{item.id}: {bound.name} {grouped(value)} exceeds the limit of {grouped(bound.value)}")
    return found


def refuse_options_of_a_suite() -> None:
    """UsageError if an option was given that only means something without a command."""
    _refuse(_OF_A_SUITE, "is for a suite", "without a command, the suite of the configuration is measured")


def _refuse(names: Sequence[str], why: str, hint: str) -> None:
    options = {item.name: item.opts[0] for item in click.get_current_context().command.params}
    for name in names:
        if name in options and typed(name):
            raise UsageError(f"{options[name]} {why}", hint=hint)
