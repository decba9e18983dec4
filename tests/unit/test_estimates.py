"""Estimates of the time: their parts, the ranges of a change, and what a comparison says of them."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from cachegrind_bench.compare.estimates import EstimateChange, estimated
from cachegrind_bench.model.metrics import EVERY_EVENT, Branches, FunctionCost, Profile, estimate, without
from cachegrind_bench.model.result import Benchmark
from cachegrind_bench.render.comparison.remarks import remarks
from tests.unit.comparing import counts, difference, gates, measured
from tests.unit.samples import VECTOR


def side(ir: int = 1_000_000, wrong: int = 0, **changes: Any) -> Benchmark:
    """Return a benchmark with so many instructions and mispredicted branches."""
    return measured(value=counts(ir), branches=Branches(Bc=wrong, Bcm=wrong, Bi=0, Bim=0), **changes)


def change(base: Benchmark, candidate: Benchmark) -> EstimateChange:
    found = estimated(base, candidate)
    assert found is not None
    return found


def said(base: Benchmark, candidate: Benchmark) -> str:
    return "; ".join(remarks(difference(base, candidate), gates()))


def test_the_estimate_weighs_instructions_mispredictions_and_misses() -> None:
    branches = Branches(Bc=100, Bcm=7, Bi=5, Bim=3)
    misses = VECTOR.I1mr + VECTOR.D1mr + VECTOR.D1mw
    assert estimate(VECTOR, branches) == VECTOR.Ir + 80 * 7 + 10 * misses + 100 * VECTOR.ram_hits


def test_the_parts_add_up_and_the_first_moved_most() -> None:
    found = change(side(wrong=100), side(1_001_000, wrong=1000))
    assert (found.base, found.candidate, sum(found.terms.values())) == (1_008_000, 1_081_000, 73_000)
    assert next(iter(found.terms)) == "mispredicted branches"


@pytest.mark.parametrize("ir", [600_000, 900_000, 990_000, 1_010_001, 1_100_000, 1_900_000])
@pytest.mark.parametrize("fields", [{}, {"key_fields": {"python": "3.11.7"}}])
def test_the_range_of_most_holds_that_of_half_which_holds_about_the_estimate(ir: int, fields: dict[str, Any]) -> None:
    found = change(side(), side(ir, **fields))
    assert found.most is not None
    assert found.half is not None
    ends = [found.most.low, found.half.low, found.relative, found.half.high, found.most.high]
    assert all(low <= high for low, high in pairwise(ends))


def test_there_and_back_again_are_each_others_inverse() -> None:
    up, down = change(side(), side(1_100_000)), change(side(1_100_000), side())
    assert up.most is not None
    assert down.most is not None
    assert float((1 + up.most.high) * (1 + down.most.low)) == pytest.approx(1)


def test_python_varies_less_than_native_code() -> None:
    native, python = change(side(), side(1_100_000)), change(side(), side(1_100_000, key_fields={"python": "3"}))
    assert python.most is not None
    assert native.most is not None
    assert python.most.high - python.most.low < native.most.high - native.most.low


@pytest.mark.parametrize("candidate", [side(1_009_000), side(2_100_000), side(400_000), side(1_100_000, wrong=0)])
def test_what_is_unlike_all_changes_that_were_composed_has_no_range(candidate: Benchmark) -> None:
    base = side(wrong=1_000) if candidate.counts == side(1_100_000).counts else side()
    found = change(base, candidate)
    assert (found.half, found.most) == (None, None)
    assert len(found.terms) == 4


@pytest.mark.parametrize(("base", "candidate"), [(measured(), side()), (side(), measured()), (None, side())])
def test_a_side_without_branches_has_no_estimate(base: Benchmark | None, candidate: Benchmark) -> None:
    assert estimated(base, candidate) is None


def test_a_comparison_says_how_the_estimate_moved_with_its_ranges() -> None:
    assert said(side(), side(1_100_000)) == (
        "estimate +10 % (instructions +10 %): changes like this moved the time by +4.4 to +14 % in half of all cases, by -2.3 to +35 % in nine of ten"
    )


def test_a_comparison_says_which_parts_moved_the_estimate_largest_first() -> None:
    fewer = said(side(wrong=2000), side(1_030_000))
    assert fewer.startswith("estimate -11 % (mispredicted branches -14 %, instructions +2.6 %): ")
    assert (
        said(side(wrong=2000), side(1_100_000)) == "estimate -5.2 % (mispredicted branches -14 %, instructions +8.6 %)"
    )
    assert said(side(), side(wrong=2000)).startswith("estimate +16 % (mispredicted branches +16 %): ")


def test_what_hardly_moved_is_not_mentioned() -> None:
    assert said(side(), side(1_000_001)) == ""
    assert abs(change(side(), side(1_000_001)).relative) < Fraction(1, 1000)


def test_no_more_branches_are_left_than_were_executed() -> None:
    def profile(**branches: int) -> Profile:
        row = tuple({"Ir": 10, **branches}.get(name, 0) for name in EVERY_EVENT)
        return Profile(events=EVERY_EVENT, functions=(FunctionCost("f.c", "f", row),))

    empty = Profile(events=EVERY_EVENT, functions=())
    assert without(profile(Bc=3, Bcm=2), empty).branches() == Branches(Bc=3, Bcm=2, Bi=0, Bim=0)
    body = Profile(events=EVERY_EVENT, functions=tuple(row for row in profile(Bc=9, Bcm=5, Bi=4, Bim=4).functions))
    left = without(body, Profile(events=EVERY_EVENT, functions=(FunctionCost("f.c", "f", (5, *[0] * 8, 8, 1, 3, 0)),)))
    assert left.branches() == Branches(Bc=1, Bcm=1, Bi=1, Bim=1)
