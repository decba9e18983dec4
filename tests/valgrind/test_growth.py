"""Sizes, measured for real: in a suite whose results are stored, compared and followed, and in pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.history.growth import EXPONENT
from tests.projects import Project
from tests.unit.repositories import Repository, git_environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.valgrind, pytest.mark.slow]

SUITE = """\
warmup = 0

[[benchmark]]
id = "tally"
setup = "gcc -g -O1 -o tally tally.c"
command = ["./tally", "{size}"]
sizes = "50..800x2"
predict = 100_000
"""
# A search through all that was seen costs less than half a percent at these sizes.
TALLY = """
#include <stdlib.h>
__attribute__((noinline)) static void search(int n) { for (int i = 0; i < n; i++) %s; }
int main(int c, char **v) {
    int n = atoi(v[c - 1]);
    for (volatile long i = 0; i < 4000L * n; i++);
    search(n);
}
"""
AT_ONCE, ONE_BY_ONE = "for (volatile int j = 0; j < 20; j++)", "for (volatile int j = 0; j < i; j += 20)"

MARKED = """
import pytest

@pytest.mark.cg_bench(sizes="50..400x2", growth="n log n")
def test_search(benchmark, size):
    found = list(range(size))
    benchmark(lambda: [number in found for number in range(size, 2 * size)])
"""


def cg_bench(repository: Repository, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "cachegrind_bench", *words]
    environ = {**repository.environ, "PATH": os.environ.get("PATH", os.defpath)}
    done = subprocess.run(command, cwd=repository.path, env=environ, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def committed(repository: Repository, day: int, search: str) -> str:
    (repository.path / "tally.c").write_text(TALLY % search)
    repository.git("add", "tally.c", "cg-bench.toml")
    return repository.commit(f"commit {day}", GIT_COMMITTER_DATE=f"{1_700_000_000 + 86_400 * day} +0000")


def test_a_suite_with_sizes_is_stored_compared_and_followed(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository", git_environment(tmp_path))
    (repository.path / "cg-bench.toml").write_text(SUITE)
    for day, search in enumerate((AT_ONCE, ONE_BY_ONE)):
        committed(repository, day, search)
        code, said = cg_bench(repository, "run", "--save", "--with-profile")
        assert code == 0, said
        assert "tally: grows with n" in said
        assert "Ir at 100,000" in said

    code, said = cg_bench(repository, "diff", "HEAD~1", "HEAD")
    assert code == 1, said
    assert "grows with n², which exceeds the n of the base" in said
    assert "search (tally.c) grows with n²" in said
    assert "at 100,000 it is predicted to take" in said
    code, said = cg_bench(repository, "diff", "HEAD~1", "HEAD", "--format", "json")
    found = {item["id"]: item for item in json.loads(said)["benchmarks"]}
    assert {name: item["state"] for name, item in found.items()} == {
        **{f"tally[size={size}]": "unchanged" for size in (50, 100, 200, 400, 800)},
        "tally (growth)": "regression",
    }
    assert [one["growth"] for one in found["tally (growth)"]["growth"]["candidate"]["functions"]][:2] == ["n", "n²"]

    code, said = cg_bench(repository, "trend", "--json", "trend.json", "--html", "trend.html")
    assert code == 0, said
    models = {
        item["id"]: item["model"] for item in json.loads((repository.path / "trend.json").read_bytes())["benchmarks"]
    }
    assert models["tally (growth)"] == EXPONENT
    assert (repository.path / "trend.html").read_text().count('<figure class="curves">') == 1


def test_tests_with_sizes_are_measured_and_their_growth_is_reported(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(MARKED)
    found = project.measure()
    assert [item["scale"]["size"] for item in found.values()] == [50, 100, 200, 400]
    output = tmp_path / "results" / "result.json"
    done = subprocess.run(
        [sys.executable, "-m", "cachegrind_bench", "show", str(output)], capture_output=True, text=True, check=True
    )
    assert "test_it.py::test_search: grows with n²" in done.stdout
    assert "exceeds the bound n log n" in done.stdout
