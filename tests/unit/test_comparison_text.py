"""What a comparison says, in each format: golden files to read, and what hostile names must not do."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.compare.explain import details
from cachegrind_bench.compare.explained import Explained
from cachegrind_bench.compare.verdict import FailOn, Metric, State, compare
from cachegrind_bench.model.metrics import EVENTS, FunctionCost, LineCost, Profile
from cachegrind_bench.model.result import ObjectFile
from cachegrind_bench.model.text import exact_percent
from cachegrind_bench.model.thresholds import Limit
from cachegrind_bench.render.comparison import code_quality, github, markdown, table
from cachegrind_bench.render.comparison.view import View, view
from cachegrind_bench.render.documents.comparisons import comparison
from tests.unit.comparing import compared, counts, gates, measured
from tests.unit.samples import HOSTILE, failed_benchmark, result

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from cachegrind_bench.compare.explain import Details
    from cachegrind_bench.compare.verdict import Comparison
    from cachegrind_bench.model.metrics import Counts
    from cachegrind_bench.model.result import Benchmark, Result
    from tests.conftest import Golden

FUNCTIONS = ("parse_value", "_ZNSt6vectorIiSaIiEE9push_backEOi", "_ZN5parse4line17h0123456789abcdefE", "malloc")


def profile(total: Counts, *shares: int, **changes: Any) -> Profile:
    """Return rows for `FUNCTIONS`: the later ones cost `shares` instructions each, the first the rest."""
    others = [counts(share) for share in shares]
    first = total
    for other in others:
        first -= other
    rows = tuple(
        FunctionCost(f"/build/{place}/file{place}.c", FUNCTIONS[place], value.as_tuple())
        for place, value in enumerate([first, *others])
    )
    return Profile(events=EVENTS, functions=rows, **changes)


def with_profile(name: str, value: Counts, *shares: int, **changes: Any) -> Benchmark:
    return measured(name, value, profile=profile(value, *shares), **changes)


def suite() -> tuple[Result, Result]:
    """Return 52 benchmarks a side, in every state, as a pull request of a real project might have them."""
    base, candidate = list[Any](), list[Any]()

    def pair(name: str, before: Counts, after: Counts, *shares: tuple[int, ...], **changes: Any) -> None:
        base.append(with_profile(name, before, *shares[0]))
        candidate.append(with_profile(name, after, *shares[1], **changes))

    def ordinary(name: str, before: int, after: int) -> None:
        pair(name, counts(before), counts(after), (20_000, 30_000, 10_000), (20_000, 30_100, 9_000))

    ordinary("parse[codec=json,n=1000]", 1_200_000, 1_240_000)
    ordinary("parse[codec=json,n=10000]", 12_000_000, 12_410_000)
    ordinary(HOSTILE, 5_000_000, 5_100_000)
    ordinary("improved", 3_000_000, 2_900_000)
    pair("shifted", counts(7_000_000), counts(7_000_100, ram=4_000), (1, 2, 3), (1, 2, 3))
    pair("broken", counts(9_000_000), counts(100_000), (1_000,), (1_000,))
    base.append(with_profile("other-libc", counts(), 5))
    candidate.append(
        with_profile("other-libc", counts(), 5, key="other", key_fields={"libc": "def", "tool": "callgrind"})
    )
    base.append(measured("noisy", runs=[(0, counts()), (0, counts(1_004_000))]))
    candidate.append(measured("noisy", counts(1_009_000)))
    base += [measured("gone"), measured("crashes")]
    candidate += [measured("brand-new"), failed_benchmark(id="crashes")]
    for number in range(40):
        ordinary(f"steady[n={number}]", 2_000_000 + number, 2_000_000 + number * 11)
    base.append(measured("script", objects=(ObjectFile(path="/usr/bin/python3.11", build_id="1" * 40),)))
    candidate.append(measured("script", objects=(ObjectFile(path="/usr/bin/python3.11", build_id="1" * 40),)))
    return result(*base), result(*candidate)


def explained(found: Comparison, **wanted: Any) -> dict[str, Details]:
    return {
        item.id: details(item.base.profile, item.candidate.profile, found, **wanted)
        for item in found.differences
        if item.change is not None
        and item.change.base != item.change.candidate
        and item.base is not None
        and item.candidate is not None
        and item.base.profile is not None
        and item.candidate.profile is not None
    }


def seen(found: Comparison, *, shown: int = 50, root: str = "", **wanted: Any) -> View:
    why = explained(found, **wanted)
    moved = tuple(item.id for item in found.differences if item.id in why and item.state is not State.UNCHANGED)
    names = "main.json", "pr.json"
    return view(Explained(comparison=found, details=why, names=names, rows=shown, at_length=moved, root=root))


def text_of(layout: ModuleType, shown: View) -> str:
    text: str = layout.render(shown)
    return text


def suite_comparison() -> Comparison:
    before, after = suite()
    return compare(before, after, gates(limits=(Limit(pattern="improved", name="Ir", value=2_800_000),)))


@pytest.mark.parametrize(("layout", "suffix"), [(table, "txt"), (markdown, "md"), (github, "github.txt")])
def test_a_comparison_of_52_benchmarks_reads_well(layout: ModuleType, suffix: str, golden: Golden) -> None:
    golden(f"comparison-52.{suffix}", text_of(layout, seen(suite_comparison())))


def test_a_comparison_as_json(golden: Golden) -> None:
    found = suite_comparison()
    text = comparison(found, explained(found))
    golden("comparison-52.json", text)
    read = json.loads(text)
    assert not any(isinstance(value, float) for value in _values(read))


def _values(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _values(item)]
    return [leaf for item in value for leaf in _values(item)] if isinstance(value, list) else [value]


@pytest.mark.parametrize(("layout", "suffix"), [(table, "txt"), (markdown, "md")])
def test_one_benchmark_with_source_lines_libraries_and_an_interpreter(
    layout: ModuleType, suffix: str, golden: Golden
) -> None:
    def side(ir: int, line: int, library: str, directory: str) -> Benchmark:
        value = counts(ir)
        lines = (
            LineCost(f"{directory}/src/parse.c", "parse_value", line, counts(ir - 500).as_tuple()),
            LineCost(f"{directory}/src/parse.c", "parse_value", line + 5, counts(500).as_tuple()),
        )
        functions = (FunctionCost(f"{directory}/src/parse.c", "parse_value", value.as_tuple()),)
        return measured(
            "script",
            value,
            profile=Profile(events=EVENTS, functions=functions, lines=lines),
            key_fields={"interpreter": "1111+2222", "libc": "abc"},
            objects=(
                ObjectFile(path="/usr/bin/python3.11", build_id="1" * 40),
                ObjectFile(path="/usr/lib/libz.so.1.2.13", build_id=library * 40),
                ObjectFile(path="/usr/lib/libm.so.6", build_id="5" * 40),
            ),
        )

    found = compared(side(1_000_000, 10, "3", "/home/a"), side(1_020_000, 12, "4", "/home/runner/b"))
    golden(f"comparison-one.{suffix}", text_of(layout, seen(found, lines=True)))


def test_a_long_function_leaves_its_source_lines_room_on_a_terminal() -> None:
    name = "criterion::bencher::Bencher<M>::iter_batched_ref"

    def side(ir: int) -> Benchmark:
        row = counts(ir).as_tuple()
        lines = (LineCost("src/parser/numbers.rs", name, 36, row),)
        profile = Profile(events=EVENTS, functions=(FunctionCost("src/parser/numbers.rs", name, row),), lines=lines)
        return measured("script", counts(ir), profile=profile)

    text = table.render(seen(compared(side(1_000_000), side(1_020_000)), lines=True), width=72)
    assert "src/parser/numbers.rs:36\n" in text
    assert max(map(len, text.splitlines())) <= 72


def test_by_file_and_without_lines(golden: Golden) -> None:
    before, after = suite()
    found = compare(before, after, gates(metric=Metric.IR), wanted=lambda name: name == "parse[codec=json,n=1000]")
    golden("comparison-by-file.txt", text_of(table, seen(found, by_file=True, rows=2, lines=True)))


def test_a_forced_comparison_says_so_in_every_format() -> None:
    base, other = measured("a"), measured("a", key="other", key_fields={"libc": "def", "tool": "cachegrind"})
    found = compared(base, other, force=True)
    for layout in (table, markdown, github):
        text = text_of(layout, seen(found))
        assert "force" in text, layout
        assert "libc" in text, layout
    read = json.loads(comparison(found, {}))
    assert read["forced"] is True
    assert "force" in read["headline"]
    assert read["benchmarks"][0]["fields"] == [{"name": "libc", "base": "abc", "candidate": "def"}]


def test_the_verdict_is_the_last_line_of_the_table_and_the_first_of_the_markdown() -> None:
    shown = seen(suite_comparison())
    assert text_of(table, shown).splitlines()[-1].startswith("regression: ")
    assert text_of(markdown, shown).splitlines()[0].startswith("### ❌ regression")


def test_markdown_shows_changes_and_folds_and_counts_the_rest() -> None:
    text = text_of(markdown, seen(suite_comparison(), shown=0))
    head, _, folded = text.partition("<details>")
    assert len([line for line in head.splitlines() if line.startswith("| ")]) == 12  # with heading and rule
    assert "<summary>42 unchanged benchmarks</summary>" in folded
    names = [f"n{number:02}" for number in range(13)]
    worse = [measured(name, counts(1_100_000)) for name in names]
    text = text_of(markdown, seen(compared([measured(name) for name in names], worse)))
    assert "<summary>3 more changed benchmarks</summary>" in text


def test_markdown_does_not_explain_what_is_unchanged() -> None:
    text = text_of(markdown, seen(suite_comparison()))
    assert "What moved in parse[" in text
    assert "What moved in shifted" not in text


def wide(*, count: int = 6) -> View:
    """Return a comparison of pytest's benchmarks: long ids, large numbers, one regression of 3 %."""
    names = [f"tests/benchmarks/test_roundtrip.py::test_parse_document[case-{n}]" for n in range(count)]
    base = [with_profile(name, counts(232_000_000, ll=3_000, ram=500), 9_000, 9_000, 9_000) for name in names]
    factors = [1.03, *[1.0001] * (count - 1)]
    candidate = [
        with_profile(name, counts(int(232_000_000 * factor), ll=3_000, ram=502), 9_000, 9_100, 8_000)
        for name, factor in zip(names, factors, strict=True)
    ]
    return seen(compared(base, candidate))


@pytest.mark.parametrize("width", [60, 80, 100, 120, 140])
def test_a_terminal_wraps_no_number_and_names_stay_readable(width: int) -> None:
    text = table.render(wide(), width=width)
    tables = [line for line in text.splitlines() if re.search(r"  [+-]?[0-9,.]+  |Δ|%$", line)]
    assert len(tables) > 8
    assert max(map(len, tables)) <= width
    number = r"[+-]?[0-9][0-9,.]*(?: %)?"
    for line in [line for line in tables if line[0] in "✗="]:
        assert re.fullmatch(rf"[✗=].{{18,}}?(?:  +{number})+(?:  parse_value)?", line), line
        assert "case-" in line
    assert ("232,026,500" in text) == (width >= 80)
    assert "Δ Ir" in text or "Δ RAM hits" not in text
    prose = [line for line in text.splitlines() if line not in tables and "::" not in line]
    assert max(map(len, prose)) <= width


def test_the_start_that_all_ids_share_is_cut_where_there_is_little_room() -> None:
    text = text_of(markdown, wide())
    assert "| ❌ test_parse_document[case-0] | +3" in text
    assert "All ids begin with tests/benchmarks/test_roundtrip.py::" in text
    narrow, roomy = (table.render(wide(), width=width).splitlines() for width in (80, None))
    assert narrow[4].split()[1] == "test_parse_document[case-0]"
    assert "  all ids begin with tests/benchmarks/test_roundtrip.py::" in narrow
    assert "begin with" not in "".join(roomy)
    assert "tests/benchmarks" in roomy[4]
    assert text_of(markdown, wide(count=1)).count("All ids") == 0


def test_rows_of_less_than_half_a_percent_of_the_change_are_added_up() -> None:
    functions = wide().explanations[0].tables[0]
    assert [row[5] for row in functions[1:]] == ["parse_value", "2 other functions", "total"]
    first, rest, total = (int(row[0].replace(",", "")) for row in functions[1:])
    assert first + rest == total


def test_files_of_the_project_are_shown_relative_to_it() -> None:
    base, candidate = with_profile("a", counts(), 1), with_profile("a", counts(1_100_000), 1)
    found = compared(base, candidate)
    why = explained(found)
    for root, shown in (("/build", "0/file0.c"), ("/build/0", "file0.c"), ("/buil", "/build/0/file0.c")):
        made = view(Explained(comparison=found, details=why, names=("a", "b"), at_length=("a",), root=root))
        assert made.explanations[0].tables[0][1][-1] == shown


def test_states_and_changes_are_coloured_where_colours_are_wanted() -> None:
    shown = seen(suite_comparison())
    text = table.render(shown, colour=True)
    red, plain = "\x1b[31m{}\x1b[0m", re.sub(r"\x1b\[[0-9]*m", "", text)
    assert plain == table.render(shown)
    assert red.format("regression") in text.splitlines()[-1]
    assert [line for line in text.splitlines() if line.startswith("\x1b[31m✗ regression") and "+3.42 %\x1b[0m" in line]
    assert not [line for line in text.splitlines() if line.startswith("= unchanged") and "\x1b" in line]


def test_a_large_change_is_reported_as_how_many_times_the_work_it_is() -> None:
    def told(ir: int) -> str:
        return seen(compared(measured("a", profile=None), measured("a", counts(ir), profile=None))).headline

    assert told(2_800_000) == "regression: a does 2.8 times the work of the base (score +180 %, threshold 0.5 %)"
    assert told(630_000) == "improvement: a does 0.63 times the work of the base (score -37 %)"
    assert told(123_400_000).startswith("regression: a does 123 times the work of the base")
    assert "times" not in told(1_190_000)


def test_markdown_stays_below_what_github_takes() -> None:
    names = [f"{number}" + "<&|*" * 60 for number in range(1500)]
    base = [with_profile(name, counts(), 1_000, 2_000, 3_000) for name in names]
    candidate = [with_profile(name, counts(1_100_000), 2_000, 2_000, 4_000) for name in names]
    text = text_of(markdown, seen(compared(base, candidate), shown=0))
    assert 20_000 < len(text) < 60_000
    assert "More is left out" in text
    assert text.count("<details>") == text.count("</details>")


def test_markdown_of_hostile_names_has_no_markup_of_theirs() -> None:
    text = text_of(markdown, seen(suite_comparison()))
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert not re.search(r"@root|#1\b|http:/|www\.", text)
    markdown_only = re.sub(r"<summary>.*</summary>", "", text)  # which is HTML to GitHub
    assert not re.search(r"(?<!\\)`x`|\*\*b\*\*|\]\(http", markdown_only)


def test_markdown_leaves_out_what_does_not_fit_and_keeps_what_does() -> None:
    long = [failed_benchmark(id=f"{number:02}", error="&" * 2000) for number in range(12)]
    assert len(text_of(markdown, seen(compared(long, long), shown=0))) < 60_000
    base, candidate = suite()
    many = counts(3_000_000)
    rows = tuple(
        FunctionCost("a.c", f"function_with_a_long_name_{n:04}", counts(2_000).as_tuple()) for n in range(1500)
    )
    grown = tuple(replace(row, counts=counts(2_100).as_tuple()) for row in rows)
    big = measured("big", many, profile=Profile(events=EVENTS, functions=rows))
    bigger = measured("big", counts(3_150_000), profile=Profile(events=EVENTS, functions=grown))
    found = compare(
        replace(base, benchmarks=(*base.benchmarks, big)),
        replace(candidate, benchmarks=(*candidate.benchmarks, bigger)),
        gates(),
    )
    text = text_of(markdown, seen(found, shown=0, rows=1500))
    assert "42 unchanged benchmarks" in text
    assert len(text) < 60_000


def test_no_line_of_a_table_begins_as_a_workflow_command_would() -> None:
    name = "::add-mask::x"
    rows = (
        FunctionCost("a.c", name, counts(5_000).as_tuple()),
        FunctionCost("m.c", "main", counts(995_000).as_tuple()),
    )
    moved = (
        FunctionCost("b.c", name, counts(5_000).as_tuple()),
        FunctionCost("m.c", "main", counts(1_095_000).as_tuple()),
    )
    base = measured(name, counts(), profile=Profile(events=EVENTS, functions=rows))
    candidate = measured(name, counts(1_100_000), profile=Profile(events=EVENTS, functions=moved))
    text = text_of(table, seen(compared(base, candidate)))
    assert name in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]


def test_annotations_are_one_line_each_and_fully_escaped() -> None:
    names = ["a%0A::error::b", "c\n::stop-commands::x\r\n", "d,title=e:f", HOSTILE]
    found = compared([measured(name) for name in names], [measured(name, counts(1_100_000)) for name in names])
    lines = text_of(github, seen(found)).splitlines()
    assert len(lines) == len(names) + 1
    for line in lines:
        title = re.fullmatch(r"::(?:error|warning|notice) title=([^:,\r\n]*)::[^\r\n]*", line)
        assert title is not None, line
        assert not re.search(r"%(?!25|0A|0D|3A|2C)", line)


def test_at_most_ten_annotations_of_a_level_are_written() -> None:
    names = [f"n{number:02}" for number in range(30)]
    base = [measured(name) for name in names]
    worse = [measured(name, counts(1_100_000)) for name in names]
    lines = text_of(github, seen(compared(base, worse))).splitlines()
    assert sum(line.startswith("::error ") for line in lines) == 10
    assert "21 more benchmarks" in lines[-2]
    better = text_of(github, seen(compared(worse, base))).splitlines()
    assert sum(line.startswith("::notice ") for line in better) == 10


def test_an_empty_comparison_says_that_nothing_was_compared() -> None:
    assert text_of(table, seen(compared([], []))).splitlines()[-1].startswith("not comparable: ")
    assert "nothing was compared" in seen(compared([measured("a")], [measured("b")], fail_on=FailOn.NEVER)).headline


def test_what_else_was_different_is_reported_and_the_load_is_not() -> None:
    def side(**info: str | int) -> Result:
        return result(measured("a"), env=replace(result().env, info=info))

    base = side(kernel="6.1", cpu_model="A", load_1min_percent=10, **{"env.TOKEN": "1111"})
    other = side(kernel="6.8", cpu_model="A", load_1min_percent=90, **{"env.TOKEN": "2222"})
    text = text_of(table, seen(compare(base, other, gates())))
    assert "differs    variable TOKEN, kernel 6.1 → 6.8\n" in text
    assert "1111" not in text
    assert "differs" not in text_of(table, seen(compare(base, base, gates())))


def test_rows_beyond_the_wanted_number_are_counted() -> None:
    text = text_of(table, seen(suite_comparison(), shown=5))
    assert re.search(r"and .*\b41 unchanged.* \(--rows 0 lists all\)", text)


def code_quality_of(shown: View, **places: str) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = json.loads(code_quality.render(shown, places))
    return read


def test_gitlabs_code_quality_report_has_what_needs_attention_and_nothing_else(golden: Golden) -> None:
    text = code_quality.render(seen(suite_comparison(), shown=0), {"broken": "./bench/cg-bench.toml:12"})
    golden("comparison-52.code-quality.json", text)
    read = json.loads(text)
    assert [item["severity"] for item in read] == ["major"] * 5 + ["minor"] * 3
    assert len({item["fingerprint"] for item in read}) == len(read)


def by_function(file: str, name: str = "work", root: str = "") -> View:
    sides = [
        measured(
            "a",
            counts(number),
            profile=Profile(events=EVENTS, functions=(FunctionCost(file, name, counts(number).as_tuple()),)),
        )
        for number in (1_000_000, 1_100_000)
    ]
    return seen(compared(*sides), root=root)


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("{root}/src/a.c", "src/a.c"),
        ("src/main.rs", "src/main.rs"),
        ("/rustc/5980/library/core/src/hint.rs", None),
        ("./elf/./elf/dl-lookup.c", None),
        ("../src/main.rs", None),
        ("???", None),
    ],
)
def test_a_native_function_to_blame_leads_to_its_file_if_that_is_of_the_project(
    tmp_path: Path, file: str, path: str | None
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.rs").touch()
    found = by_function(file.format(root=tmp_path), root=str(tmp_path))
    assert found.rows[0].place == (None if path is None else (path, 0))


def test_code_without_symbols_is_called_so_and_a_notice_says_once_what_helps() -> None:
    found = by_function("???", "???")
    assert found.headline.endswith("most of it in code without symbols")
    assert found.rows[0].cells[-1] == "code without symbols"
    (notice,) = found.notices
    assert "-g" in notice
    assert by_function("???", "work").notices == found.notices
    assert by_function("a.c", "work").notices == ()


def test_a_threshold_is_written_as_somebody_wrote_it_or_else_with_three_digits() -> None:
    thresholds = (Fraction(1585, 100_000), Fraction(1, 10**8), Fraction(3, 70), Fraction(0))
    assert [*map(exact_percent, thresholds)] == ["1.585 %", "1e-06 %", "4.29 %", "0 %"]


def test_a_finding_keeps_its_fingerprint_while_its_numbers_change_and_loses_it_with_its_state() -> None:
    pairs = [(counts(1_100_000), 0), (counts(1_200_000), 0), (counts(100_000), 1)]
    found = [code_quality_of(seen(compared(measured("a"), measured("a", value))))[0] for value, _ in pairs]
    assert [item["fingerprint"] == found[0]["fingerprint"] for item in found] == [True, True, False]
    assert code_quality_of(seen(compared(measured("a"), measured("a")))) == []


@pytest.mark.parametrize(
    ("place", "path", "line"),
    [
        ("cg-bench.toml:12", "cg-bench.toml", 12),
        ("a/../b.toml:0", "b.toml", 1),
        *((odd, "cg-bench.toml", 1) for odd in ("", "cg-bench.toml", "/etc/x:3", "../x:3", "x:y", ":3")),
    ],
)
def test_a_finding_without_a_line_of_its_own_is_where_the_benchmark_is_configured(
    place: str, path: str, line: int
) -> None:
    worse = measured("a", counts(1_100_000), profile=None)
    (item,) = code_quality_of(seen(compared(measured("a"), worse)), a=place)
    assert item["location"] == {"path": path, "lines": {"begin": line}}
