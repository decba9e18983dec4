"""A model of the time on this machine: kernels compiled, timed and counted, and what their events take."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from msgspec.structs import asdict, replace

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.machine import machine_info
from cachegrind_bench.hermetic.scratch import FIRST_SLOT, scratch
from cachegrind_bench.measure.kernels import Compiler, counted, timed
from cachegrind_bench.measure.plan import Progress
from cachegrind_bench.model.calibration import MOST_APART, apart, fit, least_squares
from cachegrind_bench.model.time_model import TimeModel
from cachegrind_bench.usecases.measurement import MeasureRequest, plan_of, valgrind_setup_of


def calibrated(request: MeasureRequest, name: str, progress: Progress, only: Sequence[str] = ()) -> TimeModel:
    """Make a model of this name, of the kernels or `only` those of these names; the request's command is not used.

    UsageError without SciPy or a compiler; MeasurementError if the kernels cannot be measured, or the machine is too busy.
    """
    least_squares()  # UsageError before any work
    compiler = Compiler.find(request.environ)
    geometry = replace(request.geometry, branches=True, simulated=True)
    ready = valgrind_setup_of(replace(request, geometry=geometry))
    with scratch(Path(tempfile.gettempdir()).resolve(), first=FIRST_SLOT) as folder:
        progress(f"compiling the kernels with {compiler.version}")
        program = compiler.compile(folder.path, request.environ)
        plan = plan_of(replace(request, command=(str(program),), cwd=folder.path))
        with ready.session(echo=lambda _chunk: None) as session:
            times = timed(program, plan, session.cpu, progress, only)
            starts = checked(times.values())
            found = counted(program, plan, session, progress, times)
    return TimeModel(
        name=name,
        created_at=request.created_at,
        cpu=str(machine_info(request.environ).get("cpu_model", "unknown")),
        compiler=compiler.version,
        geometry=str(geometry),
        kernels=len(found),
        starts_ppm=round(1e6 * starts),
        **asdict(fit(found)),
    )


def checked(times: Collection[Sequence[int]]) -> float:
    """Return how far the starts of the kernels are apart. MeasurementError if that is too far for a model."""
    starts = apart(times)
    if starts > MOST_APART:
        raise MeasurementError(
            f"this machine is too busy: from start to start, the time of a kernel differs by {starts:.1%} in the median of "
            f"{len(times)}, and a model can be made of {MOST_APART:.0%} at most",
            hint="end what else is running, give the machine its full clock rate (plug it in; cpupower frequency-set -g "
            "performance), and try again; on a shared virtual machine, at another time",
        )
    return starts
