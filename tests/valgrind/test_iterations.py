"""What is reported of one iteration is what it costs, whatever its framework's function does once, before or in the loop.

Each test plants so many rounds of a loop in each iteration, and ten times the preparation: the rounds are what must be found.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT
from tests.unit.repositories import Repository, git_environment
from tests.valgrind.test_harnesses import STATE, go_on_path, measured, node_packages

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench

__all__ = ["go_on_path", "node_packages"]  # fixtures
Benchmarks = dict[str, dict[str, Any]]


def planted(cg_bench: CgBench, entry: str, rounds: tuple[int, int], *options: str) -> tuple[Benchmarks, Benchmarks]:
    """Return what is measured with these rounds in each iteration, and little or ten times as much preparation."""
    found = [
        measured(cg_bench, entry, f"{number}.json", "--env", f"WORK={number}", "--env", f"SETUP={setup}", *options)[1]
        for number, setup in zip(rounds, (20_000, 200_000), strict=True)
    ]
    return found[0], found[1]


def changes(pair: tuple[Benchmarks, Benchmarks]) -> dict[str, float]:
    """Return how many instructions an iteration of each benchmark takes more; results of both must compare."""
    before, after = pair
    assert list(before) == list(after)
    for name, item in before.items():
        assert (item["iterations"], item["key"]) == (after[name]["iterations"], after[name]["key"]), name
    return {name: (after[name]["counts"]["Ir"] - item["counts"]["Ir"]) / 1000 for name, item in before.items()}


def assert_planted(found: Mapping[str, float], rounds: int, within: float = 0.01) -> None:
    """Check that what each benchmark executes more is what so many rounds cost, a few instructions each."""
    of_a_round = round(min(found.values()) / rounds)
    assert 1 < of_a_round < 20, found
    for name, more in found.items():
        assert more == pytest.approx(rounds * of_a_round, rel=within), name


@pytest.mark.slow
def test_what_google_benchmark_does_once_is_not_in_an_iteration(cg_bench: CgBench, compile_c: CompileC) -> None:
    # With 1,650 rounds a thousand iterations stay below what is counted of a new benchmark, with 1,750 they do not.
    found = planted(cg_bench, f"google-benchmark = '{compile_c(STATE, '-O1')}'", (1650, 1750))
    assert {name: item["iterations"] for name, item in found[1].items()} == {
        "plain/8": 1000,
        "paused": 10,
        "once": 1000,
        "grows": 1000,
    }
    assert {item["key_fields"]["measured"] for item in found[0].values()} == {"iterations/4 1000", "iterations/4 10"}
    assert_planted(changes(found), 100)
    shutil.rmtree(cg_bench.cwd / ".cg-bench")  # which remembers the numbers
    entry = f"google-benchmark = '{compile_c(STATE, '-O1')}'"
    other = measured(cg_bench, entry, "other.json", "--env", "WORK=1750", "-k", "grows")[1]["grows"]
    assert other["iterations"] == 100
    files = [str(cg_bench.folder / name) for name in ("1650.json", "other.json")]
    told = cg_bench("diff", "--benchmark", "grows", *files)
    assert told.code == 3, told.stdout
    assert "grows" in told.stdout
    assert "of the base 1,000 iterations were counted, and 100 here" in told.stdout
    shutil.rmtree(cg_bench.cwd / ".cg-bench")
    kept = [cg_bench("run", "--cached", "-k", "plain").stdout for _ in range(2)]
    assert ["re-used" in text for text in kept] == [False, True], kept
    checked = cg_bench("check", "--base", files[0], "--env", "WORK=1750", "-k", "grows")
    assert "regression  grows" in checked.stdout


@pytest.mark.slow
def test_every_command_counts_as_many_iterations_as_what_it_compares_with(cg_bench: CgBench, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository", git_environment(tmp_path))
    repository.environ["PATH"] = os.environ["PATH"]
    for work in (1650, 1750):  # of which the second would be counted 100 times
        setup = f"cc -O1 -g -DWORK={work} {STATE} -o bench"
        text = f"[[benchmark]]\ngoogle-benchmark = './bench'\nsetup = '{setup}'\n"
        (repository.path / "cg-bench.toml").write_text(text, encoding="utf-8")
        repository.git("add", ".")
        repository.commit(f"WORK={work}")

    def stored(name: str, *words: str) -> set[int]:
        store = f"file:{tmp_path / name}"
        done = cg_bench(*words, "-k", "plain", "--store", store, cwd=repository.path)
        assert done.code == 0, done.stderr
        exported = cg_bench("history", "export", "--format", "jsonl", "--store", store, cwd=repository.path).stdout
        return set(map(int, re.findall(r'"iterations": ?(\d+)', exported)))

    kept = tmp_path / "kept"
    assert cg_bench("ab", "HEAD~1", "-k", "plain", "--keep", str(kept), cwd=repository.path).code == 1
    results = [json.loads(path.read_bytes()) for path in sorted(kept.glob("*.json"))]
    assert [result["benchmarks"][0]["iterations"] for result in results] == [1000, 1000]
    assert stored("backfilled", "backfill", "HEAD~1..HEAD") == {
        100
    }  # that of the newest commit, which is measured first
    for revision in ("HEAD~1", "main"):
        repository.git("checkout", "--quiet", revision)
        shutil.rmtree(repository.path / ".cg-bench", ignore_errors=True)
        assert stored("saved", "run", "--save") == {1000}


@pytest.mark.slow
@pytest.mark.usefixtures("go_on_path")
def test_what_a_benchmark_of_go_does_once_is_not_in_an_iteration(cg_bench: CgBench) -> None:
    shutil.copytree(ROOT / "tests" / "data" / "go", cg_bench.cwd, dirs_exist_ok=True)
    found = planted(cg_bench, "go = './...'", (1600, 1700), "-k", "not Paused")
    assert {item["iterations"] for item in found[1].values()} == {1000}
    assert_planted(changes(found), 100)
    assert "BenchmarkReset/sub/100" in found[0]
    told = cg_bench("diff", *(str(cg_bench.folder / f"{rounds}.json") for rounds in (1600, 1700)))
    assert re.search(r"regression  BenchmarkUnreset .*\bwork\b", told.stdout)
    output = cg_bench.folder / "paused.json"
    done = cg_bench("run", "-o", str(output), "-k", "Paused", "--env", "SETUP=1000")
    (paused,) = json.loads(output.read_bytes())["benchmarks"]
    # Right or refused: of the stops of Go's clock Callgrind sees some only (with Go 1.26 half).
    if paused["status"] == "ok":
        assert paused["counts"]["Ir"] / 1000 == pytest.approx(6010, rel=0.01)
    else:
        assert "the benchmark's clock was seen to stop" in done.stderr + paused["error"]
