"""One benchmark measured, together with where and on what: the result that is stored."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.hermetic import environment
from cachegrind_bench.measure.identity import identify
from cachegrind_bench.measure.pythonresults import profilable, with_profiles
from cachegrind_bench.measure.regions import measure_regions
from cachegrind_bench.measure.run import Executions, measure
from cachegrind_bench.measure.session import session
from cachegrind_bench.model.result import Commit, Result
from cachegrind_bench.valgrind.options import Scope
from cachegrind_bench.vcs.commit import commit_info

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from cachegrind_bench.measure.identity import Identity
    from cachegrind_bench.measure.plan import Plan, Progress
    from cachegrind_bench.valgrind.options import Geometry


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
        return Result(
            tool_version=version,
            created_at=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            commit=commit.result(),
            env=ready.environment,
            benchmarks=with_profiles(plan, benchmarks, ready.runner, ready.environment, progress),
        )


def _commit(plan: Plan) -> Commit | None:
    found = commit_info(plan.cwd, plan.environ)
    return found if isinstance(found, Commit) else None
