"""The value of a Python profile, and how a result file stores it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.codec import ResultFile, decode, encode
from cachegrind_bench.model.python_profile import (
    TOP,
    NativePart,
    PythonFunction,
    PythonPath,
    PythonProfile,
    PythonRow,
    profile_of,
)
from cachegrind_bench.render.report import measured, shown
from cachegrind_bench.store.record import run_record
from tests.unit.samples import HOSTILE, benchmark, result

MAIN, WORK, KEY = (PythonFunction("a.py", name, line) for name, line in (("main", 1), ("work", 5), ("key", 0)))
ROWS = (
    PythonRow(TOP, MAIN, 1, 10),
    PythonRow(0, WORK, 2, 100),
    PythonRow(1, WORK, 3, 50),
    PythonRow(2, KEY, 7, 30),
    PythonRow(0, KEY, 1, 5),
    PythonRow(TOP, KEY, 1, 4),
)
PROFILE = profile_of(ROWS, total=1000, cut=False)


def stored(**changes: Any) -> bytes:
    """Return a result file whose Python profile has these keys changed."""
    document = json.loads(encode(result(replace(benchmark(), python=PROFILE))))
    document["benchmarks"][0]["python"] |= changes
    return json.dumps(document).encode()


def test_costs_are_by_function_the_dearest_first_and_recursion_counts_once() -> None:
    assert [(cost.function, cost.calls, cost.ir, cost.inclusive) for cost in PROFILE.costs()] == [
        (WORK, 5, 150, 180),
        (KEY, 9, 39, 39),
        (MAIN, 1, 10, 195),
    ]
    assert PROFILE.native == 1000 - 199


def test_rows_of_one_path_add_up_and_their_order_does_not_matter() -> None:
    again = (
        PythonRow(TOP, KEY, 1, 4),
        PythonRow(TOP, MAIN, 1, 4),
        PythonRow(1, KEY, 1, 5),
        PythonRow(1, WORK, 2, 100),
        PythonRow(TOP, MAIN, 0, 6),
        PythonRow(3, WORK, 3, 50),
        PythonRow(5, KEY, 7, 30),
    )
    assert profile_of(again, total=1000, cut=False) == PROFILE


def test_paths_that_cost_nothing_are_left_out_and_those_above_others_stay() -> None:
    rows = (PythonRow(TOP, MAIN, 0, 0), PythonRow(0, WORK, 1, 1), PythonRow(0, KEY, 0, 0), PythonRow(TOP, KEY, 0, 0))
    profile = profile_of(rows, total=1, cut=True)
    assert profile.functions == (MAIN, WORK)
    assert profile.paths == (PythonPath(TOP, 0, 0, 0), PythonPath(0, 1, 1, 1))
    assert profile.cut


def test_a_path_of_a_hundred_thousand_calls_is_added_up_at_once() -> None:
    rows = tuple(PythonRow(index - 1, (MAIN, WORK)[index % 2], 1, 1) for index in range(100_000))
    (main, work) = sorted(profile_of(rows, total=100_000, cut=False).costs(), key=lambda cost: cost.function)
    assert (main.inclusive, work.inclusive) == (100_000, 99_999)


rows = st.lists(
    st.tuples(st.integers(-1, 20), st.sampled_from([MAIN, WORK, KEY]), st.integers(0, 3), st.integers(0, 9)),
    max_size=20,
).map(lambda found: tuple(PythonRow(min(row[0], place - 1), *row[1:]) for place, row in enumerate(found)))


@given(rows, st.integers(0, 100))
def test_sums_survive_and_what_is_written_is_read_again(found: tuple[PythonRow, ...], native: int) -> None:
    total = sum(row.ir for row in found) + native
    profile = profile_of(found, total=total, cut=False)
    assert profile.native == native
    assert sum(cost.ir for cost in profile.costs()) + native == total
    for function in (MAIN, WORK, KEY):
        calls = sum(row.calls for row in found if row.function == function)
        assert sum(cost.calls for cost in profile.costs() if cost.function == function) == calls
    assert all(cost.ir <= cost.inclusive <= total for cost in profile.costs())
    data = encode(result(replace(benchmark(), python=profile)))
    assert decode(data, "x").benchmarks[0].python == profile


def test_native_parts_are_written_and_read_again() -> None:
    rows = (PythonRow(TOP, MAIN, 1, 50), PythonRow(0, WORK, 2, 30))
    parts = (
        NativePart(1, TOP, "sort", 2, 10),
        NativePart(0, TOP, "read", 1, 5),
        NativePart(1, 0, "compare", 9, 15),
        NativePart(1, TOP, "nothing", 1, 0),
    )
    profile = profile_of(rows, total=90, cut=False, parts=parts)
    assert [(part.path, part.parent, part.name, part.ir) for part in profile.parts] == [
        (0, TOP, "read", 5),
        (1, TOP, "sort", 10),
        (1, 1, "compare", 15),
    ]
    data = encode(result(replace(benchmark(), python=profile)))
    assert decode(data, "x").benchmarks[0].python == profile
    assert b'"parts"' not in encode(result(replace(benchmark(), python=PROFILE)))


def test_a_result_file_without_one_has_no_key_for_it() -> None:
    assert b'"python"' not in encode(result(benchmark()))
    assert decode(encode(result(benchmark())), "x").benchmarks[0].python is None


def test_a_python_profile_is_not_parsed_until_it_is_wanted() -> None:
    opened = ResultFile(encode(result(replace(benchmark(), python=PROFILE))), "x")
    assert opened.result.benchmarks[0].python is None
    assert opened.python(benchmark().id) == PROFILE
    assert opened.python("another") is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"total": -1}, r"python.total: expected a whole number >= 0"),
        ({"total": 198}, r"its paths cost more than its total"),
        ({"cut": 1}, r"python.cut: expected true or false"),
        ({"functions": [[0, 1]]}, r"python.functions\[0\]: it has 2 numbers instead of 3"),
        ({"functions": [[0, 999, 1]]}, r"python.functions\[0\]: it points to string 999 of "),
        ({"functions": [[0, 1, -1]]}, r"python.functions\[0\]\[2\]: expected a whole number >= 0"),
        ({"functions": [[0, 1, 2], [0, 1, 2]]}, r"python.functions\[1\]: a second row of "),
        ({"functions": "no"}, r"python.functions: expected a list"),
        ({"paths": [[1, 0, 1, 1]]}, r"python.paths\[0\]: its caller is path 1 of 0 before it"),
        ({"paths": [[0, 0, 1, 1], [3, 0, 1, 1]]}, r"python.paths\[1\]: its caller is path 3 of 1 before it"),
        ({"paths": [[0, 3, 1, 1]]}, r"python.paths\[0\]: it points to function 3 of 3"),
        ({"paths": [[0, 0, 1]]}, r"python.paths\[0\]: it has 3 numbers instead of 4"),
        ({"paths": [[0, 0, -1, 1]]}, r"python.paths\[0\]\[2\]: expected a whole number >= 0"),
        ({"paths": [[0, 0, 1, 1], [0, 0, 1, 1]]}, r"python.paths\[1\]: a second row of this path"),
        ({"paths": [[0, 0, 1, 1.5]]}, r"python.paths\[0\]\[3\]: expected a whole number, got a number with a fraction"),
        ({"paths": None}, r"python.paths: expected a list"),
        ({"parts": [[0, 0, 0, 1]]}, r"python.parts\[0\]: it has 4 numbers instead of 5"),
        ({"parts": [[9, 0, 0, 1, 1]]}, r"python.parts\[0\]: it points to path 9 of "),
        (
            {"parts": [[0, 1, 0, 1, 1]]},
            r"python.parts\[0\]: its caller is part 1, which is not one before it on its path",
        ),
        ({"parts": [[0, 0, 0, 1, 1], [1, 1, 0, 1, 1]]}, r"python.parts\[1\]: its caller is part 1, which is not"),
        ({"parts": [[0, 0, 999, 1, 1]]}, r"python.parts\[0\]: it points to string 999 of "),
        (
            {"parts": [[0, 0, 0, 1, 10_000]]},
            r"python.parts\[0\]: with it, the parts of its path cost more than the path",
        ),
    ],
)
def test_a_profile_that_cannot_be_is_refused_with_its_place(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        decode(stored(**changes), "x.json")


def test_a_profile_that_lacks_a_key_is_refused() -> None:
    document = json.loads(stored())
    del document["benchmarks"][0]["python"]["paths"]
    with pytest.raises(FileFormatError, match="'paths' is missing"):
        decode(json.dumps(document).encode(), "x.json")


def profile_rows(text: str) -> list[list[str]]:
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if "hottest Python functions" in line)
    rows = lines[start + 1 : lines.index("", start)] if "" in lines[start:] else lines[start + 1 :]
    return [row.split() for row in rows]


def test_a_report_lists_the_hottest_python_functions_and_adds_up_to_the_total() -> None:
    from cachegrind_bench.render import table

    whole = result(replace(benchmark(), python=PROFILE))
    text = table.render(shown(whole, whole.benchmarks[0], top=2, sort="score"))
    assert "hottest Python functions, of 1,000 Ir in an execution of its own with -X perf" in text
    assert profile_rows(text) == [
        ["Ir", "share", "with", "callees", "calls", "each", "function", "file"],
        ["150", "15.0", "%", "180", "5", "90", "work", "a.py:5"],
        ["39", "3.9", "%", "39", "9", "4", "key", "a.py"],
        ["10", "1.0", "%", "1", "1", "other", "function"],
        ["801", "80.1", "%", "native", "code", "not", "under", "any", "Python", "function"],
    ]
    assert "hottest Python functions" in table.render(measured(whole.benchmarks[0], whole.env))
    assert "hottest Python functions" not in table.render(shown(whole, whole.benchmarks[0], top=0, sort="score"))


def test_a_report_says_when_paths_were_cut() -> None:
    from cachegrind_bench.render import table

    whole = result(replace(benchmark(), python=replace(PROFILE, cut=True)))
    assert "nested too deeply" in table.render(measured(whole.benchmarks[0], whole.env))


def test_hostile_names_are_harmless_in_reports() -> None:
    from cachegrind_bench.render import table

    hostile = profile_of((PythonRow(TOP, PythonFunction(HOSTILE, HOSTILE, 3), 1, 1),), total=5, cut=False)
    whole = result(replace(benchmark(), python=hostile))
    report = measured(whole.benchmarks[0], whole.env)
    assert "\x1b" not in table.render(report)
    assert "<script>" not in table.render(report, "markdown")


def test_the_profile_of_nothing_is_all_native() -> None:
    empty = PythonProfile(total=7, functions=(), paths=())
    assert (empty.native, empty.costs(), empty.inclusive) == (7, (), ())


def test_the_record_of_a_run_leaves_it_behind_like_other_profiles() -> None:
    assert b'"python"' not in run_record(result(replace(benchmark(), python=PROFILE))).data


def test_a_row_of_a_file_without_strings_is_refused_as_any_other() -> None:
    document = json.loads(encode(result(replace(benchmark(), profile=None, python=PROFILE))))
    document["benchmarks"][0]["python"] |= {"functions": [], "paths": [], "parts": [[0, 0, 0, 1, 1]]}
    with pytest.raises(FileFormatError, match=r"python.parts\[0\]: it points to path 0 of 0"):
        decode(json.dumps(document | {"strings": []}).encode(), "x.json")
