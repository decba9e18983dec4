"""Measures what one warm iteration of a framework's benchmark costs: how many are executed follows from the first.

A result has the counts of `PER_ITERATIONS`, so that results compare whatever number was executed.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from cachegrind_bench.measure.run import Executions, seal_of
from cachegrind_bench.model.result import Benchmark
from cachegrind_bench.valgrind.options import Loop, Tool
from cachegrind_bench.valgrind.runner import Measurement
from cachegrind_bench.valgrind.section_parts import scaled

# More iterations are executed as long as they stay below this, which takes some tenths of a second.
_MOST_IR = 10_000_000
# What it takes to write a part, in instructions that could be counted in that time.
_PART_IR = 150_000


def measure_iterations(executions: Executions) -> Benchmark:
    """Measure as planned. MeasurementError if the command fails or times out, or if no iteration can be counted."""
    plan, runner, argv = executions.plan, executions.runner, executions.target.argv
    loop = plan.collect.loop
    assert loop is not None  # noqa: S101 - that is its scope
    executions.target = replace(executions.target, argv=(*argv, *loop.native))
    executions.warm_up()
    executions.target = replace(executions.target, argv=argv)
    iterations, number, executed = None, min(loop.words), 1
    found: list[Measurement] = []
    while len(found) < len(plan.schedule):
        number = iterations or number
        with executions.execution(len(found)) as target:
            measurement = runner.measure(replace(target, argv=(*argv, *loop.words[number])), Tool.CALLGRIND)
        seal_of(plan, measurement.outcome, executions.env)
        if iterations is None:
            iterations = _suitable(loop, measurement)
            if iterations != number:
                continue
        executed = _executed(loop, measurement) or number
        accounts = scaled(measurement.accounts, executed)
        found.append(replace(measurement, accounts=accounts))
    benchmark = executions.benchmark(found)
    words = loop.words[number]
    return replace(benchmark, iterations=executed, command=(*benchmark.command, *words))


def _suitable(loop: Loop, measurement: Measurement) -> int:
    """Return how many iterations to execute, from the measurement of the smallest number."""
    smallest = min(loop.words)
    accounts = measurement.accounts
    cost = accounts.profile.counts().Ir + 2 * (accounts.sections - 1) * _PART_IR
    return max((number for number in loop.words if number * cost <= _MOST_IR * smallest), default=smallest)


def _executed(loop: Loop, measurement: Measurement) -> int | None:
    """Return how many iterations the program says it executed the last time; an old one may not know the option that was used."""
    said = measurement.outcome.tail.decode("utf-8", "backslashreplace")
    numbers = re.findall(loop.reported, said, re.MULTILINE) if loop.reported else []
    return int(numbers[-1]) if numbers and int(numbers[-1]) > 0 else None
