"""Real pairs: a change of 0.1 %, 1 % or 10 %, planted in one known function, is found, judged and blamed."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from tests.valgrind.pairs import ROWS, compared, measured
from tests.valgrind.programs import KINDS, Kind, build

if TYPE_CHECKING:
    from pathlib import Path

    from tests.valgrind.conftest import CgBench

pytestmark = [pytest.mark.pairs, pytest.mark.slow]

INTENDED_PPM = {"0.1": 1000, "1": 10_000, "10": 100_000}
# Compilers and libraries differ a little in what a turn of a loop costs, and in all the rest.
LEAST, MOST = Fraction(7, 10), Fraction(14, 10)


def counts_in(path: Path) -> dict[str, int]:
    (benchmark,) = json.loads(path.read_bytes())["benchmarks"]
    return dict(benchmark["counts"])


def blamed_in(benchmark: dict[str, Any]) -> str:
    """Return the named function, without the types that a generic one is for (newer Rust compilers write them)."""
    return str(benchmark["blamed"]["function"]).partition("::<")[0]


def assert_adds_up(explanation: dict[str, Any], base: Path, candidate: Path) -> None:
    """Check that rows and rest are the total, in each of the nine counts, and that the total is that of the files."""
    before, after = counts_in(base), counts_in(candidate)
    total, rows = explanation["total"]["delta"], explanation["functions"]
    assert 0 < len(rows) <= ROWS
    assert total == {event: after[event] - before[event] for event in before}
    parts = [row["delta"] for row in [*rows, explanation["rest"]]]
    assert total == {event: sum(part[event] for part in parts) for event in before}


@pytest.fixture
def pair(cg_bench: CgBench, tmp_path: Path, kind: Kind, share: str) -> tuple[Path, Path]:
    """Return two result files, of a program without and with a planted change, each built in its own folder.

    The names of the folders are equally long: see `some_place` in test_same.
    """
    base = build(kind, tmp_path / "without")
    candidate = build(kind, tmp_path / "planted", kind.turns[share])
    return measured(cg_bench, base, tmp_path / "base.json"), measured(cg_bench, candidate, tmp_path / "candidate.json")


@pytest.mark.parametrize("share", INTENDED_PPM)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_planted_slowdown_is_a_regression_of_its_size_with_its_function_named(
    cg_bench: CgBench, pair: tuple[Path, Path], kind: Kind, share: str
) -> None:
    finished, document = compared(cg_bench, *pair)
    (benchmark,) = document["benchmarks"]
    assert (finished.code, document["verdict"], benchmark["state"]) == (1, "regression", "regression")
    assert LEAST <= Fraction(benchmark["change_ppm"]["score"], INTENDED_PPM[share]) <= MOST
    assert blamed_in(benchmark) == kind.function
    assert_adds_up(benchmark["explanation"], *pair)

    base, candidate = pair
    finished, document = compared(cg_bench, candidate, base)
    (benchmark,) = document["benchmarks"]
    assert (finished.code, document["verdict"], benchmark["state"]) == (0, "improvement", "improvement")
    assert blamed_in(benchmark) == kind.function
    assert_adds_up(benchmark["explanation"], candidate, base)
