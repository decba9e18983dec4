"""The trend report's page in a real browser without a window: what people do with it, and what it must never do."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.model.result import Release
from cachegrind_bench.render.trend import html
from tests.browser import opening
from tests.unit import trending

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Dialog, Locator

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "trend report.html"
    path.write_text(html.page(trending.small(60)), encoding="utf-8")
    return path.as_uri()


class Opened(opening.Opened):
    """The trend report's page in a browser of its own."""

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        super().__init__(browser, address, **options)
        if options.get("java_script_enabled", True):
            self.page.wait_for_selector(".tile[aria-pressed]")  # the script first decompresses its numbers

    def chart(self, name: str) -> Locator:
        return self.article(name).locator("svg.chart")

    def article(self, name: str) -> Locator:
        return self.page.locator(f'article[data-id="{name}"]')

    def point(self, name: str, share: float) -> tuple[float, float]:
        """Bring a chart into view, and return the place this share of its width from the left."""
        # Twice: charts that come into view for the first time may turn out higher or lower than was reckoned.
        for _ in range(2):
            self.chart(name).evaluate("(item) => item.scrollIntoView({block: 'center'})")
            self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        box = self.chart(name).bounding_box()
        assert box is not None
        return box["x"] + box["width"] * share, box["y"] + 90


@pytest.fixture
def opened(browser: Browser, address: str) -> Iterator[Opened]:
    with Opened.quietly(browser, address) as found:
        yield found


def numbers(opened: Opened) -> list[str]:
    # Not their inner text: a chart that is off the screen has none until it is drawn.
    return opened.page.locator("article:visible h3 > a").all_text_contents()


def test_pointing_at_a_chart_shows_commit_author_subject_and_counts(opened: Opened) -> None:
    tip = opened.page.locator("#tip")
    assert tip.is_hidden()
    opened.page.mouse.move(*opened.point("parse/json[large]", 58.5 / 60))
    report = trending.small(60)
    note = report.commits[58]
    row = next(row for row in report.rows if row.id == "parse/json[large]")
    text = tip.inner_text()
    for part in (note.author, note.subject, note.sha[:12], note.committed_at[:10]):
        assert part in text, part
    counts = row.readings[58].counts
    for number in (row.readings[58].value, counts.Ir, counts.l1_hits, counts.ll_hits, counts.ram_hits):
        assert f"{number:,}" in text, number
    assert "+8 %" in text
    opened.page.mouse.move(5, 5)
    assert tip.is_hidden()


def test_the_hovered_point_lies_on_the_line(opened: Opened) -> None:
    opened.page.mouse.move(*opened.point("search/query", 0.5))
    circle = opened.chart("search/query").locator(".cursor circle").bounding_box()
    plot = opened.chart("search/query").locator(".plot.value path:first-child").bounding_box()
    assert circle is not None
    assert plot is not None
    assert plot["y"] + plot["height"] - 6 <= circle["y"] + circle["height"] / 2 <= plot["y"] + plot["height"] + 6


def test_the_filter_leaves_benchmarks_with_all_its_words_in_table_and_charts(opened: Opened) -> None:
    assert len(numbers(opened)) == 11
    opened.page.keyboard.press("/")
    opened.page.keyboard.type("UNI up")
    assert numbers(opened) == ["unicode/upper"]
    assert opened.page.locator(".overview tbody tr:visible").count() == 1
    assert opened.page.locator("#shown").inner_text() == "1 of 11"
    opened.page.locator("#filter").fill("")
    assert len(numbers(opened)) == 11


def test_the_numbers_of_the_headline_filter_too(opened: Opened) -> None:
    opened.page.locator('.tile[data-show="creeping"]').click()
    assert numbers(opened) == ["search/index"]
    opened.page.locator('.tile[data-show="creeping"]').press("Enter")
    assert len(numbers(opened)) == 11
    for state, names in (
        ("new", ["parse/json[large]"]),
        ("open", ["search/index", "parse/xml"]),
        ("recovered", ["search/query"]),
        ("acknowledged", ["startup"]),
        ("improvement", ["render/table"]),
        ("unstable", ["threads"]),
        ("unhealthy", ["zip/deflate", "unicode/upper"]),
    ):
        opened.page.locator("#show").select_option(state)
        assert sorted(numbers(opened)) == sorted(names), state


def test_a_link_leads_to_a_benchmark_with_its_filter_and_its_range(opened: Opened, browser: Browser) -> None:
    opened.page.locator("#filter").fill("parse")
    opened.page.mouse.click(*opened.point("parse/xml", 5.5 / 60))
    opened.page.mouse.click(*opened.point("parse/xml", 40.5 / 60))
    compared = opened.article("parse/xml").locator(".compare").text_content() or ""
    assert f"cg-bench diff {trending.sha(5)[:12]} {trending.sha(40)[:12]}" in compared
    assert "35 commits" in compared
    assert "+4 %" in compared
    again = Opened(browser, opened.page.url)
    assert again.article("parse/xml").locator(".compare").text_content() == compared
    assert numbers(again) == numbers(opened) == ["parse/json[large]", "parse/xml"]
    box = again.article("parse/xml").bounding_box()
    assert box is not None
    assert -50 < box["y"] < 600
    assert again.complaints == []
    again.context.close()


def test_a_link_of_the_table_leads_to_the_chart(opened: Opened) -> None:
    opened.page.locator(".overview a", has_text="zip/inflate").click()
    opened.page.wait_for_function("scrollY > 1000")
    assert re.search(r"#b-[0-9a-f]{10}$", opened.page.url)
    box = opened.article("zip/inflate").bounding_box()
    assert box is not None
    assert -50 < box["y"] < 900


@pytest.mark.parametrize("link", ["#nonsense", "#b-0000000000&from=x&to=y&show=%3Cb%3E&across=never", "#%", "#&&=&"])
def test_a_link_that_leads_nowhere_does_no_harm(browser: Browser, address: str, link: str) -> None:
    found = Opened(browser, address + link)
    assert found.complaints == []
    assert len(numbers(found)) == 11
    found.context.close()


def dates(chart: Locator) -> list[str]:
    return chart.locator(".date").all_text_contents()


def ticks(chart: Locator) -> list[str]:
    return chart.locator(".tick").all_text_contents()


def test_dragging_selects_a_range_that_can_be_zoomed_into_and_left_again(opened: Opened) -> None:
    chart = opened.chart("search/index")
    opened.page.mouse.move(*opened.point("search/index", 0.1))
    before = [dates(chart), ticks(chart)]
    opened.page.mouse.move(*opened.point("search/index", 20.5 / 60))
    opened.page.mouse.down()
    opened.page.mouse.move(*opened.point("search/index", 30.5 / 60), steps=4)
    opened.page.mouse.up()
    opened.article("search/index").get_by_role("button", name="Zoom to these").click()
    assert dates(chart)[0] == trending.notes(60)[20].committed_at[:10]
    assert ticks(chart) != before[1]
    opened.page.locator("#whole").click()
    opened.point("search/index", 0.1)
    assert [dates(chart), ticks(chart)] == before
    assert opened.page.locator("#whole").is_hidden()


def test_every_finding_key_change_release_and_failure_is_drawn(opened: Opened) -> None:
    for name, look in (
        ("parse/json[large]", ".mark.regression:not(.hollow)"),
        ("render/table", ".mark.improvement.hollow"),
        ("search/index", ".mark.creep"),
        ("threads", ".mark.unstable"),
        ("unicode/fold", ".rule.key"),
    ):
        opened.point(name, 0.5)
        assert opened.chart(name).locator(look).count() == 1, name
        assert opened.chart(name).locator(".rule.release").all_text_contents() == [
            f"release {tag} of {trending.notes(60)[at].committed_at[:10]}{tag}"
            for tag, at in (("v1.1", 20), ("v1.0", 5))
        ]
    for name in ("parse/json[large]", "render/table"):
        opened.point(name, 0.5)
        mark, plot = (
            opened.chart(name).locator(part).bounding_box() for part in (".mark", ".plot.value path:first-child")
        )
        assert mark is not None
        assert plot is not None
        assert plot["y"] - 25 < mark["y"] < plot["y"] + plot["height"] + 25


def test_bars_are_at_commits_that_were_measured_and_pale_ones_at_those_taken_over(
    browser: Browser, tmp_path: Path
) -> None:
    found = trending.series("parse", [100, 100, None, None, 100, 200, 200, 200])
    readings = tuple(replace(item, taken_over=item.index in (1, 5, 6)) for item in found.readings)
    path = tmp_path / "sparse.html"
    path.write_text(html.page(trending.arranged([replace(found, readings=readings)], [], 8)), encoding="utf-8")
    with Opened.quietly(browser, path.as_uri()) as page:
        drawn = [bar.get_attribute("d") for bar in page.page.locator(".plot.value .bar").all()]
        assert drawn == ["M0 172H12.5M50 172H62.5M87.5 172H100", "M12.5 172H25M62.5 172H75M75 172H87.5"]


def test_the_scale_has_a_few_round_ticks(opened: Opened) -> None:
    opened.point("parse/json[large]", 0.5)
    assert ticks(opened.chart("parse/json[large]")) == ["2.8 M", "2.9 M", "3.0 M"]


def test_no_dates_overlap_on_a_phone_and_days_that_repeat_are_commits(browser: Browser, tmp_path: Path) -> None:
    line = [replace(note, committed_at=f"2026-01-05T{9 + at:02}:00:00Z") for at, note in enumerate(trending.notes(7))]
    path = tmp_path / "young.html"
    path.write_text(
        html.page(trending.arranged([trending.series("a", [1000] * 7)], [], 7, line=line)), encoding="utf-8"
    )
    found = Opened(browser, path.as_uri(), viewport={"width": 400, "height": 800})
    labels = found.page.locator(".date")
    for across in ("dates", "commits"):
        found.page.locator("#across").select_option(across)
        boxes = [(box["x"], box["x"] + box["width"]) for label in labels.all() if (box := label.bounding_box())]
        assert len(boxes) >= 2
        assert all(one[1] <= other[0] for one, other in pairwise(boxes)), boxes
        assert boxes[-1][1] <= 400
    texts = labels.all_text_contents()
    assert texts[0] == "2026-01-05"
    assert texts[1:] == [note.sha[:7] for note in line if note.sha[:7] in texts]
    assert (found.page.locator(".plot.value .dots").first.get_attribute("d") or "").count("M") == 7
    found.context.close()


def test_failures_are_crossed_where_they_were(opened: Opened) -> None:
    crosses = opened.chart("zip/deflate").locator(".crosses")
    opened.point("zip/deflate", 0.5)
    opened.page.locator("#across").select_option("dates")
    opened.page.locator("#across").select_option("commits")
    assert [float(x[:-1]) for x in (crosses.get_attribute("x") or "").split()] == pytest.approx([97.5, 99.17], abs=0.01)
    assert (crosses.text_content() or "").endswith("××")


def test_no_label_runs_out_of_its_chart(browser: Browser, tmp_path: Path) -> None:
    tags = [Release(name=f"v1.{at}.0-rc.1+build", sha=trending.sha(at)) for at in (0, 16, 33, 44, 59)]
    item = trending.series("a", [1000] * 60, keys={1: trending.OTHER_KEY, 58: trending.KEY})
    path = tmp_path / "labels.html"
    path.write_text(html.page(trending.arranged([item], [], 60, releases=tags)), encoding="utf-8")
    for width in (360, 1100):
        found = Opened(browser, path.as_uri(), viewport={"width": width, "height": 800})
        for across in ("dates", "commits"):
            found.page.locator("#across").select_option(across)
            boxes = found.page.evaluate(
                """() => [...document.querySelectorAll('.rule.release text')].filter((item) => item.checkVisibility())
                    .map((item) => item.getBoundingClientRect()).map(({ left, right }) => [left, right])"""
            )
            assert len(boxes) >= 2
            assert all(0 <= left < right <= width for left, right in boxes), (across, boxes)
            assert all(one[1] <= other[0] for one, other in pairwise(sorted(boxes))), boxes
        assert found.complaints == []
        found.context.close()


def test_charts_across_dates_leave_weekends_open(opened: Opened) -> None:
    opened.page.locator("#across").select_option("dates")
    assert "across=dates" in opened.page.url
    opened.page.mouse.move(*opened.point("startup", 0.999))
    assert trending.sha(59)[:12] in opened.page.locator("#tip").inner_text()


def test_the_page_follows_the_system_into_the_dark_and_a_button_decides_otherwise(
    browser: Browser, address: str
) -> None:
    found = Opened(browser, address, color_scheme="dark")
    paper = "() => getComputedStyle(document.body).backgroundColor"
    dark = found.page.evaluate(paper)
    assert max(map(int, re.findall(r"\d+", dark))) < 60
    found.page.locator("#theme").click()
    light = found.page.evaluate(paper)
    assert min(map(int, re.findall(r"\d+", light))) > 200
    found.page.reload()
    assert found.page.evaluate(paper) == light
    found.page.emulate_media(color_scheme="light")
    found.page.locator("#theme").click()
    assert found.page.evaluate(paper) == dark
    found.page.locator("#theme").click()
    assert found.page.locator("#theme").inner_text() == "Theme: auto"
    assert found.page.evaluate(paper) == light
    assert found.complaints == []
    found.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_the_page(browser: Browser, address: str, scheme: Any) -> None:
    found = Opened(browser, address, color_scheme=scheme)
    colours = found.page.evaluate(
        """() => [...document.querySelectorAll('main *, header *')].filter((item) => item.checkVisibility()
            && [...item.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
            .map((item) => getComputedStyle(item)[item.ownerSVGElement ? 'fill' : 'color'])
            .concat(getComputedStyle(document.body).backgroundColor)"""
    )
    *texts, paper = ([int(part) for part in re.findall(r"\d+", colour)[:3]] for colour in colours)
    assert len(texts) > 100
    assert min(contrast(text, paper) for text in texts) >= 4.5  # what WCAG 2 asks of small text
    found.context.close()


def contrast(one: list[int], other: list[int]) -> float:
    def light(colour: list[int]) -> float:
        parts = [part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in colour]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] + 0.05

    first, second = sorted((light(one), light(other)))
    return second / first


def test_the_keyboard_does_what_the_mouse_does(opened: Opened) -> None:
    chart, tip = opened.chart("search/query"), opened.page.locator("#tip")
    chart.focus()
    opened.page.keyboard.press("Home")
    assert trending.sha(0)[:12] in tip.inner_text()
    opened.page.keyboard.press("ArrowRight")
    opened.page.keyboard.press("ArrowRight")
    assert trending.sha(2)[:12] in tip.inner_text()
    opened.page.keyboard.press("Enter")
    opened.page.keyboard.press("End")
    opened.page.keyboard.press("ArrowLeft")
    opened.page.keyboard.press("Enter")
    compared = opened.article("search/query").locator(".compare")
    assert f"cg-bench diff {trending.sha(2)[:12]} {trending.sha(58)[:12]}" in (compared.text_content() or "")
    opened.page.keyboard.press("+")
    assert opened.page.locator("#whole").is_visible()
    opened.page.keyboard.press("Escape")
    assert compared.count() == 0
    assert tip.is_hidden()
    for _ in range(8):
        opened.page.keyboard.press("-")
    assert opened.page.locator("#whole").is_hidden()


def test_the_tab_key_reaches_everything_in_the_order_of_the_page(opened: Opened) -> None:
    reached: list[str] = []
    for _ in range(200):
        opened.page.keyboard.press("Tab")
        name = opened.page.evaluate(
            "() => document.activeElement.id || document.activeElement.className.baseVal || document.activeElement.className"
            " || document.activeElement.tagName"
        )
        reached.append(str(name))
        if name == "BODY":
            break
    for name in ("skip", "theme", "tile regression", "filter", "show", "across", "chart live", "SUMMARY"):
        assert name in reached, name
    assert reached.index("skip") == 0 < reached.index("theme") < reached.index("filter") < reached.index("chart live")


def test_the_page_is_readable_without_scripts(browser: Browser, address: str) -> None:
    found = Opened(browser, address, java_script_enabled=False)
    page = found.page
    assert page.locator("#tools").is_hidden()
    assert page.locator("#theme").is_hidden()
    assert page.locator("article:visible").count() == 11
    assert "new regression" in page.locator("#findings").inner_text()
    box = found.chart("parse/xml").locator("use").bounding_box()
    assert box is not None
    assert box["width"] > 900
    assert box["height"] > 100
    found.article("parse/xml").locator("summary").click()
    assert found.article("parse/xml").locator(".figures tbody tr").first.is_visible()
    assert found.complaints == []
    found.context.close()


def test_the_page_prints_with_every_chart_and_without_buttons(opened: Opened, tmp_path: Path) -> None:
    opened.page.emulate_media(media="print", color_scheme="dark")
    assert opened.page.locator("#tools").is_hidden()
    assert opened.page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    opened.page.pdf(path=tmp_path / "page.pdf", format="A4")
    assert (tmp_path / "page.pdf").stat().st_size > 20_000
    assert opened.page.locator("svg.chart:has(.tick)").count() == 11


@pytest.mark.parametrize("width", [320, 390, 768])
def test_nothing_sticks_out_on_a_phone(browser: Browser, address: str, width: int) -> None:
    found = Opened(browser, address, viewport={"width": width, "height": 800}, has_touch=True, is_mobile=True)
    assert found.page.evaluate("() => document.documentElement.scrollWidth") <= width
    found.chart("startup").tap()
    assert "Score" in found.page.locator("#tip").inner_text()
    box = found.page.locator("#tip").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    found.context.close()


def test_hostile_names_run_no_script(browser: Browser, tmp_path: Path) -> None:
    from tests.unit.test_trend_page import hostile

    path = tmp_path / "hostile.html"
    path.write_text(html.page(hostile()), encoding="utf-8")
    found = Opened(browser, path.as_uri())
    dialogs: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    found.page.on("dialog", dismiss)
    found.page.locator("svg.chart").hover()
    assert "alert(1)" in found.page.locator("#tip").inner_text()
    found.page.locator("svg.chart").click()
    assert found.page.locator("#tip *").filter(has=found.page.locator("img, script")).count() == 0
    assert dialogs == []
    assert found.complaints == []
    found.context.close()


def test_injected_script_would_be_refused(browser: Browser, tmp_path: Path) -> None:
    text = html.page(trending.small()).replace("<main>", "<main><script>document.title = 'owned'</script>", 1)
    path = tmp_path / "injected.html"
    path.write_text(text, encoding="utf-8")
    found = Opened(browser, path.as_uri())
    assert found.page.title() != "owned"
    assert any("Content Security Policy" in complaint for complaint in found.complaints)
    found.context.close()


def test_the_largest_page_changes_its_axis(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "large.html"
    path.write_text(html.page(trending.large()), encoding="utf-8")
    found = Opened(browser, path.as_uri())
    found.page.locator("#across").select_option("dates")
    assert found.complaints == []
    found.context.close()
