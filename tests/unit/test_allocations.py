"""How often memory is allocated and freed, by whom, and what that is held to."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.cli.run import remarks_on_limits
from cachegrind_bench.compare.allocations import Allocations, counted
from cachegrind_bench.compare.verdict import Cause, State, with_allocations
from cachegrind_bench.model.call_graph import CallGraph
from cachegrind_bench.model.thresholds import limit, percentages
from cachegrind_bench.render.comparison.allocations import allocations_text
from cachegrind_bench.render.comparison.blame import blamed_place
from cachegrind_bench.render.comparison.remarks import remarks
from cachegrind_bench.render.comparison.verdict_line import verdict_line
from cachegrind_bench.render.documents.comparisons import comparison
from cachegrind_bench.render.report import measured as report
from cachegrind_bench.usecases.ci.base import unexplained
from tests.unit.calls import Functions, graph
from tests.unit.comparing import compared, counts, gates, measured
from tests.unit.samples import result

if TYPE_CHECKING:
    from cachegrind_bench.compare.verdict import Comparison

BASE: Functions = {
    "main": (10, {"split": 5, "join": 1}),
    "split": (3, {"libc:malloc": 1, "libc:free": 1}),
    "join": (3, {"libc:_Znwm": 2, "libc:__libc_calloc": 1, "libc:strdup": 1, "libc:_ZdlPvm": 1}),
    "libc:_Znwm": (1, {"libc:malloc": 1}),
    "libc:_ZdlPvm": (1, {"libc:free": 1}),
    "libc:strdup": (1, {"libc:malloc": 1}),
    "libc:realloc": (7, {"libc:_int_malloc": 1, "libc:free": 1}),
    "libc:malloc": (7, {"libc:_int_malloc": 1}),
    "libc:__libc_calloc": (7, {"libc:_int_malloc": 1}),
    "libc:_int_malloc": (9, {}),
    "libc:free": (5, {}),
}
JOIN = BASE["join"][1]


def more(**functions: tuple[int, dict[str, int]]) -> Allocations:
    return counted(graph(BASE), graph(BASE | functions))


def said(**functions: tuple[int, dict[str, int]]) -> str | None:
    return allocations_text(more(**functions))


def test_more_allocations_are_counted_once_each_and_named_with_who_makes_most_of_them() -> None:
    found = more(join=(3, JOIN | {"libc:_Znwm": 20}), split=(3, {"libc:malloc": 2, "libc:free": 1}))
    assert (found.made.base, found.made.candidate, found.made.callers[0].label.name) == (9, 32, "join")
    assert [caller.candidate.number - caller.base.number for caller in found.made.callers] == [18, 5]
    assert (found.freed.base, found.freed.candidate, found.kept) == (6, 6, 23)
    assert allocations_text(found) == "23 more allocations (9 → 32), 18 more from join (words.c), and no more frees"


@pytest.mark.parametrize(
    ("functions", "text"),
    [
        ({}, None),
        ({"split": (99, BASE["split"][1])}, None),
        (
            {"main": (10, {"split": 6, "join": 1}), "join": (3, JOIN | {"libc:_Znwm": 1})},
            "as many allocations (9 → 9), 1 fewer from join (words.c)",
        ),
        ({"main": (10, {"split": 9, "join": 1})}, "4 more allocations (9 → 13), from main (words.c), through split"),
        (
            {"split": (3, {"libc:malloc": 3, "libc:free": 2})},
            "10 more allocations (9 → 19), from split (words.c), but only 5 more frees",
        ),
        (
            {"split": (3, {"libc:malloc": 2})},
            "5 more allocations (9 → 14), from split (words.c), and 5 fewer frees",
        ),
        ({"split": (3, {"libc:malloc": 1})}, "5 fewer frees (6 → 1), from split (words.c)"),
        ({"join": (3, JOIN | {"libc:_ZdlPvm": 2})}, "1 more free (6 → 7), from join (words.c)"),
        (
            {"split": (3, {"libc:malloc": 1, "libc:free": 1, "libc:realloc": 2})},
            "10 more allocations (9 → 19), from split (words.c)",
        ),
        (
            {"join": (3, JOIN | {"libc:strdup": 4, "libc:free": 3})},
            "3 more allocations (9 → 12), from join (words.c), through strdup",
        ),
        (
            {"join": (3, JOIN | {"xmalloc": 2, "libc:free": 2}), "xmalloc": (9, {"libc:malloc": 1})},
            "2 more allocations (9 → 11), from join (words.c), through xmalloc",
        ),
    ],
)
def test_the_sentence_says_who_does_it_and_what_is_not_freed(
    functions: dict[str, tuple[int, dict[str, int]]], text: str | None
) -> None:
    assert said(**functions) == text


def gated(base: CallGraph | None, candidate: CallGraph | None, **gates: Any) -> Comparison:
    sides = measured(), measured(value=counts(1_000_100))
    if "allocations" in gates:
        gates["threshold_allocations"] = percentages([gates.pop("allocations")], None, "")
    return with_allocations(compared(*sides, **gates), lambda _id: base, lambda _id: candidate)


BEFORE, AFTER = graph(BASE), graph(BASE | {"main": (10, {"split": 9, "join": 1})})
PARTLY = CallGraph({}, AFTER.calls)


@pytest.mark.parametrize(
    ("threshold", "state"), [("0%", State.REGRESSION), ("44%", State.REGRESSION), ("45%", State.UNCHANGED)]
)
def test_more_allocations_than_the_threshold_are_a_regression(threshold: str, state: State) -> None:
    (found,) = gated(BEFORE, AFTER, allocations=threshold).differences
    assert found.state is state
    assert found.causes == ((Cause.ALLOCATIONS,) if state is State.REGRESSION else ())
    assert gated(AFTER, BEFORE, allocations=threshold).verdict is State.UNCHANGED
    assert gated(BEFORE, AFTER, allocations="other=0%").verdict is State.UNCHANGED


def test_the_verdict_names_who_allocates_more() -> None:
    found = gated(BEFORE, AFTER, allocations="0%")
    text = "4 more allocations (9 → 13), from main (words.c), through split; --threshold-allocations is 0 %"
    assert verdict_line(found, {}) == f"regression: sieve score +0.01 %, {text}"
    (difference,) = found.differences
    assert remarks(difference, found.gates) == [text]
    assert blamed_place(difference, None, "/work") is None
    (shown,) = json.loads(comparison(found, {}))["benchmarks"]
    assert (shown["causes"], shown["allocations"]["kept"]) == (["threshold-allocations"], 0)
    made = shown["allocations"]["made"]
    assert (made["base"], made["candidate"], made["delta"]) == (9, 13, 4)
    assert [(row["function"], row["candidate"]["calls"]) for row in made["callers"]] == [("split", 9)]


@pytest.mark.parametrize(
    ("base", "candidate", "sides"),
    [(None, AFTER, "base"), (BEFORE, None, "candidate"), (None, PARTLY, "base and candidate")],
)
def test_sides_without_calls_are_named_and_are_no_regression(
    base: CallGraph | None, candidate: CallGraph | None, sides: str
) -> None:
    found = gated(base, candidate, allocations="0%")
    assert found.verdict is State.UNCHANGED
    assert remarks(found.differences[0], found.gates) == [
        f"allocations are not compared: no calls are recorded of the {sides} (run --call-tree)"
    ]


def test_the_action_fetches_calls_of_the_base_where_allocations_are_held() -> None:
    for base, expected in ((None, True), (BEFORE, False)):
        made: Any = SimpleNamespace(comparison=gated(base, BEFORE, allocations="0%"), details={})
        assert unexplained(made) is expected


def test_where_all_counts_are_the_same_no_calls_are_needed() -> None:
    gates = {"threshold_allocations": percentages(["0%"], None, "")}
    for calls in (AFTER, None):
        found = with_allocations(compared(measured(), measured(), **gates), lambda _id: None, {"sieve": calls}.get)
        assert (found.verdict, found.differences[0].uncounted) == (State.UNCHANGED, ())


def test_a_limit_holds_whatever_the_base_has() -> None:
    limits = (limit("sieve:allocations=12"),)
    for base in (BEFORE, None):
        found = gated(base, AFTER, limits=limits)
        (difference,) = found.differences
        assert (difference.state, difference.causes) == (State.REGRESSION, (Cause.LIMIT,))
        said, *more = remarks(difference, found.gates)
        assert said == "allocations 13 exceeds the limit of 12"
        assert more == (["4 more allocations (9 → 13), from main (words.c), through split"] if base else [])
    assert gated(BEFORE, AFTER, limits=(limit("allocations=13"),)).verdict is State.UNCHANGED
    (unknown,) = gated(None, None, limits=limits).differences
    assert (unknown.state, unknown.uncounted) == (State.UNCHANGED, ("candidate",))


def test_a_limit_holds_where_a_threshold_cannot() -> None:
    found = gated(None, AFTER, allocations="0%", limits=(limit("sieve:allocations=12"),))
    (difference,) = found.differences
    assert (difference.state, difference.uncounted) == (State.REGRESSION, ("base",))
    said = remarks(difference, found.gates)
    assert said[0] == "allocations 13 exceeds the limit of 12"
    assert said[1].startswith("allocations are not compared: no calls are recorded of the base")


def test_a_report_has_the_allocations_of_one_execution_and_the_limits_they_exceed() -> None:
    benchmark = measured(calls=AFTER)
    (row,) = [row for row in report(benchmark, result().env).sections[0].rows if row[0] == "allocations"]
    assert row == ("allocations", "13", "9 by split, 10 calls of free")
    limited = gates(limits=(limit("allocations=12"), limit("allocations=13")))
    assert [*remarks_on_limits(result(benchmark), limited)] == ["sieve: allocations 13 exceeds the limit of 12"]
    assert [*remarks_on_limits(result(measured()), limited)] == []
