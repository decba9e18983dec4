"""Memory layouts of benchmarks in pytest, measured for real."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects import Project

if TYPE_CHECKING:
    from pathlib import Path

THREAD = """
import json, pytest, threading
@pytest.fixture
def thread():
    end = threading.Event()
    waiting = threading.Thread(target=end.wait)
    waiting.start()
    yield
    end.set()
    waiting.join()
"""
SUITE = (
    THREAD
    + """
@pytest.fixture
def data(): return {str(i): [i / 3] * 20 for i in range(60)}
def test_dumps(benchmark, data): benchmark(json.dumps, data)
def test_here(benchmark, data, thread): benchmark(json.dumps, data)
@pytest.mark.benchmark
def test_whole(data): assert json.loads(json.dumps(data)) == data
def test_fails(benchmark): benchmark(lambda: 1 / 0)
"""
)


@pytest.mark.slow
def test_each_layout_repeats_exactly_and_the_first_is_the_one_without_the_option(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(SUITE)
    plain = project.measure(status=1)
    moved = project.measure("--cg-bench-layouts=3", status=1)
    project.write("[tool.cg-bench]\nlayouts = 3\n", "pyproject.toml")
    assert {name: item["runs"] for name, item in project.measure("--cg-bench-jobs=2", status=1).items()} == {
        name: item["runs"] for name, item in moved.items()
    }
    assert moved["test_fails"]["runs"] == []
    for name in ("test_dumps", "test_whole", "test_here"):  # the last one cannot be counted in a copy of its process
        runs = moved[name]["runs"]
        assert [run for run in runs if run["layout"] == 0] == plain[name]["runs"]
        assert {run["layout"] for run in runs} == {0, 1, 2}
        assert moved[name]["counts"] in [run["counts"] for run in runs]
        assert moved[name]["warnings"] == []
        instructions = {run["counts"]["Ir"] for run in runs}
        assert len(instructions) > 1  # the layouts do move something
        assert max(instructions) < 1.05 * min(instructions)


# Six warm-ups, two calls on a fresh heap and two that are counted; what comes after them is of another layout.
LATE = """
calls = []
def work():
    calls.append(1)
    assert len(calls) < 12
def test_late(benchmark): benchmark(work)
"""


@pytest.mark.slow
def test_further_layouts_begin_where_the_first_was_counted_and_one_that_fails_is_left_out(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(LATE)
    plain = project.measure()["test_late"]
    found = project.measure("--cg-bench-layouts=3")["test_late"]
    assert found["runs"] == plain["runs"]
    (warning,) = found["warnings"]
    assert warning.startswith("2 of its memory layouts could not be measured")


# Counted in its own process, as it has a thread; the first two counted calls differ, and later ones do not.
SECOND = (
    THREAD
    + """
calls = []
def work():
    calls.append(1)
    for _ in range(1000 * max(1, 12 - len(calls))): pass
def test_second(benchmark, thread):
    benchmark(work)
    with open("calls", "w") as file: print(len(calls), file=file)
"""
)


@pytest.mark.slow
def test_a_second_try_in_the_same_process_is_not_compared_with_the_first(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(SECOND)
    found = project.measure()["test_second"]
    assert (found["warnings"], len(found["runs"])) == ([], 1)
    # Six warm-ups, two on a fresh heap and two counted; then five, two and three.
    assert (project.folder / "calls").read_text() == "20\n"


@pytest.mark.parametrize("number", ["0", "65", "many"])
def test_a_number_of_layouts_that_cannot_be_is_refused(tmp_path: Path, number: str) -> None:
    project = Project(tmp_path)
    project.write(SUITE)
    done = project.run(f"--cg-bench-layouts={number}")
    assert done.returncode == 4
    assert f"--cg-bench-layouts '{number}' is not a number from 1 to 64" in done.stdout + done.stderr
