"""The suite of a project: the benchmarks that were chosen as jobs, measured on every CPU at once, and one result of them all.

What is typed goes before what the configuration says.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from cachegrind_bench._version import __version__
from cachegrind_bench.cli import output
from cachegrind_bench.cli.defaults import configured_limits
from cachegrind_bench.cli.measuring import measuring_plan, refuse_to_drop, write_result
from cachegrind_bench.cli.options import (
    geometry,
    jobs_option,
    options_group,
    passed_variables,
    selection_options,
    typed,
    working_directory,
)
from cachegrind_bench.cli.report import deliver_report
from cachegrind_bench.cli.saving import saving
from cachegrind_bench.cli.selection import configuration, selected
from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.usecases.comparison import own_limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cachegrind_bench.cli.selection import Selection
    from cachegrind_bench.config.benchmarks import BenchmarkSpec
    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.measure.session import Laboratory
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.model.thresholds import Limit
    from cachegrind_bench.render.progress import SuiteLog
    from cachegrind_bench.suite.execute import Job, Reuse
    from cachegrind_bench.suite.schedule import Outcome

# Options of one command that make no sense for a suite, whose benchmarks say it for themselves; and the other way round.
_OF_ONE_COMMAND = ("benchmark_id", "stdin", "prepare", "cleanup", "keep_out_files", "regions", "toggles")
_OF_A_SUITE = ("expression", "patterns", "tags", "shard", "jobs", "fail_fast", "capture_output", "cached")


suite_options = options_group(
    selection_options,
    jobs_option,
    click.option("--fail-fast", is_flag=True, help="End the suite with the first benchmark that fails."),
    click.option(
        "--cached", is_flag=True, help="Do not measure again what has read only files that are unchanged since."
    ),
    click.option("--capture-output", is_flag=True, help="Keep what the programs wrote in the result."),
)


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
    from cachegrind_bench.render import documents, report, table

    if form == "json":
        return documents.summary(result)
    remarks = _exceeded(result, limits)
    shown = report.suite(result, unfinished=outcome.unfinished, reused=reused, remarks=remarks)
    return table.render(shown, form)


def _exceeded(result: Result, limits: Sequence[Limit]) -> list[str]:
    """Say which limits were exceeded. It is for comparisons to fail on them."""
    from cachegrind_bench.model.score import CostModel
    from cachegrind_bench.model.text import grouped

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


def measure_suite(
    selection: Selection, options: Mapping[str, Any], root: Path, store: Path
) -> tuple[Result, Outcome, frozenset[str]]:
    """Measure these benchmarks and describe machine and commit; return also the ids of those that were re-used."""
    from cachegrind_bench.interruption import uninterrupted
    from cachegrind_bench.model.result import Commit, Result
    from cachegrind_bench.render.progress import suite_display
    from cachegrind_bench.store.timings import read_timings, write_timings
    from cachegrind_bench.vcs.commits import commit_info

    environ, created_at = dict(os.environ), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = _laboratory(selection.specs, options, environ)
    reuse = _reuse(store, ready, created_at) if options["cached"] else None
    times, count = read_timings(store), job_count(options["jobs"], len(selection.specs))
    known = {spec.id: times[spec.id] for spec in selection.specs if spec.id in times}
    jobs = _jobs(selection.specs, options)
    with suite_display(sys.stderr, len(jobs), known, jobs=count, quiet=options["quiet"]) as display:
        outcome = _executed(jobs, known, count, options, ready=ready, display=display, reuse=reuse)
    if options["shard"] is None:  # else all must go by the same times
        write_timings(store, display.wall_ms)
    with uninterrupted():  # after Ctrl-C, what finished is still to be described
        commit = commit_info(root, environ)
    by_id = {item.id: item for item in outcome.benchmarks}
    result = Result(
        tool_version=__version__,
        created_at=created_at,
        commit=commit if isinstance(commit, Commit) else None,
        env=replace(ready.environment, info={**ready.environment.info, **selection.info}),
        benchmarks=tuple(by_id[spec.id] for spec in selection.specs if spec.id in by_id),
    )
    return result, outcome, display.reused_ids


def job_count(asked: int | None, total: int) -> int:
    """Return how many benchmarks to measure at once: as many as there are CPUs for us, or fewer."""
    cpus = len(os.sched_getaffinity(0))
    return max(1, min(asked or cpus, cpus, total))


def _laboratory(specs: Sequence[BenchmarkSpec], options: Mapping[str, Any], environ: Mapping[str, str]) -> Laboratory:
    from cachegrind_bench.hermetic.environment import Request, fingerprint_values
    from cachegrind_bench.measure.session import laboratory

    request = Request.parse(passed_variables(options, [item for spec in specs for item in spec.env]))
    return laboratory(
        valgrind=options["valgrind"],
        geometry=geometry(options),
        environ=environ,
        passed=fingerprint_values(request, environ),
    )


def _reuse(store: Path, ready: Laboratory, created_at: str) -> Reuse:
    from cachegrind_bench.suite.cache import Cache
    from cachegrind_bench.suite.execute import Reuse

    return Reuse(
        cache=Cache.open(store),
        environment=ready.environment,
        valgrind=(ready.valgrind.launcher, ready.valgrind.libexec),
        version=__version__,
        created_at=created_at,
    )


def _executed(
    jobs: Sequence[Job],
    known: Mapping[str, int],
    count: int,
    options: Mapping[str, Any],
    *,
    ready: Laboratory,
    display: SuiteLog,
    reuse: Reuse | None,
) -> Outcome:
    from cachegrind_bench.interruption import Cancel
    from cachegrind_bench.suite.execute import measure_job
    from cachegrind_bench.suite.schedule import run_suite
    from cachegrind_bench.suite.setup import set_up

    cancel = Cancel()
    try:
        measure_one = partial(
            measure_job,
            laboratory=ready,
            broken=set_up(jobs, os.environ, display),  # in the order of the file: one may build on another
            cpus=_cpus(count),
            watcher=display,
            capture=options["capture_output"],
            reuse=reuse,
        )
        executor = ThreadPoolExecutor(count, thread_name_prefix="benchmark")
        order = _longest_first(jobs, known, count)
        return run_suite(order, measure_one, executor, cancel, fail_fast=options["fail_fast"])
    finally:
        cancel.close()


def _jobs(specs: Sequence[BenchmarkSpec], options: Mapping[str, Any]) -> list[Job]:
    from cachegrind_bench.suite.execute import Job
    from cachegrind_bench.suite.lanes import lanes

    # Asked here: the threads that make the plans know nothing of the command line.
    here = frozenset(item.name for item in click.get_current_context().command.params if item.name and typed(item.name))
    lane_of = lanes(specs)
    return [
        Job(
            id=spec.id,
            plan=partial(_plan, spec, options, here, passed_variables(options, spec.env)),
            command=spec.command,
            cwd=spec.cwd,
            setup=spec.setup,
            parameters=spec.parameters,
            tags=spec.tags,
            lane=lane_of.get(spec.id),
        )
        for spec in specs
    ]


def _plan(spec: BenchmarkSpec, options: Mapping[str, Any], here: frozenset[str], passed: Sequence[str]) -> Plan:
    """Return the plan of one benchmark: what was typed here goes before its table, and that before the defaults."""
    from cachegrind_bench.valgrind.options import Collect

    own = {"repeat": spec.repeat, "warmup": spec.warmup, "layouts": spec.layouts, "timeout": spec.timeout_ms}
    merged = {
        **options,
        **{name: value for name, value in own.items() if value is not None and name not in here},
        "command": spec.command,
        "benchmark_id": spec.id,
        "stdin": None if spec.stdin is None else str(spec.stdin),
        "prepare": spec.prepare,
        "cleanup": spec.cleanup,
    }
    collect = Collect.inside(region=spec.region, toggles=spec.toggles)
    lines = options["lines"] and spec.region is None
    return replace(
        measuring_plan(merged, spec.cwd, passed),
        lines=lines,
        collect=collect,
        python_profile=spec.python_profile or options["python_profile"],
        python_optional=not spec.python_profile,
    )


def _cpus(count: int) -> SimpleQueue[int]:
    """Return so many CPUs, one for each job at a time, from the last one downwards."""
    cpus: SimpleQueue[int] = SimpleQueue()
    for cpu in sorted(os.sched_getaffinity(0), reverse=True)[:count]:
        cpus.put(cpu)
    return cpus


def _longest_first(jobs: Sequence[Job], known: Mapping[str, int], count: int) -> list[Job]:
    """Return the jobs in an order in which none is left over that takes long, while the other CPUs have nothing to do."""
    if count == 1 or not known:
        return list(jobs)
    usual = sorted(known.values())[len(known) // 2]
    return sorted(jobs, key=lambda job: -known.get(job.id, usual))
