"""The trend report's page as text: well-formed, within its bounds, loading nothing, and unharmed by hostile names."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import xml.etree.ElementTree as ET
import zlib
from html.parser import HTMLParser
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.history.values import Kind, State
from cachegrind_bench.model.result import Release
from cachegrind_bench.render.trend import data, drawings, html, words
from tests.unit import trending
from tests.unit.trending import PROVENANCE, arranged, finding, notes, series, sha

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.history.values import Trend

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
    """What the script of another page reads."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def read(text: str) -> dict[str, Any]:
    """What the script of this page reads."""
    found = re.search(r'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=]*)</script>', text)
    assert found is not None
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found[1])))
    return data


def unpacked(text: str) -> list[int]:
    return list(accumulate(json.loads(f"[{text}]")))


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
    drawings = re.findall(r'<svg class="chart".*</svg>', text)
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
    assert [attributes.get("type", "") for attributes in page.all("script")] == ["application/octet-stream", ""]
    assert page.all("img") == []
    assert "{{ 7*7 }}" in page.text
    assert "49" not in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2028\u2029]", text)
    assert read(text)["subjects"][0].startswith("</script><script>alert(1)")


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


@pytest.mark.slow
@pytest.mark.parametrize("noise", [10**9, 1000, 100])
def test_fifty_benchmarks_of_five_hundred_commits_take_less_than_a_megabyte(noise: int) -> None:
    text = html.page(trending.large(noise=noise))
    assert len(text.encode()) < 1_000_000
    assert text.count('<svg class="chart"') == 50


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "failed"),
    [("計算の順序を変える", ()), ("&<\x1b", range(1, 500, 3))],
    ids=["japanese", "escaped and a third failed"],
)
def test_a_page_of_fifty_eventful_benchmarks_is_bounded(text: str, failed: Sequence[int]) -> None:
    page = html.page(eventful(text, failed))
    assert len(page.encode()) <= 5_000_000
    assert "more findings; the report's JSON has them all" in page
    Page(page)


def eventful(text: str, failed: Sequence[int]) -> Trend:
    """Everything at once: large numbers that jump about, long texts, and much found, failed, tagged and moved."""
    dice, length = random.Random(5), 500
    line = [
        replace(note, subject=f"{at} {text * 100}", author=f"{at} {text * 20}") for at, note in enumerate(notes(length))
    ]
    keys = {at: hashlib.sha256(f"{at}".encode()).hexdigest() for at in range(0, length, 10)}
    found, findings = [], []
    for number in range(50):
        level = dice.randrange(10**13, 10**15)
        irs = [round(level * (1 + dice.uniform(-1, 1) / 5)) for _ in range(length)]
        item = series(f"{number} {text * 2500}", irs, failed=failed, keys=keys)
        found.append(item)
        for turn, reading in enumerate(item.readings[6::12]):
            suspects = tuple(sha(at) for at in range(max(0, reading.index - 12), reading.index + 1))
            kind, state = (Kind.REGRESSION, Kind.IMPROVEMENT)[turn % 2], list(State)[turn % 5]
            findings.append(finding(item, reading.index, kind, state, suspects=suspects, reason=text * 1000))
    tags = [Release(name=f"v{at} {text * 1000}", sha=sha(at)) for at in range(length)]
    made = replace(
        PROVENANCE, title=text * 5000, store=text * 5000, branch=text * 5000, notes=((text * 5000,) * 2,) * 50
    )
    return arranged(found, findings, length, line=line, provenance=made, releases=tags)


def test_a_long_name_is_cut_in_headings_and_reported_whole_in_a_title_as_far_as_it_goes() -> None:
    text = html.page(
        arranged([series("long/" + "x" * 200, [1]), series("y" * 10_000, [1]), series("short", [1])], [], 1)
    )
    assert f'title="long/{"x" * 200}"' in text
    assert "x" * 200 not in re.sub(r'title="[^"]*"', "", text)
    assert max(len(title) for title in re.findall(r'<h3 title="([^"]*)"', text)) == 300
    assert text.count("<h3 title") == 2


def test_two_tags_of_one_commit_share_a_line() -> None:
    tags = [Release(name="v1", sha=sha(1)), Release(name="stable", sha=sha(1))]
    report = arranged([series("a", [1, 1, 1])], [], 3, releases=tags)
    assert read(html.page(report))["releases"] == [[1, "stable, v1"]]


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


def test_every_finding_is_marked_with_its_own_shape() -> None:
    text = html.page(trending.small())
    marks = [mark for row in read(text)["rows"] for mark in row["marks"]]
    assert {kind for _at, kind, _look, _title in marks} == {"regression", "improvement", "creep", "unstable"}
    legend = re.search(r'<ul class="legend".*?</ul>', text, re.DOTALL)
    assert legend is not None
    assert set(re.findall(r"#s-([a-z]+)", legend[0])) == set(re.findall(r'<symbol id="s-([a-z]+)"', text))
    (improved,) = [mark for mark in marks if mark[1] == "improvement"]
    assert improved[2] == "hollow"
    assert improved[3].startswith("new improvement, one reading so far -10 %: ")


def test_a_benchmark_without_a_reading_says_why_it_has_no_chart() -> None:
    text = html.page(arranged([series("a", [1, 1], failed=(0, 1)), series("b", [1000, None])], [], 2, first=1))
    assert "It failed at every commit shown." in text
    assert "It has no reading within these commits." in text


# --- The script's numbers ------------------------------------------------------------------------------------------------


def test_the_page_says_which_commits_were_not_measured_and_which_were_taken_over() -> None:
    found = series("parse", [100, 100, None, None, 100, 200, 200, 200])
    readings = tuple(replace(item, taken_over=item.index in (1, 5, 6)) for item in found.readings)
    view = arranged([replace(found, readings=readings)], [], 8)
    page = html.page(view)
    assert "without a bar: not measured" in page
    assert unpacked(read(page)["rows"][0]["taken"]) == [1, 3, 4]


def test_where_all_commits_were_measured_there_are_no_bars() -> None:
    assert "without a bar" not in html.page(arranged([series("parse", [100, 100, 200])], [], 3))


@pytest.mark.parametrize("numbers", [[], [0], [5], [-1], [1, 2, 3, 4, 5, 6], [7] * 500, [2**52, 0, -(2**40)]])
def test_packed_numbers_come_back(numbers: Sequence[int]) -> None:
    assert unpacked(data.packed(numbers)) == list(numbers)


def test_what_does_not_change_takes_no_room() -> None:
    assert len(zlib.compress(data.packed([10**9] * 500).encode())) < 40


def test_the_script_gets_the_numbers_of_every_reading() -> None:
    report = trending.small()
    found = read(html.page(report))
    for row, packed in zip(report.rows, found["rows"], strict=True):
        assert unpacked(packed["at"]) == [reading.index for reading in row.readings]
        assert unpacked(packed["value"]) == [reading.value for reading in row.readings]
        assert unpacked(packed["ram"]) == [reading.counts.ram_hits for reading in row.readings]
        assert [found["keys"][key] for key in unpacked(packed["key"])] == [reading.key for reading in row.readings]
    assert len(found["shas"]) == len(found["subjects"]) == len(unpacked(found["minutes"])) == 40


def test_where_no_caches_were_simulated_their_hits_are_left_out() -> None:
    report = trending.small()
    row, *rest = report.rows
    assert read(html.page(report))["rows"][0]["caches"]
    readings = tuple(replace(item, counts=item.counts.without_caches()) for item in row.readings)
    text = html.page(replace(report, rows=(replace(row, readings=readings), *rest)))
    assert not read(text)["rows"][0]["caches"]
    assert '<td class="n">–<td class="n">–</tr>' in text


# --- Drawing -------------------------------------------------------------------------------------------------------------


def test_a_sparkline_has_a_step_for_each_change_and_holds_a_value_over_commits_that_were_not_measured() -> None:
    values = [(0, 5), (10, 5), (20, 6), (40, 6), (50, 5)]
    assert drawings.spark(values, 0, 60) == "M0 100H20V0H50V100H51"


def test_of_commits_that_share_a_column_of_a_sparkline_the_last_is_drawn() -> None:
    assert drawings.spark([(at, at % 2) for at in range(1000, 1120)], 1000, 120) == "M0 0H60"


def test_no_values_make_no_sparkline() -> None:
    assert drawings.spark([], 0, 0) == ""


def test_what_hardly_changes_looks_flat() -> None:
    path = drawings.spark([(0, 1_000_000), (30, 1_000_100)], 0, 60)
    assert all(abs(int(down) - 50) <= 1 for down in re.findall(r"[ V](\d+)", path))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (2_838_599, "2.84 M"),
        (28_385_990, "28.4 M"),
        (283_859_900, "284 M"),
    ],
)
def test_large_numbers_are_short(number: int, text: str) -> None:
    assert words.compact(number) == text


def test_of_very_many_benchmarks_those_with_findings_are_shown_and_the_page_says_how_many_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cachegrind_bench.render.trend.html._MOST_ROWS", 3)
    items = [series(f"of-{name}", [1000, 1000, 2000]) for name in "abcde"]
    improved = finding(items[4], 2, Kind.IMPROVEMENT, State.ACKNOWLEDGED)
    text = html.page(arranged(items, [improved], 3))
    assert [name in text for name in ("of-a", "of-b", "of-c", "of-d", "of-e")] == [True, True, False, False, True]
    assert "3 of 5; for others give --benchmark PATTERN to cg-bench trend" in text
