"""One command measured: what is asked for, the plan that is made of it, and the result."""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from cachegrind_bench._version import __version__
from cachegrind_bench.errors import UsageError
from cachegrind_bench.hermetic import environment
from cachegrind_bench.interruption import beside
from cachegrind_bench.measure.command import resolve
from cachegrind_bench.measure.plan import Plan, Progress, Settings
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from cachegrind_bench.measure.session import ValgrindSetup
    from cachegrind_bench.model.result import Benchmark, Commit, Environment, Result
    from cachegrind_bench.valgrind.options import Geometry


class MeasureRequest(Settings, frozen=True, kw_only=True):
    """What to measure and how, before anybody looked whether the program is there.

    `env` has variables as `NAME` or `NAME=VALUE`, `default_env` those of the configuration, which `env` overrides.
    """

    command: tuple[str, ...]
    now: datetime
    env: tuple[str, ...] = ()
    default_env: tuple[str, ...] = ()
    geometry: Geometry
    valgrind: str | None = None
    stdin: str | None = None
    keep_out_files: Path | None = None

    def __post_init__(self) -> None:
        _ = self.passed  # UsageError for what cannot be a variable, before anything is run

    @property
    def passed(self) -> environment.Request:
        """The variables to pass on or to set."""
        return environment.Request.parse((*self.default_env, *self.env))

    @property
    def created_at(self) -> str:
        """When it was asked for, as results have it."""
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")


def plan_of(request: MeasureRequest) -> Plan:
    """Return the plan of this request. UsageError if its program or input is not there or cannot be used."""
    return Plan(
        **{name: getattr(request, name) for name in Settings.__struct_fields__},
        command=resolve(request.command, request.environ, request.cwd),
        request=request.passed,
        stdin=None if request.stdin is None else readable_input(request.stdin, request.cwd),
    )


def prepared_plan(request: MeasureRequest, make_plan: Callable[[MeasureRequest], Plan] = plan_of) -> Plan:
    """Return the plan, made where --prepare, if there is one, has done its work: the program may be what it builds."""
    from cachegrind_bench.measure.run import surrounded

    if request.prepare is None:
        return make_plan(request)
    with surrounded(request):
        return make_plan(request)


def measured(
    request: MeasureRequest,
    plan: Plan,
    progress: Progress,
    echo: Callable[[bytes], None],
    *,
    explained: Callable[[Result], bool] = lambda _result: False,
) -> Result:
    """Measure by this plan, and describe machine and commit. MeasurementError if it cannot be measured.

    What is to be `explained`, as its counts show, gets calls and a Python profile from further executions.
    """
    from cachegrind_bench.measure.benchmarks import measured_benchmarks
    from cachegrind_bench.usecases.checkout_dates import date_files
    from cachegrind_bench.vcs.commits import commit_of
    from cachegrind_bench.vcs.git import Git

    ready = valgrind_setup_of(request)
    if request.prepare is None:  # which may build
        date_files(request.environ, request.cwd)
    # Read while the program is measured: counts do not care, and what is committed meanwhile is not what was measured.
    described = partial(commit_of, Git(request.cwd, request.environ, Waiting()))
    with beside(described) as commit, ready.session(echo=echo, keep=request.keep_out_files) as session:

        def result(*benchmarks: Benchmark) -> Result:
            return result_of(request, ready.environment, benchmarks, commit.result())

        return result(*measured_benchmarks(plan, session, progress, explained=lambda item: explained(result(item))))


def valgrind_setup_of(request: MeasureRequest) -> ValgrindSetup:
    """Find Valgrind and describe the machine. MeasurementError without Valgrind."""
    from cachegrind_bench.measure.session import valgrind_setup

    passed = environment.fingerprint_values(request.passed, request.environ)
    return valgrind_setup(valgrind=request.valgrind, geometry=request.geometry, environ=request.environ, passed=passed)


def result_of(
    request: MeasureRequest, env: Environment, benchmarks: Sequence[Benchmark], commit: Commit | None
) -> Result:
    """Return the result of these benchmarks, measured at this commit."""
    from cachegrind_bench.model.result import Result

    return Result(
        tool_version=__version__, created_at=request.created_at, commit=commit, env=env, benchmarks=tuple(benchmarks)
    )


def readable_input(name: str, cwd: Path) -> Path:
    """Return the file that --stdin names. UsageError if it cannot be read again and again."""
    path = cwd / name
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISCHR(mode):
            raise UsageError(
                f"cannot use --stdin {name}: it is not a regular file",
                hint="every execution reads it from the start, which a pipe does not allow; save it to a file first",
            )
        with path.open("rb"):
            return path
    except OSError as error:
        raise UsageError(f"cannot read --stdin {name}: {error.strerror}") from error
