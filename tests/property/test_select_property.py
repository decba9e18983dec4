"""What holds for every expression and for every suite that is cut into shards."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from cachegrind_bench.config.benchmarks import BenchmarkSpec
from cachegrind_bench.errors import UsageError
from cachegrind_bench.suite.select import matcher, shards

if TYPE_CHECKING:
    import random

WORDS = ("a", "B", "c=1", "[x,", "d-e.f")

words = st.sampled_from(WORDS)
expressions = st.recursive(
    words,
    lambda inner: st.one_of(
        inner.map(lambda text: f"(not {text})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(inner, inner, inner).map(lambda parts: "({} or not {} and {})".format(*parts)),
    ),
    max_leaves=12,
)
ids = st.lists(st.text(max_size=6), unique=True, max_size=25)
times = st.dictionaries(st.text(max_size=6), st.integers(0, 10**6), max_size=25)
counts = st.integers(1, 8)


def spec(name: str) -> BenchmarkSpec:
    return BenchmarkSpec(id=name, command=("true",), cwd=Path("/"), parameters={}, place="")


def parts(found: list[str], count: int, wall_ms: dict[str, int]) -> list[list[str]]:
    things = [spec(identity) for identity in found]
    return [[item.id for item in part] for part in shards(things, count, wall_ms)]


@st.composite
def suites(draw: st.DrawFn) -> tuple[list[str], dict[str, int]]:
    """Return ids, of which some have times, and times of which some are of others."""
    found = draw(ids)
    known = {identity: draw(st.integers(0, 10**6)) for identity in found if draw(st.booleans())}
    return found, draw(times) | known


@given(expressions, st.lists(words))
def test_an_expression_means_what_it_means_in_python(expression: str, held: list[str]) -> None:
    python = expression
    for word in WORDS:
        # No word is a part of another, nor of an operator, between blanks and parentheses.
        python = " ".join(
            str(word in held) if piece == word else piece
            for piece in python.replace("(", " ( ").replace(")", " ) ").split()
        )
    assert matcher(expression)(" ".join(held).swapcase()) == eval(python)  # noqa: S307 - True, False and operators


@given(st.text(st.sampled_from("ab'\"() \t") | st.characters(), max_size=30), st.text(max_size=10))
def test_every_text_is_an_expression_or_an_error(expression: str, identity: str) -> None:
    try:
        fits = matcher(expression)
    except UsageError:
        return
    assert fits(identity) in {True, False}


@given(st.text(st.characters(exclude_characters="'"), min_size=1, max_size=10))
def test_every_id_can_be_chosen_by_itself_in_quotes(identity: str) -> None:
    assert matcher(f"'{identity}'")(identity)


@given(suites(), counts)
def test_every_benchmark_is_in_exactly_one_shard(suite: tuple[list[str], dict[str, int]], count: int) -> None:
    found, wall_ms = suite
    assert Counter(identity for part in parts(found, count, wall_ms) for identity in part) == Counter(found)


@given(suites(), counts)
def test_every_shard_keeps_the_order(suite: tuple[list[str], dict[str, int]], count: int) -> None:
    found, wall_ms = suite
    for part in parts(found, count, wall_ms):
        assert part == [identity for identity in found if identity in part]


@given(suites(), counts, st.randoms(use_true_random=False))
def test_the_order_of_the_configuration_does_not_decide(
    suite: tuple[list[str], dict[str, int]], count: int, chance: random.Random
) -> None:
    found, wall_ms = suite
    shuffled = chance.sample(found, len(found))
    other_times = dict(reversed(wall_ms.items()))
    assert [sorted(part) for part in parts(found, count, wall_ms)] == [
        sorted(part) for part in parts(shuffled, count, other_times)
    ]


@given(suites(), counts)
def test_two_shards_differ_by_no_more_than_the_longest_benchmark(
    suite: tuple[list[str], dict[str, int]], count: int
) -> None:
    found, wall_ms = suite
    known = [wall_ms[identity] for identity in found if identity in wall_ms]
    usual = median_low(known) if known else 0
    loads = [sum(wall_ms.get(identity, usual) for identity in part) for part in parts(found, count, wall_ms)]
    assert max(loads) - min(loads) <= max(known, default=0)


@given(ids, counts)
def test_without_times_two_shards_differ_by_no_more_than_one_benchmark(found: list[str], count: int) -> None:
    numbers = [len(part) for part in parts(found, count, {})]
    assert max(numbers) - min(numbers) <= 1
