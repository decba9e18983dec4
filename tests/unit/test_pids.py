"""Numbers of processes keep their number of digits."""

from __future__ import annotations

import threading

import pytest

from cachegrind_bench.hermetic import launch
from cachegrind_bench.interruption import Cancel

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
    assert launch.is_steady(number, limit) is steady


@pytest.mark.parametrize(
    ("first", "limit", "last"),
    [(500, SMALL, 10_000), (20_000, SMALL, 20_000), (31_500, SMALL, 10_000), (98_001, USUAL, 100_000)],
)
def test_numbers_that_are_not_steady_are_used_up(
    monkeypatch: pytest.MonkeyPatch, first: int, limit: int, last: int
) -> None:
    given = [first - 1]

    def use_up(count: int) -> int:
        for _ in range(count):
            given[0] = given[0] + 1 if given[0] + 1 < limit else 300
        return given[0]

    monkeypatch.setattr(launch, "_use_up", use_up)
    monkeypatch.setattr(launch, "_limit", lambda: limit)
    launch.steady_numbers()
    assert last <= given[0] < last + 50
    before = given[0]
    launch.steady_numbers()
    assert given == [before + 1]


def test_an_interrupt_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cancel = Cancel()
    cancel.set()
    monkeypatch.setattr(launch, "_use_up", lambda _count: 5)
    monkeypatch.setattr(launch, "_limit", lambda: SMALL)
    with cancel.under(), pytest.raises(KeyboardInterrupt):
        launch.steady_numbers()
    cancel.close()


def _fail(*_: int) -> int:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("name", ["_use_up", "_limit"])
def test_where_that_is_not_possible_numbers_stay_as_they_are(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(launch, name, _fail)
    launch.steady_numbers()


def test_where_all_numbers_are_short_none_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_limit", lambda: 10_000)
    monkeypatch.setattr(launch, "_use_up", pytest.fail)
    launch.steady_numbers()


def test_threads_take_numbers() -> None:
    one, other = launch._use_up(1), launch._use_up(3)
    assert 0 < one != other > 0


def test_where_few_threads_may_be_started_these_take_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    start, left = threading.Thread.start, iter(range(2))

    def start_two(thread: threading.Thread) -> None:
        if next(left, None) is None:
            _fail()
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_two)
    assert launch._use_up(50) > 0
    with pytest.raises(RuntimeError):
        launch._use_up(50)
