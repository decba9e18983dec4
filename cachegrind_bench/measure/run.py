"""Measures one command: warm-up, sealed executions under Valgrind, and the benchmark that comes of them.

Around every execution runs what the user wants done there: --prepare before, --cleanup after, natively and not measured.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from cachegrind_bench import process
from cachegrind_bench.errors import CommandFailedError, MeasurementError, PlaceError
from cachegrind_bench.hermetic.execution import SHORT_GRACE_MS, Execution
from cachegrind_bench.hermetic.launch import Outcome, launch
from cachegrind_bench.hermetic.scratch import scratch
from cachegrind_bench.interruption import beside, uninterrupted
from cachegrind_bench.measure.plan import Plan, Progress, Settings, execution_of
from cachegrind_bench.measure.remarks import counted_by_element, unlike, wrapper_notes
from cachegrind_bench.measure.seal import require_sealed, seal_parts, weakest, with_copies
from cachegrind_bench.measure.session import SCRATCH_BASE, Identity, benchmark_key_fields, identify, with_counts
from cachegrind_bench.model.metrics import CostModel
from cachegrind_bench.model.result import Benchmark, Environment, Run, SealPart
from cachegrind_bench.model.text import duration, printable
from cachegrind_bench.valgrind.options import Scope, Tool
from cachegrind_bench.valgrind.runner import Measured, Measurement, Runner

T = TypeVar("T")

RECORDED = "when calls were recorded, "  # how warnings about that execution begin
_FIRST_SLOT = 700  # of the folder that marks a preparation or clean-up as at work
_GRACE_MS = 500  # for what writes its output (bash's `> >(tee log)`)
# The most that was measured of computing: 16 to 56 and 59 to 178, from gzip to CPython; half of it without caches.
_TIMES_AS_LONG = {Tool.CACHEGRIND: 60, Tool.CALLGRIND: 180}
_LONG_MS = 60_000
# Instructions of each thread by which Callgrind's counts may differ from Cachegrind's where the execution was the same.
_AGREES = 2


def measure_whole(executions: Executions) -> Benchmark:
    """Measure as planned. MeasurementError if the command fails, times out or cannot be measured."""
    executions.warm_up()
    measurements = executions.execute_all()
    benchmark = executions.benchmark(measurements)
    if executions.native is not None:
        found = unlike(executions.native, measurements[0].outcome)
        benchmark = replace(benchmark, warnings=(*benchmark.warnings, *map(printable, found)))
    return executions.with_calls(benchmark) if executions.plan.call_tree else benchmark


class Executions:
    """The executions of one plan: natively, and under Valgrind."""

    def __init__(
        self,
        plan: Plan,
        runner: Runner,
        env: Environment,
        progress: Progress,
    ) -> None:
        self.plan, self.runner, self.execution = plan, runner, execution_of(plan)
        self.env, self._progress = env, progress
        self._identity: Identity | None = None
        self.native: Outcome | None = None  # of the last warm-up
        self._tool = Tool.CACHEGRIND if plan.collect.scope is Scope.PROCESS else Tool.CALLGRIND

    def warm_up(self, words: Sequence[str] = ()) -> None:
        """Execute natively, as often as planned, with these words after those of the command."""
        for number in range(self.plan.warmup):
            self._progress(f"warm-up{_of(number, self.plan.warmup)}, without Valgrind")
            self.execution, outcome = warmed_up(self.execution, partial(self._warm_up, words))
            self.native = outcome
            seal_of(self.plan, outcome, self.env)
            if starts_processes(outcome):
                self._tool = Tool.CALLGRIND

    def _warm_up(self, words: Sequence[str], execution: Execution) -> Outcome:
        with self._surrounded():
            return self.runner.warm_up(execution._replace(argv=(*execution.argv, *words)))

    def execute_all(self) -> list[Measurement]:
        """Measure as scheduled, all of what the plan collects as one."""
        found: list[Measurement] = []
        while len(found) < len(self.plan.schedule):
            with self.around_execution(len(found)) as execution:
                measurement = self.runner.measure(execution, self.plan.collected, self._tool)
            seal_of(self.plan, measurement.outcome, self.env)
            if self.plan.collect.scope is Scope.TOGGLE and not any(measurement.accounts.profile.totals()):
                raise MeasurementError(
                    f"no function {' or '.join(self.plan.collect.toggles)} was entered",
                    hint="write it as in the source, with its namespace or module, or as nm shows it (it must be so for those "
                    "of libraries); a function that the compiler inlined is not there",
                )
            if measurement.accounts.split_needed:
                # It starts processes after all; Cachegrind's files would count the past of each child again.
                self._tool = Tool.CALLGRIND
                found.clear()
            else:
                found.append(measurement)
        return found

    def with_calls(self, benchmark: Benchmark) -> Benchmark:
        """Return the benchmark with all its calls: unless it has them, of an execution in the layout of the one that counted."""
        if benchmark.counts is None or (benchmark.calls is not None and benchmark.calls.is_whole):
            return benchmark
        at = next(run.layout for run in benchmark.runs if run.counts == benchmark.counts)
        self._progress("recording calls under Callgrind")
        with self._surrounded():
            collect = replace(self.plan.collected, lines=False, calls=True)
            measurement = self.runner.measure(self.execution._replace(layout=at), collect, Tool.CALLGRIND)
        recorded, images = measurement.accounts, measurement.outcome.images or ()
        threads = 1 + sum(image.threads for image in images)
        warnings = [f"{RECORDED}{doubt}" for doubt in recorded.doubts]
        before, after = benchmark.counts.Ir, recorded.profile.counts().Ir
        if abs(after - before) > _AGREES * threads:
            warnings.append(other_instructions(before, after))
        texts = (printable(warning) for warning in warnings)
        return replace(benchmark, calls=recorded.calls, warnings=(*benchmark.warnings, *texts))

    @contextlib.contextmanager
    def around_execution(self, number: int) -> Generator[Execution]:
        """Prepare for the measured execution of this number, and tidy up after it."""
        count = len(self.plan.schedule)
        self._progress(f"measuring{_of(number, count)} under {self._tool.value.capitalize()}{self._how_long()}")
        with self._surrounded():
            yield self.execution._replace(layout=self.plan.schedule[number])

    def _how_long(self) -> str:
        """Say how long an execution of the whole program may take, if it is more than a minute: waiting takes no longer than usual."""
        if self.native is None or self.plan.collect.scope is not Scope.PROCESS:
            return ""
        expected = self.native.wall_ms * _TIMES_AS_LONG[self._tool] // (1 if self.env.with_caches else 2)
        known = (
            f", up to about {round(expected / _LONG_MS)} min: it took {duration(self.native.wall_ms)} without Valgrind"
        )
        return known if expected >= _LONG_MS else ""

    @contextlib.contextmanager
    def _surrounded(self) -> Generator[None]:
        with surrounded(self.plan):
            if self._identity is not None:
                yield
                return
            # Only now, as the first preparation may build the program; counts do not depend on what else is running.
            with beside(partial(identify, self.plan.command.executable, self.plan.variables)) as identity:
                yield
                self._identity = identity.result()

    def benchmark(
        self,
        measurements: Sequence[Measurement],
        *,
        id: str | None = None,  # noqa: A002 - its name
        measured: str = "",
    ) -> Benchmark:
        """Return what came of these measurements, one for each of the plan's schedule; `id` is the plan's unless given.

        The key says what was `measured`, by the scope's name unless given.
        """
        assert self._identity is not None  # noqa: S101 - there was an execution
        plan = self.plan if id is None else replace(self.plan, id=id)
        return _benchmark_of(plan, self.env, self._identity, measurements, measured)


def other_instructions(before: int, after: int) -> str:
    """Say that calls were recorded in another execution than the one that counted, by the instructions of both."""
    return (
        f"{RECORDED}the program executed {after:,} instructions, not {before:,}: where these differ, so do the calls; "
        "'cg-bench verify' finds the cause"
    )


def seal_of(plan: Plan, outcome: Outcome, env: Environment) -> dict[str, SealPart]:
    """Return how this execution was sealed; MeasurementError if that is not enough."""
    seal = seal_parts(
        outcome.unsealed,
        supervised=outcome.images is not None,
        guest_chase_off=env.fields.get("guest_chase") == "off",
        clock_pinned=plan.clock is not None,
        one_thread=outcome.images is not None
        and not any(image.threads or image.forks or image.forked for image in outcome.images),
    )
    if plan.require_sealed:
        require_sealed(seal)
    return seal


def _of(number: int, count: int) -> str:
    return f" {number + 1} of {count}" if count > 1 else ""


def where_it_can_be(plan: Plan, progress: Progress, measure_plan: Callable[[Plan], T]) -> T:
    """Measure by this plan, and again with the project where it is if the program cannot be measured at a constant path."""
    try:
        return measure_plan(plan)
    except PlaceError as error:
        progress(f"{error.message}: once more, with the project where it is")
        return measure_plan(replace(plan, keep_place=error.message))


def warmed_up(execution: Execution, warm_up: Callable[[Execution], Outcome]) -> tuple[Execution, Outcome]:
    """Execute natively, at its own path if it fails at another; return the execution with what that has shown, and the outcome."""
    try:
        outcome = warm_up(execution)
    except CommandFailedError as error:
        if not error.elsewhere:
            raise
        execution = execution._replace(keep_place="the command fails at another path")
        try:
            outcome = warm_up(execution._replace(quiet=True))
        except CommandFailedError:
            raise error from None  # which has said why
    # With one thread, nothing chooses which runs next. And processes that wait for each other may do so actively: a pool of
    # Python's once executed 200 million instructions more under SCHED_FIFO.
    threads = not starts_processes(outcome) and any(image.threads for image in outcome.images or ())
    pinned, grace_ms = execution.pin_scheduling or threads, SHORT_GRACE_MS if outcome.leftover else execution.grace_ms
    execution = execution._replace(libraries=outcome.libraries, pin_scheduling=pinned, grace_ms=grace_ms)
    return execution, outcome


def starts_processes(outcome: Outcome) -> bool:
    """Return whether this execution forked or executed another program, which only Callgrind can keep apart."""
    return any(image.forked or image.forks or image.replaced for image in outcome.images or ())


def _benchmark_of(
    plan: Plan, env: Environment, identity: Identity, measurements: Sequence[Measurement], measured: str
) -> Benchmark:
    """Return what came of these measurements, one for each of the plan's schedule."""
    chosen = lower_median(measurements, plan.model)
    accounts, outcome = chosen.accounts, chosen.outcome
    seal = weakest([seal_of(plan, measurement.outcome, env) for measurement in measurements])
    seal = with_copies(seal, tunable=identity.tunable)
    key_fields = benchmark_key_fields(identity, seal, chosen.tool, plan.collect, measured)
    counts = accounts.profile.counts()
    warnings = [*plan.command.notes, *accounts.doubts, *wrapper_notes(chosen, counts, plan.command.script)]
    warnings += counted_by_element(accounts.calls, counts.Ir)
    if plan.ignore_exit_status and outcome.exit_status:
        warnings.append(f"the command ended with exit status {outcome.exit_status}, which was ignored")
    benchmark = Benchmark(
        id=plan.benchmark_id,
        key="",  # with the counts
        key_fields={},
        command=tuple(printable(word) for word in plan.command.typed),
        exit_status=outcome.exit_status,
        warnings=tuple(printable(warning) for warning in warnings),
        tool=chosen.tool.value,
        runs=tuple(
            Run(layout=layout, counts=item.accounts.profile.counts())
            for layout, item in zip(plan.schedule, measurements, strict=True)
        ),
        processes=accounts.processes,
        processes_exact=not accounts.doubts,
        wall_ms=sum(item.outcome.wall_ms for item in measurements),
        calls=accounts.calls,
    )
    return with_counts(
        benchmark, accounts.profile, plan.model, env=env, identity=identity, seal=seal, key_fields=key_fields
    )


def lower_median(measurements: Sequence[Measured], model: CostModel) -> Measured:
    """Return the measurement in the middle by score, then Ir; of two in the middle the lower."""

    def order(item: Measurement) -> tuple[int, int]:
        counts = item.accounts.profile.counts()
        return model.score(counts), counts.Ir

    return sorted(measurements, key=order)[(len(measurements) - 1) // 2]


@contextlib.contextmanager
def surrounded(plan: Settings) -> Generator[None]:
    """Run the user's preparation before and clean-up after an execution, whatever becomes of it."""
    try:
        _native(plan, plan.prepare, "--prepare")
        yield
    except BaseException:
        with contextlib.suppress(MeasurementError), uninterrupted():  # the first failure is what to report
            _native(plan, plan.cleanup, "--cleanup")
        raise
    _native(plan, plan.cleanup, "--cleanup")


def _native(plan: Settings, command: str | None, option: str) -> None:
    """Run a command line natively and unsealed, within the time-out; what it leaves in the background ends with it."""
    if not command:
        return
    execution = Execution(
        argv=("/bin/sh", "-c", command),
        variables=dict(plan.environ),
        cwd=str(plan.cwd),
        sealed=False,
        timeout_ms=plan.timeout_ms,
        grace_ms=_GRACE_MS,
    )
    with scratch(SCRATCH_BASE, first=_FIRST_SLOT) as folder:
        outcome = launch(execution, folder, echo=lambda _chunk: None)
    if outcome.timed_out:
        raise MeasurementError(
            f"the {option} command ran longer than {(plan.timeout_ms or 0) / 1000:g} s and was stopped: {command}",
            hint="give it more time with --timeout, which is for each execution and for what is done before and after it",
        )
    if outcome.exit_status != 0:
        how = process.end_of(outcome.exit_status, outcome.signal)
        raise MeasurementError(f"the {option} command failed with {how}: {command}", hint=_last_words(outcome.tail))


def native_failure(
    command: str,
    environ: Mapping[str, str],
    cwd: Path,
    waiting: Callable[[float], None] | None = None,
    echo: Callable[[bytes], None] | None = None,
) -> tuple[str, str] | None:
    """Run a command line natively, unsealed and for as long as it takes; return how it failed and its last words, None if it did not.

    `waiting` gets the seconds since the start, over and over, and `echo` what it writes. MeasurementError if it could not be run at all.
    """
    completed = process.run([command], shell=True, env=environ, cwd=cwd, waiting=waiting, echo=echo)  # noqa: S604 - the user wrote it for a shell
    if completed.status == 0:
        return None
    return completed.end, _last_words(completed.stderr or completed.stdout) or ""


def _last_words(output: bytes) -> str | None:
    return output.decode("utf-8", "backslashreplace").strip()[-500:] or None
