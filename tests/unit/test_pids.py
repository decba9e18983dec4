"""Numbers of processes keep their number of digits."""

from __future__ import annotations

import pytest

from cachegrind_bench.hermetic import pids

SMALL, USUAL = 32_768, 4_194_304


@pytest.mark.parametrize(
    ("number", "limit", "steady"),
    [
        (1, USUAL, False),
        (9_999, USUAL, False),
        (10_000, SMALL, True),
        (30_000, SMALL, True),
        (31_000, SMALL, False),  # after the last one comes 300
        (97_000, USUAL, True),
        (98_500, USUAL, False),
        (100_000, USUAL, True),
        (999_000, USUAL, False),
        (4_193_000, USUAL, False),
    ],
)
def test_numbers_are_steady_where_digits_stay_as_many(number: int, limit: int, *, steady: bool) -> None:
    assert pids.is_steady(number, limit) is steady


@pytest.mark.parametrize(
    ("first", "limit", "last"),
    [(500, "32768", 10_000), (20_000, "32768", 20_000), (31_500, "32768", 10_000), (98_001, "4194304", 100_000)],
)
def test_numbers_that_are_not_steady_are_used_up(
    monkeypatch: pytest.MonkeyPatch, first: int, limit: str, last: int
) -> None:
    given = [first - 1]

    def next_number() -> int:
        given[0] = given[0] + 1 if given[0] + 1 < int(limit) else 300
        return given[0]

    monkeypatch.setattr(pids, "_next_number", next_number)
    monkeypatch.setattr(pids, "_limit", lambda: int(limit))
    pids.steady_numbers()
    assert given == [last]


def _fail() -> int:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("name", ["_next_number", "_limit"])
def test_where_that_is_not_possible_numbers_stay_as_they_are(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(pids, name, _fail)
    pids.steady_numbers()


def test_where_all_numbers_are_short_none_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pids, "_limit", lambda: 10_000)
    monkeypatch.setattr(pids, "_next_number", pytest.fail)
    pids.steady_numbers()


def test_a_thread_takes_a_number() -> None:
    one, other = pids._next_number(), pids._next_number()
    assert 0 < one != other > 0
