"""The remarks on a benchmark and the verdict in one line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.compare.explain import details
from cachegrind_bench.compare.explained import Explained
from cachegrind_bench.compare.verdict import State, compare
from cachegrind_bench.history.values import Against, Reading
from cachegrind_bench.model.metrics import EVENTS, ZERO, FunctionCost, LineCost, Profile
from cachegrind_bench.model.result import ObjectFile
from cachegrind_bench.model.thresholds import Limit
from cachegrind_bench.render.comparison import github, markdown, table
from cachegrind_bench.render.comparison.blame import interpreted
from cachegrind_bench.render.comparison.remarks import remarks
from cachegrind_bench.render.comparison.states import LOOKS
from cachegrind_bench.render.comparison.verdict_line import verdict_line
from cachegrind_bench.render.comparison.view import view
from cachegrind_bench.render.documents.comparisons import comparison as comparison_document
from cachegrind_bench.render.trend.words import against
from tests.unit.comparing import compared, counts, difference, gates, measured
from tests.unit.samples import failed_benchmark, result

if TYPE_CHECKING:
    from cachegrind_bench.model.metrics import Counts
    from cachegrind_bench.model.result import Benchmark
    from cachegrind_bench.render.comparison.view import Explanation


def said(base: Benchmark, candidate: Benchmark, **changes: Any) -> str:
    return "; ".join(remarks(difference(base, candidate, **changes), gates(**changes)))


def layouts(*values: Counts) -> Benchmark:
    return measured(value=values[0], runs=list(enumerate(values)))


def test_every_state_has_a_mark_of_its_own() -> None:
    assert len({mark for mark, _sign, _level in LOOKS.values()}) == len(LOOKS) == len(State)


def test_layouts_are_reported() -> None:
    base = layouts(counts(), counts())
    assert said(base, layouts(counts(), counts())) == "median of 2 memory layouts, pair by pair"
    assert "2 memory layouts were measured on one side only" in said(base, layouts(*[counts()] * 4))
    disjoint = measured(runs=[(7, counts())])
    assert said(base, disjoint) == "base and candidate have no memory layout in common"


def test_mixed_signs_are_reported_whether_gated_or_not() -> None:
    base = layouts(counts(), counts(), counts())
    mixed = layouts(counts(1_010_000), counts(1_010_000), counts(990_000))
    assert said(base, mixed).startswith("up in some memory layouts and down in others: ")
    assert "in their median by more than --threshold-cache 0.6 %" in said(base, mixed, threshold_cache="0.6%")


def test_from_a_base_of_0_there_is_no_percentage_in_any_format() -> None:
    found = compared(measured(value=ZERO), measured(value=counts(119_307)))
    assert verdict_line(found, {}) == "regression: sieve score from 0 to 119,307 (threshold 0.5 %)"
    (row,) = view(Explained(comparison=found, details={}, names=("a", "b"))).rows
    assert row.cells[:4] == ("0", "119,307", "from 0", "from 0")
    (document,) = json.loads(comparison_document(found, {}))["benchmarks"]
    assert document["change_ppm"] == {"score": None, "Ir": None}
    for form in (table, markdown, github):
        assert "11,930" not in form.render(view(Explained(comparison=found, details={}, names=("a", "b"))))
    one, other = (
        Reading(index=0, sha="", key="k", value=value, counts=ZERO, created_at="", uid="") for value in (0, 9)
    )
    assert against(Against(base=one, latest=other)) == "from 0"


def test_noise_that_decides_nothing_is_reported_too() -> None:
    quiet = measured(runs=[(0, counts()), (0, counts(1_000_100))])
    assert said(quiet, measured()) == "repeated runs differ by 0.01 %"


def test_gates_that_were_exceeded_are_reported_with_their_values() -> None:
    worse = measured(value=counts(1_010_000))
    assert said(measured(), worse, threshold="5%", threshold_ir="0.5%") == "Ir +1 % exceeds --threshold-ir 0.5 %"
    missing = counts(ram=20_000), counts(1_006_000, ram=20_000)  # of which the score grows by less
    assert said(*(measured(value=value) for value in missing)) == "Ir +0.6 % exceeds the threshold of 0.5 %"
    assert "the caches serve it worse, by more than --threshold-cache 2 %" in said(
        measured(), measured(value=counts(ram=1_000))
    )
    assert "the caches serve it better" in said(measured(value=counts(ram=1_000)), measured())


def test_failures_are_reported_of_both_sides() -> None:
    text = said(failed_benchmark(), failed_benchmark(error=None))
    assert text == "the base failed: the command failed with exit status 3; the candidate failed: failed"


def test_inexact_processes_are_reported() -> None:
    assert said(measured(), measured(processes_exact=False)) == "the candidate counted some processes inexactly"


def test_keys_that_differ_in_no_known_field_are_reported_themselves() -> None:
    assert said(measured(), measured(key="other")) == "measured differently: their keys are 0123456789ab and other"
    assert said(measured(), measured(key="other"), force=True) == "compared by force"


def test_of_fields_only_what_differs_is_reported() -> None:
    base = measured(
        key_fields={"geometry": "I1=1 D1=2 LL=8", "interpreter": "a" * 40 + "+" + "b" * 40, "libc": "1" * 40}
    )
    other = measured(
        key="other",
        key_fields={"geometry": "I1=1 D1=2 LL=4", "interpreter": "a" * 40 + "+" + "c" * 40, "libc": "1" * 39 + "2"},
    )
    assert said(base, other) == (
        "measured differently: geometry LL=8 → LL=4, interpreter aaaaaaaa+bbbbbbbb → aaaaaaaa+cccccccc, "
        f"libc {'1' * 40} → {'1' * 39}2"
    )


def test_another_command_is_reported_and_another_folder_is_not() -> None:
    base = measured(command=("/home/a/wc", "21000"))
    assert said(base, measured(command=("./wc", "21000"))) == ""
    assert said(base, measured(command=("./wc", "x y"))) == "another command: /home/a/wc 21000 → ./wc 'x y'"


def test_gates_that_fit_nothing_and_lone_benchmarks_of_two_names_are_noticed() -> None:
    found = compare(
        result(measured("a")), result(measured("b")), gates(limits=(Limit(pattern="typo", name="Ir", value=1),))
    )
    notices = view(Explained(comparison=found, details={}, names=("x", "y"))).notices
    assert notices == (
        "--limit typo:Ir=… does not match any benchmark",
        "the benchmarks have other ids, a and b; 'cg-bench run --id' names one",
    )


def test_libraries_that_came_went_or_changed_are_reported_and_the_executable_is_not() -> None:
    program = ObjectFile(path="/a/prog", build_id="1" * 40)
    base = measured(objects=(program, ObjectFile(path="/lib/libz.so.1", build_id="2" * 40)))
    upgraded = measured(objects=(program, ObjectFile(path="/lib/libz.so.2", build_id="sha256:" + "3" * 40)))
    assert said(base, upgraded) == "libraries changed: libz.so.2 (22222222 → 33333333); the executable is the same"
    without = measured(objects=(ObjectFile(path="/b/prog", build_id="9" * 40),))
    assert said(base, without) == "libraries changed: libz.so.1 gone"
    assert said(without, base) == "libraries changed: libz.so.1 added"
    assert not said(measured(objects=(program,)), without)


def test_an_interpreter_is_named_whatever_the_order_of_its_libraries() -> None:
    objects = (ObjectFile(path="/lib/ld.so.1", build_id="1"), ObjectFile(path="/usr/bin/perl", build_id="2"))
    scripted = measured(key_fields={"interpreter": "2"}, objects=objects)
    assert interpreted(difference(scripted, scripted), None) == "perl"
    assert interpreted(difference(measured(), measured()), None) is None
    unknown = measured(key_fields={"interpreter": "2"}, objects=())
    assert interpreted(difference(unknown, unknown), None) == "the interpreter"


@pytest.mark.parametrize(
    ("file", "iterations", "name"), [("a.mjs", 10, None), ("???", 10, "node"), ("a.c", None, "node")]
)
def test_a_function_that_a_compiler_has_logged_is_not_one_of_the_interpreter(
    file: str, iterations: int | None, name: str | None
) -> None:
    objects = (ObjectFile(path="/usr/bin/node", build_id="1"),)
    base, candidate = (
        Profile(events=EVENTS, functions=(FunctionCost(file, "work", counts(ir).as_tuple()),)) for ir in (1000, 2000)
    )
    sides = (
        measured(value=of.counts(), profile=of, key_fields={"interpreter": "1"}, objects=objects, iterations=iterations)
        for of in (base, candidate)
    )
    found = compared(*sides)
    assert interpreted(found.differences[0], details(base, candidate, found)) == name


@pytest.mark.parametrize(
    ("base", "candidate", "text"),
    [
        ([], [], "not comparable: neither side has a benchmark to compare"),
        ([measured("a")], [measured("a")], "unchanged: all nine counts of a are the same"),
        ([measured("a")], [measured("a", counts(1_000_001))], "unchanged: a score +0.0001 % (threshold 0.5 %)"),
        ([measured("a")], [measured("a", counts(1_020_000))], "regression: a score +2 % (threshold 0.5 %)"),
        (
            [measured("a")],
            [failed_benchmark(id="a")],
            "failed: a (the candidate failed: the command failed with exit status 3)",
        ),
        (
            [measured("a")],
            [measured("b")],
            "missing: a (the base has it, the candidate does not); 1 missing, 1 new; nothing was compared",
        ),
    ],
)
def test_the_verdict_in_one_line(base: list[Benchmark], candidate: list[Benchmark], text: str) -> None:
    assert verdict_line(compared(base, candidate), {}) == text


def explanation(base: Profile, candidate: Profile, *, lines: bool = False) -> Explanation:
    found = compared(measured(value=base.counts(), profile=base), measured(value=candidate.counts(), profile=candidate))
    why = {"sieve": details(base, candidate, found, lines=lines)}
    (made,) = view(Explained(comparison=found, details=why, names=("a", "b"), at_length=("sieve",))).explanations
    return made


def test_functions_that_moved_are_listed_and_counted_when_they_are_many() -> None:
    def profile(file: str) -> Profile:
        names = [f"f{number:02}" for number in range(25)]
        rows = [FunctionCost(file, name, counts(10_000 + place).as_tuple()) for place, name in enumerate(names)]
        rows.append(FunctionCost("main.c", "main", counts(900_000 if file == "a.c" else 990_000).as_tuple()))
        return Profile(events=EVENTS, functions=tuple(rows))

    made = explanation(profile("a.c"), profile("b.c"))
    assert made.remarks[0] == "moved at the same cost: f00 from a.c to b.c"
    assert made.remarks[-1] == "5 more functions moved to another file, at the same cost"
    assert [row[-2:] for row in made.tables[0][1:]] == [("main", "main.c"), ("100.0 %", "total")]


def test_source_lines_are_placed_in_both_builds() -> None:
    def profile(*lines: tuple[int, int]) -> Profile:
        rows = tuple(LineCost("a.c", "f", line, counts(ir).as_tuple()) for line, ir in lines)
        total = counts(sum(ir for _, ir in lines)).as_tuple()
        return Profile(events=EVENTS, functions=(FunctionCost("a.c", "f", total),), lines=rows)

    base = profile((0, 500_000), (10, 1_000), (11, 200_000), (12, 2_000))
    candidate = profile((0, 600_000), (20, 1_000), (22, 2_000), (23, 300_000))
    places = {row[-1] for row in explanation(base, candidate, lines=True).tables[1][1:]}
    assert places == {"unknown", "a.c:11 (gone)", "a.c:23 (new)"}
    moved = profile((0, 500_000), (20, 1_000), (21, 300_000), (22, 2_000))
    assert [row[-1] for row in explanation(base, moved, lines=True).tables[1][1:]] == ["a.c:21 (was 11)"]
