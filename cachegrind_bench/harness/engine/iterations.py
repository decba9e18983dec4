"""Measures what one warm iteration of a framework's benchmark costs.

A result has the counts of `PER_ITERATIONS`. How many are executed is a property of the benchmark: the number of an earlier
result is kept; without one, it follows from what an iteration costs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.harness.engine.differences import difference
from cachegrind_bench.harness.engine.loop_runner import LoopMeasurement
from cachegrind_bench.harness.engine.section_parts import scaled
from cachegrind_bench.measure.run import Executions, lower_median, seal_of
from cachegrind_bench.model.result import Benchmark
from cachegrind_bench.model.text import grouped
from cachegrind_bench.valgrind.options import Tool

if TYPE_CHECKING:
    from cachegrind_bench.harness.engine.loop import Loop
    from cachegrind_bench.valgrind.processes import Accounts

# What it takes to write a part, in instructions that could be counted in that time.
_PART_IR = 150_000
# By how much two whole executions may differ, as of a JVM: a smaller difference says little of an iteration.
_NOISE_IR = 500_000


class _Counted(NamedTuple):
    """The words for `number` iterations were given, and `executed` were counted, which cost this; `subtracted`: less those of a second execution."""

    number: int
    executed: int
    measurement: LoopMeasurement
    subtracted: bool = False

    @property
    def each(self) -> float:
        """The instructions of one iteration, and what takes as long."""
        measured = self.measurement
        return (measured.accounts.profile.counts().Ir + 2 * (measured.sections - 1) * _PART_IR) / self.executed


# What the key says was counted: in a forked child, or with fewer iterations subtracted, or both.
_FORKED, _SUBTRACTED, _FORKED_SUBTRACTED = "iterations/3", "iterations/4", "iterations/5"


def measure_iterations(executions: Executions, loop: Loop) -> Benchmark:
    """Measure as planned. MeasurementError if the command fails or times out, or if no iteration can be counted."""
    plan, runner, argv = executions.plan, executions.runner, executions.execution.argv
    executions.warm_up(loop.native)
    found: list[_Counted] = []

    def execute(number: int) -> LoopMeasurement:
        with executions.around_execution(len(found)) as execution:
            counting = execution._replace(argv=(*argv, *loop.words[number]))
            measurement = runner.measure(counting, plan.collected, Tool.CALLGRIND)
        seal_of(plan, measurement.outcome, executions.env)
        assert isinstance(measurement, LoopMeasurement)  # noqa: S101 - the caller gave a LoopRunner
        return measurement

    while len(found) < len(plan.schedule):
        found.append(_counted(loop, execute, found[0].number if found else None))
    last = found[-1]
    measurements = [
        replace(item.measurement, accounts=scaled(item.measurement.accounts, item.executed)) for item in found
    ]
    forked = lower_median(measurements, plan.model).forked
    benchmark = executions.benchmark(measurements, measured=_measured(loop, last, forked=forked))
    return replace(benchmark, command=(*benchmark.command, *loop.words[last.number]), iterations=last.executed)


def _measured(loop: Loop, counted: _Counted, *, forked: bool) -> str:
    """Return what the key says was counted. Iterations need not be alike, so other numbers of them do not compare."""
    names = (_FORKED, _FORKED_SUBTRACTED) if forked else (loop.method, _SUBTRACTED)
    name = names[counted.subtracted]
    return f"{name} {counted.executed}" if len([*filter(None, loop.words)]) > 1 else name


def _counted(loop: Loop, execute: Callable[[int], LoopMeasurement], known: int | None) -> _Counted:
    """Count the `known` number of iterations, or else as many as suit what they cost."""
    numbers = sorted(filter(None, loop.words))
    if loop.clock and loop.clock.hook:
        measurement = execute(numbers[0])
        number = _decided(loop, measurement.jump)
        if measurement.before is None:
            return _Counted(number, number, measurement)
        accounts = difference(measurement.accounts, measurement.before)
        _check_cost(number, number, accounts)
        return _Counted(number, number, replace(measurement, accounts=accounts), subtracted=True)
    less = execute(0) if 0 in loop.words else None
    if known is not None:
        number = known
    elif less is None or loop.sections is None:
        number = numbers[0]
    else:  # all that is counted of this execution, and so no less than its iterations
        number = loop.suitable(_Counted(0, _reported(loop, less, 0) or 1, less).each)
    found = _of(loop, number, execute(number), less)
    while known is None and (better := loop.suitable(found.each)) > number:
        unsure = loop.sections is None and better != loop.kept and found.each * number < _NOISE_IR
        number = min(each for each in numbers if each > number) if unsure else better
        found = _of(loop, number, execute(number), less)
        if not unsure:
            break
    return found


def _of(loop: Loop, number: int, more: LoopMeasurement, less: LoopMeasurement | None) -> _Counted:
    """Return what this number of iterations cost, by an execution with `more` and one with `less` or none of them."""
    executed = _reported(loop, more, number)
    if less is None:
        return _Counted(number, executed or number, more)
    before = _reported(loop, less, 0)
    if executed and executed == before:  # it does as many whatever it is asked for
        once = f"it executes {grouped(executed)} iterations whatever number it is asked for, so what the first of them costs is counted with all"
        doubts = (*more.accounts.doubts, once)
        return _Counted(number, executed, replace(more, accounts=replace(more.accounts, doubts=doubts)))
    executed = executed - before if executed and before else number
    if loop.sections is not None and loop.sections.regular:
        _check_pauses(more.sections, less.sections, executed, before or 0)
    accounts = difference(more.accounts, less.accounts)
    if executed < 1 or loop.sections is not None:
        _check_cost(number, executed, accounts)
    return _Counted(number, executed, replace(more, accounts=accounts), subtracted=True)


def _check_cost(number: int, executed: int, accounts: Accounts) -> None:
    """MeasurementError where these iterations cost less than an instruction each."""
    if executed < 1 or accounts.profile.counts().Ir < executed:
        raise MeasurementError(
            f"{grouped(number)} more iterations cost only {grouped(accounts.profile.counts().Ir)} instructions: "
            "the benchmark does not execute what it is to measure as often as its framework asks for",
            hint="it must loop as often as the framework says: 'for b.Loop()' or b.N times in Go, 'for (auto _ : state)' in C++",
        )


def _check_pauses(more: int, less: int, executed: int, before: int) -> None:
    """MeasurementError unless each iteration has as many sections: Valgrind did not see all stops of the clock, or they are not alike."""
    each, rest = divmod(more - less, executed)
    if rest or less < 1 + each * before:
        raise MeasurementError(
            f"the benchmark's clock was seen to stop {grouped(more - less)} times in {grouped(executed)} iterations: what was counted between is not all",
            hint="prepare all input before the loop, without stopping the clock in it",
        )


def _decided(loop: Loop, jump: int | None) -> int:
    """Return how many iterations the clock had the program execute, by this one of its jumps; `words` are in their order."""
    if jump is None:
        raise MeasurementError(
            "it is not known how many iterations were executed: the benchmark did not see the clock that decides it",
            hint="'cg-bench doctor' says whether clocks can be pinned here",
        )
    return tuple(loop.words)[jump]


def _reported(loop: Loop, measurement: LoopMeasurement, number: int) -> int | None:
    if loop.report is not None:
        return loop.report.read(measurement.report, number, measurement.sections)
    return reported(loop, measurement.outcome.tail)


def reported(loop: Loop, tail: bytes) -> int | None:
    """Return how many iterations the program says it executed the last time; an old one may not know the option that was used."""
    said = tail.decode("utf-8", "backslashreplace")
    numbers = re.findall(loop.reported, said, re.MULTILINE | re.ASCII) if loop.reported else []
    return int(numbers[-1]) or None if numbers else None
