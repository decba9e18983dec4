"""Two results compared: what is worst, and what it comes to."""

from __future__ import annotations

import pytest

from cachegrind_bench.compare.seals import unlike_seals
from cachegrind_bench.compare.verdict import Conclusion, FailOn, State, compare
from cachegrind_bench.model.metrics import CostModel
from cachegrind_bench.model.result import Score, SealPart, SealState
from tests.unit.comparing import compared, counts, gates, measured
from tests.unit.samples import failed_benchmark, result

GOOD = measured("good")
WORSE, BETTER = measured("moves", counts(1_010_000)), measured("moves", counts(990_000))
STILL = measured("moves")


def everything() -> tuple[list[object], list[object]]:
    """Return two sides with a benchmark in each state; ids are sorted against the order of the states."""
    base = [
        measured("j-regression"),
        measured("i-failed"),
        measured("h-suspicious"),
        measured("g-not-comparable"),
        measured("f-missing"),
        measured("e-noisy", runs=[(0, counts()), (0, counts(1_002_000))]),
        measured("d-shift"),
        measured("c-improvement"),
        measured("a-unchanged"),
    ]
    candidate = [
        measured("j-regression", counts(1_010_000)),
        failed_benchmark(id="i-failed"),
        measured("h-suspicious", counts(100_000)),
        measured("g-not-comparable", key="other", key_fields={"libc": "def"}),
        measured("e-noisy", counts(1_004_000)),
        measured("d-shift", counts(ram=400)),
        measured("c-improvement", counts(900_000)),
        measured("b-new"),
        measured("a-unchanged"),
    ]
    return list(base), list(candidate)


def test_benchmarks_are_listed_worst_first_and_the_worst_is_the_verdict() -> None:
    base, candidate = everything()
    found = compared(base, candidate)  # type: ignore[arg-type]  # a list of benchmarks
    assert [item.state for item in found.differences] == list(State)
    assert found.verdict is State.REGRESSION
    assert found.compared == 6
    assert found.count()[State.NEW] == 1


def test_threads_that_were_not_scheduled_alike_and_another_path_are_remarked_on() -> None:
    pinned = SealPart(state=SealState.PINNED)
    whole = {"scheduling": pinned, "place": pinned}
    shared = whole | {"scheduling": SealPart(state=SealState.UNAVAILABLE, why="no right")}
    kept = whole | {"place": SealPart(state=SealState.KEPT, why="as asked for")}
    base = [measured("same", seal=kept), measured("shared", seal=whole), measured("kept", seal=whole)]
    candidate = [measured("same", seal=kept), measured("shared", seal=shared), measured("kept", seal=kept)]
    assert sorted(unlike_seals(compared(base, candidate))) == [
        "kept: its project was at its real path in one run only (as asked for), which moves counts",
        "shared: its threads were not scheduled as in every run in the candidate (no right), so its counts vary",
    ]


def test_of_one_state_the_largest_change_is_first_and_ties_end_with_the_id() -> None:
    names = ["b", "a", "c", "d"]
    base = [measured(name) for name in names]
    candidate = [measured(name, counts(1_050_000 if name == "c" else 1_010_000)) for name in names]
    assert [item.id for item in compared(base, candidate).differences] == ["c", "a", "b", "d"]
    assert [item.id for item in compared(candidate, base).differences] == ["c", "a", "b", "d"]


@pytest.mark.parametrize(
    ("base", "candidate", "conclusion"),
    [
        ([GOOD, STILL], [GOOD, STILL], Conclusion.FINE),
        ([GOOD, STILL], [GOOD, BETTER], Conclusion.FINE),
        ([GOOD, STILL], [GOOD, WORSE], Conclusion.REGRESSION),
        ([GOOD, STILL], [failed_benchmark(id="good"), WORSE], Conclusion.REGRESSION),
        ([GOOD, STILL], [failed_benchmark(id="good"), STILL], Conclusion.FAILED),
        ([GOOD], [GOOD, failed_benchmark(id="brand-new")], Conclusion.FAILED),
        ([failed_benchmark(id="good"), STILL], [GOOD, STILL], Conclusion.INCOMPLETE),
        ([GOOD, STILL], [GOOD], Conclusion.INCOMPLETE),
        ([GOOD], [GOOD, STILL], Conclusion.FINE),
        ([GOOD, STILL], [GOOD, measured("moves", counts(10))], Conclusion.INCOMPLETE),
        ([GOOD, STILL], [GOOD, measured("moves", key="other")], Conclusion.INCOMPLETE),
    ],
)
def test_a_comparison_comes_to(base: list[object], candidate: list[object], conclusion: Conclusion) -> None:
    assert compared(base, candidate).conclusion() is conclusion  # type: ignore[arg-type]


@pytest.mark.parametrize("fail_on", list(FailOn))
def test_a_comparison_that_compared_nothing_is_never_green(fail_on: FailOn) -> None:
    for base, candidate in ([GOOD], [STILL]), ([], []), ([], [GOOD]), ([GOOD], [measured("good", key="other")]):
        assert compared(base, candidate, fail_on=fail_on).conclusion() is not Conclusion.FINE


@pytest.mark.parametrize("candidate", [[GOOD, WORSE], [GOOD, BETTER], [GOOD], [GOOD, STILL, measured("new")]])
def test_any_change_can_fail(candidate: list[object]) -> None:
    found = compared([GOOD, STILL], candidate, fail_on=FailOn.ANY_CHANGE)  # type: ignore[arg-type]
    assert found.conclusion() is Conclusion.REGRESSION
    assert compared([GOOD], [GOOD], fail_on=FailOn.ANY_CHANGE).conclusion() is Conclusion.FINE


def test_never_fails_on_a_verdict_but_still_on_a_failed_candidate() -> None:
    assert compared([GOOD, STILL], [GOOD, WORSE], fail_on=FailOn.NEVER).conclusion() is Conclusion.FINE
    assert compared([GOOD, STILL], [GOOD], fail_on=FailOn.NEVER).conclusion() is Conclusion.FINE
    failed = compared([GOOD, STILL], [GOOD, failed_benchmark(id="moves")], fail_on=FailOn.NEVER)
    assert failed.conclusion() is Conclusion.FAILED


def test_scores_under_another_model_are_computed_again_under_the_bases() -> None:
    old = CostModel.parse("l1+5ll+35ram")
    value = counts(ram=100)
    base = measured("good", value, score=Score(model=old.name, value=old.score(value)))
    found = compared(base, measured("good", value))
    assert (found.verdict, found.rescored, found.model.name) == (State.UNCHANGED, ("l1+5ll+30ram",), "l1+5ll+35ram")
    asked = compare(result(base), result(base), gates(model=CostModel.parse("ir")))
    assert (asked.model.name, asked.rescored) == ("ir", ("l1+5ll+35ram",))


def test_only_wanted_benchmarks_are_compared() -> None:
    found = compare(result(GOOD, STILL), result(GOOD, WORSE), gates(), wanted=lambda name: name == "good")
    assert [item.id for item in found.differences] == ["good"]


def test_forced_fields_are_reported_once() -> None:
    names = ["a", "b"]
    base = [measured(name) for name in names]
    candidate = [measured(name, key="other", key_fields={"libc": "def", "tool": "cachegrind"}) for name in names]
    assert [field.name for field in compared(base, candidate, force=True).forced] == ["libc"]
    assert not compared(base, candidate).forced
