"""Which commits of a past are measured: few, but all steps are found."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cachegrind_bench.history.adaptive import Backfilled, Costs, Search, difference, intervals
from cachegrind_bench.render import listings

STEP = Fraction(2, 1000)


def measured(
    history: Sequence[int | None], required: set[int] | None = None, at_once: int = 1
) -> dict[int, Costs | None]:
    """Return what is known in the end, in the order of measuring; of several under way the first begun ends first."""
    search = Search(len(history), {0, len(history) - 1} | (required or set()), STEP, {})
    running: list[int] = []
    while True:
        while len(running) < at_once and (place := search.next()) is not None:
            assert place not in search.known
            assert place not in running
            running.append(place)
        if not running:
            return search.known
        done = running.pop(0)
        cost = history[done]
        search.finish(done, None if cost is None else {"a": cost})


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


def test_where_nothing_can_be_measured_a_few_are_tried() -> None:
    assert list(measured([None] * 50)) == [49, 0, 48, 46, 42, 34, 18]


def test_a_newest_commit_that_is_broken_does_not_end_the_search() -> None:
    history = [*[None] * 30, *[1000] * 10, *[2000] * 10, None]
    assert found(measured(history)) == [40]


def test_between_commits_that_cannot_be_measured_others_are_not_tried() -> None:
    history = [*[1000] * 400, *[None] * 300, *[2000] * 300]
    known = measured(history)
    (step,) = (item for item in intervals(known) if item.difference > STEP)
    assert (step.before, step.after) == (399, 700)
    assert len(known) < 30


def test_several_at_once_find_the_same_steps() -> None:
    places = [13, 14, 200, 311, 470, 500]
    history = [1_000_000 + 40_000 * sum(place >= step for step in places) for place in range(512)]
    for at_once in (2, 7, 100):
        assert found(measured(history, at_once=at_once)) == places
    assert len(measured(history, at_once=2)) <= 90


def test_a_benchmark_that_one_side_lacks_is_a_step() -> None:
    assert difference({"a": 1}, {}) == 1
    assert difference({"a": 1, "b": 5}, {"a": 1}) == 1
    assert difference({}, {}) == 0
    assert difference({"a": 100}, {"a": 101}) == difference({"a": 101}, {"a": 100}) == Fraction(1, 100)


@given(
    st.lists(st.one_of(st.none(), st.sampled_from([1000, 1001, 1100, 1300])), min_size=1, max_size=40),
    st.sets(st.integers(0, 39)),
    st.integers(1, 5),
)
def test_every_difference_is_narrowed_down_as_far_as_it_can_be(
    history: list[int | None], extra: set[int], at_once: int
) -> None:
    known = measured(history, {place for place in extra if place < len(history)}, at_once)
    good = sorted(place for place, costs in known.items() if costs is not None)
    for before, after in pairwise(good):
        one, other = history[before], history[after]
        assert one is not None
        assert other is not None
        if abs(one - other) > 2:
            tried = [place for place in range(before, after + 1) if place in known]
            for left, right in pairwise(tried):
                assert right == left + 1 or (known[left] is None and known[right] is None)


def test_commits_between_failed_ones_are_not_asked_for_again_and_a_reason_is_said_once() -> None:
    reason = "its setup failed with exit status 2: make\nprog.c:3:1: error: broken\n"
    done = Backfilled(
        shas=tuple(f"{number:040x}" for number in range(5)),
        measured=1,
        taken_over=0,
        known_before=0,
        failed={f"{number:040x}": reason for number in (1, 4)},
        failed_before=0,
        steps=(),
        equal=0,
        is_all=True,
        costs={0: {"x": 1}},
        subjects={},
        min_step=Fraction(1, 500),
    )
    said = listings.backfilled(done)
    assert said.startswith("5 commits: 1 measured now, 2 failed, 2 between commits that could not be measured\n")
    assert said.count("prog.c:3:1: error: broken") == 1
    assert "000000000000, 000000000000 could not be measured: its setup failed with exit status 2: make; prog.c" in said
    assert "2 left, call again to go on" in listings.backfilled(replace(done, is_all=False))
