"""Numbers on the screen."""

from __future__ import annotations

from fractions import Fraction

import pytest

from cachegrind_bench.model.text import change, duration, grouped, is_number, share, spread


def test_large_numbers_are_grouped() -> None:
    assert [grouped(number) for number in (0, 999, 1000, 1234567, -1234)] == [
        "0",
        "999",
        "1,000",
        "1,234,567",
        "-1,234",
    ]


def test_a_share_of_nothing_is_none() -> None:
    assert [share(1, 8), share(0, 5), share(5, 5), share(0, 0)] == ["12.5 %", "0.0 %", "100.0 %", "-"]


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (5, 5, "0"),
        (0, 0, "0"),
        (0, 5, "-"),
        (1000, 1001, "0.1 %"),
        (1_000_000, 1_000_003, "0.0003 %"),
        (10**12, 10**12 + 1, "1e-10 %"),
        (100, 154, "54 %"),
        (1000, 1999, "100 %"),
        (100, 300, "200 %"),
        (1, 100_001, "10,000,000 %"),
    ],
)
def test_a_spread_is_zero_only_where_nothing_differs(low: int, high: int, text: str) -> None:
    assert spread(low, high) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (1234, "1.2 s"),
        (59_900, "59.9 s"),
        (75_000, "1 min 15 s"),
        (119_999, "2 min 00 s"),
        (3_600_000, "60 min 00 s"),
    ],
)
def test_durations_are_rounded_to_what_matters(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (Fraction(0), "0 %"),
        (Fraction(1, 200), "+0.5 %"),
        (Fraction(-1, 3), "-33.3 %"),
        (Fraction(123, 10), "+1,230 %"),
        (Fraction(9996, 1000), "+1,000 %"),
        (Fraction(-5, 10**6), "-0.0005 %"),
        (Fraction(1, 10**9), "+0.00000010 %"),
        (Fraction(-1, 3 * 10**12), "-0.000000000033 %"),
    ],
)
def test_a_change_has_three_digits_that_count_and_is_zero_only_where_nothing_changed(part: Fraction, text: str) -> None:
    assert change(part) == text


@pytest.mark.parametrize("cell", ["1", "+1,234", "-0.5 %", "100.0 %"])
def test_numbers_are_numbers(cell: str) -> None:
    assert is_number(cell)


@pytest.mark.parametrize("cell", ["", "-", "1<b>2", "1 s", "x1", "+", "1 2", "١"])
def test_other_cells_are_no_numbers(cell: str) -> None:
    assert not is_number(cell)
