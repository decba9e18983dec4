"""The page of a comparison in a real browser: several graphs, of two sides each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.opening import Opened
from tests.browser.test_result_page import luminance
from tests.unit.test_comparison_page import page_of, sides

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Locator

pytestmark = pytest.mark.slow
_TOTALS = 36_500, 27_500  # of the benchmark in Python


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("comparison") / "page.html"
    path.write_text(page_of(*sides()), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def opened(browser: Browser, address: str) -> Iterator[Opened]:
    with Opened.quietly(browser, address) as found:
        yield found


def section(opened: Opened, name: str) -> Locator:
    return opened.page.locator(".flame").filter(has=opened.page.locator("h2", has_text=name)).first


def frame(within: Locator, name: str) -> Locator:
    return within.locator(f'.frame[aria-label^="{name} "]').first


def share(within: Locator, name: str) -> float:
    """Return how wide a frame is, as a part of the graph."""
    widths = []
    for item in (name, "all"):
        box = frame(within, item).bounding_box()
        assert box is not None
        widths.append(box["width"])
    return widths[0] / widths[1]


def test_frames_are_as_wide_as_their_share_of_the_side_that_is_chosen(opened: Opened) -> None:
    rows = section(opened, "rows")
    assert share(rows, "parse_row") == pytest.approx(18_000 / _TOTALS[1], abs=0.01)
    rows.locator(".view").select_option("base")
    assert share(rows, "parse_row") == pytest.approx(27_000 / _TOTALS[0], abs=0.01)
    rows.locator(".view").select_option("difference")
    assert share(rows, "parse_row") == pytest.approx(1, abs=0.01)
    assert frame(rows, "native code").count() == 0


def test_what_grew_is_red_and_what_shrank_is_blue(opened: Opened) -> None:
    looks = {
        name: frame(section(opened, name), function).get_attribute("class")
        for name, function in (("words", "contains"), ("rows", "parse_row"))
    }
    assert looks == {"words": "frame grew0", "rows": "frame shrank0"}
    assert "same" in str(frame(section(opened, "rows"), "native code").get_attribute("class"))


def test_both_sides_are_reported_for_the_frame_pointed_at(opened: Opened) -> None:
    rows = section(opened, "rows")
    frame(rows, "parse_row").hover()
    said = rows.locator(".status").inner_text()
    for part in ("27,000 → 18,000 instructions", "−9,000, 100.0 % of the change", "30 → 20 calls"):
        assert part in said, said


def test_each_graph_has_its_own_search_and_keys(opened: Opened) -> None:
    words, rows = section(opened, "words"), section(opened, "rows")
    frame(rows, "load").focus()
    opened.page.keyboard.press("/")
    opened.page.keyboard.type("parse")
    assert rows.locator(".frame.hit").count() == 1
    assert words.locator(".searching").count() == 0
    opened.page.keyboard.press("Escape")
    frame(rows, "load").click()
    assert share(rows, "parse_row") == pytest.approx(18_000 / 27_000, abs=0.01)
    assert words.locator(".whole").is_hidden()
    opened.page.keyboard.press("ArrowDown")
    assert rows.locator(".status").inner_text().startswith("parse_row")
    opened.page.keyboard.press("Escape")
    assert rows.locator(".whole").is_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_stand_out_from_their_frames(browser: Browser, address: str, scheme: Any) -> None:
    with Opened.quietly(browser, address, color_scheme=scheme) as found:
        colours = found.page.evaluate(
            """() => ["grew0", "grew1", "grew2", "shrank0", "shrank1", "shrank2", "same"].map((name) => {
                const item = document.createElement("div");
                item.className = `frame ${name}`;
                document.querySelector(".graph").append(item);
                const { color, backgroundColor } = getComputedStyle(item);
                return [color, backgroundColor];
            })"""
        )
        for pair in colours:
            dark, light = sorted(map(luminance, pair))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, pair


@pytest.mark.parametrize("size", [400, 780, 1280, 2000])
def test_nothing_sticks_out(browser: Browser, address: str, size: int) -> None:
    with Opened.quietly(browser, address, viewport={"width": size, "height": 900}) as found:
        assert found.page.evaluate("() => document.documentElement.scrollWidth") <= size
