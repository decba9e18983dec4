"""Steps, creep and instability, found in rows of numbers."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from cachegrind_bench.history.creep import find_creep, levelled
from cachegrind_bench.history.steps import Step, find_steps, logarithms, penalty, typical_move, unsteady

LEVEL = 10_000_000
LEAST = 2_000
BUDGET = 20_000


def noisy(factors: list[float], share: float, seed: int) -> list[int]:
    rng = random.Random(seed)
    return [round(LEVEL * factor * (1 + rng.uniform(-share, share))) for factor in factors]


def places(values: list[int]) -> list[int]:
    return [step.at for step in find_steps(values, LEAST)]


def test_few_large_steps_do_not_count_as_noise() -> None:
    assert typical_move([10, 10, 10, 90, 90, 10, 10]) == 0


def test_readings_that_go_one_way_are_not_noise() -> None:
    assert typical_move([10, 20, 35, 45, 60, 70, 90]) == 0


def test_readings_that_go_to_and_fro_are_noise() -> None:
    assert typical_move([10, 20, 10, 22, 9, 20, 10]) == 10


def test_exact_counts_still_have_a_price_for_jumps() -> None:
    assert penalty(logarithms([LEVEL] * 9), LEAST) == Fraction(3, 2) * 2_000_000


@pytest.mark.parametrize("level", [1, 1000, 10**9, 2**63])
def test_on_the_scale_of_logarithms_equal_shares_are_equal_moves(level: int) -> None:
    half, whole = logarithms([level, 2 * level])
    assert whole - half == pytest.approx(math.log(2) * 1e9, abs=2)
    assert logarithms([0, level])[0] == logarithms([1, level])[0]


def test_equal_readings_have_no_step() -> None:
    assert find_steps([LEVEL] * 50, LEAST) == ()


@pytest.mark.parametrize("length", [0, 1])
def test_too_few_readings_have_no_step(length: int) -> None:
    assert find_steps([LEVEL] * length, LEAST) == ()


def test_a_step_is_reported_with_its_levels() -> None:
    assert find_steps([1000, 1000, 1000, 1005, 1005], LEAST) == (Step(at=3, before=1000, after=1005, confirmed=True),)


def test_a_step_down_is_found_as_well() -> None:
    assert find_steps([1000, 1000, 1000, 995, 995], LEAST) == (Step(at=3, before=1000, after=995, confirmed=True),)


def test_the_last_reading_alone_is_a_candidate() -> None:
    assert find_steps([1000, 1000, 1000, 1005], LEAST) == (Step(at=3, before=1000, after=1005, confirmed=False),)


def test_the_first_reading_alone_is_not_a_level_that_confirms_a_step() -> None:
    assert find_steps([1000, 1005, 1005, 1005], LEAST) == (Step(at=1, before=1000, after=1005, confirmed=False),)


def test_two_readings_may_differ() -> None:
    assert find_steps([1000, 1005], LEAST) == (Step(at=1, before=1000, after=1005, confirmed=False),)


def test_the_smallest_step_that_matters_is_found_with_two_readings() -> None:
    assert places([LEVEL] * 9 + [LEVEL * 1002 // 1000] * 2) == [9]


def test_a_step_below_that_is_none() -> None:
    assert places([LEVEL] * 9 + [LEVEL * 1002 // 1000 - 1] * 9) == []


@pytest.mark.parametrize("height", [1.003, 1.5, 0.9, 100])
def test_a_single_reading_that_is_off_is_not_a_step(height: float) -> None:
    assert places([LEVEL] * 9 + [round(LEVEL * height)] + [LEVEL] * 9) == []


def test_two_readings_that_are_off_with_one_between_them_are_no_step() -> None:
    assert not any(step.confirmed for step in find_steps([100_000] * 9 + [100_310, 100_000, 100_310], LEAST))


def test_a_reading_that_is_off_right_after_a_step_does_not_hide_it() -> None:
    assert [(step.at, step.confirmed) for step in find_steps([1000] * 9 + [1010, 1010, 1000, 1010, 1010], LEAST)] == [
        (9, True)
    ]


def test_a_single_reading_that_is_off_does_not_hide_the_step_after_it() -> None:
    assert places([100_000] * 9 + [130_000] + [105_000] * 9) in ([9], [10])


def test_a_level_of_one_reading_on_the_way_up_is_a_level() -> None:
    steps = find_steps([1000] * 9 + [1010] + [1020] * 9, LEAST)
    assert [(step.at, step.before, step.after, step.confirmed) for step in steps] == [
        (9, 1000, 1010, True),
        (10, 1010, 1020, True),
    ]


def test_each_of_many_steps_in_a_row_is_found() -> None:
    assert places([1000 + 10 * number for number in range(8)]) == list(range(1, 8))


def test_a_slow_rise_is_not_a_step_however_far_it_goes() -> None:
    assert places([LEVEL + LEVEL * number // 5000 for number in range(400)]) == []


def test_a_slow_rise_hides_no_step() -> None:
    values = [round(LEVEL * (1 + number / 5000) * (1.01 if number >= 100 else 1)) for number in range(200)]
    assert places(values) == [100]


@pytest.mark.parametrize("seed", range(10))
def test_a_step_in_noise_is_found_at_its_place(seed: int) -> None:
    assert places(noisy([1.0] * 70 + [1.005] * 30, 1e-3, seed)) == [70]


@pytest.mark.parametrize("seed", range(10))
def test_noise_alone_is_not_a_step(seed: int) -> None:
    # Wider than the smallest step that matters.
    assert not any(step.confirmed for step in find_steps(noisy([1.0] * 100, 1.5e-3, seed), LEAST))


def test_zeros_are_readings_like_others() -> None:
    assert places([0, 0, 0, 0]) == []
    assert places([0, 0, 0, 100, 100]) == [3]
    assert places([100, 100, 100, 0, 0]) == [3]


def test_a_slow_rise_beyond_the_budget_is_creep() -> None:
    creep = find_creep([1000 + number for number in range(40)], (), BUDGET)
    assert creep is not None
    assert (creep.before, creep.after, creep.best) == (1002, 1037, 2)
    # The first of five readings around 1023, which is more than 2 % above 1002, has come at 1025.
    assert creep.over == 25
    assert creep.rises == tuple(range(3, 40))


def test_nobody_is_named_where_noise_hides_who_it_was() -> None:
    creep = find_creep(noisy([1 + number / 2000 for number in range(80)], 1e-3, 3), (), BUDGET)
    assert creep is not None
    assert creep.rises == ()


def test_a_slow_rise_within_the_budget_is_none() -> None:
    assert find_creep([1000 + number for number in range(22)], (), BUDGET) is None


def test_what_has_come_down_again_is_not_creep() -> None:
    assert find_creep([1000 + number for number in range(40)] + [1000] * 5, (), BUDGET) is None


def test_a_step_is_not_creep() -> None:
    values = [1000] * 20 + [1100] * 20
    assert find_creep(values, find_steps(values, LEAST), BUDGET) is None


def test_a_rise_besides_a_step_is_creep_of_its_own_height() -> None:
    values = [100_000] * 20 + [110_000 + 110 * number for number in range(30)]
    steps = find_steps(values, LEAST)
    assert [step.at for step in steps] == [20]
    creep = find_creep(values, steps, BUDGET)
    assert creep is not None
    assert (creep.before, creep.after) == (110_220, 112_970)


def test_an_improvement_does_not_pass_for_room_to_creep() -> None:
    values = [1000] * 20 + [900 + number for number in range(30)]
    steps = find_steps(values, LEAST)
    assert [step.at for step in steps] == [20]
    assert find_creep(values, steps, BUDGET) is not None


@pytest.mark.parametrize("at", [60, 100, 165])
def test_a_small_improvement_makes_no_room_wherever_it_came(at: int) -> None:
    crept = [100_000 + 20 * min(number, 150) for number in range(175)]  # by 3 %
    values = [value if number < at else value * 9_866 // 10_000 for number, value in enumerate(crept)]
    steps = find_steps(values, LEAST)
    assert [step.at for step in steps] == [at]
    creep = find_creep(values, steps, BUDGET)
    assert creep is not None
    assert 1.027 < creep.after / creep.before < 1.031


def test_levels_of_which_an_improvement_took_more_than_crept_are_no_creep() -> None:
    values = [1000 + number for number in range(30)] + [950] * 10
    steps = find_steps(values, LEAST)
    assert [step.at for step in steps] == [30]
    assert find_creep(values, steps, BUDGET) is None


def test_few_rises_are_named() -> None:
    values = [100_000 + 150 * (number // 10) for number in range(200)]
    assert find_steps(values, LEAST) == ()  # each of them is too small
    creep = find_creep(values, (), BUDGET)
    assert creep is not None
    assert creep.rises == tuple(range(10, 200, 10))


def test_levelling_takes_steps_out() -> None:
    values = [100, 100, 110, 110, 55, 55]
    steps = [Step(at=2, before=100, after=110, confirmed=True), Step(at=4, before=110, after=55, confirmed=True)]
    assert levelled(values, steps) == [55] * 6


def test_two_levels_that_alternate_are_unsteady() -> None:
    rng = random.Random(2)
    values = [1000] * 50 + [rng.choice([1000, 1010]) for _ in range(50)]
    (stretch,) = unsteady(values, find_steps(values, LEAST), LEAST)
    assert (stretch.low, stretch.high) == (1000, 1010)
    assert values[stretch.start] != values[stretch.start - 1]
    assert 50 <= stretch.start < 56
    assert 90 < stretch.stop <= 100


def test_levels_that_come_and_go_for_some_readings_each_are_unsteady() -> None:
    values = [1000] * 50 + ([1010] * 4 + [1000] * 4) * 6
    (stretch,) = unsteady(values, find_steps(values, LEAST), LEAST)
    assert (stretch.start, stretch.low, stretch.high) == (50, 1000, 1010)


def test_one_way_of_many_steps_is_steady() -> None:
    values = [1000 - 10 * (number // 4) for number in range(80)]
    assert len(find_steps(values, LEAST)) == 19
    assert unsteady(values, find_steps(values, LEAST), LEAST) == ()


def test_noise_in_which_nothing_can_be_reported_is_unsteady() -> None:
    values = noisy([1.0] * 60, 0.05, 1)
    (stretch,) = unsteady(values, find_steps(values, LEAST), LEAST)
    assert (stretch.start, stretch.stop) == (0, 60)


def test_noise_without_a_gap_does_not_make_two_levels() -> None:
    values = noisy([1.0] * 200, 5e-3, 1)
    assert unsteady(values, (), LEAST) == ()


def test_a_bump_and_rare_readings_that_are_off_are_steady() -> None:
    values = [1000] * 20 + [1005] * 5 + [1000] * 20 + [1003] + [1000] * 20 + [1003] + [1000] * 5
    assert unsteady(values, find_steps(values, LEAST), LEAST) == ()
