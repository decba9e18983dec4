"""Measures what one warm iteration of a framework's benchmark costs: how many are executed follows from the first.

A result has the counts of `PER_ITERATIONS`, so that results compare whatever number was executed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.measure.differences import difference
from cachegrind_bench.measure.run import Executions, seal_of
from cachegrind_bench.model.result import Benchmark
from cachegrind_bench.valgrind.options import Loop, Tool
from cachegrind_bench.valgrind.runner import Measurement
from cachegrind_bench.valgrind.section_parts import scaled

if TYPE_CHECKING:
    from cachegrind_bench.valgrind.processes import Accounts

# What it takes to write a part, in instructions that could be counted in that time.
_PART_IR = 150_000
_LONGEST_NUMBER = 15  # digits of a program's word for how many it executed


def measure_iterations(executions: Executions) -> Benchmark:
    """Measure as planned. MeasurementError if the command fails or times out, or if no iteration can be counted."""
    plan, runner, argv = executions.plan, executions.runner, executions.target.argv
    loop = plan.collect.loop
    assert loop is not None  # noqa: S101 - that is its scope
    executions.target = replace(executions.target, argv=(*argv, *loop.native))
    executions.warm_up()
    executions.target = replace(executions.target, argv=argv)
    number, executed, chosen = _smallest(loop), 1, False
    once = bool(loop.clock and loop.clock.jumps)
    found: list[Measurement] = []

    def measured(number: int) -> Measurement:
        with executions.execution(len(found)) as target:
            measurement = runner.measure(replace(target, argv=(*argv, *loop.words[number])), Tool.CALLGRIND)
        seal_of(plan, measurement.outcome, executions.env)
        return measurement

    while len(found) < len(plan.schedule):
        base = None if loop.sections else measured(0).accounts
        while True:
            measurement = measured(number)
            accounts = measurement.accounts if base is None else difference(measurement.accounts, base)
            before = number
            if once:
                number = _decided(loop, measurement.jump)
            elif not chosen:
                number, chosen = _suitable(loop, accounts), True
            if once or number == before:
                break
        if loop.report is not None:
            executed = loop.report.read(measurement.report, number, accounts.sections)
        else:
            executed = reported(loop, measurement.outcome.tail) or number
        found.append(replace(measurement, accounts=scaled(accounts, executed)))
    benchmark = executions.benchmark(found)
    words = loop.words[number]
    return replace(benchmark, iterations=executed, command=(*benchmark.command, *words))


def _smallest(loop: Loop) -> int:
    return min(number for number in loop.words if number)


def _decided(loop: Loop, jump: int | None) -> int:
    """Return how many iterations the clock had the program execute, by this one of its jumps; `words` are in their order."""
    if jump is None:
        raise MeasurementError(
            "it is not known how many iterations were executed: the benchmark did not see the clock that decides it",
            hint="'cg-bench doctor' says whether clocks can be pinned here",
        )
    return tuple(loop.words)[jump]


def _suitable(loop: Loop, accounts: Accounts) -> int:
    """Return how many iterations to execute, from what the smallest number cost."""
    smallest = _smallest(loop)
    cost = accounts.profile.counts().Ir + 2 * (accounts.sections - 1) * _PART_IR
    return max((number for number in loop.words if number * cost <= loop.most_ir * smallest), default=smallest)


def reported(loop: Loop, tail: bytes) -> int | None:
    """Return how many iterations the program says it executed the last time; an old one may not know the option that was used."""
    said = tail.decode("utf-8", "backslashreplace")
    numbers = re.findall(loop.reported, said, re.MULTILINE | re.ASCII) if loop.reported else []
    return int(numbers[-1]) or None if numbers and len(numbers[-1]) <= _LONGEST_NUMBER else None
