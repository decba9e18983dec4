"""A model of the time made here: a few kernels compiled, timed and counted."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.measure.kernels import STARTS, Compiler
from cachegrind_bench.model import calibration
from cachegrind_bench.model.metrics import WEIGHTS
from cachegrind_bench.usecases.calibration import calibrated
from cachegrind_bench.usecases.measurement import MeasureRequest
from cachegrind_bench.valgrind.options import Geometry
from tests.conftest import without
from tests.valgrind.conftest import COMMAND, environment

if TYPE_CHECKING:
    from cachegrind_bench.model.calibration import Fit, Sample
    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench

KERNELS = ("scan/16K", "scan/16M", "gather/16K", "gather/16M", "chase/64M", "branch/even", "branch/always", "apart/add")


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_kernels_are_timed_and_counted_in_the_same_geometry(
    tmp_path: Path, valgrind_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    if shutil.which(compiler) is None:
        without(f"no {compiler}")
    monkeypatch.setattr("cachegrind_bench.usecases.calibration.MOST_APART", 10)  # other tests run at the same time
    seen: list[Sample] = []

    def fit(samples: list[Sample]) -> Fit:
        seen[:] = samples
        return calibration.fit(samples)

    monkeypatch.setattr("cachegrind_bench.usecases.calibration.fit", fit)
    environ = {**os.environ, "CC": compiler}
    request = MeasureRequest(
        command=(),
        now=datetime.now(UTC),
        geometry=Geometry(),
        cwd=tmp_path,
        environ=environ,
        valgrind=str(valgrind_path),
    )
    phases: list[str] = []
    model = calibrated(request, "here", phases.append, KERNELS)
    assert sorted(item.name for item in seen) == sorted(KERNELS)
    assert len([phase for phase in phases if phase.startswith("timing")]) == STARTS
    events = {item.name: dict(zip(WEIGHTS, item.events, strict=True)) for item in seen}
    assert events["branch/even"]["mispredicted branches"] > 200_000 > events["branch/always"]["mispredicted branches"]
    assert 200 * events["scan/16K"]["LL misses"] < 200_000 < events["chase/64M"]["LL misses"]
    times = {item.name: min(item.times) for item in seen}
    assert times["branch/even"] > times["branch/always"]
    assert (model.kernels, model.geometry) == (len(KERNELS), str(Geometry()))
    assert model.compiler == Compiler.find(environ).version
    assert all(weight.low <= weight.picoseconds <= weight.high for weight in model.weights.values())


def test_kernels_do_not_outlive_a_calibration_that_is_killed(tmp_path: Path) -> None:
    words = [*COMMAND, "calibrate", "here"]
    env = environment({"TMPDIR": str(tmp_path)})
    with subprocess.Popen(words, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as calibration_run:
        assert calibration_run.stderr is not None
        assert any("timing the kernels" in line for line in calibration_run.stderr)
        time.sleep(0.3)
        calibration_run.kill()
    time.sleep(0.1)
    command_lines: list[bytes] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            command_lines.append(path.read_bytes())
    assert not [line for line in command_lines if os.fsencode(tmp_path) in line]


def test_the_clock_or_the_hardware_is_held_against_an_execution_under_valgrind(
    cg_bench: CgBench, compile_c: CompileC
) -> None:
    program = compile_c("int main(void) { for (volatile int i = 0; i < 3000000; i++); }")
    done = cg_bench("verify", "--hardware", "--", str(program))
    assert done.code == 0
    assert "the least of 5 executions without Valgrind" in done.stdout
    assert "  estimate " in done.stdout
