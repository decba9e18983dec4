"""Narrowing down a change: as few measurements as can be, and commits that cannot be measured."""

from __future__ import annotations

from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachegrind_bench.usecases.worktrees import narrow


@pytest.mark.parametrize("length", [1, 2, 3, 10, 33])
def test_the_commit_is_found_in_few_steps_wherever_it_is(length: int) -> None:
    names = [str(number) for number in range(length)]
    for culprit in range(length):
        asked: list[str] = []

        def measure(name: str, culprit: int = culprit, asked: list[str] = asked) -> int:
            asked.append(name)
            return 110 if int(name) >= culprit else 100

        found = narrow(names, measure, before=100, after=110)
        assert (found.suspects, found.skipped) == ((str(culprit),), ())
        assert len(asked) <= ceil(log2(length)) + 1


def test_an_improvement_is_found_too() -> None:
    assert narrow("abcd", lambda name: 50 if name >= "c" else 100, before=100, after=50).suspects == ("c",)


def test_a_level_in_between_belongs_to_the_one_it_is_nearer_to() -> None:
    values = {"a": 101, "b": 104, "c": 109, "d": 110}
    assert narrow("abcd", values.__getitem__, before=100, after=110).suspects == ("c",)


def test_commits_that_cannot_be_measured_remain_if_it_may_have_been_them() -> None:
    values = {"a": 100, "b": None, "c": None, "d": 110, "e": 110}
    found = narrow("abcde", values.__getitem__, before=100, after=110)
    assert (found.suspects, found.skipped) == (("b", "c", "d"), ("b", "c"))
    values = {"a": None, "b": 100, "c": 110, "d": None, "e": 110}
    assert narrow("abcde", values.__getitem__, before=100, after=110).suspects == ("c",)


@given(st.lists(st.booleans(), min_size=1, max_size=20), st.data())
def test_the_culprit_is_never_ruled_out_and_nothing_is_measured_twice(broken: list[bool], data: st.DataObject) -> None:
    culprit = data.draw(st.integers(0, len(broken) - 1))
    asked: list[int] = []

    def measure(name: str) -> int | None:
        asked.append(int(name))
        return None if broken[int(name)] else 110 if int(name) >= culprit else 100

    found = narrow([str(number) for number in range(len(broken))], measure, before=100, after=110)
    assert str(culprit) in found.suspects
    assert all(broken[int(name)] for name in found.suspects[:-1])
    assert len(asked) == len(set(asked))
