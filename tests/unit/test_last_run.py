"""What `run` remembers of the last run: one small file that may be missing, damaged or out of reach."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.model.result import Score
from cachegrind_bench.usecases.last_run import remembered
from tests.unit.samples import HOSTILE, benchmark, failed_benchmark, result

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Benchmark

PROJECT = Path("/home/mira/words")


def cost(score: int, name: str = "sieve", **changes: object) -> Benchmark:
    return benchmark(id=name, score=Score(model="l1+5ll+30ram", value=score), **changes)


def changes(tmp_path: Path, *benchmarks: Benchmark, project: Path = PROJECT) -> dict[str, Fraction]:
    found = remembered(result(*benchmarks), project, {"XDG_CACHE_HOME": str(tmp_path)})
    return {name: since.change for name, since in found.items()}


def test_each_run_is_compared_with_the_one_before_it(tmp_path: Path) -> None:
    assert changes(tmp_path, cost(1_000)) == {}
    assert changes(tmp_path, cost(1_100), cost(500, HOSTILE)) == {"sieve": Fraction(1, 10)}
    assert changes(tmp_path, cost(1_100), failed_benchmark(id=HOSTILE)) == {"sieve": 0}
    assert changes(tmp_path, cost(250, HOSTILE)) == {HOSTILE: Fraction(-1, 2)}


def test_other_projects_keys_models_and_layouts_do_not_compare(tmp_path: Path) -> None:
    changes(tmp_path, cost(1_000))
    assert changes(tmp_path, cost(2_000), project=Path("/elsewhere")) == {}
    for other in (cost(2_000, key="other"), benchmark(score=Score(model="ir", value=2_000))):
        assert changes(tmp_path, other) == {}
        assert changes(tmp_path, cost(1_000)) == {}
    assert changes(tmp_path, cost(1_000)) == {"sieve": 0}


def test_where_it_is_follows_the_environment(tmp_path: Path) -> None:
    for environ in ({"HOME": str(tmp_path)}, {"HOME": str(tmp_path), "XDG_CACHE_HOME": "relative"}):
        remembered(result(), PROJECT, environ)
        assert (tmp_path / ".cache/cg-bench/last-runs.json").exists()
    assert remembered(result(), PROJECT, {}) == {}
    assert remembered(result(), PROJECT, {"HOME": "relative"}) == {}


@pytest.mark.parametrize("damage", [b"", b'{"x": 1}', b"\xff"])
def test_a_damaged_file_is_replaced(tmp_path: Path, damage: bytes) -> None:
    file = tmp_path / "cg-bench/last-runs.json"
    file.parent.mkdir()
    file.write_bytes(damage)
    assert changes(tmp_path, cost(1_000)) == {}
    assert changes(tmp_path, cost(1_000)) == {"sieve": 0}


@pytest.mark.parametrize("kind", ["folder", "no folder"])
def test_what_cannot_be_used_is_left_alone_and_fails_nothing(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "cg-bench/last-runs.json"
    if kind == "no folder":
        file.parent.write_bytes(b"mine")
    else:
        file.parent.mkdir()
        file.mkdir()
    for _ in range(2):
        assert changes(tmp_path, cost(1_000)) == {}


def test_what_was_not_measured_for_longest_is_forgotten_first(tmp_path: Path) -> None:
    changes(tmp_path, cost(1, "first"), cost(1, "second"))
    changes(tmp_path, cost(1, "first"))
    changes(tmp_path, *(cost(1, str(number)) for number in range(1_999)))
    assert changes(tmp_path, cost(1, "first")) == {"first": 0}
    assert changes(tmp_path, cost(1, "second")) == {}
    assert (tmp_path / "cg-bench/last-runs.json").stat().st_size < 400_000
