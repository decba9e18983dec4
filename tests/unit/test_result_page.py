"""The page of a result as text: its flame graphs are the tree exactly, within its bounds, loading nothing, and unharmed by hostile names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, cast

import pytest

from cachegrind_bench.compare.call_paths import ALL, OTHERS, OUTSIDE, Frame, python_paths
from cachegrind_bench.model.call_graph import NO_CALLS
from cachegrind_bench.model.metrics import EVENTS, FunctionCost, LineCost, Profile
from cachegrind_bench.model.python_profile import PythonProfile
from cachegrind_bench.render.functions import called, lines, python
from cachegrind_bench.render.growth import report
from cachegrind_bench.render.result_page import page
from tests.unit import flaming
from tests.unit.calls import graph
from tests.unit.pythons import chain, python_profile
from tests.unit.resulting import page_of
from tests.unit.samples import VECTOR, benchmark, failed_benchmark, result
from tests.unit.test_growth import group, grown, quadratic
from tests.unit.test_trend_page import HOSTILE, Page, block

EMPTY = PythonProfile(total=0, functions=(), paths=())
ONLY_NATIVE = PythonProfile(total=500, functions=(), paths=())
PROFILES = [flaming.small(), flaming.large(), flaming.hostile(), EMPTY, ONLY_NATIVE, python_profile(chain(3_000))]
NAMES = ["small", "large", "hostile", "empty", "native", "deep"]


def inclusive(found: Sequence[Frame], side: int = 0) -> list[int]:
    costs = [frame.own[side] for frame in found]
    for place in range(len(found) - 1, 0, -1):
        costs[found[place].parent] += costs[place]
    return costs


@pytest.mark.parametrize("profile", PROFILES, ids=NAMES)
def test_the_own_costs_of_all_frames_are_the_total(profile: PythonProfile) -> None:
    found = python_paths(profile).frames
    for place, frame in enumerate(found[1:], 1):
        assert 0 <= frame.parent < place
    assert found[0].function == ALL
    assert inclusive(found)[0] == sum(frame.own[0] for frame in found) == profile.total
    assert all(frame.own[0] >= 0 for frame in found)
    assert sum(frame.function == OUTSIDE for frame in found) == (profile.native > 0)


def test_the_widest_callee_comes_first_and_native_code_last() -> None:
    profile = flaming.small()
    found = python_paths(profile).frames
    top = [frame for frame in found if frame.parent == 0]
    assert [profile.functions[frame.function].name for frame in top[:-1]] == ["<module>", "atexit"]
    assert top[-1].function == OUTSIDE
    assert top[-1].own == (62_500,)


def test_frames_too_narrow_to_be_seen_are_merged_into_one() -> None:
    merged = [frame for frame in python_paths(flaming.small()).frames if frame.function == OTHERS]
    assert [(frame.own, frame.calls, frame.merged) for frame in merged] == [((4,), (3,), 2)]


def test_a_graph_has_a_bounded_number_of_frames() -> None:
    found = python_paths(flaming.large(), most=1_000).frames
    assert 500 < sum(frame.function >= 0 for frame in found) <= 1_000


def test_a_page_of_many_paths_takes_less_than_a_megabyte() -> None:
    assert len(page_of(flaming.large()).encode()) < 1_000_000


@pytest.mark.parametrize("profile", PROFILES, ids=NAMES)
def test_the_page_is_well_formed_and_loads_nothing(profile: PythonProfile) -> None:
    text = page_of(profile)
    flaming.check_page(text)
    graphs: Any = block(text)
    data = graphs[0][0]
    columns = {len(column) for column in (data["parent"], data["function"], *data["own"], *data["calls"])}
    assert columns == {len(python_paths(profile).frames)}


def test_hostile_text_stays_text() -> None:
    text = page_of(flaming.hostile(), HOSTILE)
    page = Page(text)
    assert [attributes.get("type", "") for attributes in page.all("script")] == ["application/json", ""]
    assert page.all("img") == []
    assert "{{ 7*7 }}" in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2028\u2029\ud800-\udfff]", text)


def test_the_table_reports_without_script_what_cost_most_and_adds_up() -> None:
    profile = flaming.small()
    page = Page(page_of(profile))
    for word in (
        "parse_row",
        "src/pkg/rows.py:42",
        "native code not under any Python function",
        "400,000",
        "JavaScript",
    ):
        assert word in page.text, word
    assert "1,353 instructions, 89.9 % of them in 9 Python functions; most, 64.7 %, in parse_row itself" in " ".join(
        page.text.split()
    )
    large = Page(page_of(flaming.large()))
    assert "1,900 other functions" in large.text
    assert "nested too deeply" in large.text
    assert "nested too deeply" not in page.text


def test_functions_of_one_file_have_one_colour() -> None:
    graphs: Any = block(page_of(flaming.large()))
    functions = graphs[0][0]["functions"]
    colours = defaultdict(set)
    for _name, place, colour in functions[1:]:  # the first one is native code
        colours[place.rpartition(":")[0]].add(colour)
    assert {len(found) for found in colours.values()} == {1}
    assert len({colour for _name, _place, colour in functions}) > 4


def test_both_graphs_of_a_benchmark_are_on_its_page() -> None:
    program = graph({"main": (10, {"parse": 3}), "parse": (200, {})})
    text = page_of(flaming.small(), calls=program)
    graphs: Any = block(text)
    assert [sum(found["own"][0]) for found in graphs[0]] == [flaming.small().total, program.total]
    assert "Who called whom was recorded, not whole paths" in Page(text).text
    assert "native functions" in Page(text).text


def test_functions_are_listed_with_their_calls_and_what_each_costs() -> None:
    program = graph({"main": (10, {"parse": 3}), "parse": (200, {"libc:strlen": 2}), "libc:strlen": (7, {})})
    found = called(program, top=2, root="")
    assert found.columns == ("Ir", "share", "with callees", "calls", "each", "function", "file", "called from")
    assert found.rows == (
        ("600", "92.0 %", "642", "3", "214", "parse", "words.c", "main 3"),
        ("42", "6.4 %", "42", "6", "7", "strlen", "", "parse 6"),
        ("10", "1.5 %", "", "", "", "1 other function", "", ""),
    )
    assert found.title in Page(page_of(calls=program)).text
    assert called(NO_CALLS, top=2, root="").rows == called(program, top=0, root="").rows == ()


def test_what_an_entry_of_a_recursive_function_costs_is_all_that_it_costs() -> None:
    profile = python_profile({"main": (1, 100, {"walk": (2, 50, {"walk": (8, 400)})})})
    row = python(benchmark(python=profile), top=10).rows[0]
    assert row == ("450", "81.8 %", "450", "10", "225", "walk", "src/pkg/rows.py")


def test_source_lines_are_listed_where_they_were_recorded() -> None:
    row = FunctionCost("main.c", "main", VECTOR.as_tuple())
    cost = (LineCost("main.c", "main", 7, VECTOR.as_tuple()),)
    item = benchmark(profile=Profile(events=EVENTS, functions=(row,), lines=cost))
    assert lines(item, top=10, sort="score", root="").rows == (("3,418", "100.0 %", "main", "main.c:7"),)
    assert "source lines" in Page(page_of(profile=item.profile)).text
    assert "source lines" not in Page(page_of()).text


def test_a_benchmark_that_failed_has_a_page() -> None:
    text = page(result(failed_benchmark()), "r.json", lambda item: item)
    flaming.check_page(text)
    assert "the command failed with exit status 3" in Page(text).text
    assert "No flame graph" not in Page(text).text


def test_the_page_of_many_benchmarks_stays_small() -> None:
    many = [benchmark(id=f"b{number}", python=flaming.large(400)) for number in range(201)]
    text = page(result(*many), "r.json", lambda item: item)
    assert len(text.encode()) < 10_000_000
    assert len(cast("list[object]", block(text))) == 200
    assert "Details of 1 benchmark are left out" in text


def test_how_benchmarks_grow_with_their_input_is_on_the_page() -> None:
    found = grown(group(quadratic))
    assert report(found).title in Page(page(result(), "r.json", lambda item: item, growth=[found])).text
