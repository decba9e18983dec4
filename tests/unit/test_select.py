"""Choosing benchmarks: expressions on ids, tags, and shards."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachegrind_bench.config.benchmarks import BenchmarkSpec
from cachegrind_bench.errors import UsageError
from cachegrind_bench.suite.select import matcher, parse_shard, shards, tagged

IDS = ("sort[n=10,codec=a]", "sort[n=100,codec=b]", "Parse JSON", "parse-xml.v2", "and (maybe) not")


def fitting(expression: str) -> list[str]:
    fits = matcher(expression)
    return [identity for identity in IDS if fits(identity)]


def refusal(expression: str) -> str:
    with pytest.raises(UsageError) as caught:
        matcher(expression)
    return caught.value.message


def spec(name: str) -> BenchmarkSpec:
    return BenchmarkSpec(id=name, command=("true",), cwd=Path("/"), parameters={}, place="")


def parts(ids: str, count: int, **wall_ms: int) -> list[str]:
    things = [spec(identity) for identity in ids]
    return ["".join(item.id for item in part) for part in shards(things, count, wall_ms)]


# Expressions


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("sort", IDS[:2]),
        ("SORT", IDS[:2]),
        ("parse", IDS[2:4]),
        ("n=10,codec=a", IDS[:1]),
        ("sort[n=10,codec=a]", IDS[:1]),
        ("[n=10,", IDS[:1]),
        ("parse-xml.v2", IDS[3:4]),
        ("not sort", IDS[2:]),
        ("not not sort", IDS[:2]),
        ("sort and codec=b", IDS[1:2]),
        ("json or xml", IDS[2:4]),
        ("'parse json'", IDS[2:3]),
        ('"Parse JSON" or codec=a', (IDS[0], IDS[2])),
        ("'(maybe)'", IDS[4:]),
        ("'and'", IDS[4:]),
        ("not 'and'", IDS[:4]),
        (" \t( sort )\n", IDS[:2]),
        ("(sort)and(codec=b)", IDS[1:2]),
        ("nothing", ()),
    ],
)
def test_an_expression_chooses_ids(expression: str, expected: tuple[str, ...]) -> None:
    assert fitting(expression) == list(expected)


def test_not_binds_more_than_and_which_binds_more_than_or() -> None:
    assert fitting("json or sort and codec=a") == [IDS[0], IDS[2]]
    assert fitting("(json or sort) and codec=a") == [IDS[0]]
    assert fitting("not sort and parse") == [IDS[2], IDS[3]]
    assert fitting("not (sort and codec=a)") == list(IDS[1:])


def test_operators_are_words_within_words_and_in_capitals() -> None:
    assert matcher("android")("the android")
    assert matcher("NOT")("is not")
    assert matcher("or2 and not and2")("or2")


def test_case_is_folded_in_every_script() -> None:
    assert matcher("STRASSE")("straße")
    assert matcher("straße")("STRASSE 1")


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "a and",
        "or a",
        "not",
        "a b",
        "a AND b",
        "(a",
        "a)",
        "()",
    ],
)
def test_what_is_not_an_expression_is_refused(expression: str) -> None:
    assert refusal(expression) == f"-k {expression!r}: words go with and, or, not and parentheses"


@pytest.mark.parametrize(("expression", "place"), [("a 'b", 3), ("''", 1)])
def test_a_quote_that_is_not_closed_is_reported_with_its_place(expression: str, place: int) -> None:
    assert f"the quote at character {place} is not closed, or there is nothing in it" in refusal(expression)


def test_an_expression_that_nests_too_deeply_for_python_is_refused() -> None:
    assert refusal("not " * 100_000 + "a") == "-k: it nests too deeply"


def test_a_long_expression_is_not_a_deep_one() -> None:
    assert matcher(" or ".join(f"word{number}" for number in range(5000)))("word4999")


# Tags


def test_one_of_several_tags_is_enough_and_none_takes_all() -> None:
    assert tagged(["fast", "io"])(("io", "slow"))
    assert not tagged(["fast", "io"])(("slow",))
    assert not tagged(["fast"])(())
    assert tagged(())(())


# Shards


@pytest.mark.parametrize(("text", "expected"), [("2/5", (2, 5)), ("1/1", (1, 1)), (" 05/5 ", (5, 5))])
def test_a_shard_is_written_as_index_and_count(text: str, expected: tuple[int, int]) -> None:
    assert parse_shard(text) == expected


@pytest.mark.parametrize("text", ["", "2", "2/", "/5", "a/b", "-1/5", "1.0/5", "1/5/2", "1 / 5", "²/5", "1/9999999"])
def test_what_is_not_a_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_shard(text)
    assert caught.value.message == f"--shard {text!r}: that is not a part such as 2/5"
    assert caught.value.hint == "as in --shard 2/5: the second of five parts, counted from 1"


@pytest.mark.parametrize("text", ["0/5", "6/5", "0/0", "1/0"])
def test_a_shard_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"there is no part [016] of [05]"):
        parse_shard(text)


def test_the_longest_benchmark_goes_to_the_shard_with_least_to_do() -> None:
    assert parts("abcde", 2, a=1, b=9, c=5, d=4, e=1) == ["ab", "cde"]
    assert parts("abcde", 2, a=3, b=9, c=5, d=3, e=1) == ["be", "acd"]


def test_without_any_time_shards_have_equally_many() -> None:
    assert parts("abcdefg", 3) == ["adg", "be", "cf"]


def test_benchmarks_that_take_no_time_are_spread_too() -> None:
    assert parts("abcd", 2, a=0, b=0, c=0, d=0) == ["ac", "bd"]


def test_an_unknown_benchmark_takes_the_median_of_the_known() -> None:
    assert parts("abcx", 2, a=10, b=10, c=1000) == ["c", "abx"]
    assert parts("abx", 2, a=100, b=1) == ["a", "bx"]  # of an even number, the lower of the two in the middle


def test_times_of_benchmarks_that_were_not_chosen_do_not_count() -> None:
    assert parts("abx", 2, a=3, b=2) == parts("abx", 2, a=3, b=2, z=10**9)


def test_a_shard_keeps_the_order_of_the_configuration() -> None:
    assert parts("dcba", 2, a=1, b=2, c=3, d=4) == ["da", "cb"]


def test_there_may_be_more_shards_than_benchmarks() -> None:
    assert parts("ab", 4) == ["a", "b", "", ""]
    assert parts("", 2) == ["", ""]
