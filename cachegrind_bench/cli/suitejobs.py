"""The benchmarks that were chosen, as jobs, measured on every CPU at once. What is typed goes before their tables."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from cachegrind_bench._version import __version__
from cachegrind_bench.cli.measuring import measuring_plan
from cachegrind_bench.cli.options import geometry, passed_variables, typed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cachegrind_bench.cli.selection import Selection
    from cachegrind_bench.config.values import BenchmarkSpec
    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.measure.session import Laboratory
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.render.terminal import SuiteLog
    from cachegrind_bench.suite.execute import Job
    from cachegrind_bench.suite.reuse import Reuse
    from cachegrind_bench.suite.schedule import Outcome


def measure_suite(
    selection: Selection, options: Mapping[str, Any], root: Path, store: Path
) -> tuple[Result, Outcome, frozenset[str]]:
    """Measure these benchmarks and describe machine and commit; return also the ids of those that were re-used."""
    from cachegrind_bench.interruption import uninterrupted
    from cachegrind_bench.model.result import Commit, Result
    from cachegrind_bench.render.terminal import suite_display
    from cachegrind_bench.store.timings import read_timings, write_timings
    from cachegrind_bench.vcs.commit import commit_info

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
    from cachegrind_bench.suite.reuse import Reuse

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
