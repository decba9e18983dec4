"""One command measured, or each of its regions: the benchmarks that come of it, with their Python profiles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.measure.plan import Plan, Progress
from cachegrind_bench.measure.run import Executions, measure_whole, where_it_can_be
from cachegrind_bench.model.result import Benchmark
from cachegrind_bench.valgrind.options import Scope
from cachegrind_bench.valgrind.runner import Measurement, Runner

if TYPE_CHECKING:
    from cachegrind_bench.measure.session import Session


def measured_benchmarks(
    plan: Plan,
    session: Session,
    progress: Progress,
    *,
    runner: Runner | None = None,
    how: Callable[[Executions], Benchmark] = measure_whole,
    explained: Callable[[Benchmark], bool] = lambda _benchmark: False,
) -> tuple[Benchmark, ...]:
    """Measure one command, or each of its regions. MeasurementError if it cannot be measured.

    `runner` is that of the session unless given; `how` says how to measure what has no regions. Of a whole program that is to be
    `explained` when its counts are known, calls are recorded too, and a Python profile where it can have one.
    """
    measured_once = partial(
        _measured, progress=progress, session=session, runner=runner or session.runner, how=how, explained=explained
    )
    return where_it_can_be(plan, progress, measured_once)


def _measured(
    plan: Plan,
    *,
    progress: Progress,
    session: Session,
    runner: Runner,
    how: Callable[[Executions], Benchmark],
    explained: Callable[[Benchmark], bool],
) -> tuple[Benchmark, ...]:
    if plan.python_profile:
        from cachegrind_bench.measure.python_profile import profilable

        plan = profilable(plan)
    plan = session.on_cpu(plan)
    executions = Executions(plan, runner, session.environment, progress)
    if plan.collect.scope is Scope.REGIONS:
        benchmarks = measure_regions(executions)
    else:
        benchmarks = (how(executions),)
        if explained(benchmarks[0]):
            benchmarks = (executions.with_calls(benchmarks[0]),)
            plan = _profiled(plan)
    if plan.python_profile:
        from cachegrind_bench.measure.python_profile import with_profiles

        return with_profiles(plan, benchmarks, session.runner, session.environment, progress)
    return benchmarks


def _profiled(plan: Plan) -> Plan:
    """Return the plan with a Python profile where the program can have one."""
    from cachegrind_bench.measure.python_profile import profilable

    return profilable(replace(plan, python_profile=True, python_optional=True))


_NEVER_ENTERED = "the program entered no region"
_NEVER_ENTERED_HINT = (
    'mark what is to be measured: from cachegrind_bench.region import region, then `with region("parse"):`; '
    "cg_bench.h does so for C and C++"
)


def measure_regions(executions: Executions) -> tuple[Benchmark, ...]:
    """Measure as planned, and return the regions in the order of their names, or the one that is wanted by the plan's own id.

    MeasurementError if the command fails or times out, if it enters no such region, or not the same ones every time.
    """
    plan = executions.plan
    executions.warm_up()
    found: defaultdict[str, list[Measurement]] = defaultdict(list)
    for number in range(len(plan.schedule)):
        with executions.around_execution(number) as execution:
            regions = executions.runner.measure_regions(execution, plan.collected)
        if not regions:
            raise MeasurementError(_NEVER_ENTERED, hint=_NEVER_ENTERED_HINT)
        for name, measurement in regions.items():
            found[name].append(measurement)
    sometimes = [name for name, measurements in found.items() if len(measurements) < len(plan.schedule)]
    if sometimes:
        raise MeasurementError(f"region {sometimes[0]!r} was entered in some executions, and not in others")
    wanted = plan.collect.region
    if wanted is None:
        return tuple(
            executions.benchmark(measurements, id=f"{plan.benchmark_id}::{name}")
            for name, measurements in sorted(found.items())
        )
    if wanted not in found:
        names = ", ".join(map(repr, sorted(found)))
        raise MeasurementError(f"the program entered no region {wanted!r}", hint=f"it entered {names}")
    return (executions.benchmark(found[wanted]),)
