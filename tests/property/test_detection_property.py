"""What holds for the search for changes whatever the numbers are."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from statistics import median_low

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from cachegrind_bench.history.partition import partition
from cachegrind_bench.history.steps import WINDOW, find_steps
from cachegrind_bench.history.values import Kind, State
from tests.unit.detecting import KEY, found, line, series

LEAST = 2_000
OTHER = "ba9876543210"

SMALL = st.lists(st.integers(0, 12), min_size=1, max_size=11)
PENALTIES = st.builds(Fraction, st.integers(1, 60), st.integers(1, 4))
ROWS = st.lists(st.integers(1, 2_000), max_size=60) | st.lists(st.sampled_from([1000, 1001, 1003, 1010]), max_size=60)


@st.composite
def plateaus(draw: st.DrawFn) -> list[int]:
    """Levels that lie clearly apart, of several exact readings each, which do not go to and fro for ever."""
    levels = draw(st.lists(st.integers(1_000, 2_000), min_size=1, max_size=6))
    lengths = draw(st.lists(st.integers(3, 12), min_size=len(levels), max_size=len(levels)))
    return [100 * level for level, length in zip(levels, lengths, strict=True) for _ in range(length)]


def cost(values: list[int], starts: tuple[int, ...], penalty: Fraction) -> Fraction:
    bounds = [*starts, len(values)]
    levels = [values[bounds[number] : bounds[number + 1]] for number in range(len(starts))]
    return penalty * (len(starts) - 1) + sum(abs(value - median_low(level)) for level in levels for value in level)


@given(SMALL, PENALTIES)
def test_no_partition_is_better_than_the_one_found(values: list[int], penalty: Fraction) -> None:
    every = ((0, *jumps) for number in range(len(values)) for jumps in combinations(range(1, len(values)), number))
    least = min(cost(values, starts, penalty) for starts in every)
    found_starts = partition(values, penalty)
    assert found_starts[0] == 0
    assert list(found_starts) == sorted(set(found_starts))
    assert cost(values, found_starts, penalty) == least


@given(ROWS, PENALTIES, st.integers(1, 10**12))
def test_a_partition_does_not_depend_on_the_unit(values: list[int], penalty: Fraction, unit: int) -> None:
    assert partition([unit * value for value in values], unit * penalty) == partition(values, penalty)


@given(ROWS, PENALTIES, st.integers(-(10**9), 10**9))
def test_a_partition_does_not_depend_on_where_zero_is(values: list[int], penalty: Fraction, zero: int) -> None:
    assert partition([zero + value for value in values], penalty) == partition(values, penalty)


@given(ROWS, st.integers(1, 10**9))
@example([633, 5, 88, 87, 137], 2)
def test_steps_do_not_depend_on_the_unit(values: list[int], unit: int) -> None:
    plain = [(step.at, unit * step.before, unit * step.after, step.confirmed) for step in find_steps(values, LEAST)]
    scaled = find_steps([unit * value for value in values], LEAST)
    assert [(step.at, step.before, step.after, step.confirmed) for step in scaled] == plain


@given(ROWS)
@example([1000, 1001, 1003, 1001, 1010, 1010, 1000, 1003, 1010])
def test_steps_are_in_order_and_matter(values: list[int]) -> None:
    steps = find_steps(values, LEAST)
    places = [step.at for step in steps]
    assert places == sorted(set(places))
    assert all(0 < place < len(values) for place in places)
    assert all(abs(step.after - step.before) * 1_000_000 >= LEAST * step.before for step in steps)


@given(plateaus())
def test_levels_of_exact_readings_are_found_as_they_are(values: list[int]) -> None:
    true = [
        place
        for place in range(1, len(values))
        if abs(values[place] - values[place - 1]) * 1_000_000 >= LEAST * values[place - 1]
    ]
    assert [step.at for step in find_steps(values, LEAST)] == true


@given(plateaus(), st.integers(1, 40))
def test_more_readings_of_the_last_level_take_no_confirmed_step_away(values: list[int], more: int) -> None:
    before = [
        finding
        for finding in found(values)
        if finding.confirmed and finding.kind in (Kind.REGRESSION, Kind.IMPROVEMENT)
    ]
    after = {finding.id for finding in found(values + values[-1:] * more)}
    assert {finding.id for finding in before} <= after


@given(ROWS, ROWS)
def test_where_the_key_changes_the_series_is_two(first: list[int], second: list[int]) -> None:
    commits = line(len(first) + len(second) + 1)
    keys = [KEY] * len(first) + [OTHER] * len(second)
    both = found(series(first + second, keys=keys), commits=commits, previous={})
    halves = [
        series(first, keys=[KEY] * len(first)),
        series(second, at=range(len(first), len(first) + len(second)), keys=[OTHER] * len(second)),
    ]
    alone = [found(half, commits=commits, previous={}) for half in halves]
    # What is no longer measured in this way does not creep any more, and nothing can be told of it after a while.
    past = [finding for finding in alone[0] if finding.kind is not Kind.CREEP or len(second) < 4]
    if len(second) >= WINDOW:
        past = [replace(one, state=State.OUTDATED) if one.state is State.NEW else one for one in past]
    assert {finding.id: finding for finding in both} == {finding.id: finding for finding in [*past, *alone[1]]}


@given(ROWS)
def test_names_of_findings_are_unlike(values: list[int]) -> None:
    findings = found(series(values), commits=line(len(values) + 1))
    assert len({finding.id for finding in findings}) == len(findings)
