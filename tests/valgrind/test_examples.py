"""The examples that are scripts measure, and print what their pages show."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.valgrind.conftest import CgBench

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.usefixtures("valgrind_path")
def test_the_cache_sweep_counts_and_times_each_size() -> None:
    script = str(EXAMPLES / "cache-sweep" / "sweep.py")
    options = "--starts", "1", "--largest", "2000"
    done = subprocess.run([sys.executable, script, *options], check=True, capture_output=True, text=True)
    rows = re.findall(
        r"^\| ([\d,]+) \| (\w+) \| [\d.]+ \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", done.stdout, re.MULTILINE
    )
    assert [row[:2] for row in rows] == [(size, way) for size in ("1,000", "2,000") for way in ("linear", "random")]
    assert all(float(score) > float(Ir) > 4 for *_, score, _, Ir in rows)
    assert "Pearson of estimate and time" in done.stdout


def test_a_pass_of_a_program_of_pyperformance_is_a_region(cg_bench: CgBench, tmp_path: Path) -> None:
    script = tmp_path / "run_benchmark.py"
    script.write_text(
        "import pyperf\n"
        "def bench(loops, size):\n"
        "    before = pyperf.perf_counter()\n"
        "    for _ in range(loops): sum(range(size))\n"
        "    return pyperf.perf_counter() - before\n"
        "runner = pyperf.Runner()\n"
        "runner.argparser.add_argument('--size', type=int, default=5)\n"
        "runner.bench_time_func('sum', bench, runner.parse_args().size)\n"
    )
    one_pass = str(EXAMPLES / "pyperformance" / "one_pass.py")
    command = sys.executable, one_pass, "1", "2", str(script), "--size", "10000"
    finished = cg_bench.run(*command, options=["--regions"])
    found = {item["id"].rpartition("::")[2]: item["counts"]["Ir"] for item in (finished.result or {})["benchmarks"]}
    assert found.keys() == {"warm", "work"}
    assert 2 * 10_000 * 5 < found["work"] < 2 * 10_000 * 500
    assert re.search(r"^\d\.\d+$", finished.stderr, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("work", ["sort", "count", "join"])
def test_the_java_benchmarks_run_the_iterations_that_are_asked_for(work: str, tmp_path: Path) -> None:
    if shutil.which("javac") is None:
        pytest.skip("no javac here")
    subprocess.run(["javac", "-d", tmp_path, EXAMPLES / "java" / "Benchmarks.java"], check=True)
    command = ["java", "-Xint", "-cp", str(tmp_path), "Benchmarks", work, "1", "2"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == f"{work}: 3 iterations\n"
