"""The arithmetic of calls: whatever the graphs are, the parts add up to the difference, to the instruction."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cachegrind_bench.compare.call_pairs import native_sides, python_sides
from cachegrind_bench.compare.call_split import split
from cachegrind_bench.model.call_graph import CallGraph, Calls, Code, graph_without, merge_graphs, named_graph
from cachegrind_bench.model.python_profile import PythonProfile
from tests.property.test_pythonblame_property import python_profiles

codes = st.builds(
    Code,
    object=st.sampled_from(["/x/prog", "/lib/libc.so.6", "???"]),
    file=st.sampled_from(["a.c", "b.c", "???"]),
    name=st.sampled_from(["f", "g", "f.part.0", "memset", "memset@plt", "0x1020", "0x1030 [PLT]", "???"]),
)
counts = st.integers(0, 9) | st.integers(0, 10**9)
graphs = st.builds(
    CallGraph,
    st.dictionaries(codes, counts, max_size=6),
    st.dictionaries(st.tuples(codes, codes), st.builds(Calls, counts, counts), max_size=10),
)


@given(base=graphs, candidate=graphs, rows=st.integers(0, 4))
def test_the_parts_add_up_to_the_difference_whatever_the_graphs_are(
    base: CallGraph, candidate: CallGraph, rows: int
) -> None:
    sides = native_sides(base, candidate)
    found = split(sides, rows=rows)
    assert found.total == candidate.total - base.total
    assert sum(row.blame for row in found.rows) + found.rest + found.top == found.total
    for row in found.rows:
        assert row.by_calls + row.by_cost == row.candidate.ir - row.base.ir
    assert found.cause is None or found.cause.ir * found.total > 0
    assert found == split(sides, rows=rows)


@given(base=python_profiles(), candidate=python_profiles())
def test_calls_of_python_functions_add_up_too(base: PythonProfile, candidate: PythonProfile) -> None:
    sides = python_sides(base, candidate)
    found = split(sides, rows=3)
    assert sum(row.blame for row in found.rows) + found.rest + found.top == candidate.total - base.total


@given(graph=graphs)
def test_names_change_nothing_of_what_was_counted(graph: CallGraph) -> None:
    named = named_graph(graph)
    assert named.total == graph.total
    if graph.own:  # else calls of code without a name are left out: nobody could name them with their caller
        assert sum(calls.number for calls in named.calls.values()) == sum(
            found.number for found in graph.calls.values()
        )
    sides = native_sides(graph, graph)
    assert split(sides, rows=9).rows == ()


@given(graph=graphs, empty=graphs, times=st.integers(0, 3), data=st.data())
def test_what_is_left_of_a_region_costs_what_its_profile_says(
    graph: CallGraph, empty: CallGraph, times: int, data: st.DataObject
) -> None:
    whole = merge_graphs([graph, *[empty] * times])
    total = data.draw(st.integers(0, graph.total))
    left = graph_without(whole, empty, times, total)
    assert left.total == total
    assert (
        min(
            [*left.own.values(), *(count for calls in left.calls.values() for count in (calls.number, calls.ir))],
            default=0,
        )
        >= 0
    )
    assert times == 0 or graph_without(whole, empty, times, graph.total).calls == {
        pair: calls for pair, calls in graph.calls.items() if calls != Calls(0, 0)
    }
