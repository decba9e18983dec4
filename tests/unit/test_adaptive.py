"""Which commits of a past are measured: few, but all steps are found."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cachegrind_bench.history.adaptive import Costs, difference, intervals, next_place

STEP = Fraction(2, 1000)


def measured(history: Sequence[int | None], required: set[int] | None = None) -> dict[int, Costs | None]:
    """Return what is known in the end, in the order of measuring."""
    known: dict[int, Costs | None] = {}
    ends = {0, len(history) - 1} | (required or set())
    while (place := next_place(len(history), ends, known, STEP)) is not None:
        assert place not in known
        cost = history[place]
        known[place] = None if cost is None else {"a": cost}
    return known


def found(known: dict[int, Costs | None]) -> list[int]:
    """Return the places of the steps that are narrowed down."""
    return [item.after for item in intervals(known) if item.difference > STEP and item.after == item.before + 1]


def test_six_steps_of_512_commits_are_found_by_at_most_90() -> None:
    places = [13, 14, 200, 311, 470, 500]
    history = [1_000_000 + 40_000 * sum(place >= step for step in places) for place in range(512)]
    known = measured(history)
    assert found(known) == places
    assert len(known) <= 90


def test_nothing_is_measured_between_equal_ends() -> None:
    assert list(measured([1000] * 100)) == [99, 0], "the newest first: if its suite is wrong, that shows at once"
    assert set(measured([1000] * 100, {50})) == {0, 50, 99}


def test_the_largest_difference_comes_first() -> None:
    history = [1000] * 10 + [1010] * 30 + [2000] * 10
    order = list(measured(history, {20}))
    assert 20 < order[3] < 49


def test_a_commit_that_cannot_be_measured_is_passed_by_its_neighbours() -> None:
    history: list[int | None] = [*[1000] * 20, *[2000] * 20]
    history[19] = history[20] = None
    known = measured(history)
    (step,) = (item for item in intervals(known) if item.difference > STEP)
    assert (step.before, step.after, step.untried) == (18, 21, ())


def test_the_oldest_commit_that_can_be_measured_is_looked_for() -> None:
    known = measured([None] * 37 + [1000] * 63)
    assert known[36] is None
    assert known[37] == {"a": 1000}
    assert len(known) < 12
    known = measured([1000] * 37 + [None] * 63)
    assert known[36] == {"a": 1000}
    assert known[37] is None


def test_where_nothing_can_be_measured_the_search_ends() -> None:
    assert measured([None] * 50) == {0: None, 49: None}


def test_a_benchmark_that_one_side_lacks_is_a_step() -> None:
    assert difference({"a": 1}, {}) == 1
    assert difference({"a": 1, "b": 5}, {"a": 1}) == 1
    assert difference({}, {}) == 0
    assert difference({"a": 100}, {"a": 101}) == difference({"a": 101}, {"a": 100}) == Fraction(1, 100)


@given(
    st.lists(st.one_of(st.none(), st.sampled_from([1000, 1001, 1100, 1300])), min_size=1, max_size=40),
    st.sets(st.integers(0, 39)),
)
def test_every_difference_is_narrowed_down_as_far_as_it_can_be(history: list[int | None], extra: set[int]) -> None:
    known = measured(history, {place for place in extra if place < len(history)})
    good = sorted(place for place, costs in known.items() if costs is not None)
    for before, after in pairwise(good):
        one, other = history[before], history[after]
        assert one is not None
        assert other is not None
        if abs(one - other) > 2:
            assert all(history[place] is None for place in range(before + 1, after)), "what is between was tried"
            assert all(place in known for place in range(before + 1, after))
