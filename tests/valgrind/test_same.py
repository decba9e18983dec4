"""No false alarm: a program is built and measured twice, each time in another place, under other variables and with or
without load, and the two are compared.
"""

from __future__ import annotations

import contextlib
import random
import string
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.valgrind.conftest import cpus_of_worker
from tests.valgrind.pairs import compared, measured
from tests.valgrind.programs import KINDS, Kind, build

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.valgrind.conftest import CgBench

pytestmark = [pytest.mark.pairs, pytest.mark.slow]

COMPARISONS = 3  # of each kind


def some_name(draw: random.Random, least: int, most: int) -> str:
    return "".join(draw.choices(string.ascii_letters + string.digits + "-_", k=draw.randint(least, most)))


def some_place(draw: random.Random, kind: Kind, parent: Path) -> Path:
    """Make up a folder to build in.

    Python joins the folder of the script, and every one on PYTHONPATH, with the name of each module that it imports, so a
    longer path is more work: up to 1,500 instructions for each character (docs/what-makes-runs-differ.md). Where Python
    is measured, places have other names of one length; elsewhere the length varies as well.
    """
    if kind.path_counts:
        return parent / some_name(draw, 12, 12)
    return parent.joinpath(*(some_name(draw, 1, 30) for _ in range(draw.randint(1, 4))))


def some_ci_variables(draw: random.Random) -> dict[str, str]:
    """Make up what a CI service sets: it differs in number and in length from job to job."""
    variables = {f"GITHUB_{some_name(draw, 3, 12).upper()}": some_name(draw, 0, 90) for _ in range(draw.randint(0, 40))}
    branch = some_name(draw, 1, 120)
    return variables | {"CI": "true", "GITHUB_REF": f"refs/heads/{branch}", "GITHUB_REF_NAME": branch}


@contextlib.contextmanager
def busy_loop(*, running: bool) -> Iterator[None]:
    """Keep the CPU busy that a measured program of this worker is bound to."""
    if not running:
        yield
        return
    code = f"import os\nos.sched_setaffinity(0, {{{max(cpus_of_worker())}}})\nwhile True: pass"
    loop = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


@pytest.mark.parametrize("number", range(COMPARISONS))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_program_built_and_measured_twice_is_unchanged(
    cg_bench: CgBench, tmp_path: Path, kind: Kind, number: int
) -> None:
    draw = random.Random(f"{kind.name} {number}")
    sides: list[Path] = []
    for side in ("base", "candidate"):
        built = build(kind, some_place(draw, kind, tmp_path / side[:4]))
        cwd = tmp_path / "cwds" / some_name(draw, 1, 60)
        cwd.mkdir(parents=True)
        with busy_loop(running=side == ("base", "candidate")[number % 2]):
            output = tmp_path / f"{side}.json"
            sides.append(measured(cg_bench, built, output, cwd=cwd, variables=some_ci_variables(draw)))
    finished, document = compared(cg_bench, *sides)
    assert (finished.code, document["verdict"]) == (0, "unchanged"), finished.stdout
    (benchmark,) = document["benchmarks"]
    assert benchmark["state"] == "unchanged"
