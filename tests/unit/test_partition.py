"""The exact partition of a row of numbers into levels."""

from __future__ import annotations

from fractions import Fraction

from cachegrind_bench.history.partition import partition


def test_no_values_have_no_levels() -> None:
    assert partition([], Fraction(1)) == ()


def test_one_value_is_one_level() -> None:
    assert partition([7], Fraction(1)) == (0,)


def test_a_jump_is_made_where_it_saves_more_than_it_costs() -> None:
    assert partition([10, 10, 10, 20, 20, 20], Fraction(29)) == (0, 3)


def test_a_jump_that_saves_no_more_than_it_costs_is_not_made() -> None:
    assert partition([10, 10, 10, 20, 20, 20], Fraction(30)) == (0,)


def test_a_fraction_more_than_the_saving_is_too_much() -> None:
    values = [0, 0, 1, 1, 0, 0, 9, 9]
    # One jump, at the nines, saves 18 - 0; more are needed for the ones, and save 2 for the price of two.
    assert partition(values, Fraction(2, 3)) == (0, 2, 4, 6)
    assert partition(values, Fraction(1)) == (0, 6)
    assert partition(values, Fraction(99, 100)) == (0, 2, 4, 6)


def test_a_single_value_far_off_is_a_level_of_its_own() -> None:
    assert partition([0, 0, 0, 100, 0, 0, 0], Fraction(10)) == (0, 3, 4)


def test_very_large_numbers_are_exact() -> None:
    huge = 10**30
    assert partition([huge, huge, huge + 1, huge + 1, huge + 1], Fraction(3, 2)) == (0, 2)
    assert partition([huge, huge, huge + 1, huge + 1, huge + 1], Fraction(5, 2)) == (0,)
