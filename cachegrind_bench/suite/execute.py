"""Sets up and measures the benchmarks of a suite, or uses a former result whose inputs have not changed: a failure is a result, too.

Knows jobs; must not know where they come from, how they are shown, or which others run at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec.structs import replace

from cachegrind_bench.errors import CgBenchError, CommandFailedError, CommandTimeoutError, MeasurementError
from cachegrind_bench.harness.engine.company import Company, CompanyRunner
from cachegrind_bench.harness.engine.iterations import measure_iterations
from cachegrind_bench.harness.engine.kept_numbers import keeping
from cachegrind_bench.harness.engine.loop_runner import LoopRunner
from cachegrind_bench.measure.benchmarks import measured_benchmarks
from cachegrind_bench.measure.named_files import NamedFiles, named
from cachegrind_bench.measure.run import measure_whole, native_failure, surrounded
from cachegrind_bench.model.result import Benchmark, Environment, Result, Status, comparability_key
from cachegrind_bench.suite.cache import Cache, RecordingRunner, key_of

if TYPE_CHECKING:
    from pathlib import Path
    from queue import SimpleQueue

    from cachegrind_bench.config.benchmarks import BenchmarkSpec
    from cachegrind_bench.hermetic.trace_notes import Recording
    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.measure.run import Executions
    from cachegrind_bench.measure.session import ValgrindSetup
    from cachegrind_bench.valgrind.runner import Runner

_KEPT_BYTES = 1 << 16


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark to measure. `plan` is made when its turn comes: before its set-up there may be no program yet.

    Jobs of one `lane` never run at the same time.
    """

    spec: BenchmarkSpec
    plan: Callable[[], Plan]
    lane: int | None = None


class Watcher(Protocol):
    """Shows what goes on; called from several threads."""

    def setting_up(self, command: str) -> None:
        """A set-up command begins."""

    def started(self, job_id: str) -> None:
        """A benchmark begins."""

    def phase(self, job_id: str, text: str) -> None:
        """What a benchmark does from now on."""

    def shared(self, job_id: str) -> None:
        """A benchmark is about to end that was measured with others: it took its share of their time."""

    def finished(self, benchmark: Benchmark, said: bytes) -> None:
        """A benchmark has ended; `said` is the last part of what its program wrote."""

    def reused(self, benchmark: Benchmark, created_at: str) -> None:
        """A benchmark need not be measured again: nothing it read has changed since then."""

    def skipped(self, job_id: str, why: str) -> None:
        """A benchmark was skipped by its own code."""

    def remark(self, job_id: str, text: str) -> None:
        """Something to report of a benchmark when it has ended."""


def measure_job(
    job: Job,
    valgrind_setup: ValgrindSetup,
    broken: Mapping[str, str],
    watcher: Watcher,
    *,
    cpus: SimpleQueue[int],
    capture: bool = False,
    reuse: Reuse | None = None,
    company: Mapping[str, Company] = MappingProxyType({}),
) -> Benchmark:
    """Measure one benchmark; a failure becomes its status. `broken` has the ids whose set-up failed, with the reason.

    While it runs it has one of the `cpus` to itself. With `capture` the benchmark keeps the last part of what its program
    wrote; with `reuse` a stored one is returned, if nothing it read has changed. Those in a `company`, by ids, are measured together.
    """
    said = bytearray()

    def echo(chunk: bytes) -> None:
        said.extend(chunk)
        del said[: max(0, len(said) - _KEPT_BYTES)]

    def output() -> str | None:
        return said.decode("utf-8", "backslashreplace") if capture else None

    spec = job.spec
    watcher.started(spec.id)
    try:
        if spec.id in broken:
            raise MeasurementError(broken[spec.id])
        plan = replace(job.plan(), id=spec.id)
        stored = None if reuse is None else reuse.stored(spec, plan, watcher=watcher, with_output=capture)
        if stored is not None:
            return stored
        cpu = cpus.get()
        try:
            plan = replace(plan, cpu=cpu if plan.cpu is None else plan.cpu)
            with valgrind_setup.session(echo=echo) as ready:
                runner: Runner = ready.runner
                how: Callable[[Executions], Benchmark] = measure_whole
                if spec.loop is not None:
                    runner, how = LoopRunner(ready.runner, spec.loop), partial(measure_iterations, loop=spec.loop)
                    if spec.id in company:
                        runner = CompanyRunner(runner, company[spec.id], spec.command[1:])
                if reuse is not None:
                    runner = RecordingRunner(runner=runner)
                (found,) = measured_benchmarks(plan, ready, partial(watcher.phase, spec.id), runner=runner, how=how)
                benchmark = replace(found, **_of_spec(spec), output=output())
                if reuse is not None and isinstance(runner, RecordingRunner):
                    reuse.keep(spec, plan, runner.recording(), benchmark, watcher=watcher)
        finally:
            cpus.put(cpu)
        if spec.id in company:
            watcher.shared(spec.id)
    except CgBenchError as error:  # a wrong command is bad usage where it is typed, and here a benchmark that failed
        benchmark = replace(failed(spec, valgrind_setup, error), output=output())
    watcher.finished(benchmark, bytes(said))
    return benchmark


def _of_spec(spec: BenchmarkSpec) -> dict[str, Any]:
    """Return what the configuration says of a benchmark's place among others."""
    return {"parameters": dict(spec.parameters), "tags": spec.tags, "scale": spec.scale}


def failed(spec: BenchmarkSpec, valgrind_setup: ValgrindSetup, error: CgBenchError) -> Benchmark:
    """Return the benchmark that could not be measured: no counts, and why."""
    status = Status.ERROR
    if isinstance(error, CommandTimeoutError):
        status = Status.TIMEOUT
    elif isinstance(error, CommandFailedError):
        status = Status.FAILED
    return Benchmark(
        id=spec.id,
        key=comparability_key(valgrind_setup.environment.fields),
        key_fields={},
        command=spec.command,
        **_of_spec(spec),
        status=status,
        exit_status=error.exit_status if isinstance(error, CommandFailedError) else None,
        error="\n".join(part for part in (error.message, error.hint) if part),
    )


class Reuse(msgspec.Struct, frozen=True, kw_only=True):
    """Results of former runs, to be used again where nothing that a benchmark read has changed."""

    cache: Cache
    environment: Environment
    valgrind: tuple[str, ...]
    version: str
    created_at: str

    def stored(
        self, spec: BenchmarkSpec, plan: Plan, *, watcher: Watcher, with_output: bool = False
    ) -> Benchmark | None:
        """Return the stored benchmark, or None and say why there is none.

        With `with_output` it has to have what the program wrote; without, it has not.
        """
        with surrounded(plan):  # what it reads may be what its preparation makes
            found = self.cache.lookup(self._key(spec, plan))
        if isinstance(found, str):
            watcher.remark(spec.id, f"measured, since {found}")
            return None
        (benchmark,) = found.benchmarks
        if with_output and benchmark.output is None:
            watcher.remark(spec.id, "measured, since what it wrote was not kept")
            return None
        output = benchmark.output if with_output else None
        benchmark = replace(benchmark, **_of_spec(spec), output=output, taken_over=True)
        watcher.reused(benchmark, found.created_at)
        return benchmark

    def keep(
        self, spec: BenchmarkSpec, plan: Plan, recording: Recording, benchmark: Benchmark, *, watcher: Watcher
    ) -> None:
        """Store a benchmark for the next time, or say why that cannot be."""
        result = Result(
            tool_version=self.version,
            created_at=self.created_at,
            commit=None,
            env=self.environment,
            benchmarks=(benchmark,),
        )
        if spec.loop is not None:  # whoever asks for it again knows the number of iterations
            spec = replace(spec, loop=keeping(spec.loop, benchmark.iterations))
            plan = replace(plan, clock=spec.loop.clock)
        why = self.cache.keep(self._key(spec, plan), recording, result)
        if why is not None:
            watcher.remark(spec.id, f"not kept for the next time: {why}")

    def _key(self, spec: BenchmarkSpec, plan: Plan) -> str:
        return key_of(
            plan,
            self.environment,
            version=self.version,
            valgrind=self.valgrind,
            setup=spec.setup,
            loop=spec.loop,
        )


def set_up(jobs: Sequence[Job], environ: Mapping[str, str], watcher: Watcher) -> dict[str, str]:
    """Run every set-up command once, natively and unsealed, one after the other; return the ids of jobs that cannot be measured, with why.

    Jobs of one folder that name the same command share it. Of another command, they must find what they name as theirs, or
    the harness that listed them, made it.
    """
    jobs_of: dict[tuple[Path, str], list[BenchmarkSpec]] = {}
    for job in jobs:
        if job.spec.setup is not None:
            jobs_of.setdefault((job.spec.cwd, job.spec.setup), []).append(job.spec)
    broken = {job.spec.id: job.spec.problem for job in jobs if job.spec.problem}
    files = NamedFiles()
    for spec in [job.spec for job in jobs] if jobs_of else []:
        # The command that made it may make the same anew.
        if spec.entry is not None and (spec.cwd, spec.entry.each.setup) not in jobs_of and spec.prepare is None:
            files.note(spec.id, named(spec.cwd, spec.command))
    for (cwd, command), specs in jobs_of.items():
        watcher.setting_up(command)
        try:
            failure = native_failure(command, environ, cwd)
            why = failure and f"its setup failed with {failure[0]}: {command}\n{failure[1]}".strip()
        except MeasurementError as error:
            why = f"its setup could not be run: {error.message}"
        for spec in specs:
            if why is not None:
                broken[spec.id] = why
            elif len(jobs_of) > 1 and spec.prepare is None:  # which may make anew what it needs
                files.note(spec.id, [*named(cwd, spec.command), *filter(None, [spec.stdin])])
    for name, path in files.overwritten().items():
        broken[name] = (
            f"the setup of another benchmark wrote over {path}, with other contents: give it a name of its own"
        )
    return broken
