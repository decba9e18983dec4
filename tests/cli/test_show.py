"""`cg-bench show`: a result file again, in every form."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.model.codec import encode
from cachegrind_bench.model.text import matches
from cachegrind_bench.render import table
from cachegrind_bench.render.report import overview, shown
from tests.unit.samples import benchmark, failed_benchmark, result, rich_benchmark

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Result
    from tests.cli.conftest import CommandLine


def saved(*benchmarks: Any) -> Result:
    value = result(*benchmarks)
    Path("r.json").write_bytes(encode(value))
    return value


def report(value: Result, form: str, *, top: int = 10, sort: str = "score") -> str:
    return "\n".join(table.render(shown(value, item, top=top, sort=sort), form) for item in value.benchmarks)


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_several_benchmarks_are_one_table_and_details_need_a_pattern_or_an_option_of_theirs(
    cg_bench: CommandLine, form: str
) -> None:
    value = saved(rich_benchmark(), failed_benchmark())
    told = cg_bench("show", "r.json", "--format", form)
    assert (told.code, told.out, told.err) == (0, table.render(overview(value), form), "")
    assert "architecture" not in told.out
    for options in (["--benchmark", "*"], ["--top", "10"], ["--sort", "score"]):
        assert cg_bench("show", "r.json", "--format", form, *options).out == report(value, form)


def test_scripts_get_json(cg_bench: CommandLine) -> None:
    saved(benchmark(id="a"), benchmark(id="b"))
    told = cg_bench("show", "r.json", "--format", "json")
    assert [item["id"] for item in json.loads(told.out)["benchmarks"]] == ["a", "b"]


@pytest.mark.parametrize("top", [0, 1, 2, 100])
def test_as_many_functions_as_wanted_are_listed(cg_bench: CommandLine, top: int) -> None:
    value = saved(rich_benchmark())
    told = cg_bench("show", "r.json", "--top", str(top))
    assert told.out == report(value, "table", top=top)
    assert ("hottest functions" in told.out) is (top > 0)


def test_functions_are_ordered_as_wanted(cg_bench: CommandLine) -> None:
    value = saved(rich_benchmark())
    told = cg_bench("show", "r.json", "--sort", "d1MR")
    assert told.out == report(value, "table", sort="D1mr")
    assert "    D1mr   share  function" in told.out


@pytest.mark.parametrize("pattern", ["b[1]", "b[?]", "b*", "?[1]", "*"])
def test_benchmarks_are_chosen_by_pattern_with_literal_brackets(cg_bench: CommandLine, pattern: str) -> None:
    saved(benchmark(id="b[1]"))
    assert cg_bench("show", "r.json", "--benchmark", pattern).out.startswith("b[1]\n")


def test_a_pattern_that_fits_nothing_is_reported_with_what_there_is(cg_bench: CommandLine) -> None:
    saved(benchmark(id="a"), benchmark(id="b"))
    told = cg_bench("show", "r.json", "--benchmark", "c*")
    assert (told.code, told.out) == (2, "")
    assert told.err == "cg-bench: error: r.json has no benchmark 'c*'\n  it has: a, b\n"


def test_brackets_of_a_pattern_are_no_set_of_letters() -> None:
    assert matches("a[bc]", "a[bc]")
    assert not matches("ab", "a[bc]")
    assert not matches("A", "a")


def test_a_file_without_benchmarks_is_reported(cg_bench: CommandLine) -> None:
    Path("r.json").write_bytes(encode(result()).replace(b'"benchmarks":[', b'"benchmarks":[],"x":['))
    told = cg_bench("show", "r.json")
    assert (told.code, told.err) == (2, "cg-bench: error: r.json has no benchmarks\n  it has: none at all\n")


def test_stdin_can_be_shown(cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    value = saved(benchmark())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(encode(value))))
    assert cg_bench("show", "-").out == report(value, "table")


def test_what_stdin_holds_may_be_no_result(cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    told = cg_bench("show", "-")
    assert (told.code, told.err) == (
        2,
        "cg-bench: error: <stdin>: the file is empty\n  'cg-bench run -o FILE' writes result files\n",
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.json", "'missing.json' is neither a result file nor a saved baseline"),
        (".", "cannot read .: Is a directory"),
    ],
)
def test_a_file_that_cannot_be_read_is_reported(cg_bench: CommandLine, name: str, message: str) -> None:
    told = cg_bench("show", name)
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith(f"cg-bench: error: {message}\n  ")


def test_a_damaged_file_is_reported_with_the_place(cg_bench: CommandLine) -> None:
    data = encode(result())
    Path("r.json").write_bytes(data.replace(b'"dirty":false', b'"dirty":0'))
    told = cg_bench("show", "r.json")
    assert told.code == 2
    assert told.err == (
        "cg-bench: error: r.json: commit.dirty: expected true or false, got a whole number\n"
        "  the file was altered or cut off; measure again to make a new one\n"
    )


def test_a_bad_order_is_reported_before_the_file_is_read(cg_bench: CommandLine) -> None:
    told = cg_bench("show", "missing.json", "--sort", "time")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("cg-bench: error: cannot sort by 'time'\n  one of: score, Ir, ")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--top", "-1"], "invalid value for '--top': -1 is not in the range"),
        (["--top", "x"], "invalid value for '--top': 'x' is not a valid integer"),
        (["--format", "xml"], "invalid value for '--format': 'xml' is not one of 'table', 'json', 'markdown'"),
        (["extra"], "got unexpected extra argument"),
    ],
)
def test_a_bad_option_is_reported(cg_bench: CommandLine, arguments: list[str], what: str) -> None:
    saved(benchmark())
    told = cg_bench("show", "r.json", *arguments)
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith(f"cg-bench: error: {what}")
    assert told.err.endswith("\n  usage: cg-bench show [OPTIONS] FILE\n  'cg-bench show --help' says more\n")


def test_options_can_be_given_by_the_environment(cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    value = saved(benchmark(id="a"), rich_benchmark())
    monkeypatch.setenv("CG_BENCH_TOP", "1")
    monkeypatch.setenv("CG_BENCH_SORT", "ir")
    monkeypatch.setenv("CG_BENCH_FORMAT", "markdown")
    assert cg_bench("show", "r.json").out == report(value, "markdown", top=1, sort="Ir")
    monkeypatch.setenv("CG_BENCH_BENCHMARK", "a")
    assert "odd" not in cg_bench("show", "r.json").out
