"""One command measured: what is asked for, the plan that is made of it, and the result."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Protocol

import msgspec

from cachegrind_bench._version import __version__
from cachegrind_bench.errors import UsageError
from cachegrind_bench.hermetic import environment
from cachegrind_bench.hermetic.launch import PINNED_CLOCK
from cachegrind_bench.measure.command import resolve
from cachegrind_bench.measure.plan import Plan, Progress
from cachegrind_bench.valgrind.options import WHOLE, Collect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from pathlib import Path

    from cachegrind_bench.model.result import Result
    from cachegrind_bench.model.score import CostModel
    from cachegrind_bench.valgrind.options import Geometry


class Display(Progress, Protocol):
    """Shows what goes on, and what the program writes."""

    def write(self, chunk: bytes) -> None:
        """Show output of the program."""
        ...


class MeasureRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure and how, before anybody looked whether the program is there; `timeout` in milliseconds.

    `env` has variables as `NAME` or `NAME=VALUE`, `default_env` those of the configuration, which `env` overrides. Copies of
    Valgrind's out files go to the folder `keep`.
    """

    command: tuple[str, ...]
    cwd: Path
    environ: Mapping[str, str]
    now: datetime
    benchmark_id: str | None = None
    env: tuple[str, ...] = ()
    default_env: tuple[str, ...] = ()
    geometry: Geometry
    model: CostModel
    valgrind: str | None = None
    repeat: int = 1
    layouts: int = 1
    warmup: int = 1
    timeout: int | None = None
    stdin: str | None = None
    prepare: str | None = None
    cleanup: str | None = None
    ignore_exit_status: bool = False
    require_sealed: bool = False
    pin_clock: bool = False
    keep_place: bool = False
    lines: bool = False
    collect: Collect = WHOLE
    python_profile: bool = False
    python_optional: bool = False
    keep: Path | None = None

    def __post_init__(self) -> None:
        _ = self.variables  # UsageError for what cannot be a variable, before anything is run

    @property
    def variables(self) -> environment.Request:
        """The variables to pass on or to set."""
        return environment.Request.parse((*self.default_env, *self.env))

    @property
    def created_at(self) -> str:
        """When it was asked for, as results have it."""
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")


def plan_of(request: MeasureRequest) -> Plan:
    """Return the plan of this request. UsageError if its program or input is not there or cannot be used."""
    return Plan(
        command=resolve(request.command, request.environ, request.cwd),
        cwd=request.cwd,
        environ=request.environ,
        id=request.benchmark_id,
        request=request.variables,
        model=request.model,
        repeat=request.repeat,
        layouts=request.layouts,
        warmup=request.warmup,
        timeout_ms=request.timeout,
        stdin=None if request.stdin is None else readable_input(request.stdin, request.cwd),
        prepare=request.prepare,
        cleanup=request.cleanup,
        ignore_exit_status=request.ignore_exit_status,
        require_sealed=request.require_sealed,
        clock=PINNED_CLOCK if request.pin_clock else None,
        keep_place=request.keep_place,
        lines=request.lines,
        collect=request.collect,
        python_profile=request.python_profile,
        python_optional=request.python_optional,
    )


def prepared_plan(request: MeasureRequest, make_plan: Callable[[MeasureRequest], Plan] = plan_of) -> Plan:
    """Return the plan, made where --prepare, if there is one, has done its work: the program may be what it builds."""
    from cachegrind_bench.measure.hooks import surrounded

    if request.prepare is None:
        return make_plan(request)
    with surrounded(request):
        return make_plan(request)


def measured(request: MeasureRequest, plan: Plan, display: Display) -> Result:
    """Measure by this plan, and describe machine and commit. MeasurementError if it cannot be measured."""
    from cachegrind_bench.measure.result import measured_result

    return measured_result(
        plan,
        geometry=request.geometry,
        valgrind=request.valgrind,
        keep=request.keep,
        echo=display.write,
        progress=display,
        now=request.now,
        version=__version__,
    )


def printable(text: str) -> str:
    """Return text of the command line, which may hold any bytes, as it is stored."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def readable_input(name: str, cwd: Path) -> Path:
    """Return the file that --stdin names. UsageError if it cannot be read again and again."""
    path = cwd / name
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISCHR(mode):
            raise UsageError(
                f"cannot use --stdin {name}: it is not a regular file",
                hint="every execution reads it anew, which a pipe does not allow; save it to a file first",
            )
        with path.open("rb"):
            return path
    except OSError as error:
        raise UsageError(f"cannot read --stdin {name}: {error.strerror}") from error
