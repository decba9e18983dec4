"""The page of a comparison as text: it says what the table says, draws what was recorded, and loads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.cli.comparison_options import write_files
from cachegrind_bench.model.metrics import EVENTS, FunctionCost, Profile
from cachegrind_bench.render.comparison.html import page
from cachegrind_bench.usecases.comparison import InMemory, ReportOptions, Side
from cachegrind_bench.usecases.comparison import compared as compared_sides
from tests.unit import flaming
from tests.unit.calls import graph
from tests.unit.comparing import counts, gates, measured
from tests.unit.pythons import python_profile
from tests.unit.samples import result
from tests.unit.test_trend_page import HOSTILE, Page, block

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from cachegrind_bench.model.result import Benchmark


def moved(name: str, ir: int, **changes: Any) -> Benchmark:
    """Return a benchmark of this cost, all of it in one function."""
    value = counts(ir)
    row = FunctionCost("words.c", HOSTILE, value.as_tuple())
    return measured(name, value, profile=Profile(events=EVENTS, functions=(row,)), **changes)


def page_of(base: list[Benchmark], candidate: list[Benchmark]) -> str:
    before, after = (
        Side(name=name, file=InMemory(result(*side))) for name, side in (("main", base), ("pr", candidate))
    )
    return page(compared_sides(before, after, gates(), ReportOptions()))


def words(times: int) -> Benchmark:
    """Return a benchmark that calls a function so often."""
    found = graph({"main": (10_000, {"count": 1}), "count": (100, {"contains": 10 * times}), "contains": (40, {})})
    return moved("words", found.total, calls=found)


def rows(times: int) -> Benchmark:
    """Return a benchmark of Python."""
    found = python_profile({"load": (1, 9_000, {"parse_row": (times, 900 * times)})}, native=500)
    return moved(f"rows {HOSTILE}", found.total, python=found)


def sides() -> tuple[list[Benchmark], list[Benchmark]]:
    """Return four benchmarks that moved, of which two have paths, and one that did not."""
    same = measured("same", counts(5_000))
    hostile = [moved("hostile", 6_500 + more, python=flaming.hostile()) for more in (0, 900)]
    base = [words(3), rows(30), hostile[0], moved("bare", 7_000), same]
    return base, [words(9), rows(20), hostile[1], moved("bare", 9_000), same]


def test_it_says_what_the_table_says() -> None:
    page = Page(page_of(*sides()))
    text = " ".join(page.text.split())
    for said in (
        "main → pr",
        "3 regressions",
        "✗ regression",
        "contains (words.c) is called 90 instead of 30 times, from count",
    ):
        assert said in text, said
    assert [attributes["class"] for attributes in page.all("section") if "class" in attributes].count("flame") == 3
    assert text.count("No flame graph: calls of this benchmark were not recorded on both sides") == 1
    assert "Who called whom was recorded, not whole paths" in text


def test_each_benchmark_with_paths_has_a_graph_of_both_sides() -> None:
    found: Any = block(page_of(*sides()))
    assert len(found) == 3
    totals = {tuple(map(sum, graph["own"])) for graphs in found for graph in graphs}
    assert (11_300, 13_700) in totals
    assert (36_500, 27_500) in totals


def test_it_loads_nothing_and_hostile_text_stays_text() -> None:
    text = page_of(*sides())
    flaming.check_page(text)
    assert Page(text).all("img") == []


def test_a_page_of_no_benchmarks_is_one_too() -> None:
    same = [measured("same", counts(5_000))]
    page = Page(page_of(same, same))
    assert "no regressions" in page.text or "unchanged" in page.text


def test_the_page_is_written_beside_the_report(tmp_path: Path) -> None:
    options = ReportOptions(files={"html": tmp_path / "page.html"})
    base, candidate = (Side(name="x", file=InMemory(result(words(times)))) for times in (3, 9))
    write_files(compared_sides(base, candidate, gates(), options), options)
    assert "count" in Page((tmp_path / "page.html").read_text()).text
