"""`pytest --cg-bench --cg-bench-python-profile`: which Python functions a benchmark calls, how often, and at what cost."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.model.codec import decode
from tests.suites import suite_python
from tests.valgrind.measuring import maps_of

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.model.result import Benchmark

_WORK = """
def leaf(n):
    return [i * i for i in range(n)]

def twice(n):
    return leaf(n) + leaf(n)

def rec(n):
    return 1 if n < 2 else rec(n - 1) + rec(n - 2)

def key(x):
    return -x

def sorts(xs):
    return sorted(xs, key=key)

def deep(n):
    return n and deep2(n - 1)

def deep2(n):
    return n and deep(n - 1)
"""
_TESTS = """
import pytest, work
def test_twice(benchmark): benchmark(work.twice, 20)
def test_rec(benchmark): benchmark(work.rec, 7)
def test_sorts(benchmark): benchmark(work.sorts, list(range(15)))
def test_setup(benchmark): benchmark.pedantic(work.leaf, setup=lambda: ((5,), {}))
def test_deep(benchmark): benchmark(work.deep, 150)
@pytest.mark.benchmark
def test_whole(): work.twice(10)
@pytest.mark.benchmark
def test_empty(): pass
def test_wrong(benchmark): benchmark(work.nothing)
"""


class Project:
    """A package with benchmarks, and a Python that has perf trampolines."""

    def __init__(self, python: Path, base: Path) -> None:
        self.python, self.folder, self.results = python, base / "project", base / "results"
        self.folder.mkdir()
        self.results.mkdir()
        (self.folder / "pytest.ini").write_text("[pytest]\n")
        (self.folder / "work.py").write_text(_WORK)
        (self.folder / "test_it.py").write_text(_TESTS)

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        argv = [
            str(self.python),
            "-W",
            "ignore",
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "--cg-bench",
            "--cg-bench-jobs=1",
            *options,
        ]
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return subprocess.run(argv, cwd=self.folder, env=kept, capture_output=True, text=True, check=False)

    def profiled(self, name: str, *options: str) -> dict[str, Benchmark]:
        out = self.results / name
        done = self.run("--cg-bench-python-profile", f"--cg-bench-output={out}", *options)
        assert done.returncode == 1, done.stdout + done.stderr  # test_wrong fails
        assert "profiling Python functions under Callgrind, again for deep calls" in done.stdout
        return {item.id.rpartition("::")[2]: item for item in decode(out.read_bytes(), name).benchmarks}


@pytest.mark.slow
def test_calls_and_costs_of_each_python_function(tmp_path: Path) -> None:
    project = Project(suite_python("3.13"), tmp_path)
    found = project.profiled("first.json", "--cg-bench-jobs=2")
    profiles = {name: item.python for name, item in found.items() if item.python is not None}
    calls = {
        name: {row.function.name: row.calls for row in profile.costs() if row.function.file == "work.py"}
        for name, profile in profiles.items()
    }
    assert calls == {
        "test_twice": {"leaf": 2, "twice": 1},
        "test_rec": {"rec": 41},
        "test_sorts": {"key": 15, "sorts": 1},
        "test_setup": {"leaf": 1},
        "test_deep": {"deep": 76, "deep2": 75},
        "test_whole": {"leaf": 2, "twice": 1},
        "test_empty": {},
    }
    for profile in profiles.values():
        assert sum(path.ir for path in profile.paths) + profile.native == profile.total
        assert not profile.cut
        assert not [row for row in profile.costs() if "cachegrind_bench" in row.function.file]
    assert profiles["test_empty"].total == 0
    (leaf,) = [row.function for row in profiles["test_setup"].costs()]
    assert (leaf.file, leaf.line) == ("work.py", 2)
    assert maps_of(project.folder) == []

    # They do not depend on the others, and counts not on them.
    again = project.profiled("again.json", "-k", "deep or wrong")
    assert found["test_deep"].python == again["test_deep"].python is not None
    plain = project.run(f"--cg-bench-output={project.results / 'plain.json'}", "-k", "deep")
    assert plain.returncode == 0, plain.stdout
    (counted,) = decode((project.results / "plain.json").read_bytes(), "plain").benchmarks
    assert (counted.counts, counted.key) == (found["test_deep"].counts, found["test_deep"].key)

    (project.folder / "work.py").write_text(_WORK.replace("return -x", "x = x + 0\n    return -x"))
    worse = project.run(
        "--cg-bench-python-profile", f"--cg-bench-compare={project.results / 'first.json'}", "-k", "sorts"
    )
    assert worse.returncode == 1, worse.stdout
    assert "in Python: key, work.py:11" in worse.stdout


@pytest.mark.slow
def test_what_is_missing_is_reported_before_anything_runs(tmp_path: Path) -> None:
    done = Project(suite_python("3.11"), tmp_path).run("--cg-bench-python-profile")
    assert done.returncode == 4
    assert "--cg-bench-python-profile needs CPython 3.12 or newer" in done.stderr
    assert "test session starts" not in done.stdout
