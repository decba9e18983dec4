"""The suite of a project: from its configuration and the options of `run` to one result of all benchmarks."""

from __future__ import annotations

import io
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from cachegrind_bench._version import __version__
from cachegrind_bench.cli import output
from cachegrind_bench.cli.configured import configured_variables
from cachegrind_bench.cli.measuring import write_result
from cachegrind_bench.cli.options import geometry, working_directory
from cachegrind_bench.cli.report import deliver_report
from cachegrind_bench.cli.selection import configuration, selected, selection_options
from cachegrind_bench.errors import MeasurementError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from cachegrind_bench.config.values import BenchmarkSpec
    from cachegrind_bench.measure.run import Plan
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.suite.execute import Job, Outcome

Function = TypeVar("Function", bound="Callable[..., Any]")

# Options of one command that make no sense for a suite, whose benchmarks say it for themselves; and the other way round.
_OF_ONE_COMMAND = ("benchmark_id", "stdin", "prepare", "cleanup", "keep_out_files")
_OF_A_SUITE = ("expression", "tags", "shard", "jobs", "fail_fast", "capture_output", "cached")


def suite_options(function: Function) -> Function:
    """Take the options that choose benchmarks of a suite and say how they are measured together."""
    for option in reversed(
        (
            *selection_options,
            click.option(
                "-j", "--jobs", type=click.IntRange(1), metavar="N", help="Measured at once. [default: all CPUs]"
            ),
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
    from cachegrind_bench.store.baselines import Baselines, make_store

    _refuse(_OF_ONE_COMMAND, "belongs to one command", "write it into the benchmark's table of the configuration")
    CostModel.parse(options["model"])  # a typing error is bad usage, not the failure of every benchmark
    found = configuration(working_directory())
    saved, name = Baselines.find(found.root), options["save_baseline"]
    specs = selected(found.benchmarks, options, saved.store)
    if name is not None:
        saved.prepare(name)
    with suppress(UsageError):  # only to remember how long each takes
        make_store(saved.store)
    result, outcome, reused = measure_suite(specs, options, found.root, saved.store)
    failed = [item.id for item in result.benchmarks if item.status is not Status.OK]
    if result.benchmarks:
        write_result(result, options)
    whole = not failed and not outcome.unfinished
    if name is not None and whole:
        saved.save(name, encode(result))
    if name is not None and not options["quiet"]:
        output.write_error(
            f"cg-bench: {'saved as' if whole else 'not everything was measured, so nothing was saved as'} baseline {name}\n"
        )
    deliver_report(lambda: _report(result, outcome, reused, options["form"]), options)
    if outcome.interrupted:
        raise KeyboardInterrupt
    return MeasurementError.exit_code if failed or outcome.unfinished else 0


def _report(result: Result, outcome: Outcome, reused: frozenset[str], form: str) -> str:
    from cachegrind_bench.render import markdown, suite, summary, table

    text = io.StringIO()
    if form == "json":
        summary.render(result, text)
    else:
        layout = markdown if form == "markdown" else table
        layout.render(suite.report(result, unfinished=outcome.unfinished, reused=reused), text)
    return text.getvalue()


def refuse_options_of_a_suite(options: Mapping[str, Any]) -> None:
    """UsageError if an option was given that only means something without a command."""
    del options
    _refuse(_OF_A_SUITE, "is for a suite", "without a command, the suite of the configuration is measured")


def _refuse(names: Sequence[str], why: str, hint: str) -> None:
    context = click.get_current_context()
    for name in names:
        option = next((item.opts[0] for item in context.command.params if item.name == name), None)
        if option is not None and _typed(context, name):
            raise UsageError(f"{option} {why}", hint=hint)


def _typed(context: click.Context, name: str) -> bool:
    """Tell whether the user gave this option here, which goes before what a benchmark's table says."""
    return context.get_parameter_source(name) in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def jobs_of(specs: Sequence[BenchmarkSpec], options: dict[str, Any]) -> list[Job]:
    """Return what is to be measured."""
    from cachegrind_bench.suite.execute import Job

    context = click.get_current_context()
    typed = frozenset(item.name for item in context.command.params if item.name and _typed(context, item.name))
    return [
        Job(
            id=spec.id,
            plan=partial(_plan, spec, options, typed),
            command=spec.command,
            cwd=spec.cwd,
            setup=spec.setup,
            parameters=spec.parameters,
            tags=spec.tags,
        )
        for spec in specs
    ]


def _plan(spec: BenchmarkSpec, options: dict[str, Any], typed: frozenset[str]) -> Plan:
    """Return the plan of one benchmark: what was typed goes before its table, and that before the defaults."""
    from cachegrind_bench.cli.measuring import measuring_plan

    own = {"repeat": spec.repeat, "warmup": spec.warmup, "layouts": spec.layouts, "timeout": spec.timeout_ms}
    values = {name: value for name, value in own.items() if value is not None and name not in typed}
    merged = {
        **options,
        **values,
        "command": spec.command,
        "benchmark_id": spec.id,
        "env": (*spec.env, *options["env"]),
        "stdin": None if spec.stdin is None else str(spec.stdin),
        "prepare": spec.prepare,
        "cleanup": spec.cleanup,
    }
    return measuring_plan(merged, cwd=spec.cwd)


def job_count(asked: int | None, total: int) -> int:
    """Return how many benchmarks to measure at once: as many as there are CPUs for us, or fewer."""
    cpus = len(os.sched_getaffinity(0))
    return max(1, min(asked or cpus, cpus, total))


def _cpus(count: int) -> SimpleQueue[int]:
    """Return so many CPUs, one for each job at a time, from the last one downwards."""
    cpus: SimpleQueue[int] = SimpleQueue()
    for cpu in sorted(os.sched_getaffinity(0), reverse=True)[:count]:
        cpus.put(cpu)
    return cpus


def measure_suite(
    specs: Sequence[BenchmarkSpec], options: dict[str, Any], root: Path, store: Path
) -> tuple[Result, Outcome, frozenset[str]]:
    """Measure these benchmarks and describe machine and commit."""
    from cachegrind_bench.hermetic import environment
    from cachegrind_bench.hermetic.environment import Request
    from cachegrind_bench.interruption import Cancel, uninterrupted
    from cachegrind_bench.measure.session import laboratory
    from cachegrind_bench.model.result import Commit, Result
    from cachegrind_bench.render.terminal import suite_display
    from cachegrind_bench.store.timings import read_timings, write_timings
    from cachegrind_bench.suite.execute import measure_job, run_suite
    from cachegrind_bench.suite.reuse import Reuse
    from cachegrind_bench.suite.setup import set_up
    from cachegrind_bench.vcs.commit import commit_info

    environ = dict(os.environ)
    own = [item for spec in specs for item in spec.env]
    request = Request.parse([*configured_variables(), *own, *options["env"]])
    ready = laboratory(
        valgrind=options["valgrind"],
        geometry=geometry(options),
        environ=environ,
        passed=environment.fingerprint_values(request, environ),
    )
    created_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    reuse = None
    if options["cached"]:
        from cachegrind_bench.suite.cache import Cache

        reuse = Reuse(
            cache=Cache.open(store), environment=ready.environment, version=__version__, created_at=created_at
        )
    jobs = jobs_of(specs, options)
    count = job_count(options["jobs"], len(jobs))
    times = read_timings(store)
    known = {job.id: times[job.id] for job in jobs if job.id in times}
    cancel = Cancel()
    try:
        with suite_display(sys.stderr, len(jobs), known, jobs=count, quiet=options["quiet"]) as display:
            broken = set_up(jobs, environ, display)
            outcome = run_suite(
                _longest_first(jobs, known, count),
                partial(
                    measure_job,
                    laboratory=ready,
                    broken=broken,
                    cpus=_cpus(count),
                    watcher=display,
                    capture=options["capture_output"],
                    reuse=reuse,
                ),
                ThreadPoolExecutor(count, thread_name_prefix="benchmark"),
                cancel,
                fail_fast=options["fail_fast"],
            )
    finally:
        cancel.close()
    write_timings(store, display.wall_ms if options["shard"] is None else {})  # all shards must go by the same times
    with uninterrupted():  # after Ctrl-C, what finished is still to be described
        commit = commit_info(root, environ)
    by_id = {item.id: item for item in outcome.benchmarks}
    result = Result(
        tool_version=__version__,
        created_at=created_at,
        commit=commit if isinstance(commit, Commit) else None,
        env=ready.environment,
        benchmarks=tuple(by_id[spec.id] for spec in specs if spec.id in by_id),
    )
    return result, outcome, display.reused_ids


def _longest_first(jobs: Sequence[Job], known: Mapping[str, int], count: int) -> list[Job]:
    """Return the jobs in an order in which none is left over that takes long, while the other CPUs have nothing to do."""
    if count == 1 or not known:
        return list(jobs)
    usual = sorted(known.values())[len(known) // 2]
    return sorted(jobs, key=lambda job: -known.get(job.id, usual))
