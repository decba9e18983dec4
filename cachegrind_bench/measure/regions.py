"""Measures the regions of one command: a benchmark for each region that it entered."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.measure.run import Executions, benchmark_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cachegrind_bench.measure.identity import Identity
    from cachegrind_bench.measure.plan import Plan, Progress
    from cachegrind_bench.model.result import Benchmark, Environment
    from cachegrind_bench.valgrind.runner import Measurement, Runner

_NEVER_ENTERED = "the program entered no region"
_NEVER_ENTERED_HINT = (
    'mark what is to be measured: from cachegrind_bench.region import region, then `with region("parse"):`; '
    "cg_bench.h does so for C and C++"
)


def measure_regions(
    plan: Plan,
    runner: Runner,
    env: Environment,
    identify: Callable[[], Callable[[], Identity]],
    progress: Progress,
) -> tuple[Benchmark, ...]:
    """Measure as planned, and return the regions in the order of their names.

    MeasurementError if the command fails or times out, if it enters no region, or not the same ones every time.
    """
    executions = Executions(plan, runner, env, progress, identify)
    executions.warm_up()
    found: defaultdict[str, list[Measurement]] = defaultdict(list)
    for number in range(len(plan.schedule)):
        with executions.execution(number) as target:
            regions = runner.measure_regions(target)
        if not regions:
            raise MeasurementError(_NEVER_ENTERED, hint=_NEVER_ENTERED_HINT)
        for name, measurement in regions.items():
            found[name].append(measurement)
    sometimes = [name for name, measurements in found.items() if len(measurements) < len(plan.schedule)]
    if sometimes:
        raise MeasurementError(f"region {sometimes[0]!r} was entered in some executions, and not in others")
    return tuple(
        benchmark_of(replace(plan, id=f"{plan.benchmark_id}::{name}"), env, executions.identity, measurements)
        for name, measurements in sorted(found.items())
    )


def measure_region(
    plan: Plan,
    runner: Runner,
    env: Environment,
    identify: Callable[[], Callable[[], Identity]],
    progress: Progress,
) -> Benchmark:
    """Measure as planned, and return the one region that `plan.collect` names, under the plan's own id."""
    wanted = f"{plan.benchmark_id}::{plan.collect.region}"
    found = {benchmark.id: benchmark for benchmark in measure_regions(plan, runner, env, identify, progress)}
    if wanted not in found:
        names = ", ".join(repr(name.removeprefix(f"{plan.benchmark_id}::")) for name in found)
        raise MeasurementError(f"the program entered no region {plan.collect.region!r}", hint=f"it entered {names}")
    return replace(found[wanted], id=plan.benchmark_id)
