"""The page of a result in a real browser without a window: what people do with it, and what it must never do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.model.python_profile import TOP, PythonFunction, PythonPath, PythonProfile
from cachegrind_bench.render.result_page import page
from tests.browser.opening import Opened
from tests.unit import flaming
from tests.unit.calls import graph
from tests.unit.pythons import Tree, python_profile
from tests.unit.resulting import page_of
from tests.unit.samples import benchmark, result

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Dialog, Locator


pytestmark = pytest.mark.slow


def written(path: Path, profile: PythonProfile, name: str = "rows") -> str:
    path.write_text(page_of(profile, name), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("flame") / "flame graph.html", flaming.small())


@pytest.fixture
def opened(browser: Browser, address: str) -> Iterator[Opened]:
    with Opened.quietly(browser, address) as found:
        yield found


def frame(opened: Opened, name: str) -> Locator:
    return opened.page.locator(f'.frame[aria-label^="{name} "]').first


def width(opened: Opened, name: str) -> float:
    box = frame(opened, name).bounding_box()
    assert box is not None
    return box["width"]


def status(opened: Opened) -> str:
    return opened.page.locator(".status").inner_text()


def test_frames_are_as_wide_as_their_share(opened: Opened) -> None:
    whole = width(opened, "all")
    profile = flaming.small()
    for name, inclusive in (("native code", 62_500), ("parse_row", 490_000), ("field", 90_000), ("walk", 30_000)):
        assert width(opened, name) == pytest.approx(whole * inclusive / profile.total, abs=1.5), name
    assert frame(opened, "parse_row").inner_text() == "parse_row"


def test_a_callee_lies_within_its_caller_one_row_below(opened: Opened) -> None:
    outer, inner = (frame(opened, name).bounding_box() for name in ("load", "parse_row"))
    assert outer is not None
    assert inner is not None
    assert inner["y"] == pytest.approx(outer["y"] + 20, abs=1)
    assert outer["x"] - 1 <= inner["x"] < inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 1


def test_pointing_at_a_frame_reports_function_place_costs_calls_and_share(opened: Opened) -> None:
    frame(opened, "parse_row").hover()
    text = status(opened)
    for part in (
        "parse_row",
        "src/pkg/rows.py:42",
        "490,000 instructions",
        "79.3 %",
        "itself 400,000",
        "64.7 %",
        "30 calls",
    ):
        assert part in text, part
    opened.page.mouse.move(1, 1)
    assert status(opened).startswith("all")


def test_a_click_zooms_in_and_escape_shows_all_again(opened: Opened) -> None:
    whole = width(opened, "all")
    frame(opened, "field").click()
    assert width(opened, "field") == pytest.approx(whole, abs=1)
    assert frame(opened, "native code").count() == 0
    assert width(opened, "load") == pytest.approx(whole, abs=1)  # its callers stay, to lead back
    opened.page.keyboard.press("Escape")
    assert width(opened, "field") < whole / 2
    frame(opened, "field").click()
    frame(opened, "load").click()
    opened.page.locator(".whole").click()
    assert opened.page.locator(".whole").is_hidden()
    assert frame(opened, "native code").count() == 1


def test_keys_do_all_that_the_mouse_does(opened: Opened) -> None:
    page = opened.page
    frame(opened, "all").focus()
    for key, name in (
        ("ArrowDown", "<module>"),
        ("ArrowRight", "atexit"),
        ("ArrowRight", "native code"),
        ("ArrowRight", "native code"),
        ("Home", "all"),
        ("ArrowDown", "<module>"),
        ("ArrowDown", "load"),
        ("ArrowDown", "parse_row"),
        ("ArrowUp", "load"),
        ("ArrowRight", "walk"),
        ("ArrowLeft", "load"),
    ):
        page.keyboard.press(key)
        assert status(opened).startswith(name), key
    page.keyboard.press("Enter")
    assert width(opened, "load") == pytest.approx(width(opened, "all"), abs=1)
    focused = page.evaluate("() => document.activeElement.getAttribute('aria-label')")
    assert focused.startswith("load src/pkg/rows.py:5, 520,000 instructions")
    page.keyboard.press("Escape")
    assert frame(opened, "native code").count() == 1


def test_only_one_frame_is_in_the_order_of_tabs(opened: Opened) -> None:
    assert opened.page.locator('.frame[tabindex="0"]').count() == 1
    frame(opened, "field").click()
    assert opened.page.locator('.frame[tabindex="0"]').count() == 1


def test_the_search_marks_frames_counts_recursion_once_and_sifts_the_table(opened: Opened) -> None:
    page = opened.page
    page.keyboard.press("/")
    page.keyboard.type("WALK")
    assert page.locator(".frame.hit").count() == 3
    assert page.locator(".found").inner_text() == "3 frames, 4.9 %"
    assert page.locator("tr.function:visible").count() == 1
    page.locator(".search").fill("rows.py")
    assert page.locator(".found").inner_text() == "4 frames, 84.1 %"
    assert page.locator("tr.function:visible").count() == 6
    page.keyboard.press("Escape")
    assert page.locator(".search").input_value() == ""
    assert page.locator(".frame.hit").count() == 0
    assert page.locator("tr.function:visible").count() == 11


def test_what_is_too_small_to_be_seen_is_not_drawn_until_one_zooms_in(browser: Browser, tmp_path: Path) -> None:
    found = Opened(browser, written(tmp_path / "large.html", flaming.large()))
    frames = found.page.locator(".frame")
    before = frames.count()
    total = found.page.evaluate("() => JSON.parse(document.getElementById('data').textContent)[0][0].parent.length")
    assert 50 < before < total
    frames.nth(30).evaluate("frame => frame.click()")
    assert found.page.evaluate("() => document.documentElement.scrollWidth") <= 1100
    assert found.complaints == []
    found.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_stand_out_from_their_frames(browser: Browser, address: str, scheme: Any) -> None:
    found = Opened(browser, address, color_scheme=scheme)
    colours = found.page.evaluate(
        """() => [...document.querySelectorAll('.frame')].map((item) => getComputedStyle(item))
            .map(({ color, backgroundColor }) => [color, backgroundColor])"""
    )
    for pair in colours:
        dark, light = sorted(luminance(colour) for colour in pair)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, pair
    found.context.close()


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_button_decides_between_light_and_dark(browser: Browser, address: str) -> None:
    found = Opened(browser, address, color_scheme="dark")
    paper = "() => getComputedStyle(document.body).backgroundColor"
    dark = found.page.evaluate(paper)
    found.page.locator("#theme").click()
    assert found.page.evaluate(paper) != dark
    assert found.complaints == []
    found.context.close()


def test_without_script_the_table_says_what_matters(browser: Browser, address: str) -> None:
    found = Opened(browser, address, java_script_enabled=False)
    text = found.page.locator("body").inner_text()
    assert "The graph needs JavaScript" in text
    assert "400,000" in text
    assert found.page.locator(".graph").is_hidden()
    assert found.page.locator(".tools").is_hidden()
    found.context.close()


@pytest.mark.parametrize("size", [320, 390, 768])
def test_nothing_sticks_out_on_a_phone(browser: Browser, address: str, size: int) -> None:
    found = Opened(browser, address, viewport={"width": size, "height": 800}, has_touch=True, is_mobile=True)
    assert found.page.evaluate("() => document.documentElement.scrollWidth") <= size
    frame(found, "parse_row").tap()
    assert "parse_row" in status(found)
    found.context.close()


def test_the_graph_grows_with_the_window(opened: Opened) -> None:
    opened.page.set_viewport_size({"width": 700, "height": 900})
    opened.page.wait_for_function("() => document.querySelector('.frame').clientWidth < 700")
    # At once, as the graph may be drawn anew in between.
    part, whole = opened.page.evaluate(
        """() => ["native code", "all"].map((name) => document.querySelector(`.frame[aria-label^="${name} "]`).clientWidth)"""
    )
    assert part == pytest.approx(whole * 62_500 / flaming.small().total, abs=1.5)


def test_hostile_names_run_no_script(browser: Browser, tmp_path: Path) -> None:
    found = Opened(browser, written(tmp_path / "hostile.html", flaming.hostile(), "</title><script>alert(1)</script>"))
    dialogs: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    found.page.on("dialog", dismiss)
    found.page.locator(".frame").nth(1).click()
    assert "alert(1)" in status(found)
    assert found.page.locator(".graph, .status").locator("img, script").count() == 0
    assert dialogs == []
    assert found.complaints == []
    found.context.close()


def test_a_profile_of_nothing_is_a_page_too(browser: Browser, tmp_path: Path) -> None:
    from tests.unit.test_result_page import EMPTY

    found = Opened(browser, written(tmp_path / "empty.html", EMPTY))
    assert found.page.locator(".frame").count() == 1
    assert found.complaints == []
    found.context.close()


def test_one_graph_is_shown_and_the_other_can_be_chosen(browser: Browser, tmp_path: Path) -> None:
    program = graph({"main": (10, {"parse": 3}), "parse": (200, {})})
    path = tmp_path / "both.html"
    path.write_text(page_of(flaming.small(), calls=program), encoding="utf-8")
    with Opened.quietly(browser, path.as_uri()) as found:
        doubt = found.page.get_by_text("Who called whom was recorded")
        assert frame(found, "parse_row").is_visible()
        assert doubt.is_hidden()
        frame(found, "load").click()
        found.page.locator(".kind").select_option("native functions")
        assert frame(found, "parse_row").count() == 0
        assert width(found, "parse") == pytest.approx(width(found, "all") * 600 / 610, abs=1.5)
        assert doubt.is_visible()
        found.page.locator(".kind").select_option("Python functions")
        assert width(found, "parse_row") == pytest.approx(width(found, "all") * 490_000 / 618_204, abs=1.5)


def test_a_page_of_many_benchmarks_has_a_graph_for_each(browser: Browser, tmp_path: Path) -> None:
    many = [benchmark(id=f"b{number}", python=flaming.large(300)) for number in range(60)]
    path = tmp_path / "many.html"
    path.write_text(page(result(*many), "r.json", lambda item: item), encoding="utf-8")
    with Opened.quietly(browser, path.as_uri()) as found:
        found.page.wait_for_function("() => document.querySelectorAll('.frame[tabindex=\"0\"]').length === 60")


def columns(factor: int = 0) -> PythonProfile:
    """Return 10,000 functions: 1,000 paths, ten calls deep, which are all of about the same width."""
    functions = tuple(PythonFunction(f"src/m{number % 50}.py", f"f{number}", number) for number in range(10_000))
    paths = [
        PythonPath(parent=TOP if n % 10 == 0 else n - 1, function=n, calls=1, ir=1_000 + n % 7 * factor)
        for n in range(10_000)
    ]
    return PythonProfile(total=sum(path.ir for path in paths), functions=functions, paths=tuple(paths))


@pytest.fixture(scope="module")
def of_columns(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("columns") / "columns.html", columns())


def test_of_ten_thousand_functions_each_can_be_reached_and_few_are_drawn(browser: Browser, of_columns: str) -> None:
    with Opened.quietly(browser, of_columns) as found:
        total = found.page.evaluate("() => JSON.parse(document.getElementById('data').textContent)[0][0].parent.length")
        assert total == 10_001
        assert 8 < found.page.locator(".frame").count() < 30
        strip = found.page.locator(".frame.strip").nth(3)
        strip.hover()
        assert re.match(r"… 12\d narrow frames: zoom in · 1,2\d0,000 instructions", status(found))
        strip.click()
        assert 1_000 < found.page.locator(".frame").count() < 3_001
        assert found.page.locator(".frame.strip").count() == 0
        assert frame(found, "all").is_visible()
        name = found.page.locator(".frame").nth(500).get_attribute("aria-label")
        assert name is not None
        found.page.locator(".frame").nth(500).click()
        assert status(found).startswith(name)
        found.page.keyboard.press("Escape")
        assert found.page.locator(".frame").count() < 30


def test_keys_lead_into_narrow_frames(browser: Browser, of_columns: str) -> None:
    with Opened.quietly(browser, of_columns) as found:
        frame(found, "all").focus()
        for key, said in (
            ("ArrowDown", "…"),
            ("ArrowRight", "…"),
            ("Enter", "f"),
            ("ArrowRight", "f"),
            ("ArrowDown", "f"),
            ("ArrowUp", "f"),
            ("ArrowUp", "all"),
        ):
            found.page.keyboard.press(key)
            assert status(found).startswith(said), key


def test_the_search_marks_narrow_frames_that_have_what_is_searched_for(browser: Browser, of_columns: str) -> None:
    with Opened.quietly(browser, of_columns) as found:
        found.page.keyboard.press("/")
        found.page.keyboard.type("f7777 ")
        assert found.page.locator(".found").inner_text() == "1 frame, 0.0 %"
        hits = found.page.locator(".frame.hit")
        assert hits.count() == 1
        hits.click()
        assert frame(found, "f7777").is_visible()
        assert hits.count() == 1


def test_a_graph_never_has_more_frames_than_a_browser_draws_at_once(browser: Browser, tmp_path: Path) -> None:
    tree: Tree = {}
    for number in range(480):
        path: Tree = {f"leaf{number}": (1, 100)}
        for depth in range(20):
            path = {f"f{number}_{depth}": (1, 0, path)}
        tree |= path
    deep = python_profile(tree)
    with Opened.quietly(
        browser, written(tmp_path / "deep.html", deep), viewport={"width": 1600, "height": 900}
    ) as found:
        assert found.page.locator(".frame").count() <= 3_001
        found.page.locator(".frame.strip").first.click()
        assert 1_000 < found.page.locator(".frame").count() <= 3_001
