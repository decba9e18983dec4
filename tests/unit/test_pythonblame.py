"""Which Python function is to blame: small programs whose culprit is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.compare.pairing import pair_functions
from cachegrind_bench.compare.python_blame import blame
from tests.unit.pythons import chain, function, python_profile

if TYPE_CHECKING:
    from cachegrind_bench.compare.python_blame import PythonBlame
    from tests.unit.pythons import Tree

BASE: Tree = {"main:1": (1, 1_000, {"load:5": (10, 5_000, {"parse:9": (100, 40_000)}), "save:20": (1, 2_000)})}


def blamed(base: Tree, candidate: Tree, *, native: tuple[int, int] = (50, 50)) -> dict[str, tuple[int, int]]:
    """Return own cost and blame of all functions with any, and of native code."""
    before, after = (python_profile(tree, native=ir) for tree, ir in zip((base, candidate), native, strict=True))
    found = blame(before, after)
    check_sums(found)
    rows = {row.function.name: (row.own, row.blame) for row in found.rows if row.own or row.blame}
    return rows | ({"native": (found.native, found.native_blame)} if found.native_blame else {})


def check_sums(found: PythonBlame) -> None:
    assert sum(row.delta for row in found.rows) + found.native == found.total
    assert sum(row.blame for row in found.rows) + found.native_blame == found.total


def test_nothing_is_to_blame_for_no_difference() -> None:
    found = blame(python_profile(BASE), python_profile(BASE))
    assert (found.rows, found.native, found.total, found.chief) == ((), 0, 0, None)


def test_the_function_whose_own_code_got_slower_is_to_blame_and_its_callers_are_not() -> None:
    slower: Tree = {"main:1": (1, 1_000, {"load:5": (10, 5_000, {"parse:9": (100, 40_400)}), "save:20": (1, 2_000)})}
    assert blamed(BASE, slower) == {"parse": (400, 400)}


def test_who_calls_a_function_more_often_is_to_blame_and_not_the_function() -> None:
    more: Tree = {"main:1": (1, 1_000, {"load:5": (10, 5_000, {"parse:9": (150, 60_000)}), "save:20": (1, 2_000)})}
    assert blamed(BASE, more) == {"load": (0, 20_000)}


def test_only_the_first_who_calls_more_often_is_to_blame() -> None:
    more: Tree = {"main:1": (1, 1_000, {"load:5": (20, 10_000, {"parse:9": (200, 80_000)}), "save:20": (1, 2_000)})}
    assert blamed(BASE, more) == {"main": (0, 45_000)}
    assert blamed(more, BASE) == {"main": (0, -45_000)}


def test_a_new_function_is_to_be_blamed_on_who_calls_it() -> None:
    new: Tree = {
        "main:1": (1, 1_000, {"load:5": (10, 5_000, {"parse:9": (100, 40_000), "log:30": (100, 700, {"fmt:40": (100, 300)})})}
        | {"save:20": (1, 2_000)})
    }  # fmt: skip
    assert blamed(BASE, new) == {"load": (0, 1_000)}
    assert blamed(new, BASE) == {"load": (0, -1_000)}


def test_what_a_new_function_calls_of_old_is_held_against_the_base() -> None:
    wrapped: Tree = {
        "main:1": (1, 1_000, {"load:5": (10, 5_000, {"cached:7": (100, 900, {"parse:9": (100, 41_000)})}), "save:20": (1, 2_000)})
    }  # fmt: skip
    assert blamed(BASE, wrapped) == {"load": (0, 900), "parse": (1_000, 1_000)}


def nested(*levels: tuple[str, int, int], below: Tree | None = None) -> Tree:
    """Return functions that call each other, the outermost first, as (name, calls, ir)."""
    found = below or {}
    for name, calls, ir in reversed(levels):
        found = {name: (calls, ir, found)}
    return found


MAIN, OTHER, WRAPPER = ("main:1", 1, 100), ("other:5", 1, 50), ("wrapper:30", 1, 5)


def mutual(depth: int) -> list[tuple[str, int, int]]:
    return [("b:3" if level % 2 else "a:2", 1, 10) for level in range(depth)]


@pytest.mark.parametrize(
    ("inner", "elsewhere"),
    [
        ([("loads:9", 1, 1_000)], nested(OTHER, ("loads:9", 1_000, 10_000))),
        ([("f:2", 1, 10), ("f:2", 9, 90)], {}),
        ([("f:2", 1, 10), ("f:2", 9, 90)], nested(OTHER, ("f:2", 1, 7))),
        (mutual(20), {}),
        (mutual(3), nested(OTHER, ("b:3", 7, 900))),
        ([("f:2", 0, 70), ("loads:9", 3, 50)], nested(OTHER, ("loads:9", 1, 1_000))),
        ([("f:2", 2, 70)], nested(OTHER, WRAPPER, ("dear:50", 1, 100_000))),
    ],
    ids=[
        "one-of-two-callers",
        "recursive",
        "recursive-and-elsewhere",
        "mutual",
        "mutual-elsewhere",
        "entered",
        "decorator",
    ],
)
def test_a_function_put_between_two_others_is_the_business_of_the_caller_alone(
    inner: list[tuple[str, int, int]], elsewhere: Tree
) -> None:
    before, after = nested(MAIN, *inner) | elsewhere, nested(MAIN, WRAPPER, *inner) | elsewhere
    assert blamed(before, after) == {"main": (0, 5)}
    assert blamed(after, before) == {"main": (0, -5)}
    several = nested(MAIN, WRAPPER, ("inner:40", 1, 2), *inner) | elsewhere
    assert blamed(before, several) == {"main": (0, 7)}
    assert blamed(several, before) == {"main": (0, -7)}


def test_a_decorator_on_a_recursive_function_is_blamed_on_who_calls_it() -> None:
    before = nested(MAIN, *[("f:2", 1, 10)] * 4)
    after = nested(MAIN, *[("wrapper:30", 1, 5), ("f:2", 1, 10)] * 4)
    assert blamed(before, after) == {"main": (0, 5), "f": (0, 15)}
    assert blamed(after, before) == {"main": (0, -5), "f": (0, -15)}


def test_what_calls_only_some_of_its_callees_through_a_new_function_is_to_blame_for_no_more_than_that() -> None:
    before: Tree = {"main:1": (1, 100, {"work:9": (10, 1_000)}), "other:5": (1, 50, {"work:9": (10, 90_000)})}
    after: Tree = before | {"main:1": (1, 100, {"work:9": (4, 400), "helper:7": (6, 30, {"work:9": (6, 600)})})}
    assert blamed(before, after) == {"main": (0, 30)}
    assert blamed(after, before) == {"main": (0, -30)}


def test_a_function_of_another_name_between_the_same_two_is_blamed_for_nothing_else() -> None:
    elsewhere = nested(OTHER, ("loads:9", 1_000, 10_000))
    before = nested(MAIN, ("read:7", 1, 30), ("loads:9", 1, 1_000)) | elsewhere
    after = nested(MAIN, ("get:7", 1, 40), ("loads:9", 1, 1_000)) | elsewhere
    assert blamed(before, after) == {"main": (0, 10)}


def test_a_call_of_a_recursive_function_from_a_new_place_is_predicted_by_calls_from_outside() -> None:
    recursive: Tree = {"f:2": (1, 10, {"f:2": (9, 90)})}
    before: Tree = {"main:1": (1, 100, recursive), "other:5": (1, 50)}
    after: Tree = {"main:1": (1, 100, recursive), "other:5": (1, 50, recursive)}
    assert blamed(before, after) == {"other": (0, 100)}


def test_a_function_that_is_gone_is_credited_to_who_called_it() -> None:
    gone: Tree = {"main:1": (1, 1_000, {"save:20": (1, 2_000)})}
    assert blamed(BASE, gone) == {"main": (0, -45_000)}


def test_native_code_is_to_blame_for_what_it_costs_and_calls_more_often() -> None:
    twice: Tree = {"f:1": (2, 200), "g:2": (1, 7)}
    assert blamed({"f:1": (1, 100)}, twice, native=(1_000, 1_300)) == {"native": (300, 407)}
    before, after = python_profile({"f:1": (1, 100)}, native=5), python_profile({"f:1": (1, 110)}, native=50)
    assert blame(before, after).chief is None


def test_the_same_function_is_dear_for_one_caller_and_cheap_for_another() -> None:
    def program(small: int, large: int) -> Tree:
        return {"a:1": (1, 10, {"work:9": (small, 5 * small)}), "b:2": (1, 10, {"work:9": (large, 900 * large)})}

    assert blamed(program(10, 10), program(12, 10)) == {"a": (0, 10)}
    assert blamed(program(10, 10), program(10, 11)) == {"b": (0, 900)}


@pytest.mark.parametrize(("before", "after"), [(3, 4), (10, 20), (20, 10), (1, 900), (900, 1)])
def test_deeper_recursion_is_to_be_blamed_on_the_function_that_calls_itself(before: int, after: int) -> None:
    rows = blamed(chain(before), chain(after))
    assert rows == {"f": (rows["f"][0], 10 * (after - before))}


def test_recursion_that_got_slower_is_its_own_cost() -> None:
    assert blamed(chain(500, 10), chain(500, 11)) == {"f": (500, 500)}
    assert blamed({"main:3": (1, 5, chain(50, 10))}, {"main:3": (1, 5, chain(50, 11))}) == {"f": (50, 50)}


def test_mutual_recursion_adds_up() -> None:
    def nest(depth: int, odd: int) -> Tree:
        found: Tree = {}
        for level in range(depth):
            found = {"odd:1" if level % 2 else "even:5": (1, odd if level % 2 else 20, found)}
        return found

    assert blamed(nest(10, 30), nest(10, 33)) == {"odd": (15, 15)}
    assert sum(row[1] for row in blamed(nest(10, 30), nest(16, 30)).values()) == 150


def test_what_was_entered_before_counting_began_is_compared_as_it_is() -> None:
    assert blamed({"main:1": (0, 100, {"f:2": (5, 50)})}, {"main:1": (0, 100, {"f:2": (6, 60)})}) == {"main": (0, 10)}
    assert blamed({"main:1": (0, 100)}, {"main:1": (0, 130)}) == {"main": (30, 30)}


def test_the_chief_goes_with_the_total_and_ties_are_broken_by_name() -> None:
    before = python_profile({"up:1": (1, 100), "down:2": (1, 500), "also:3": (1, 100)})
    after = python_profile({"up:1": (1, 200), "down:2": (1, 350), "also:3": (1, 200)})
    found = blame(before, after)
    assert [row.function.name for row in found.rows] == ["down", "also", "up"]
    assert found.chief is not None
    assert found.chief.function.name == "also"
    mirrored = blame(after, before).chief
    assert mirrored is not None
    assert mirrored.function.name == "also"


def test_rows_report_calls_self_and_inclusive_cost_of_both_sides_under_the_candidates_name() -> None:
    before = python_profile({"f@/old/site-packages/p/a.py:3": (2, 10, {"g@/old/p/b.py:1": (4, 8)})})
    after = python_profile({"f@/new/venv/p/a.py:7": (2, 15, {"g@/new/p/b.py:1": (4, 8)})}, cut=True)
    found = blame(before, after)
    (row,) = found.rows
    assert row.function == function("f@/new/venv/p/a.py:7")
    assert (row.base.calls, row.base.ir, row.base.inclusive) == (2, 10, 18)
    assert (row.candidate.calls, row.candidate.ir, row.candidate.inclusive) == (2, 15, 23)
    assert (row.delta, row.own, row.called, row.blame) == (5, 5, 0, 5)
    assert (found.base_total, found.candidate_total, found.cut) == (18, 23, True)


@pytest.mark.parametrize(
    ("base", "candidate", "pairs"),
    [
        (["f@a.py:1"], ["f@a.py:9"], {0: 0}),
        (["f@a.py:1", "f@b.py:1"], ["f@b.py:1", "f@a.py:1"], {0: 1, 1: 0}),
        (["f@/x/a.py:1", "f@/x/b.py:1"], ["f@/y/a.py:1", "f@/y/b.py:1"], {0: 0, 1: 1}),
        (["f@x/a.py:1", "f@y/a.py:1"], ["f@z/a.py:1"], {}),
        (["f@a.py:1"], ["f@moved.py:1"], {0: 0}),
        (["f@a.py:1", "f@b.py:1"], ["f@moved.py:1"], {}),
        (["C.x@a.py:1", "C.x@a.py:5"], ["C.x@a.py:3", "C.x@a.py:7"], {0: 0, 1: 1}),
        (["C.x@a.py:1", "C.x@a.py:5"], ["C.x@a.py:5", "C.x@a.py:1"], {0: 1, 1: 0}),
        (["f@a.py:1"], ["g@a.py:1"], {}),
        (["C.x@a.py:1", "C.x@a.py:5"], ["C.x@moved.py:3", "C.x@moved.py:7"], {0: 0, 1: 1}),
        (["C.x@/v1/a.py:1", "C.x@/v1/a.py:5"], ["C.x@/v2/a.py:3", "C.x@/v2/a.py:7"], {0: 0, 1: 1}),
        (
            ["<module>@/v1/json/__init__.py:1", "<module>@/v1/re/__init__.py:1", "<module>@/v1/p/re/__init__.py:1"],
            ["<module>@/v2/p/re/__init__.py:1", "<module>@/v2/re/__init__.py:1", "<module>@/v2/json/__init__.py:1"],
            {0: 2, 1: 1, 2: 0},
        ),
        (
            ["get@/v1/a/utils.py:1", "get@/v1/b/utils.py:1"],
            ["get@/v2/b/utils.py:1", "get@/v2/a/utils.py:1"],
            {0: 1, 1: 0},
        ),
        (["get@/v1/a/utils.py:1", "get@/v1/b/utils.py:1"], ["get@/v2/b/utils.py:1"], {1: 0}),
        (["<module>@/v1/json/__init__.py:1"], ["<module>@/v2/yaml/__init__.py:1"], {}),
        (["<module>@pkg/__init__.py:1"], ["<module>@src/pkg/__init__.py:1"], {0: 0}),
        (["<module>@a.py:1"], ["<module>@b.py:1"], {}),
        (["<lambda>@a.py:1"], ["<lambda>@b.py:1"], {}),
        (["f.<locals>.<lambda>@a.py:1"], ["f.<locals>.<lambda>@b.py:1"], {0: 0}),
        ([], [], {}),
    ],
)
def test_functions_are_paired_by_file_and_name_then_by_the_ends_of_paths_then_by_unique_names(
    base: list[str], candidate: list[str], pairs: dict[int, int]
) -> None:
    sides = [[function(text) for text in side] for side in (base, candidate)]
    for (left, right), expected in (((0, 1), pairs), ((1, 0), {new: old for old, new in pairs.items()})):
        before, after = pair_functions(sides[left], sides[right])
        assert {old: new for old in range(len(before)) for new in range(len(after))
                if before[old] == after[new]} == expected  # fmt: skip
        assert len(set(before)) == len(before)
        assert len(set(after)) == len(after)


def test_functions_of_files_in_deep_folders_are_paired_quickly() -> None:
    deep = ["a/" * 500_000 + "x.py", "b/" * 500_000 + "x.py"]  # took hours
    sides = [[function("f:1"), function(f"g@{file}:1")] for file in deep]
    assert pair_functions(*sides) == ([0, 1], [0, 1])
