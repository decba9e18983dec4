"""What calls say of a difference: more calls or dearer ones, whose doing it is, and parts that add up."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.compare.call_split import CallCause, CallSplit, Kind, circles
from cachegrind_bench.compare.explain import Details
from cachegrind_bench.model.call_graph import CallGraph, Calls, Code
from cachegrind_bench.model.metrics import ZERO
from cachegrind_bench.render.comparison.calls import calls_table, cause_remarks, cause_text
from tests.unit.calls import LIBC, Functions, code, compared, graph

BASE: Functions = {
    "main": (100, {"count": 1, "load": 1}),
    "count": (50, {"contains": 503}),
    "contains": (41, {}),
    "load": (2_000, {"libc:memset": 2}),
    "libc:memset": (500, {}),
}


EMPTY: dict[str, Any] = {"rows": (), "rest": (), "blamed": None, "blamed_share": 0, "moved": (), "moved_count": 0}


def changed(**functions: Any) -> CallSplit:
    return compared(graph(BASE), graph(BASE | {name.replace("__", ":"): value for name, value in functions.items()}))


def cause_of(found: CallSplit) -> CallCause:
    assert found.cause is not None
    return found.cause


def said(found: CallSplit) -> str | None:
    return cause_text(Details(total=ZERO, lines=None, lines_missing=False, by_file=False, calls=found, **EMPTY))


def test_what_is_called_more_often_is_named_with_its_caller_who_is_to_blame() -> None:
    found = changed(count=(50, {"contains": 3_000}))
    assert said(found) == "contains (words.c) is called 3,000 instead of 503 times, from count"
    cause = cause_of(found)
    assert (cause.kind, cause.culprit.name, cause.ir) == (Kind.CALLED, "count", 2_497 * 41)
    by_name = {str(row.name): row for row in found.rows}
    assert (by_name["contains"].by_calls, by_name["contains"].by_cost, by_name["contains"].blame) == (2_497 * 41, 0, 0)
    assert (by_name["count"].by_calls, by_name["count"].by_cost, by_name["count"].blame) == (0, 2_497 * 41, 2_497 * 41)
    assert "main" not in by_name


def test_a_call_that_costs_more_is_said_to() -> None:
    found = changed(contains=(60, {}))
    assert said(found) == "each call of contains (words.c) costs 60 instead of 41 instructions"
    assert cause_of(found).culprit.name == "contains"


def test_each_call_is_the_same_quantity_in_sentence_and_table() -> None:
    found = changed(load=(2_500, BASE["load"][1]), main=(100, {"count": 1, "load": 4}))
    (row,) = (row for row in calls_table(found) if "load" in row)
    assert row[5] == "3,000 → 3,500"
    again = compared(
        graph(BASE | {"main": (100, {"load": 4})}),
        graph(BASE | {"main": (100, {"load": 4}), "load": (2_500, BASE["load"][1])}),
    )
    assert said(again) == (
        "each call of load (words.c) costs 3,500 instead of 3,000 instructions, 2,500 instead of 2,000 in its own code"
    )


@pytest.mark.parametrize("more", [20, 20_000])
def test_new_calls_cost_what_they_cost_and_not_what_a_few_dear_ones_did(more: int) -> None:
    def program(new: int) -> CallGraph:
        own = {code("main"): 1_000, code("fill"): 8 * 400 + 40 * new}
        return CallGraph(own, {(code("main"), code("fill")): Calls(8 + new, own[code("fill")])})

    found = compared(program(0), program(more))
    assert (cause_of(found).kind, cause_of(found).culprit.name) == (Kind.CALLED, "main")
    assert cause_of(found).ir == found.total == 40 * more
    assert found.rows[0].label.name == "main"
    back = compared(program(more), program(0))
    assert {row.label.name: -row.blame for row in back.rows} == {row.label.name: row.blame for row in found.rows}


def test_calls_that_moved_to_another_caller_are_not_new_ones() -> None:
    def program(first: int, second: int, cost: int) -> CallGraph:
        return graph({"main": (1, {"a": 1, "b": 1}), "a": (1, {"f": first}), "b": (1, {"f": second}), "f": (cost, {})})

    found = compared(program(100, 0, 10), program(0, 110, 12))
    assert {row.label.name: row.blame for row in found.rows} == {"f": 200, "b": 1_000 + 120, "a": -1_000}


def test_where_others_go_the_other_way_a_share_is_not_above_all() -> None:
    found = changed(count=(50, {"contains": 603}), load=(0, BASE["load"][1]))
    known = Details(total=ZERO, lines=None, lines_missing=False, by_file=False, calls=found, **EMPTY)
    assert cause_remarks(known)[0].endswith("from count: +4,100 instructions, all else -2,000")


def test_both_at_once_are_kept_apart() -> None:
    found = changed(contains=(60, {}), count=(50, {"contains": 600}))
    (row,) = (row for row in found.rows if row.label.name == "contains")
    assert (row.by_calls, row.by_cost) == (97 * 60, 503 * 19)
    assert {row.label.name: row.blame for row in found.rows} == {"contains": 503 * 19, "count": 97 * 60}
    assert said(found) == "each call of contains (words.c) costs 60 instead of 41 instructions"


def test_fewer_calls_explain_an_improvement() -> None:
    assert (
        said(changed(count=(50, {"contains": 3}))) == "contains (words.c) is called 3 instead of 503 times, from count"
    )


def test_a_function_of_libc_is_named_with_its_caller() -> None:
    found = changed(libc__memset=(900, {}))
    assert said(found) == "each call of memset (libc.so.6) costs 900 instead of 500 instructions, called from load"


def test_the_nearest_caller_outside_of_libc_is_named_only_where_it_is_clear() -> None:
    def program(inner: int, other: int) -> CallGraph:
        return graph(
            {
                "main": (1, {"split": 1, "join": 1}),
                "split": (1, {"libc:malloc": 10}),
                "join": (1, {"libc:malloc": other}),
                "libc:malloc": (1, {"libc:_int_malloc": 1}),
                "libc:_int_malloc": (inner, {}),
            }
        )

    clear = said(compared(program(100, 3), program(200, 3)))
    assert clear == "each call of _int_malloc (libc.so.6) costs 200 instead of 100 instructions, called from split"
    unclear = said(compared(program(100, 10), program(200, 10)))
    assert unclear == "each call of _int_malloc (libc.so.6) costs 200 instead of 100 instructions"


def test_a_new_function_is_its_callers_doing() -> None:
    found = changed(count=(50, {"contains": 503, "log": 503}), log=(70, {}))
    assert said(found) == "log (words.c) is called 503 instead of 0 times, from count"
    assert {row.label.name: row.blame for row in found.rows} == {"count": 503 * 70, "log": 0}


def test_a_function_that_was_only_split_off_is_nobodys_fault() -> None:
    found = changed(count=(50, {"helper": 503}), helper=(0, {"contains": 1}))
    assert (found.total, found.cause) == (0, None)
    inlined = changed(count=(50 + 503 * 45, {}))  # each turn costs 4 more than the call did
    assert inlined.total == 503 * 4
    assert said(inlined) == "count (words.c), with what it calls, costs 22,685 instead of 20,673 instructions"


def test_a_function_of_another_name_is_a_function_less_and_one_more() -> None:
    found = changed(count=(50, {"includes": 503}), includes=(41, {}))
    assert (found.total, found.cause) == (0, None)
    assert all(row.blame == 0 for row in found.rows)


def test_one_that_moved_to_another_file_is_the_same() -> None:
    base, there = graph(BASE), Code("/work/words", "other.c", "contains")

    def moved(found: Code) -> Code:
        return there if found.name == "contains" else found

    candidate = CallGraph(
        {moved(found): ir for found, ir in base.own.items()},
        {(moved(caller), moved(callee)): calls for (caller, callee), calls in base.calls.items()},
    )
    found = compared(base, candidate)
    assert found.rows == ()


def test_a_stub_is_the_function_that_it_leads_to() -> None:
    def through(number: int) -> CallGraph:
        stub, memset = Code("???", "???", "memset@plt"), Code(LIBC, "???", "memset")
        own = {code("main"): 10, stub: 2 * number, memset: 500 * number}
        calls = {(code("main"), stub): Calls(number, 502 * number), (stub, memset): Calls(number, 500 * number)}
        return CallGraph(own, calls)

    found = compared(through(4), through(9))
    assert said(found) == "memset (libc.so.6) is called 9 instead of 4 times, from main"
    assert cause_of(found).ir == 5 * 502


def fib(depth_calls: int, outer: int = 1) -> CallGraph:
    """Return a function that calls itself; what these calls cost contains one another, as Callgrind has it."""
    own = {code("main"): 10, code("fib"): 20 * outer * (depth_calls + 1)}
    calls = {
        (code("main"), code("fib")): Calls(outer, own[code("fib")]),
        (code("fib"), code("fib")): Calls(outer * depth_calls, 77_777 * depth_calls),
    }
    return CallGraph(own, calls)


def test_a_recursion_is_counted_once() -> None:
    deeper = compared(fib(100), fib(300))
    assert said(deeper) == "fib (words.c) is called 301 instead of 101 times, from itself"
    assert cause_of(deeper).ir == deeper.total == 200 * 20
    again = compared(fib(100), fib(100, outer=2))
    assert said(again) == "fib (words.c) is called 202 instead of 101 times, 1 more from main"


def test_functions_that_call_each_other_are_one_row() -> None:
    def program(number: int) -> CallGraph:
        names = code("main"), code("eval"), code("call")
        own = {names[0]: 1, names[1]: 30 * number, names[2]: 5 * number}
        inner = {(names[1], names[2]): Calls(number, 99 * number), (names[2], names[1]): Calls(number - 1, 98 * number)}
        return CallGraph(own, {(names[0], names[1]): Calls(1, 35 * number)} | inner)

    found = compared(program(10), program(20))
    assert [(row.label.name, row.members, row.blame) for row in found.rows] == [("eval", 2, 350)]
    assert said(found) == "eval (words.c) is called 20 instead of 10 times, from call"
    assert cause_of(found).members == 2


def written(*, encoded: int = 100, escaped: int = 100, pasted: int = 100, cost: int = 50) -> CallGraph:
    """A circle: eval calls lists 100 times, these encode, encode escapes, and that sometimes calls eval; or eval copies."""
    main, evaluate, lists, encode, escape = map(code, ("main", "eval", "lists", "encode", "escape"))
    copy = code("copy")
    own = {main: 1, evaluate: 1_000, lists: 700, encode: 9 * encoded, escape: cost * escaped, copy: 3 * pasted}
    calls = {
        (evaluate, lists): 100,
        (lists, encode): encoded,
        (encode, escape): escaped,
        (escape, evaluate): 5,
        (escape, copy): pasted,
    }
    costs = {pair: Calls(number, 3 * number) for pair, number in calls.items()}
    return CallGraph(own, {(main, evaluate): Calls(1, sum(own.values()) - 1)} | costs)


def test_within_a_circle_the_first_of_a_chain_of_calls_is_named() -> None:
    base = written()
    found = compared(base, written(encoded=200, escaped=200, pasted=200))
    assert said(found) == "encode (words.c) is called 200 instead of 100 times, from lists"
    assert (cause_of(found).culprit.name, cause_of(found).ir) == ("lists", found.total)
    assert [(label.name, ir) for label, ir in found.shares if ir] == [("lists", found.total)]
    assert said(compared(base, written(escaped=300, pasted=300))) == (
        "escape (words.c) is called 300 instead of 100 times, from encode"
    )
    assert said(compared(base, written(pasted=300))) == "copy (words.c) is called 300 instead of 100 times, from escape"
    dearer = compared(base, written(encoded=110, escaped=110, pasted=110, cost=80))
    assert said(dearer) == "each call of escape (words.c) costs 80 instead of 50 instructions in its own code"
    assert {label.name: ir for label, ir in dearer.shares if ir} == {"escape": 100 * 30, "lists": 10 * 92}


def test_what_ran_from_the_start_on_and_is_new_has_no_caller() -> None:
    found = compared(CallGraph({code("f"): 10}, {}), CallGraph({code("f"): 10, code("g"): 5}, {}))
    assert (found.total, found.top, found.cause) == (5, 5, None)


def test_nothing_moved() -> None:
    found = compared(graph(BASE), graph(BASE))
    assert (found.rows, found.rest, found.top, found.cause) == ((), 0, 0, None)


@pytest.mark.parametrize("length", [1, 3, 20_000])
def test_a_circle_is_found_however_long(length: int) -> None:
    callees = {number: [number + 1] for number in range(length)} | {length: [1]}
    assert [*circles(range(length + 1), callees)] == [[*range(1, length + 1)], [0]]


def test_fewer_rows_still_add_up() -> None:
    base = graph(BASE)
    candidate = graph(BASE | {"contains": (60, {}), "load": (9_000, {"libc:memset": 3})})
    assert len(compared(base, candidate, rows=1).rows) == 1
    one, all_rows = (
        replace(found, rows=(), shares=(), rest=0)
        for found in (compared(base, candidate, rows=1), compared(base, candidate))
    )
    assert one == all_rows
