"""The suite of a project: the chosen benchmarks as jobs, measured on every CPU at once, and one result of them all.

What is typed goes before the table of a benchmark, and that before the defaults of the configuration.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec.structs import replace

from cachegrind_bench._version import __version__
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.harness.engine.company import companies
from cachegrind_bench.harness.engine.kept_numbers import keeping
from cachegrind_bench.interruption import Cancel, uninterrupted
from cachegrind_bench.log import Threads
from cachegrind_bench.measure.plan import Settings
from cachegrind_bench.model.result import Result
from cachegrind_bench.startup.exchange import RESULTS
from cachegrind_bench.store.timings import read_iterations, read_timings, write_timings
from cachegrind_bench.suite.cache import Cache
from cachegrind_bench.suite.execute import Job, Reuse, Watcher, measure_job, set_up
from cachegrind_bench.suite.merge import SHARD_PLAN
from cachegrind_bench.suite.schedule import Outcome, lanes, run_suite
from cachegrind_bench.usecases.checkout_dates import date_files
from cachegrind_bench.usecases.measurement import MeasureRequest, plan_of, result_of, valgrind_setup_of
from cachegrind_bench.usecases.numbers import numbers_of, received
from cachegrind_bench.valgrind.options import Collect
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.config.benchmarks import BenchmarkSpec
    from cachegrind_bench.harness.protocol import Batch
    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.measure.session import ValgrindSetup
    from cachegrind_bench.usecases.selection import Selection


class Display(Watcher, Protocol):
    """Shows the progress of a suite. Keeps the wall times of the benchmarks that were measured, and the ids of the others."""

    wall_ms: dict[str, int]
    reused_ids: set[str]


# The total of benchmarks, how long they took before, as far as known, and how many are measured at once.
Show = Callable[[int, Mapping[str, int], int], AbstractContextManager[Display]]


class SuiteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How to measure a suite: `each` benchmark, of whose fields those `typed` go before the benchmark's own table.

    Of those whose ids are said to need calls, these are recorded, too. Of those in `iterations`, that many are counted.
    """

    each: MeasureRequest
    typed: frozenset[str]
    jobs: int | None = None
    shard: str | None = None
    fail_fast: bool = False
    capture_output: bool = False
    cached: bool = False
    needs_calls: Callable[[str], bool] = lambda _id: False
    iterations: Mapping[str, int] = {}


class SuiteRun(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a suite; `reused` has the ids that need not be measured again."""

    result: Result
    outcome: Outcome
    reused: frozenset[str]

    @property
    def whole(self) -> bool:
        """Whether all were measured but some that were skipped, and none failed; of a shard, all may be skipped."""
        nothing = self.outcome.skipped and not self.result.benchmarks and SHARD_PLAN not in self.result.env.info
        return not (self.result.failed or self.outcome.unfinished or nothing)

    def exit_code(self) -> int:
        """Return the exit code. KeyboardInterrupt if that ended it."""
        if self.outcome.interrupted:
            raise KeyboardInterrupt
        return 0 if self.whole else MeasurementError.exit_code


def measure_suite(request: SuiteRequest, selection: Selection, root: Path, store: Path, show: Show) -> SuiteRun:
    """Measure these benchmarks, and describe machine and commit. Wall times are kept in the `store`."""
    from cachegrind_bench.vcs.commits import commit_of
    from cachegrind_bench.vcs.git import Git

    each = request.each
    numbers = {**read_iterations(store), **request.iterations, **received(each.environ)}
    specs = [
        spec if spec.loop is None else replace(spec, loop=keeping(spec.loop, numbers.get(spec.id)))
        for spec in selection.specs
    ]
    ready = valgrind_setup_of(replace(each, env=(*(item for spec in specs for item in spec.env), *each.env)))
    times, cpus = read_timings(store), job_count(request.jobs, len(specs))
    known = {spec.id: times[spec.id] for spec in specs if spec.id in times}
    reuse: Reuse | None = None
    if request.cached:
        branches = ("branches",) if ready.geometry.branches else ()  # not part of the environment: all else is the same
        valgrind = ready.valgrind.launcher, ready.valgrind.libexec, *branches
        reuse = Reuse(
            cache=Cache.open(store, each.environ.get(RESULTS)),
            environment=ready.environment,
            valgrind=valgrind,
            version=__version__,
            created_at=each.created_at,
        )
    with show(len(specs), known, cpus) as display:
        outcome = _executed(request, specs, ready, display, reuse=reuse, known=known, count=cpus)
    # Of a shard no times: all must go by the same.
    write_timings(store, {} if request.shard else display.wall_ms, numbers_of(outcome.benchmarks))
    by_id = {item.id: item for item in outcome.benchmarks}
    environment = replace(ready.environment, info={**ready.environment.info, **selection.info})
    git = Git(root, each.environ, Waiting())
    with uninterrupted():  # after Ctrl-C, what finished is still to be described
        benchmarks = [by_id[spec.id] for spec in specs if spec.id in by_id]
        result = result_of(each, environment, benchmarks, commit_of(git))
    return SuiteRun(result=result, outcome=outcome, reused=frozenset(display.reused_ids))


def job_count(asked: int | None, total: int) -> int:
    """Return how many benchmarks to measure at once: as many as there are CPUs for us, or fewer."""
    cpus = len(os.sched_getaffinity(0))
    return max(1, min(asked or cpus, cpus, total))


def _executed(
    request: SuiteRequest,
    specs: Sequence[BenchmarkSpec],
    ready: ValgrindSetup,
    display: Display,
    *,
    reuse: Reuse | None,
    known: Mapping[str, int],
    count: int,
) -> Outcome:
    """Run the set-up commands, in the order of the file as one may build on another, then the jobs."""
    batches = _batches(request, specs, count)
    together = {spec.id for batch in batches for spec in batch.specs}
    specs = [spec for spec in specs if spec.id not in together]
    lane_of = lanes(specs)
    jobs = [Job(spec=spec, plan=partial(_plan, request, spec), lane=lane_of.get(spec.id)) for spec in specs]
    order, cancel = _longest_first(jobs, known, count), Cancel()
    ordered = (job.spec for job in order)
    cpus: SimpleQueue[int] = SimpleQueue()  # one for each job at a time, from the last one downwards
    for cpu in sorted(os.sched_getaffinity(0), reverse=True)[:count]:
        cpus.put(cpu)
    try:
        broken = set_up(jobs, request.each.environ, display)
        if all(spec.prepare is None for spec in specs) and request.each.prepare is None:  # which may build, too
            date_files(request.each.environ, request.each.cwd)
        measure_one = partial(
            measure_job,
            valgrind_setup=ready,
            broken=broken,
            cpus=cpus,
            watcher=display,
            capture=request.capture_output,
            reuse=reuse,
            company={} if reuse or request.capture_output else companies(ordered, count, request.needs_calls),
        )
        executor = Threads(count, thread_name_prefix="benchmark")
        outcome = run_suite(order, measure_one, executor, cancel, fail_fast=request.fail_fast)
    finally:
        cancel.close()
    for batch in batches:
        from cachegrind_bench.suite.batch import run_batch

        for spec in batch.specs if reuse is not None else ():
            display.remark(spec.id, f"measured, since benchmarks of {batch.entry.harness} always are")
        outcome = run_batch(batch, ready, display, outcome)
    return outcome


def _batches(request: SuiteRequest, specs: Sequence[BenchmarkSpec], count: int) -> list[Batch]:
    """Return what is measured together: the chosen benchmarks of each entry whose harness does so."""
    entries = {id(spec.entry): spec.entry for spec in specs if spec.entry is not None}
    found: list[Batch] = []
    for key, entry in entries.items():
        from cachegrind_bench.harness.protocol import Batch, harness_of

        if harness_of(entry.harness).together:
            chosen = [spec for spec in specs if id(spec.entry) == key]
            settings = {name: getattr(request.each, name) for name in Settings.__struct_fields__}
            variables = (*request.each.default_env, *entry.each.env, *request.each.env)
            settings |= _own(request, entry.each) | {"cwd": entry.each.cwd}
            settings["call_tree"] |= any(request.needs_calls(spec.id) for spec in chosen)
            found.append(
                Batch(**settings, entry=entry, specs=chosen, env=variables, jobs=count, fail_fast=request.fail_fast)
            )
    return found


def _own(request: SuiteRequest, spec: BenchmarkSpec) -> dict[str, Any]:
    """Return what a benchmark's table says of how to measure it, unless that was typed."""
    names = {"repeat": "repeat", "warmup": "warmup", "layouts": "layouts", "timeout": "timeout_ms"}  # of options
    own = {field: getattr(spec, field) for option, field in names.items() if option not in request.typed}
    found = {field: value for field, value in own.items() if value is not None}
    wanted = {name: getattr(spec, name) or getattr(request.each, name) for name in ("python_profile", "call_tree")}
    return found | wanted | {"python_optional": not spec.python_profile}


def _plan(request: SuiteRequest, spec: BenchmarkSpec) -> Plan:
    each = request.each
    own = _own(request, spec)
    own["call_tree"] |= request.needs_calls(spec.id)
    asked = replace(
        each,
        **own,
        id=spec.id,
        command=spec.command,
        cwd=spec.cwd,
        env=(*spec.env, *each.env),
        stdin=None if spec.stdin is None else str(spec.stdin),
        prepare=spec.prepare,
        cleanup=spec.cleanup,
        lines=each.lines and spec.region is None,
        collect=Collect.inside(region=spec.region, toggles=spec.toggles) if spec.loop is None else spec.loop.collect,
        clock=each.clock if spec.loop is None else spec.loop.clock,
    )
    return plan_of(asked)


def _longest_first(jobs: Sequence[Job], known: Mapping[str, int], count: int) -> list[Job]:
    """Return the jobs in an order that leaves no long one to the end, when the other CPUs have nothing to do."""
    if count == 1 or not known:
        return list(jobs)
    usual = sorted(known.values())[len(known) // 2]
    return sorted(jobs, key=lambda job: -known.get(job.spec.id, usual))
