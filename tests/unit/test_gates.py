"""Thresholds and limits as they are written on a command line."""

from __future__ import annotations

from fractions import Fraction

import pytest

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.metrics import DEFAULT_MODEL
from cachegrind_bench.model.thresholds import Rules, limit, percentage, percentages
from tests.unit.samples import VECTOR


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.5%", Fraction(1, 200)), ("0.1 %", Fraction(1, 1000)), ("0%", 0), ("200%", 2), (".05%", Fraction(5, 10000))],
)
def test_a_percentage_is_read_exactly(text: str, value: Fraction) -> None:
    assert percentage(text, "--threshold") == value


@pytest.mark.parametrize("text", ["", "0.5", "%", "-1%", "1e3%", "nan%", "1,5%", "0x1%", "٣%", "1" * 50 + "%"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"--threshold .* is not a percentage") as error:
        percentage(text, "--threshold")
    assert error.value.hint is not None
    assert "0.5%" in error.value.hint


def test_an_exact_id_goes_before_wildcards_and_the_last_of_a_kind_counts() -> None:
    rules = percentages(["json-*=2%", "json-a=3%", "*=4%", "json-a=5%"], "0.5%", "--threshold")
    assert rules.get("json-a") == Fraction(5, 100)
    assert rules.get("json-b") == Fraction(4, 100)
    assert percentages(["*=4%", "json-*=2%"], "0.5%", "--threshold").get("json-b") == Fraction(2, 100)


def test_a_threshold_without_pattern_replaces_the_default() -> None:
    assert percentages(["1%"], "0.5%", "--threshold").get("any") == Fraction(1, 100)
    assert percentages([], "0.5%", "--threshold").get("any") == Fraction(1, 200)
    assert percentages([], None, "--threshold-ir").get("any") is None


def test_a_pattern_may_hold_brackets_and_equal_signs() -> None:
    rules = percentages(["sort[n=10]=2%"], "0.5%", "--threshold")
    assert rules.get("sort[n=10]") == Fraction(2, 100)
    assert rules.get("sortn") == Fraction(1, 200)
    with pytest.raises(UsageError, match="has nothing before the ="):
        percentages(["=2%"], None, "--threshold")


def test_without_a_fitting_pattern_there_is_no_value() -> None:
    assert Rules((("a", 1),)).get("b") is None


@pytest.mark.parametrize(
    ("text", "pattern", "name", "value"),
    [
        ("startup:Ir=150_000_000", "startup", "Ir", 150_000_000),
        ("Ir=1", "*", "Ir", 1),
        ("a:b[x=1]:ram=12", "a:b[x=1]", "RAM", 12),
        ("json-*:SCORE=5", "json-*", "score", 5),
        ("x:dlMR=5", "x", "DLmr", 5),
    ],
)
def test_a_limit_has_a_pattern_a_name_and_a_count(text: str, pattern: str, name: str, value: int) -> None:
    found = limit(text)
    assert (found.pattern, found.name, found.value) == (pattern, name, value)


@pytest.mark.parametrize("text", ["", "startup", "startup:Ir", "startup=5", "x:Ir=1.5", "x:Ir=-1", "x:Ir=1e9", "x:Ir="])
def test_a_limit_that_is_invalid_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--limit"):
        limit(text)


def test_a_limit_measures_score_events_and_hits() -> None:
    values = {name: limit(f"{name}=1").measured(VECTOR, DEFAULT_MODEL) for name in ("score", "Ir", "L1", "LL", "RAM")}
    assert values == {"score": 3418, "Ir": 1353, "L1": 1778, "LL": 10, "RAM": 53}
