"""The flame graph as text: the tree exactly, within its bounds, loading nothing, and unharmed by hostile names."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import defaultdict

import pytest

from cachegrind_bench.model.python_profile import PythonProfile
from cachegrind_bench.render.flame import ALL, NATIVE, OTHERS, frames, page
from tests.unit import flaming
from tests.unit.pythons import chain, python_profile
from tests.unit.samples import result
from tests.unit.test_trend_page import HOSTILE, Page, block

EMPTY = PythonProfile(total=0, functions=(), paths=())
ONLY_NATIVE = PythonProfile(total=500, functions=(), paths=())
PROFILES = [flaming.small(), flaming.large(), flaming.hostile(), EMPTY, ONLY_NATIVE, python_profile(chain(3_000))]
NAMES = ["small", "large", "hostile", "empty", "native", "deep"]


def page_of(profile: PythonProfile, name: str = "rows") -> str:
    return page(result(), name, profile)


@pytest.mark.parametrize("profile", PROFILES, ids=NAMES)
def test_every_frame_is_its_own_cost_and_that_of_its_callees(profile: PythonProfile) -> None:
    found = frames(profile)
    below = defaultdict[int, int](int)
    for place, frame in enumerate(found[1:], 1):
        assert 0 <= frame.parent < place
        below[frame.parent] += frame.inclusive
    for place, frame in enumerate(found):
        assert frame.ir + below[place] == frame.inclusive
    assert (found[0].function, found[0].inclusive) == (ALL, profile.total)
    assert sum(frame.ir for frame in found) == profile.total
    assert sum(frame.function == NATIVE for frame in found) == (profile.native > 0)


def test_the_widest_callee_comes_first_and_native_code_last() -> None:
    profile = flaming.small()
    found = frames(profile)
    top = [frame for frame in found if frame.parent == 0]
    assert [profile.functions[frame.function].name for frame in top[:-1]] == ["<module>", "atexit"]
    assert top[-1].function == NATIVE
    assert top[-1].inclusive == 62_500


def test_frames_too_narrow_to_be_seen_are_merged_into_one() -> None:
    merged = [frame for frame in frames(flaming.small()) if frame.function == OTHERS]
    assert [(frame.inclusive, frame.calls, frame.merged) for frame in merged] == [(4, 3, 2)]


def test_a_graph_has_a_bounded_number_of_frames() -> None:
    found = frames(flaming.large(), most=1_000)
    assert 500 < sum(frame.function >= 0 for frame in found) <= 1_000


def test_a_page_of_many_paths_takes_less_than_a_megabyte() -> None:
    assert len(page_of(flaming.large()).encode()) < 1_000_000


@pytest.mark.parametrize("profile", PROFILES, ids=NAMES)
def test_the_page_is_well_formed_and_loads_nothing(profile: PythonProfile) -> None:
    text = page_of(profile)
    page = Page(text)
    ids = [attributes["id"] for _tag, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.elements:
        assert not {"src", "srcset", "style", "data", "action"} & attributes.keys(), tag
        assert not any(name.startswith("on") for name in attributes), tag
        if tag == "a":
            assert attributes["href"][1:] in ids
    assert not re.search(r"url\(|@import|https?:", "".join(page.raw["style"]))
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert "unsafe" not in policy
    for content, rule in ((page.raw["style"][0], "style-src"), (page.raw["script"][-1], "script-src")):
        assert f"{rule} 'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'" in policy
    data = block(text)
    columns = {len(data[name]) for name in ("parent", "function", "inclusive", "self", "calls")}
    assert columns == {len(frames(profile))}


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
    functions = block(page_of(flaming.large()))["functions"]
    colours = defaultdict(set)
    for _name, place, colour in functions:
        colours[place.rpartition(":")[0]].add(colour)
    assert {len(found) for found in colours.values()} == {1}
    assert len({colour for _name, _place, colour in functions}) > 4
