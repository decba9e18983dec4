"""Reports in text, Markdown and JSON, against golden files, and what they do with hostile text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.metrics import EVENTS
from cachegrind_bench.model.result import Commit, Environment, Run
from cachegrind_bench.render import table
from cachegrind_bench.render.documents.summaries import summary
from cachegrind_bench.render.functions import sort_name
from cachegrind_bench.render.report import measured, shown
from cachegrind_bench.render.table import Report, Section
from tests.unit.samples import HOSTILE, VECTOR, benchmark, failed_benchmark, result, rich_benchmark

if TYPE_CHECKING:
    from collections.abc import Callable

    from cachegrind_bench.model.result import Benchmark, Result
    from tests.conftest import Golden

RESULTS: dict[str, Callable[[], Result]] = {
    "plain": lambda: result(benchmark()),
    "rich": lambda: result(rich_benchmark()),
    "failed": lambda: result(failed_benchmark(), commit=None),
}
FORMS = {"txt": "table", "md": "markdown"}


def cells(report: Report, title: str) -> list[tuple[str, ...]]:
    return [row for section in report.sections if section.title == title for row in section.rows]


def facts(item: Benchmark) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for section in measured(item, result().env).sections for row in section.rows}


@pytest.mark.parametrize("suffix", FORMS)
@pytest.mark.parametrize("name", RESULTS)
def test_the_report_after_a_run(name: str, suffix: str, golden: Golden) -> None:
    value = RESULTS[name]()
    golden(f"measured-{name}.{suffix}", table.render(measured(value.benchmarks[0], value.env), FORMS[suffix]))


@pytest.mark.parametrize("suffix", FORMS)
@pytest.mark.parametrize("name", RESULTS)
def test_the_long_report(name: str, suffix: str, golden: Golden) -> None:
    value = RESULTS[name]()
    golden(
        f"shown-{name}.{suffix}", table.render(shown(value, value.benchmarks[0], top=2, sort="score"), FORMS[suffix])
    )


def test_the_summary_for_scripts(golden: Golden) -> None:
    text = summary(result(benchmark(), rich_benchmark(), failed_benchmark(id="failed")))
    golden("summary.json", text)
    assert json.loads(text)["benchmarks"][0]["hits"] == {"L1": 1778, "LL": 10, "RAM": 53}


def test_no_text_from_outside_reaches_the_terminal_raw() -> None:
    value = result(
        rich_benchmark(),
        created_at=HOSTILE,
        commit=Commit(sha=HOSTILE, parent=HOSTILE, branch=HOSTILE, dirty=True, committed_at=HOSTILE),
        env=Environment(key=HOSTILE, fields={"valgrind": HOSTILE, HOSTILE: HOSTILE}, info={}),
    )
    item = value.benchmarks[0]
    for report in (measured(item, value.env), shown(value, item, top=5, sort="Ir")):
        text = table.render(report)
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert text.count("\\x1b[31mred\\x0a") >= 4


def test_identical_runs_are_called_so() -> None:
    run = Run(layout=0, counts=VECTOR)
    assert facts(benchmark(runs=(run, run, run)))["noise"] == ("0", "all nine counts of 3 runs are identical")
    assert "noise" not in facts(benchmark())


def test_runs_that_differ_report_the_spread_of_the_score() -> None:
    runs = (Run(layout=0, counts=VECTOR), Run(layout=0, counts=replace(VECTOR, Ir=1353 + 342)))
    assert facts(benchmark(runs=runs))["noise"] == ("10 %", "of the score, over 2 runs")


def in_layouts(*runs: tuple[int, int]) -> Benchmark:
    """Return a benchmark with runs in these layouts, with so many instructions more than the usual counts."""
    return benchmark(runs=tuple(Run(layout=layout, counts=replace(VECTOR, Ir=1353 + more)) for layout, more in runs))


def test_layouts_report_their_spread_and_are_no_noise() -> None:
    found = facts(in_layouts((0, 0), (1, 342), (2, 171)))
    assert found["layouts"] == ("3", "score spread 10 %, Ir spread 25 %")
    assert "noise" not in found
    assert "layouts" not in facts(in_layouts((0, 0), (0, 342)))


def test_noise_is_reported_within_layouts() -> None:
    found = facts(in_layouts((0, 0), (0, 0), (1, 342), (1, 342)))
    assert found["noise"] == ("0", "all nine counts of 4 runs are identical within each layout")
    found = facts(in_layouts((0, 0), (0, 0), (1, 0), (1, 342)))
    assert found["noise"] == ("10 %", "of the score, over 4 runs within each layout")
    # The layouts themselves do not differ: their lower medians are the same.
    assert found["layouts"] == ("2", "score spread 0, Ir spread 0")


def test_the_summary_reports_the_spread_over_layouts_and_calls_runs_identical_within_them() -> None:
    found = json.loads(summary(result(in_layouts((0, 0), (0, 0), (3, 342)))))["benchmarks"][0]
    assert found["layouts"] == {
        "count": 2,
        "score": {"min": 3418, "max": 3760},
        "Ir": {"min": 1353, "max": 1695},
    }
    assert (found["runs"], found["runs_identical"]) == (3, True)


def test_what_could_not_be_pinned_is_reported_with_the_reason() -> None:
    rows = cells(measured(rich_benchmark(), result().env), "")
    assert ("sealed", "4 of 6 parts (clock kept)") not in rows  # randomness is one of the four
    assert ("sealed", "3 of 5 parts (clock kept)") in rows
    assert ("", "not pinned: randomness: no seccomp") in rows


def test_a_single_process_is_not_listed() -> None:
    assert cells(measured(benchmark(), result().env), "processes") == []


@pytest.mark.parametrize("top", [0, 1, 2, 3, 100])
def test_functions_beyond_the_top_are_added_up(top: int) -> None:
    rows = cells(shown(result(rich_benchmark()), rich_benchmark(), top=top, sort="score"), "hottest functions")
    assert len(rows) == {0: 0, 1: 2, 2: 3}.get(top, 3)
    if rows:
        assert sum(int(row[0].replace(",", "")) for row in rows) == 3418 * 108
    if top == 1:
        assert rows[-1][2:] == ("2 other functions", "")


@pytest.mark.parametrize("name", ["score", *EVENTS])
def test_functions_can_be_ordered_by_score_and_every_event_in_any_spelling(name: str) -> None:
    assert sort_name(name.upper()) == name
    rows = cells(shown(result(rich_benchmark()), rich_benchmark(), top=3, sort=name.lower()), "hottest functions")
    assert rows[0][0].replace(",", "").isdigit()


def test_functions_of_equal_cost_are_ordered_by_name() -> None:
    rows = cells(shown(result(rich_benchmark()), rich_benchmark(), top=3, sort="D1mw"), "hottest functions")
    assert [row[0] for row in rows] == ["0", "0", "0"]
    assert [row[2] for row in rows][:2] == ["parse::line", "std::vector<int, std::allocator<int> >::push_back(int&&)"]


def test_an_unknown_column_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="cannot sort by 'time'") as caught:
        sort_name("time")
    assert caught.value.hint == "one of: score, Ir, I1mr, ILmr, Dr, D1mr, DLmr, Dw, D1mw, DLmw"


def test_a_result_without_a_profile_is_shown_without_functions() -> None:
    item = benchmark(profile=None)
    assert cells(shown(result(item), item, top=5, sort="Ir"), "hottest functions") == []


def test_a_table_aligns_numbers_right_and_text_left() -> None:
    section = Section(title="t", columns=("name", "count"), rows=(("a", "5"), ("long name", "1,234"), ("b", "")))
    assert table.render(Report(title="x", sections=(section,), warnings=())) == (
        "x\n\n  t\n    name       count\n    a              5\n    long name  1,234\n    b\n"
    )


def test_a_section_without_rows_is_left_out() -> None:
    report = Report(title="x", sections=(Section(title="", columns=(), rows=()),), warnings=())
    assert table.render(report) == "x\n"
