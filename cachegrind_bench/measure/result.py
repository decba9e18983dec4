"""One benchmark measured, or each region of its command, together with where and on what: the result that is stored."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic import environment
from cachegrind_bench.measure.run import Executions, measure
from cachegrind_bench.measure.session import identify, session
from cachegrind_bench.model.result import Commit, Result
from cachegrind_bench.valgrind.options import Scope
from cachegrind_bench.vcs.commits import commit_info

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from cachegrind_bench.measure.plan import Plan, Progress
    from cachegrind_bench.measure.session import Identity
    from cachegrind_bench.model.result import Benchmark
    from cachegrind_bench.valgrind.options import Geometry
    from cachegrind_bench.valgrind.runner import Measurement


def measured_result(
    plan: Plan,
    *,
    geometry: Geometry,
    valgrind: str | None,
    keep: Path | None,
    echo: Callable[[bytes], None],
    progress: Progress,
    now: datetime,
    version: str,
) -> Result:
    """Measure one command and describe machine and commit. MeasurementError if it cannot be measured.

    The descriptions are gathered beside the measured execution: counts do not care who else computes.
    """
    if plan.python_profile:
        from cachegrind_bench.measure.python_profile import profilable

        plan = profilable(plan)
    passed = environment.fingerprint_values(plan.request, plan.environ)
    with (
        session(
            valgrind=valgrind, geometry=geometry, environ=plan.environ, passed=passed, echo=echo, keep=keep
        ) as ready,
        ThreadPoolExecutor(1) as beside,
    ):
        plan = replace(plan, cpu=ready.cpu if plan.cpu is None else plan.cpu)
        commit = beside.submit(_commit, plan)

        def identity() -> Callable[[], Identity]:
            return beside.submit(identify, plan.command.executable, plan.variables).result

        executions = Executions(plan, ready.runner, ready.environment, identity, progress)
        regions = plan.collect.scope is Scope.REGIONS
        benchmarks = measure_regions(executions) if regions else (measure(executions),)
        if plan.python_profile:
            from cachegrind_bench.measure.python_profile import with_profiles

            benchmarks = with_profiles(plan, benchmarks, ready.runner, ready.environment, progress)
        return Result(
            tool_version=version,
            created_at=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            commit=commit.result(),
            env=ready.environment,
            benchmarks=benchmarks,
        )


def _commit(plan: Plan) -> Commit | None:
    found = commit_info(plan.cwd, plan.environ)
    return found if isinstance(found, Commit) else None


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
