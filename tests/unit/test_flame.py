"""The flame graph as text: the tree exactly, within its bounds, loading nothing, and unharmed by hostile names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

from cachegrind_bench.compare.call_paths import ALL, OTHERS, OUTSIDE, Frame, python_paths
from cachegrind_bench.model.python_profile import PythonProfile
from cachegrind_bench.render.flame import page
from tests.unit import flaming
from tests.unit.pythons import chain, python_profile
from tests.unit.samples import result
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


def page_of(profile: PythonProfile, name: str = "rows") -> str:
    return page(result(), name, profile)


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
    data: Any
    (data,) = block(text)
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
    assert "618,204 instructions, 89.9 % of them in 9 Python functions; most, 64.7 %, in parse_row itself" in " ".join(
        page.text.split()
    )
    large = Page(page_of(flaming.large()))
    assert "1,900 other functions" in large.text
    assert "nested too deeply" in large.text
    assert "nested too deeply" not in page.text


def test_functions_of_one_file_have_one_colour() -> None:
    graphs: Any = block(page_of(flaming.large()))
    functions = graphs[0]["functions"]
    colours = defaultdict(set)
    for _name, place, colour in functions[1:]:  # the first one is native code
        colours[place.rpartition(":")[0]].add(colour)
    assert {len(found) for found in colours.values()} == {1}
    assert len({colour for _name, _place, colour in functions}) > 4
