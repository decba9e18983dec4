"""`python -m benchmarks.truth measure` counts and times programs, goes on where it was ended, and survives what fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.truth import cases, measure
from benchmarks.truth.cases import Build, Case
from benchmarks.truth.points import points

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FEW = Build("micro.c", "micro", "cc -g -O{level} {source} -o {program} -lm", {"add-chain": ["5000"]}, levels=("2",))
BROKEN = Build("programs.c", "real", "cc -g -O{level} {source} -o {program} -lmissing", {"vm": ["1"]}, levels=("1",))


@pytest.mark.usefixtures("valgrind_path")
def test_what_is_missing_is_measured_and_what_fails_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    crash = Case("crash", "false", "default", "micro", ("false",))
    monkeypatch.setattr(cases, "BUILDS", (FEW, BROKEN))
    compile_and_crash = cases.native

    def native(work: Path) -> Iterator[Case]:
        yield crash
        yield from compile_and_crash(work)

    monkeypatch.setattr(measure, "native", native)
    monkeypatch.setenv("PYTHONPATH", "")
    file = tmp_path / "points.csv"
    measure.measure(file, tmp_path / "work", (), ("micro", "real"))
    (found,) = points(file)
    assert (found.family, found.kind, found.Bcm < 100, found.seconds < 1) == ("add", "micro", True, True)
    assert 20_000 <= found.Ir < 40_000
    said = capsys.readouterr().out
    assert "programs.c is left out at -O1: " in said
    assert "crash/false is left out: " in said
    measure.measure(file, tmp_path / "work", (), ("micro", "real"))
    assert "1 of 1: crash/false is left out" in capsys.readouterr().out
    assert len(points(file)) == 1
