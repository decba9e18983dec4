"""What a trend report says: comparisons with earlier days and the last release, order, headline and health."""

from __future__ import annotations

import json
import re
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from cachegrind_bench.errors import UsageError
from cachegrind_bench.history.accepted import parse_accepted
from cachegrind_bench.history.lifecycle import times_of
from cachegrind_bench.history.trend import window
from cachegrind_bench.history.values import Differing, Kind, State
from cachegrind_bench.model.result import CommitNote, Release
from cachegrind_bench.model.text import matches
from cachegrind_bench.render.documents import trends
from cachegrind_bench.render.trend import text, words
from cachegrind_bench.usecases.trend import reported_findings
from tests.unit import trending
from tests.unit.trending import arranged, finding, notes, series, sha

if TYPE_CHECKING:
    from cachegrind_bench.history.values import Trend


def days(*dates: str) -> list[CommitNote]:
    return [
        replace(note, committed_at=f"{date}T12:00:00Z") for note, date in zip(notes(len(dates)), dates, strict=True)
    ]


def test_the_latest_reading_is_compared_with_those_a_day_a_week_and_a_month_before_the_newest_commit() -> None:
    line = days("2026-01-01", "2026-01-20", "2026-02-01", "2026-02-06", "2026-02-07")
    row = arranged([series("a", [100_000, 200_000, 300_000, 400_000, 500_000])], [], 5, line=line).rows[0]
    assert row.day is not None
    assert row.day.base is not None
    assert row.day.base.index == 3
    assert row.week is not None
    assert row.week.base is not None
    assert row.week.base.index == 1
    assert row.month is not None
    assert row.month.base is not None
    assert row.month.base.index == 0
    assert row.month.change == Fraction(row.readings[4].value - row.readings[0].value, row.readings[0].value)


def test_a_benchmark_younger_than_a_week_has_nothing_to_compare_with() -> None:
    line = days("2026-01-01", "2026-02-05", "2026-02-07")
    row = arranged([series("a", [None, 1000, 1000])], [], 3, line=line).rows[0]
    assert row.week is not None
    assert row.week.base is None
    assert row.week.change is None
    assert row.day is not None
    assert row.day.change == 0


def test_a_commit_with_a_clock_that_went_back_counts_as_old_as_the_one_before_it() -> None:
    line = days("2026-02-01", "2020-01-01", "2026-02-20")
    row = arranged([series("a", [1000, 2000, 3000])], [], 3, line=line).rows[0]
    assert row.week is not None
    assert row.week.base is not None
    assert row.week.base.index == 1


@pytest.mark.parametrize("time", ["", "yesterday", "0001-01-01T00:00:00Z", "2026-02-01", "9999-12-31T23:59:59-12:00"])
def test_times_that_nobody_can_read_stop_no_report(time: str) -> None:
    line = [replace(note, committed_at=time) for note in notes(3)]
    assert arranged([series("a", [1000, 1000, 1000])], [], 3, line=line).rows[0].latest is not None


def test_readings_of_another_key_are_not_compared() -> None:
    line = days("2026-01-01", "2026-02-07")
    row = arranged([series("a", [1000, 2000], keys={1: trending.OTHER_KEY})], [], 2, line=line).rows[0]
    assert row.day is not None
    assert row.day.base is not None
    assert row.day.change is None
    assert not row.day.comparable
    assert row.key_changes == (1,)


def test_the_last_release_is_the_one_before_the_newest_measured_commit() -> None:
    releases = [Release(name=f"v{at}", sha=sha(at)) for at in (1, 3, 5)] + [Release(name="elsewhere", sha="f" * 40)]
    report = arranged([series("a", [1000, 1000, 1000, 2000, 3000, 4000])], [], 6, releases=releases)
    row = report.rows[0]
    assert report.release == "v3"
    assert row.release is not None
    assert row.release.base is not None
    assert row.release.base.index == 3
    assert report.releases == ((1, "v1"), (3, "v3"), (5, "v5"))


def test_rows_stand_by_the_largest_increase_that_stands_then_by_name() -> None:
    report = trending.small()
    assert [row.id for row in report.rows][:4] == ["parse/json[large]", "search/index", "parse/xml", "zip/deflate"]
    quiet = arranged([series(name, [1000] * 3) for name in "cab"], [], 3)
    assert [row.id for row in quiet.rows] == ["a", "b", "c"]


@pytest.mark.parametrize("state", [State.ACKNOWLEDGED, State.RECOVERED])
def test_what_was_accepted_or_recovered_has_no_impact(state: State) -> None:
    item = series("a", [1000] * 3 + [2000] * 3)
    assert arranged([item], [finding(item, 3, state=state)], 6).rows[0].impact == 0


def test_from_nothing_to_something_is_an_impact() -> None:
    item = series("a", [1000, 2000])
    assert arranged([item], [finding(item, 1, before=0)], 2).rows[0].impact == 1


def test_the_headline_counts_what_is_new_open_recovered_and_creeping() -> None:
    found = trending.small().headline
    assert (found.new, found.open, found.recovered, found.acknowledged) == (1, 1, 1, 1)
    assert (found.creeping, found.improved, found.unstable) == (1, 1, 1)


def test_new_findings_come_first_and_those_of_benchmarks_left_out_of_the_report_not_at_all() -> None:
    item, other = series("a", [1000, 1000, 2000]), series("b", [1000, 1000, 2000])
    found = [finding(item, 2, state=State.OPEN), finding(item, 1, state=State.NEW), finding(other, 2)]
    report = arranged([item], found, 3)
    assert [(item.benchmark, item.state) for item in report.findings] == [("a", State.NEW), ("a", State.OPEN)]


def test_health_names_what_fails_what_is_missing_and_what_is_unstable() -> None:
    health = trending.small().health
    assert health.failing == ("zip/deflate",)
    assert health.failed_before == ("zip/inflate",)
    assert health.missing == ("unicode/upper",)
    assert health.unstable == ("threads",)
    assert (health.dirty, health.elsewhere, health.without_commit) == (3, 2, 1)
    assert health.differing == (Differing(benchmark="threads", sha=sha(9)),)


def test_a_benchmark_that_never_succeeded_is_failing() -> None:
    row = arranged([series("a", [1] * 3, failed=(0, 1, 2))], [], 3).rows[0]
    assert row.latest is None
    assert row.day is None
    assert row.failing


def test_an_empty_history_makes_an_empty_report() -> None:
    report = arranged([], [], 0)
    assert report.rows == ()
    assert report.commits == ()
    assert report.measured == 0


def test_a_window_begins_at_a_time_or_a_number_of_commits_from_the_end_whichever_is_later() -> None:
    line = days("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04")
    noon = datetime.fromisoformat("2026-01-02T12:00:00Z")
    assert window(line) == 0
    assert window(line, since=noon) == 1
    assert window(line, last=1) == 3
    assert window(line, since=noon, last=2) == 2
    assert window(line, last=9) == 0


def test_a_window_hides_older_readings_but_compares_with_them() -> None:
    line = days("2026-01-01", "2026-01-20", "2026-02-06", "2026-02-07")
    item = series("a", [1000, 2000, 3000, 3000], failed=())
    report = arranged([item], [finding(item, 1)], 4, line=line, first=2, releases=[Release(name="v1", sha=sha(0))])
    row = report.rows[0]
    assert [reading.index for reading in row.readings] == [2, 3]
    assert row.month is not None
    assert row.month.base is not None
    assert row.month.base.index == 0
    assert report.releases == ()
    assert report.release == "v1"
    assert len(report.commits) == 2
    assert report.findings


# --- JSON ----------------------------------------------------------------------------------------------------------------


def test_the_json_report_gives_its_findings_back() -> None:
    report = trending.small()
    assert reported_findings(trends.trend(report).encode(), path="t.json") == report.findings


def test_the_json_report_has_whole_numbers_only_and_sorted_keys() -> None:
    data = trends.trend(trending.small())
    assert data == trends.trend(trending.small())

    def refuse(text: str) -> None:
        raise AssertionError(text)

    parsed = json.loads(data, parse_float=refuse)
    assert parsed["schema"] == "cg-bench.trend/1"
    assert json.dumps(parsed, indent=2, sort_keys=True) + "\n" == data
    first = parsed["benchmarks"][0]
    assert (first["id"], first["impact_ppm"], first["release"]["change_ppm"]) == ("parse/json[large]", 79995, 79995)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"schema": "cg-bench.run/1"}',
        b'{"schema": "cg-bench.trend/1"}',
        b'{"schema": "cg-bench.trend/1", "findings": [{"id": 1}]}',
    ],
    ids=["bytes", "list", "object", "result", "no findings", "bad finding"],
)
def test_what_is_not_a_trend_report_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(UsageError, match=r"previous\.json"):
        reported_findings(data, path="previous.json")


def test_of_two_machines_that_take_turns_one_is_shown() -> None:
    item = series("a", [1000, 2000] * 10)
    item = replace(
        item,
        readings=tuple(
            replace(one, key=trending.KEY if one.index % 2 else trending.OTHER_KEY) for one in item.readings
        ),
    )
    (row,) = arranged([item], [], 20).rows
    assert [reading.key for reading in row.readings] == [trending.OTHER_KEY] + [trending.KEY] * 10
    assert row.key_changes == (1,)
    assert row.day is not None
    assert row.day.comparable


def test_the_newest_key_is_shown_though_others_had_more_readings() -> None:
    item = series("a", [1000] * 20)
    readings = [replace(one, key=trending.KEY if one.index < 12 else trending.OTHER_KEY) for one in item.readings]
    again = replace(readings[2], key=trending.OTHER_KEY)
    item = replace(item, readings=(*readings[:3], again, *readings[3:]))
    (row,) = arranged([item], [], 20).rows
    assert row.latest is not None
    assert (row.latest.index, row.latest.key) == (19, trending.OTHER_KEY)


def test_what_came_back_in_part_has_less_impact() -> None:
    item = series("a", [1000] * 5 + [2000] * 5 + [1100] * 5)
    found = finding(item, 5, Kind.REGRESSION, State.OPEN)
    (row,) = arranged([item], [found], 15).rows
    assert row.latest is not None
    assert row.impact == Fraction(row.latest.value - found.before, found.before)


def test_a_benchmark_that_was_not_run_for_long_is_not_missed_any_more() -> None:
    line = days("2026-01-01", "2026-01-20", "2026-02-01", "2026-02-06")
    for length, missing, retired in ((4, (), ("b",)), (3, (), ("b",)), (2, ("b",), ())):
        items = [series("a", [1000] * length), series("b", [1000])]
        health = arranged(items, [], length, line=line[:length]).health
        assert (health.missing, health.retired) == (missing, retired)


# --- Markdown ------------------------------------------------------------------------------------------------------------


def written(report: Trend) -> str:
    return text.markdown(report)


def test_the_summary_begins_with_the_headline_and_names_the_commits() -> None:
    said = written(trending.small())
    assert said.startswith("### wordcraft: 1 new regression, 1 still open, 1 creeping, 1 recovered, 1 improvement\n")
    assert f"[`{sha(38)[:12]}`](<https://example.org/wordcraft/commit/{sha(38)}>)" in said
    assert "accepted: checks signatures at start" in said
    assert "cg-bench bisect" in said
    assert "Failing: zip/deflate" in said


def test_the_summary_has_twenty_rows_at_most_and_counts_the_others() -> None:
    said = written(trending.large(30, 20))
    assert sum(line.startswith("| ") for line in said.splitlines()) == 22
    assert "10 more benchmarks" in said


def test_a_quiet_summary_says_so() -> None:
    assert "Nothing got worse" in written(arranged([series("a", [1000] * 3)], [], 3))


def test_hostile_names_stay_text_in_the_summary() -> None:
    name = "a|b`c\n# <img src=x> @root [x](javascript:1)\u202e"
    item = series(name, [1000, 2000])
    line = [replace(note, subject="`x` | <script>\n- @all [y](z)", author="*A*\x1b[2J") for note in notes(2)]
    said = written(arranged([item], [finding(item, 1, Kind.REGRESSION, State.NEW)], 2, line=line))
    assert "<script>" not in said
    said = re.sub(r"^```toml\n.*?^```$", "", said, flags=re.MULTILINE | re.DOTALL)  # where nothing has a meaning
    assert "<img" not in said
    assert "@all" not in said
    assert "@root" not in said
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert re.search(r"(?<!\\)\]\(javascript", said) is None
    assert not any(row.startswith("# ") for row in said.splitlines())


# --- Text -----------------------------------------------------------------------------------------------------------------


def printed(report: Trend, width: int | None = None) -> str:
    return text.render(report, width=width)


def test_the_text_has_headline_table_findings_and_health() -> None:
    said = printed(trending.small()).splitlines()
    assert said[0] == "wordcraft: 1 new regression, 1 still open, 1 creeping, 1 recovered, 1 improvement"
    assert said[1] == "main · 2026-01-05 to 2026-01-19 · 40 commits, 40 measured"
    assert "  ▲  parse/json[large]  2.98 M        0 %       +8 %        –        +8 %" in said
    place = said.index("  ▲ parse/json[large] +8 %, new regression: 2,761,525 → 2,982,432")
    assert said[place + 1] == f"      with {sha(38)[:12]} Parse headers without a copy (38) (Frances Allen, 2026-01-16)"
    assert said[place + 2] == "      Ir +8 %, LL hits +8.05 %, RAM hits +7.75 %"
    assert "      accepted: checks signatures at start" in said
    assert sum(line.startswith("      to narrow them down: cg-bench bisect ") for line in said) == 1
    assert said[said.index("Health") + 1] == "  Failing: zip/deflate"


def test_what_jumps_or_creeps_is_reported_by_its_ends_and_without_bisection() -> None:
    item = series("a", [1000] * 30)
    creep = finding(item, 20, Kind.CREEP, suspects=tuple(sha(n) for n in range(3, 20)))
    for found, told in (
        (creep, f"little by little, in 17 commits, of which the first and the last are\n        {sha(3)[:12]}"),
        (finding(item, 20, Kind.UNSTABLE, suspects=(sha(4), sha(5))), f"since {sha(4)[:12]}"),
        (finding(item, 20, Kind.UNSTABLE, suspects=()), "from the first reading on\n"),
    ):
        view = arranged([item], [found], 30)
        for said in (printed(view), written(view)):
            assert "bisect" not in said
        assert told in printed(view)
    assert f"        {sha(19)[:12]}" in printed(arranged([item], [creep], 30))


def test_a_single_reading_is_a_possible_regression_only() -> None:
    item = series("a", [1000, 1000, 2000])
    found = finding(item, 2, Kind.REGRESSION, State.NEW, confirmed=False)
    assert "wordcraft: 1 possible regression\n" in printed(arranged([item], [found], 3))
    creep = finding(item, 2, Kind.CREEP, State.NEW)
    assert "wordcraft: 1 newly creeping\n" in printed(arranged([item], [creep], 3))


def test_an_improvement_is_not_a_task_once_it_is_known_and_lost_when_it_is_undone() -> None:
    item = series("a", [2000, 1900, 1900, 2000])
    said = printed(arranged([item], [finding(item, 1, Kind.IMPROVEMENT, State.OPEN)], 4))
    assert "\nSettled\n" in said
    assert ", improvement: " in said
    lost = finding(item, 1, Kind.IMPROVEMENT, State.RECOVERED, recovered_sha=sha(3))
    said = printed(arranged([item], [lost], 4))
    assert ", improvement, lost again: " in said
    assert f"lost with {sha(3)[:12]}" in said


def test_more_than_half_of_the_work_gone_is_not_good_news() -> None:
    item = series("a", [2000, 900, 900])
    view = arranged([item], [finding(item, 1, Kind.IMPROVEMENT, State.NEW)], 3)
    assert "1 suspicious drop\n" in printed(view)
    assert "new improvement, does it still do its work?: " in printed(view)
    assert (view.headline.improved, view.headline.suspicious) == (0, 1)


def test_few_clocks_that_are_wrong_move_no_other_commit() -> None:
    right = [f"2026-01-{day:02}" for day in range(1, 29)]
    wrong = {5: "1971-01-01", 6: "1971-01-02", 12: "9999-12-31", 20: "no date"}
    line = days(*(wrong.get(place, date) for place, date in enumerate(right)))
    found = [f"{time:%Y-%m-%d}" for time in times_of(line)]
    assert [date for place, date in enumerate(found) if place not in wrong] == [
        date for place, date in enumerate(right) if place not in wrong
    ]
    assert (found[5], found[12], times_of([])) == (right[4], right[11], [])


def test_a_step_after_the_first_reading_says_what_it_lacks() -> None:
    item = series("a", [1000] + [2000] * 9)
    found = finding(item, 1, Kind.REGRESSION, State.OPEN, confirmed=False, lone_base=True)
    assert "open regression, after only one reading: " in printed(arranged([item], [found], 10))


def test_the_span_is_reported_by_mended_clocks() -> None:
    line = days("2031-01-01", "2026-01-20", "2026-02-01", "2026-01-30")
    assert "2026-01-20 to 2026-01-30" in printed(arranged([series("a", [1000] * 4)], [], 4, line=line))


def test_the_text_fits_a_narrow_terminal_as_far_as_names_can_give_way() -> None:
    line = next(line for line in printed(trending.small(), 60).splitlines() if "json[large]" in line)
    assert "…json[large]" in line


def test_the_text_counts_what_it_leaves_out() -> None:
    said = printed(trending.large(50, 20))
    assert "  and 10 more benchmarks with less impact\n" in said
    many = [finding(series("a", [1000] * 40), n, Kind.REGRESSION, State.OPEN) for n in range(1, 24)]
    said = printed(arranged([series("a", [1000] * 40)], many, 40))
    assert "  and 3 more\n" in said


def test_hostile_names_stay_harmless_in_the_text() -> None:
    item = series("a\n\x1b[2J\u202eb", [1000, 2000])
    line = [replace(note, subject="x\x1b]0;y\x07\r\n- z", author="\x9b2J") for note in notes(2)]
    said = printed(arranged([item], [finding(item, 1, Kind.REGRESSION, State.NEW)], 2, line=line))
    assert all(character.isprintable() or character == "\n" for character in said)
    assert not any(row.startswith("- z") for row in said.splitlines())


def test_a_text_without_findings_has_no_heading_for_them() -> None:
    said = printed(arranged([series("a", [1000] * 3)], [], 3))
    assert "Nothing got worse" in said
    assert "Findings" not in said


@given(st.text(max_size=600).filter(str.strip))
@example("long" * 100_000)
@example('a"b\\c\x1b[31m\x7f\u202e[[x]]*')
def test_the_entry_that_accepts_a_change_is_toml_and_means_the_benchmark(benchmark: str) -> None:
    found = series(benchmark, [1000, 2000])
    _question, *lines = words.accepting(arranged([found], [finding(found, 1)], 2))
    assert len("".join(lines)) < 10_000
    assert all(map(str.isprintable, lines))
    (accepted,) = parse_accepted("\n".join(lines), path="x")
    assert matches(benchmark, accepted.benchmark) or benchmark != benchmark.strip()


def test_a_young_history_has_its_first_and_latest_levels_in_place_of_empty_columns() -> None:
    line = days("2026-02-01", "2026-02-01", "2026-02-01")
    young = arranged([series("a", [1000, 1000, 2850])], [], 3, line=line)
    assert words.columns(young) == ("", "benchmark", "first → latest", "change")
    (cells,) = (words.cells(row, young=True) for row in young.rows)
    assert cells[3] == words.against(words.since_first(young.rows[0]))
    assert " → " in cells[2]
    assert not words.is_young(
        arranged([series("a", [1000] * 3)], [], 3, line=days("2026-01-01", "2026-01-20", "2026-02-20"))
    )


def test_changes_of_half_a_percent_are_coloured_where_the_terminal_has_colours() -> None:
    plain, coloured = (text.render(trending.small(), colour=colour) for colour in (False, True))
    assert "\x1b[31m" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain


def test_a_few_accesses_more_are_no_percentage() -> None:
    item = series("a", [1000, 2850])
    moved = words.moves(arranged([item], [finding(item, 1)], 2))
    assert "%" in (text := next(iter(moved.values()))).partition(", ")[0]
    assert re.search(r"LL hits (0 %|[0-9]+ → [0-9]+)", text)
