"""Call paths of two executions as one tree: recorded ones as they are, others shared out, and nothing lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cachegrind_bench.compare import call_paths
from cachegrind_bench.compare.call_paths import ALL, OTHERS, CallPaths, Kind, native_paths, python_paths
from cachegrind_bench.model.call_graph import CallGraph, Calls
from cachegrind_bench.model.python_profile import TOP, NativePart, PythonProfile
from cachegrind_bench.render.benchmark_page import drawn
from tests.property.test_call_split_property import graphs
from tests.property.test_pythonblame_property import python_profiles
from tests.unit.calls import code, graph
from tests.unit.pythons import python_profile

if TYPE_CHECKING:
    import pytest


def named(paths: CallPaths) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Own costs and calls by the names on the path, but for the first frame."""
    names = [""]
    for frame in paths.frames[1:]:
        name = "…" if frame.function == OTHERS else paths.labels[frame.function].name
        names.append(f"{names[frame.parent]}/{name}")
    return {name: (frame.own, frame.calls) for name, frame in zip(names, paths.frames, strict=True)}


def test_a_path_of_both_sides_is_one_frame() -> None:
    base = python_profile({"main": (1, 1_000, {"parse": (2, 300), "old": (1, 50)})})
    candidate = python_profile({"main": (1, 1_000, {"parse": (5, 700), "new": (1, 60)})}, native=40)
    found = python_paths(base, candidate)
    assert found.recorded
    assert named(found) == {
        "": ((0, 0), (0, 0)),
        "/main": ((1_000, 1_000), (1, 1)),
        "/main/parse": ((300, 700), (2, 5)),
        "/main/old": ((50, 0), (1, 0)),
        "/main/new": ((0, 60), (0, 1)),
        "/native code": ((0, 40), (0, 0)),
    }


def test_a_function_is_shared_out_among_its_callers() -> None:
    program = graph({"main": (10, {"a": 1, "b": 3}), "a": (5, {"leaf": 2}), "b": (5, {"leaf": 2}), "leaf": (100, {})})
    found = native_paths(program)
    assert not found.recorded
    assert named(found) == {
        "": ((0,), (0,)),
        "/main": ((10,), (1,)),
        "/main/b": ((15,), (3,)),
        "/main/b/leaf": ((600,), (6,)),
        "/main/a": ((5,), (1,)),
        "/main/a/leaf": ((200,), (2,)),
    }


def test_a_small_graph_with_callees_in_thousands_on_each_path_is_looked_at_within_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leaves = {f"leaf{number}": 1 for number in range(100)}
    calls = {f"f{one:02}": (10, {**{f"f{other:02}": 2 for other in range(one + 1, 10)}, **leaves}) for one in range(10)}
    program = graph({**calls, **{name: (1, dict[str, int]()) for name in leaves}}, "f00")
    total = sum(program.own.values())
    whole = native_paths(program)
    monkeypatch.setattr(call_paths, "_MOST_LOOKED", 2_000)
    cut = native_paths(program)
    assert len(cut.frames) < 100 < len(whole.frames)
    for found in (whole, cut):
        assert sum(sum(frame.own) for frame in found.frames) == total


def test_functions_that_call_each_other_are_one_frame() -> None:
    main, even, odd = map(code, ("main", "_ZN4calc4evenEl", "_ZN4calc3oddEl"))
    own = {main: 10, even: 500, odd: 400}
    calls = {(main, even): Calls(1, 900), (even, odd): Calls(9, 850), (odd, even): Calls(8, 800)}
    found = native_paths(CallGraph(own, calls))
    assert named(found) == {"": ((0,), (0,)), "/main": ((10,), (1,)), "/main/_ZN4calc4evenEl": ((900,), (1,))}
    functions: Any = drawn(found)["functions"]
    assert {function[0] for function in functions} == {"main", "calc::even(long) and 1 that call each other"}


def test_what_was_running_when_counting_began_is_at_the_top() -> None:
    calls = {(code("loop"), code("work")): Calls(3, 30)}
    found = named(native_paths(CallGraph({code("loop"): 5, code("work"): 50}, calls)))
    assert found == {"": ((0,), (0,)), "/loop": ((5,), (1,)), "/loop/work": ((30,), (3,)), "/work": ((20,), (1,))}


def check(found: CallPaths, totals: tuple[int, ...], most: int) -> None:
    assert len(found.frames) <= 2 * most + 3
    assert found.frames[0].function == ALL
    assert all(0 <= frame.parent < place for place, frame in enumerate(found.frames[1:], 1))
    assert all(ir >= 0 for frame in found.frames for ir in frame.own)
    assert tuple(map(sum, zip(*(frame.own for frame in found.frames), strict=True))) == totals


@given(base=graphs, candidate=graphs)
def test_own_costs_add_up_whatever_the_graphs_are(base: CallGraph, candidate: CallGraph) -> None:
    for most in (3, 6_000):
        check(native_paths(base, candidate, most=most), (base.total, candidate.total), most)


@given(base=python_profiles(), candidate=python_profiles())
def test_own_costs_of_python_functions_add_up(base: PythonProfile, candidate: PythonProfile) -> None:
    check(python_paths(base, candidate, most=5), (base.total, candidate.total), 5)


def with_parts(*parts: NativePart) -> PythonProfile:
    return replace(python_profile({"main": (1, 1_000, {"parse": (2, 300)})}), parts=parts)


def test_native_functions_are_below_the_python_functions_that_ran_them() -> None:
    base = with_parts(NativePart(0, TOP, "sort", 2, 200), NativePart(0, 0, "compare", 7, 70))
    candidate = with_parts(NativePart(0, TOP, "sort", 3, 300), NativePart(1, TOP, "compare", 1, 90))
    found = python_paths(base, candidate)
    assert (found.kind, found.recorded) == (Kind.BOTH, True)
    assert named(found) == {
        "": ((0, 0), (0, 0)),
        "/main": ((730, 700), (1, 1)),
        "/main/parse": ((300, 210), (2, 2)),
        "/main/sort": ((200, 300), (2, 3)),
        "/main/sort/compare": ((70, 0), (7, 0)),
        "/main/parse/compare": ((0, 90), (0, 1)),
    }
    assert python_paths(with_parts()).kind is Kind.PYTHON


@given(
    python_profiles(),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from("abc"), st.integers(0, 99))),
)
def test_own_costs_add_up_with_native_functions(profile: PythonProfile, rows: list[tuple[int, int, str, int]]) -> None:
    left, parts = [path.ir for path in profile.paths], list[NativePart]()
    for path, above, name, ir in rows:
        callers = [TOP, *(index for index, part in enumerate(parts) if part.path == path)]
        if path < len(left):
            parts.append(NativePart(path, callers[above % len(callers)], name, 1, min(ir, left[path])))
            left[path] -= parts[-1].ir
    check(python_paths(replace(profile, parts=tuple(parts)), most=5), (profile.total,), 5)
