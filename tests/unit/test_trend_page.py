"""The trend report's page as text: well-formed, within its bounds, loading nothing, and unharmed by hostile names."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.history.values import Kind, Release, State
from cachegrind_bench.render.trend import data, html, svg, words
from tests.unit import trending
from tests.unit.trending import PROVENANCE, arranged, finding, notes, series, sha

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.history.report import Trend

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"' --> ]]> {{ 7*7 }} {% raw %} &amp;\x00\x1b[2J\u202e\u2028"
VOID = {"meta", "link", "input", "br", "img", "hr"}
OPTIONAL = {"td", "th"}  # HTML lets their end tags go


class Page(HTMLParser):
    """A page's elements, texts and attributes; fails where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.raw: dict[str, list[str]] = {}
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _value in attrs]
        assert len(names) == len(set(names)), (tag, names)
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag in OPTIONAL and self.open[-1] in OPTIONAL:
            self.open.pop()
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if self.open[-1] in OPTIONAL and tag not in OPTIONAL:
            self.open.pop()
        assert self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in {"script", "style"}:
            self.raw.setdefault(self.open[-1], []).append(data)
        else:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


def block(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def unpacked(text: str) -> list[int]:
    """What the script does: the packing must be readable from its description alone."""
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    numbers: list[int] = []
    total = step = 0
    for repeat, token in re.findall(r"(!?)([g-z0-9_-]*[A-Za-f])", text):
        value = sum((digits.index(character) % 32) << (5 * place) for place, character in enumerate(token))
        value = -(value + 1) // 2 if value % 2 else value // 2
        times = value if repeat else 1
        step = step if repeat else value
        for _ in range(times):
            total += step
            numbers.append(total)
    return numbers


def hostile() -> Trend:
    item = series(HOSTILE, [1000, 1000, 2000], keys={1: HOSTILE})
    line = [replace(note, subject=HOSTILE, author=HOSTILE, committed_at=HOSTILE) for note in notes(3)]
    made = replace(
        PROVENANCE, title=HOSTILE, store=HOSTILE, branch=HOSTILE, created_at=HOSTILE, notes=((HOSTILE, HOSTILE),)
    )
    found = [
        finding(item, 2, state=State.NEW, id=HOSTILE),
        finding(item, 1, Kind.IMPROVEMENT, State.ACKNOWLEDGED, reason=HOSTILE, recovered_sha=HOSTILE),
    ]
    tags = [Release(name=HOSTILE, sha=sha(1))]
    return arranged([item], found, 3, line=line, provenance=made, releases=tags)


# --- The page as a whole -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "report",
    [trending.small(), trending.small(160), hostile(), arranged([], [], 0), arranged([series("a", [1])], [], 1)],
    ids=["small", "longer", "hostile", "empty", "one"],
)
def test_the_page_is_well_formed(report: Trend) -> None:
    text = html.page(report)
    page = Page(text)
    ids = [attributes["id"] for _tag, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for attributes in page.all("a") + page.all("use") if attributes["href"].startswith("#")]
    assert {link[1:] for link in links} <= set(ids)
    drawings = re.findall(r'<svg class="chart".*?\n</svg>', text, re.DOTALL)
    assert len(drawings) == sum(bool(row.readings) for row in report.rows)
    for drawing in drawings:
        ET.fromstring(drawing)  # noqa: S314 - it is ours


def test_the_page_loads_nothing_and_says_so() -> None:
    page = Page(html.page(trending.small()))
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    rules = {name: sources for name, _space, sources in (rule.strip().partition(" ") for rule in policy.split(";"))}
    assert rules["default-src"] == "'none'"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert "unsafe" not in policy
    assert "http" not in policy
    for tag, attributes in page.elements:
        assert not {"src", "srcset", "style", "data", "action"} & attributes.keys(), tag
        assert not any(name.startswith("on") for name in attributes), tag
        if tag != "a":
            assert not re.match(r"\s*(https?:)?//", attributes.get("href", "")), tag
    assert not re.search(r"url\(|@import", "".join(page.raw["style"]))


def test_the_policy_lets_our_script_and_our_style_run_and_no_other() -> None:
    page = Page(html.page(trending.small()))
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    (style,) = page.raw["style"]
    script = page.raw["script"][-1]
    for text, rule in ((style, "style-src"), (script, "script-src")):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy


def test_hostile_text_stays_text_everywhere() -> None:
    text = html.page(hostile())
    page = Page(text)
    assert [attributes.get("type", "") for attributes in page.all("script")] == ["application/json", ""]
    assert page.all("img") == []
    assert "{{ 7*7 }}" in page.text
    assert "49" not in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2028\u2029]", text)
    assert block(text)["subjects"][0].startswith("</script><script>alert(1)")
    assert "<" not in data.block(hostile(), ["b"])
    assert "&" not in data.block(hostile(), ["b"])


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert('{sha}')",
        "data:text/html,{sha}",
        "https:///{sha}",
        "https://example.org/",
        "https://[::1/{sha}",
        "https://example.org/a b/{sha}",
        " https://example.org/{sha}",
        "//example.org/{sha}",
    ],
)
def test_addresses_that_are_not_of_the_web_are_not_linked(address: str) -> None:
    made = replace(PROVENANCE, commit_url=address)
    item = series("a", [1000, 2000])
    page = Page(html.page(arranged([item], [finding(item, 1)], 2, provenance=made)))
    assert all(attributes["href"].startswith("#") for attributes in page.all("a"))


def test_commits_are_linked_with_their_names_quoted() -> None:
    made = replace(PROVENANCE, commit_url="https://example.org/{sha}?a=1&b=2")
    assert words.link(made, '"><b>') == "https://example.org/%22%3E%3Cb%3E?a=1&b=2"
    item = series("a", [1000, 2000])
    text = html.page(arranged([item], [finding(item, 1)], 2, provenance=made))
    assert f'href="https://example.org/{sha(1)}?a=1&amp;b=2"' in text


@pytest.mark.parametrize("noise", [10**9, 1000, 100])
def test_fifty_benchmarks_of_five_hundred_commits_take_less_than_a_megabyte(noise: int) -> None:
    text = html.page(trending.large(noise=noise))
    assert len(text.encode()) < 1_000_000
    assert text.count('class="plot value"') == 50


def test_so_they_do_whatever_has_happened_there() -> None:
    dice, length = random.Random(5), 500
    line = [replace(note, subject="計算の順序を変える " * 12, author="山田 太郎") for note in notes(length)]
    found, findings = [], []
    for number in range(50):
        irs = [round(10**8 * (1 + dice.uniform(-1, 1) / 5)) for _ in range(length)]
        keys = {at: f"{at:012x}" for at in range(10, length, 10)}
        item = series(f"{number} " + "長い名前" * 2500, irs, failed=range(0, length, 3), keys=keys)
        found.append(item)
        places = [reading.index for reading in item.readings][20::20][:12]
        suspects = tuple(sha(at) for at in range(10))
        findings += [
            finding(item, at, state=State.RECOVERED, suspects=suspects, recovered_sha=sha(at)) for at in places
        ]
        findings.append(finding(item, item.readings[-1].index, state=State.NEW, suspects=suspects))
    text = html.page(arranged(found, findings, length, line=line))
    assert len(text.encode()) < 1_000_000
    assert text.count('class="plot value"') == 50
    assert "the report&#39;s JSON has them all" in text or "the report's JSON has them all" in text


def test_the_same_report_makes_the_same_page() -> None:
    assert html.page(trending.small()) == html.page(trending.small())


def test_what_was_found_is_readable_without_the_script() -> None:
    report = trending.small()
    page = Page(html.page(report))
    for part in (
        "1 new regression and 1 new improvement",
        "parse/json[large]",
        "+8 %",
        "Parse headers without a copy (38)",
        "Frances Allen",
        "cg-bench bisect",
        "checks signatures at start",
        "3 runs of checkouts with changes",
        "git:cg-bench-data@origin",
        "Smallest effect",
    ):
        assert part in page.text, part
    hidden = [attributes for _tag, attributes in page.elements if "scripted" in attributes.get("class", "")]
    assert hidden
    assert all("hidden" in attributes for attributes in hidden)


def test_every_finding_key_change_release_and_failure_is_marked_with_its_own_shape() -> None:
    text = html.page(trending.small())
    for name in ("regression", "improvement", "creep", "unstable", "failed"):
        assert f'href="#s-{name}"' in text
        assert f'<symbol id="s-{name}"' in text
    assert 'class="rule release"' in text
    assert 'class="rule key"' in text
    assert re.search(r'class="mark improvement hollow"[^>]*><title>new improvement, one reading so far', text)


def test_a_benchmark_without_a_reading_says_why_it_has_no_chart() -> None:
    text = html.page(arranged([series("a", [1, 1], failed=(0, 1)), series("b", [1000, None])], [], 2, first=1))
    assert "It failed at every commit shown." in text
    assert "It has no reading within these commits." in text


# --- The script's numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "numbers",
    [[], [0], [5], [-1], [1, 2, 3, 4, 5, 6], [7] * 500, [2**62, 0, -(2**40)], [0, 15, 16, -16, 31, 32, 511, 512]],
)
def test_packed_numbers_come_back(numbers: Sequence[int]) -> None:
    assert unpacked(data.packed(numbers)) == list(numbers)


def test_numbers_that_change_evenly_take_no_room() -> None:
    assert len(data.packed(range(500))) < 8
    assert len(data.packed([10**9] * 500)) < 16


def test_the_script_gets_the_numbers_of_every_reading() -> None:
    report = trending.small()
    found = block(html.page(report))
    for row, packed in zip(report.rows, found["rows"], strict=True):
        assert unpacked(packed["at"]) == [reading.index for reading in row.readings]
        assert unpacked(packed["value"]) == [reading.value for reading in row.readings]
        assert unpacked(packed["ram"]) == [reading.counts.ram_hits for reading in row.readings]
        assert [found["keys"][key] for key in unpacked(packed["key"])] == [reading.key for reading in row.readings]
    assert len(found["shas"]) == len(found["subjects"]) == len(unpacked(found["minutes"])) == 40


# --- Drawing -------------------------------------------------------------------------------------------------------------


def test_a_path_has_a_step_for_each_change_and_nothing_for_the_rest() -> None:
    assert svg.path([(0, 5), (1, 5), (2, 5), (3, 9), (4, 9)]) == "M0 5h3v4h2"


def test_a_value_holds_over_commits_that_were_not_measured() -> None:
    assert svg.path([(0, 5), (4, 9)]) == "M0 5h4v4h1"


def test_a_path_starts_afresh_at_a_break() -> None:
    assert svg.path([(0, 5), (1, 5), (2, 5)], [1]) == "M0 5h1M1 5h2"


def test_steps_too_small_to_see_are_left_out() -> None:
    assert svg.path([(0, 5), (1, 6), (2, 7)], least=2) == "M0 5h2v2h1"


def test_a_path_that_jumps_about_is_bounded_and_keeps_its_large_steps() -> None:
    places = [(at, (at * 7) % 10 + (60 if at > 300 else 0)) for at in range(500)]
    assert len(svg.path(places)) > 2000
    found = svg.bounded(places, longest=1000)
    assert len(found) <= 1000
    assert max(abs(int(step)) for step in re.findall(r"v(-?[0-9]+)", found)) >= 50


def test_no_values_make_no_path() -> None:
    assert svg.path([]) == svg.spark([], 0, 0, 20) == ""


@pytest.mark.parametrize("values", [[0], [1], [0, 0], [10**15, 10**15 + 1], [1, 10**12], [999, 1000, 1001]])
def test_a_scale_holds_its_values_and_a_few_round_ticks(values: list[int]) -> None:
    scale = svg.Scale.of(values, 100)
    assert all(0 <= scale.place(value) <= 100 for value in values)
    assert 1 <= len(scale.ticks()) <= 6
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks())


def test_what_hardly_changes_looks_flat() -> None:
    scale = svg.Scale.of([1_000_000, 1_000_100], 100)
    assert abs(scale.place(1_000_000) - scale.place(1_000_100)) <= 1


@pytest.mark.parametrize(
    ("number", "step", "text"),
    [
        (0, None, "0"),
        (999, None, "999"),
        (2_838_599, None, "2.84 M"),
        (28_385_990, None, "28.4 M"),
        (283_859_900, None, "284 M"),
        (2_850_000, 50_000, "2.85 M"),
        (3_000_000, 50_000, "3.00 M"),
        (3_000_000, 1_000_000, "3 M"),
    ],
)
def test_large_numbers_are_short(number: int, step: int | None, text: str) -> None:
    assert words.compact(number, step=step) == text
