"""How often memory is allocated, and by whom."""

from __future__ import annotations

from cachegrind_bench.compare.allocations import Allocations, allocations
from cachegrind_bench.compare.call_pairs import native_sides
from tests.unit.calls import Functions, graph

BASE: Functions = {
    "main": (10, {"split": 5, "join": 1}),
    "split": (3, {"libc:malloc": 1, "libc:free": 1}),
    "join": (3, {"libc:_Znwm": 2, "libc:__libc_calloc": 1}),
    "libc:_Znwm": (1, {"libc:malloc": 1}),
    "libc:malloc": (7, {"libc:_int_malloc": 1}),
    "libc:__libc_calloc": (7, {"libc:_int_malloc": 1}),
    "libc:_int_malloc": (9, {}),
    "libc:free": (5, {}),
}


def more(**functions: tuple[int, dict[str, int]]) -> Allocations | None:
    return allocations(native_sides(graph(BASE), graph(BASE | functions)))


def test_more_allocations_are_counted_once_each_and_named_with_who_makes_most_of_them() -> None:
    found = more(join=(3, {"libc:_Znwm": 20, "libc:__libc_calloc": 1}), split=(3, {"libc:malloc": 2}))
    assert found is not None
    assert (found.base, found.candidate, found.caller.name, found.more) == (8, 31, "join", 18)


def test_as_many_in_other_places_are_a_difference_and_other_calls_are_none() -> None:
    found = more(main=(10, {"split": 6, "join": 1}), join=(3, {"libc:_Znwm": 1, "libc:__libc_calloc": 1}))
    assert found is not None
    assert (found.base, found.candidate, abs(found.more)) == (8, 8, 1)
    assert more() is None
    assert more(split=(99, {"libc:malloc": 1, "libc:free": 4})) is None
