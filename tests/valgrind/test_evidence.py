"""`--evidence`: `check`, `ab` and `bisect` explain by calls what regressed, and nothing else is executed once more."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT
from tests.unit.repositories import Repository, git_environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.valgrind

CAUSE = re.compile(r"contains \(main\.c:\d+\) is called 3,000 instead of 503 times, from count \(main\.c:\d+\)")
BUILD = "cc -O1 -g -fno-builtin -o program main.c"
SUITE = f"""\
[[benchmark]]
id = "program"
setup = "{BUILD}"
command = "./program"

[[benchmark]]
id = "same"
command = "/bin/true"
"""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Two commits, of which the second calls a function more often."""
    found = Repository(tmp_path / "repository", git_environment(tmp_path))
    source = found.path / "main.c"
    shutil.copyfile(ROOT / "tests" / "data" / "native" / "calls.c", source)
    (found.path / "cg-bench.toml").write_text(SUITE)
    (found.path / ".gitignore").write_text("program\n*.json\n")
    found.git("add", ".")
    found.commit("base")
    source.write_text(source.read_text().replace("WORDS 503", "WORDS 3000"))
    found.git("add", ".")
    found.commit("more words")
    return found


def run(repository: Repository, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cachegrind_bench", *words]
    return subprocess.run(
        command, cwd=repository.path, env=repository.environ, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_ab_explains_what_regressed_and_measures_nothing_else_again(repository: Repository) -> None:
    worse = run(repository, "ab", "HEAD~1", "HEAD", "--json", "report.json")
    assert worse.returncode == 1, worse.stderr
    assert CAUSE.search(worse.stdout.splitlines()[-1])
    assert "executed" not in worse.stdout
    assert str(repository.path) not in worse.stdout  # files of the worktree are those of the project
    assert "/tree/" not in worse.stdout
    _first, again = worse.stderr.split("cg-bench: again, with calls: program\n")
    assert "same" not in again
    assert "again" not in run(repository, "ab", "HEAD", "HEAD~1").stderr


@pytest.mark.slow
def test_ab_records_calls_where_allocations_are_held(repository: Repository) -> None:
    source = repository.path / "main.c"
    text = source.read_text().replace("int main", "void *volatile kept;\nint main", 1)
    source.write_text(re.sub(r"(int main\(.*\) \{)", r"\1 kept = malloc(7);", text))
    assert "kept = malloc(7)" in source.read_text()
    found = run(repository, "ab", "HEAD", "--threshold=9%", "--threshold-allocations=program=0%", "--evidence=never")
    assert found.returncode == 1, found.stdout + found.stderr
    assert "1 more allocation (" in found.stdout
    assert "), from main (main.c:" in found.stdout
    assert "and no more frees; --threshold-allocations is 0 %" in found.stdout.splitlines()[-1]


def test_check_builds_the_base_to_explain_a_regression(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "HEAD~1")
    command = ("--prepare", BUILD, "--", "./program")
    assert run(repository, "run", "-o", "base.json", *command).returncode == 0
    good = run(repository, "check", "--base", "base.json", *command)
    assert (good.returncode, "Callgrind" in good.stderr) == (0, False)
    repository.git("checkout", "--quiet", "main")
    bad = run(repository, "check", "--base", "base.json", *command)
    assert bad.returncode == 1, bad.stderr
    assert CAUSE.search(bad.stdout.splitlines()[-1])
    assert "executed" not in bad.stdout


def test_check_goes_by_the_verdict_where_the_base_cannot_be_built(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "HEAD~1")
    assert run(repository, "run", "-q", "-o", "base.json", "--prepare", BUILD, "--", "./program").returncode == 0
    repository.git("checkout", "--quiet", "main")
    subprocess.run(BUILD.split(), cwd=repository.path, check=True)
    bad = run(repository, "check", "--base", "base.json", "--", "./program")
    assert (bad.returncode, CAUSE.search(bad.stdout)) == (1, None)
    assert "warning: calls of base.json could not be recorded: " in bad.stderr
    assert "Callgrind" not in run(repository, "check", "-q", "--base", "base.json", "--", "./program").stderr


def test_evidence_of_another_execution_is_said(repository: Repository, tmp_path: Path) -> None:
    state = tmp_path / "state"
    program = f"echo >>{state}; for line in $(cat {state}); do :; done; while read line; do :; done <{state}\n"
    for number in (1, 20):
        (repository.path / "grows.sh").write_text(program + f"i=0; while [ $i -lt {number}0 ]; do i=$((i+1)); done\n")
        repository.git("add", ".")
        repository.commit("grows")
    found = run(repository, "ab", "HEAD~1", "HEAD", "--", "/bin/sh", "grows.sh")
    assert found.returncode == 1, found.stderr
    assert "when calls were recorded, the program executed" in found.stdout
