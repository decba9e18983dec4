"""A real history of a small repository, measured commit by commit: the report names the commits that changed the cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.unit.repositories import Repository, git_environment

pytestmark = [pytest.mark.valgrind, pytest.mark.slow]

COMMITS = 64
# By the number of the commit: what the cost becomes, in thousandths.
STEPS = {11: 1030, 26: 1045, 41: 1020, 52: 1080}
REGRESSIONS, IMPROVEMENT = (11, 26, 52), 41
CREEP_FROM, CREEP_TO, CREEP_STEP = 18, 58, 0.0008

WORK = r"""
#include <stdio.h>
int main(int argc, char **argv) {
    FILE *file = fopen(argv[1], "r");
    long rounds = 0;
    if (argc < 2 || !file || fscanf(file, "%ld", &rounds) != 1) return 1;
    volatile long sum = 0;
    for (long i = 0; i < rounds; i++) sum += i;
    return 0;
}
"""
SUITE = """\
warmup = 0

[[benchmark]]
id = "steps"
command = ["{program}", "steps.txt"]

[[benchmark]]
id = "creep"
command = ["{program}", "creep.txt"]

[[benchmark]]
id = "still"
command = ["{program}", "still.txt"]
"""


def cg_bench(repository: Repository, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "cachegrind_bench", *words]
    environ = {**repository.environ, "PATH": os.environ.get("PATH", os.defpath)}
    done = subprocess.run(command, cwd=repository.path, env=environ, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repository, list[str]]:
    """Return a repository whose every commit is measured and stored, and the commits."""
    folder = tmp_path_factory.mktemp("history")
    repository = Repository(folder / "repository", git_environment(folder))
    source, program = folder / "work.c", folder / "work"
    source.write_text(WORK)
    subprocess.run(["gcc", "-O1", "-o", str(program), str(source)], check=True)
    (repository.path / "cg-bench.toml").write_text(SUITE.format(program=program))
    (repository.path / "still.txt").write_text("20000\n")
    level, shas = 1000, list[str]()
    for number in range(COMMITS):
        level = STEPS.get(number, level)
        crept = min(max(number - CREEP_FROM, 0), CREEP_TO - CREEP_FROM) * CREEP_STEP
        (repository.path / "steps.txt").write_text(f"{200 * level}\n")
        (repository.path / "creep.txt").write_text(f"{round(200_000 * (1 + crept))}\n")
        repository.git("add", ".")
        shas.append(
            repository.commit(f"commit {number}", GIT_COMMITTER_DATE=f"{1_700_000_000 + 86_400 * number} +0000")
        )
        code, told = cg_bench(repository, "run", "-q", "--save", "--cached")
        assert code == 0, told
    return repository, shas


def report(repository: Repository, *words: str) -> dict[str, Any]:
    code, told = cg_bench(repository, "trend", "--json", "trend.json", *words)
    assert code == 0, told
    found: dict[str, Any] = json.loads((repository.path / "trend.json").read_bytes())
    return found


def test_the_report_names_exactly_the_commits_that_changed_the_cost(history: tuple[Repository, list[str]]) -> None:
    repository, shas = history
    findings = report(repository)["findings"]
    found = sorted(
        (item["benchmark"], item["kind"], tuple(item["suspects"])) for item in findings if item["kind"] != "creep"
    )
    assert found == sorted(
        [
            *(("steps", "regression", (shas[number],)) for number in REGRESSIONS),
            ("steps", "improvement", (shas[IMPROVEMENT],)),
        ]
    )
    (crept,) = [item for item in findings if item["kind"] == "creep"]
    assert crept["benchmark"] == "creep"
    assert all(item["confirmed"] for item in findings)


def test_the_page_names_them_too_and_stands_alone(history: tuple[Repository, list[str]]) -> None:
    repository, shas = history
    code, told = cg_bench(repository, "trend", "--html", "trend.html", "--markdown", "trend.md")
    assert code == 0, told
    for name in ("trend.html", "trend.md"):
        text = (repository.path / name).read_text()
        for number in (*REGRESSIONS, IMPROVEMENT):
            assert shas[number][:7] in text


def test_a_finding_between_measured_commits_is_narrowed_down(history: tuple[Repository, list[str]]) -> None:
    repository, shas = history
    store = repository.path.parent / "thin"
    kept = [number for number in range(COMMITS) if number % 6 == 0 or number > 56]
    code, told = cg_bench(repository, "history", "sync", "--from", "file:.cg-bench", "--to", f"file:{store}")
    assert code == 0, told
    for path in store.glob("runs/*/*/*.json"):
        if shas.index(json.loads(path.read_bytes())["commit"]["sha"]) not in kept:
            path.unlink()
    findings = report(repository, "--store", f"file:{store}", "--benchmark", "steps")["findings"]
    item = next(item for item in findings if shas[26] in item["suspects"])
    assert item["suspects"] == shas[25:31]
    code, told = cg_bench(repository, "bisect", item["id"], "--store", f"file:{store}", "--benchmark", "steps")
    assert code == 0, told
    assert f"it is\n  {shas[26][:12]}" in told
    assert "commit 26" in told
    assert "regression: steps" in told  # and why, by calls
    assert repository.git("status", "--porcelain", "--untracked-files=no") == ""
    # The benchmark has another name since, and is in no configuration by that.
    url = f"file:{store}"
    assert cg_bench(repository, "history", "rename", "--store", url, "steps", 'it\'s "odd"')[0] == 0
    findings = report(repository, "--store", url, "--benchmark", "it's*")["findings"]
    item = next(item for item in findings if shas[26] in item["suspects"])
    for command in ((), ("--", str(repository.path.parent / "work"), "steps.txt")):
        code, told = cg_bench(repository, "bisect", item["id"], "--store", url, *command)
        assert code == 0, told
        assert f"it is\n  {shas[26][:12]}" in told
