"""A wait is reported, not too often, and takes no longer than was asked for."""

from __future__ import annotations

from cachegrind_bench.waiting import Waiting


def test_a_wait_is_noted_after_two_seconds_and_then_ever_more_seldom(said: list[str]) -> None:
    waiting = Waiting()
    for _ in range(2):  # one wait after the other
        for tenth in range(200):
            waiting.look("origin", tenth / 10)
    assert said == [f"waiting for origin, {seconds} s" for seconds in (2, 4, 8, 16)] * 2


def test_after_a_pause_only_one_line_is_made_up_for(said: list[str]) -> None:
    waiting = Waiting()
    waiting.look("origin", 100)
    waiting.look("origin", 101)
    assert said == ["waiting for origin, 100 s"]
    waiting.look("cargo", 300, "Compiling serde v1.0.228")
    assert said[1:] == ["waiting for cargo, 300 s: Compiling serde v1.0.228"]


def test_a_bound_only_shortens() -> None:
    assert [Waiting(longest=longest).at_most(60) for longest in (None, 5, 500)] == [60, 5, 60]
