"""What a comparison says of Python functions, in each format: the function and its line first, C functions second."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.compare.explain import details
from cachegrind_bench.compare.explained import Explained
from cachegrind_bench.compare.verdict import compare
from cachegrind_bench.model.result import ObjectFile
from cachegrind_bench.render.comparison import github, markdown, table
from cachegrind_bench.render.comparison.view import View, view
from cachegrind_bench.render.documents.comparisons import comparison
from tests.unit.comparing import compared, counts, gates, measured
from tests.unit.pythons import python_profile
from tests.unit.samples import HOSTILE, profile_of, result

if TYPE_CHECKING:
    from types import ModuleType

    from cachegrind_bench.compare.explain import Details
    from cachegrind_bench.compare.verdict import Comparison
    from cachegrind_bench.model.python_profile import PythonProfile
    from cachegrind_bench.model.result import Benchmark
    from tests.conftest import Golden

FROZEN = "<frozen importlib._bootstrap>"


def program(parse: int = 900_000, fields: int = 30, **changes: Any) -> PythonProfile:
    rows = {"parse_row:42": (3, parse, {"field:61": (fields, 1_000 * fields)}), "Row.__init__:12": (3, 2_500)}
    return python_profile({"<module>@bench.py:1": (1, 5_000, rows)}, **{"native": 62_500, **changes})


def side(profile: PythonProfile | None, ir: int, **changes: Any) -> Benchmark:
    value = counts(ir)
    functions = profile_of(_PyEval_EvalFrameDefault=counts(ir - 1_000), list_append=counts(1_000))
    return measured(
        "rows",
        value,
        profile=functions,
        python=profile,
        key_fields={"interpreter": "1111+2222", "libc": "abc"},
        objects=(ObjectFile(path="/usr/bin/python3.12", build_id="1" * 40),),
        **changes,
    )


def explained(found: Comparison, rows: int = 10) -> dict[str, Details]:
    (item,) = found.differences
    base, candidate = item.base, item.candidate
    assert base is not None
    assert candidate is not None
    assert base.profile is not None
    assert candidate.profile is not None
    python = None if base.python is None or candidate.python is None else (base.python, candidate.python)
    return {item.id: details(base.profile, candidate.profile, found, rows=rows, python=python)}


def seen(found: Comparison, rows: int = 10) -> View:
    why = explained(found, rows)
    return view(Explained(comparison=found, details=why, names=("main.json", "pr.json"), rows=50, at_length=tuple(why)))


def text_of(layout: ModuleType, shown: View) -> str:
    text: str = layout.render(shown)
    return text


def slower() -> Comparison:
    before, after = program(), program(parse=910_200, fields=33, native=62_700)
    return compared(side(before, before.total), side(after, after.total))


@pytest.mark.parametrize(("layout", "suffix"), [(table, "txt"), (markdown, "md"), (github, "github.txt")])
def test_the_python_function_is_named_first_with_its_line(layout: ModuleType, suffix: str, golden: Golden) -> None:
    golden(f"comparison-python.{suffix}", text_of(layout, seen(slower())))


def test_a_comparison_of_python_functions_as_json(golden: Golden) -> None:
    found = slower()
    text = comparison(found, explained(found))
    golden("comparison-python.json", text)
    python = json.loads(text)["benchmarks"][0]["python"]
    assert (python["blamed"]["function"], python["blamed"]["line"]) == ("parse_row", 42)
    total = python["total"]["candidate"] - python["total"]["base"]
    assert sum(row["blame"] for row in python["functions"]) + python["native"]["blame"] == total


def test_the_annotation_stands_on_the_python_file_and_line() -> None:
    line = text_of(github, seen(slower())).splitlines()[0]
    assert line.startswith("::error title=regression%3A rows,file=src/pkg/rows.py,line=42::")


@pytest.mark.parametrize(
    "file",
    [
        "/usr/lib/python3.12/json/decoder.py",
        ".venv/lib/python3.12/site-packages/a.py",
        "../other/a.py",
        FROZEN,
        "<string>",
        "a\nb.py",
    ],
)
def test_no_annotation_stands_on_a_file_that_is_not_of_the_project(file: str) -> None:
    before, after = (python_profile({f"f@{file}:3": (1, ir)}) for ir in (1_000_000, 1_100_000))
    found = seen(compared(side(before, before.total), side(after, after.total)))
    assert found.rows[0].place is None
    assert ",file=" not in text_of(github, found)


def test_an_annotation_without_a_known_line_stands_on_the_file() -> None:
    before, after = (python_profile({"f@./a,b:c.py:0": (1, ir)}) for ir in (1_000_000, 1_100_000))
    text = text_of(github, seen(compared(side(before, before.total), side(after, after.total))))
    assert text.startswith("::error title=regression%3A rows,file=a%2Cb%3Ac.py::")


@pytest.mark.parametrize("present", [(True, False), (False, True), (False, False)])
def test_without_profiles_on_both_sides_all_is_as_it_was(present: tuple[bool, bool]) -> None:
    before, after = program(), program(parse=910_000)
    with_one = compared(*(
        side(profile if there else None, profile.total) for profile, there in zip((before, after), present, strict=True)
    ))  # fmt: skip
    without = compared(side(None, before.total), side(None, after.total))
    for layout in (table, markdown, github):
        text = text_of(layout, seen(with_one))
        assert text == text_of(layout, seen(without))
        assert "C functions" in text or layout is github
        assert "Python" not in text


def test_the_c_functions_are_told_apart_only_where_no_python_function_is_named() -> None:
    assert seen(slower()).notices == ()


def test_the_table_adds_up_and_is_as_long_as_wanted() -> None:
    (found,) = seen(slower(), rows=1).explanations
    sums = [int(row[0].replace(",", "")) for row in found.tables[0][1:]]
    assert sum(sums[:-1]) == sums[-1] == 13_400
    assert [row[4] for row in found.tables[0][1:]] == [
        "parse_row",
        "1 other function",
        "native code not under any Python function",
        "total",
    ]


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"parse": 910_000}, "+1 % (+10,000 instructions of its own; 3 → 3 calls)"),
        ({"fields": 40}, "+1 % (+10,000 instructions by calling others more often; 3 → 3 calls)"),
        ({"fields": 20}, "-1 % (-10,000 instructions by calling others less often; 3 → 3 calls)"),
        (
            {"parse": 910_000, "fields": 31},
            "+1.1 % (+11,000 instructions, of which +1,000 by calling others more often; 3 → 3 calls)",
        ),
    ],
)
def test_the_remark_says_how_the_function_did_it(changes: dict[str, int], remark: str) -> None:
    before, after = program(), program(**changes)
    found = seen(compared(side(before, 1_000_000), side(after, 1_000_000 + after.total - before.total)))
    assert found.rows[0].remarks[0] == f"in Python: parse_row, src/pkg/rows.py:42, {remark}"


@pytest.mark.parametrize(
    ("others", "beginning"),
    [(9_999, ""), (10_000, "; largest share, 50 %"), (-5_000, "")],
)
def test_a_function_explains_it_only_if_that_is_more_than_half(others: int, beginning: str) -> None:
    costs = {"f:1": 500_000, "g:2": 100_000, "h:3": 100_000}
    more = {"f:1": 10_000, "g:2": others // 2, "h:3": others - others // 2}
    before = python_profile({name: (1, ir) for name, ir in costs.items()})
    after = python_profile({name: (1, ir + more[name]) for name, ir in costs.items()})
    for one, other, costs_now in (
        (before, after, "510,000 instead of 500,000"),
        (after, before, "500,000 instead of 510,000"),
    ):
        last = text_of(table, seen(compared(side(one, one.total), side(other, other.total)))).splitlines()[-1]
        assert last.endswith(f"{beginning}: f (src/pkg/rows.py:1) itself costs {costs_now} instructions")


def test_the_column_of_blames_is_not_taken_for_differences_of_costs() -> None:
    (found,) = seen(slower()).explanations
    columns = found.tables[0][0]
    assert columns[0] == "blame"
    assert not any("Ir" in name for name in columns)


def test_no_python_function_is_named_where_its_instructions_went_the_other_way() -> None:
    before, after = program(), program(parse=899_000)
    found = seen(compared(side(before, before.total), side(after, before.total + 20_000)))
    assert found.rows[0].cells[-1] == "_PyEval_EvalFrameDefault"
    assert found.rows[0].remarks == ()


def test_paths_that_were_too_deep_are_reported() -> None:
    before, after = program(), program(parse=910_000, cut=True)
    found = seen(compared(side(before, before.total), side(after, after.total)))
    assert "nested too deeply" in text_of(table, found)


def test_hostile_names_do_no_harm() -> None:
    name = HOSTILE.replace(":", "")
    before, after = (python_profile({f"{name}@{name}.py:3": (1, ir)}) for ir in (1_000_000, 1_100_000))
    found = compare(result(side(before, before.total)), result(side(after, after.total)), gates())
    for layout in (table, markdown, github):
        text = text_of(layout, seen(found))
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<script" not in text_of(markdown, seen(found))
    assert len(text_of(github, seen(found)).splitlines()) == 2
