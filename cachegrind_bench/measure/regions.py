"""Measures the regions of one command: a benchmark for each region that it entered."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError

if TYPE_CHECKING:
    from cachegrind_bench.measure.run import Executions
    from cachegrind_bench.model.result import Benchmark
    from cachegrind_bench.valgrind.runner import Measurement

_NEVER_ENTERED = "the program entered no region"
_NEVER_ENTERED_HINT = (
    'mark what is to be measured: from cachegrind_bench.region import region, then `with region("parse"):`; '
    "cg_bench.h does so for C and C++"
)


def measure_regions(executions: Executions) -> tuple[Benchmark, ...]:
    """Measure as planned, and return the regions in the order of their names.

    MeasurementError if the command fails or times out, if it enters no region, or not the same ones every time.
    """
    plan = executions.plan
    executions.warm_up()
    found: defaultdict[str, list[Measurement]] = defaultdict(list)
    for number in range(len(plan.schedule)):
        with executions.execution(number) as target:
            regions = executions.runner.measure_regions(target)
        if not regions:
            raise MeasurementError(_NEVER_ENTERED, hint=_NEVER_ENTERED_HINT)
        for name, measurement in regions.items():
            found[name].append(measurement)
    sometimes = [name for name, measurements in found.items() if len(measurements) < len(plan.schedule)]
    if sometimes:
        raise MeasurementError(f"region {sometimes[0]!r} was entered in some executions, and not in others")
    return tuple(
        executions.benchmark(measurements, id=f"{plan.benchmark_id}::{name}")
        for name, measurements in sorted(found.items())
    )


def measure_region(executions: Executions) -> Benchmark:
    """Measure as planned, and return the one region that `plan.collect` names, under the plan's own id."""
    plan = executions.plan
    wanted = f"{plan.benchmark_id}::{plan.collect.region}"
    found = {benchmark.id: benchmark for benchmark in measure_regions(executions)}
    if wanted not in found:
        names = ", ".join(repr(name.removeprefix(f"{plan.benchmark_id}::")) for name in found)
        raise MeasurementError(f"the program entered no region {plan.collect.region!r}", hint=f"it entered {names}")
    return replace(found[wanted], id=plan.benchmark_id)
