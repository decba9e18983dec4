"""Python profiles for the benchmarks of a plan: whether they can have any, and which of them has which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.measure.python_profile import followed, perf_command, profile_python
from cachegrind_bench.measure.source_locations import Places
from cachegrind_bench.valgrind.options import Scope
from cachegrind_bench.valgrind.python_regions import RegionReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.errors import CgBenchError
    from cachegrind_bench.measure.plan import Plan, Progress
    from cachegrind_bench.measure.python_profile import Executor
    from cachegrind_bench.model.python_profile import PythonProfile
    from cachegrind_bench.model.result import Benchmark, Environment


def profilable(plan: Plan) -> Plan:
    """Return the plan; without its Python profile, and with a note, where that is optional and cannot be had.

    UsageError where it cannot be had, and is not optional: what is missing is told before the work.
    """
    if not plan.python_profile:
        return plan
    try:
        _check(plan)
    except UsageError as error:
        if not plan.python_optional:
            raise
        notes = (*plan.command.notes, _note(error))
        return replace(plan, python_profile=False, command=replace(plan.command, notes=notes))
    return plan


def _note(error: CgBenchError) -> str:
    return f"its Python functions were not profiled: {error.message}"


def _check(plan: Plan) -> None:
    if plan.collect.scope is Scope.TOGGLE:
        raise UsageError(
            "--python-profile is of the whole program or of its regions, and cannot be combined with --toggle",
            hint="measure the one, then the other",
        )
    perf_command(plan.command, plan.variables)


def with_profiles(
    plan: Plan, benchmarks: Sequence[Benchmark], runner: Executor, env: Environment, progress: Progress
) -> tuple[Benchmark, ...]:
    """Return the benchmarks that were measured as planned with their Python profiles, if the plan wants any.

    The executions for a profile take longer, and may fail where measuring did not: counts are kept, with a warning.
    """
    if not plan.python_profile:
        return tuple(benchmarks)
    try:
        return _profiled(plan, benchmarks, runner, env, progress)
    except MeasurementError as error:
        return tuple(replace(item, warnings=(*item.warnings, _note(error))) for item in benchmarks)


def _profiled(
    plan: Plan, benchmarks: Sequence[Benchmark], runner: Executor, env: Environment, progress: Progress
) -> tuple[Benchmark, ...]:
    if plan.collect.scope is not Scope.REGIONS:
        (benchmark,) = benchmarks
        return (replace(benchmark, python=profile_python(plan, runner, env, progress)),)
    found = followed(plan, runner, env, progress, lambda depth: RegionReader(depth=depth)).profiles()
    places = Places(plan.cwd)

    def profile(benchmark: Benchmark) -> PythonProfile:
        name = plan.collect.region or benchmark.id.removeprefix(f"{plan.benchmark_id}::")
        if name not in found:
            raise MeasurementError(f"region {name!r} was not entered when its Python functions were to be profiled")
        return places.located(found[name])

    return tuple(replace(benchmark, python=profile(benchmark)) for benchmark in benchmarks)
