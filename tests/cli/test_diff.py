"""`cg-bench diff`: files in, a verdict, an exit code and reports out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.model import codec
from cachegrind_bench.model.metrics import EVENTS, FunctionCost, Profile
from tests.unit.comparing import counts, measured
from tests.unit.samples import failed_benchmark, result

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Benchmark
    from tests.cli.conftest import CommandLine

FINE, REGRESSION, BAD_INPUT, INCOMPLETE, FAILED = 0, 1, 2, 3, 4


def with_profile(name: str, ir: int) -> Benchmark:
    rows = (
        FunctionCost("a.c", "other", counts(1000).as_tuple()),
        FunctionCost("b.c", "hot", counts(ir - 1000).as_tuple()),
    )
    return measured(name, counts(ir), profile=Profile(events=EVENTS, functions=rows))


def save(name: str, *benchmarks: Benchmark) -> str:
    Path(name).write_bytes(codec.encode(result(*benchmarks)))
    return name


@pytest.fixture
def base() -> str:
    return save("main.json", with_profile("sort", 1_000_000), with_profile("parse", 1_000_000))


@pytest.fixture
def worse() -> str:
    return save("pr.json", with_profile("sort", 1_020_000), with_profile("parse", 1_000_000))


def last_line(text: str) -> str:
    return text.splitlines()[-1]


def test_a_regression_is_exit_code_1_and_the_last_line_names_benchmark_and_function(
    cg_bench: CommandLine, base: str, worse: str
) -> None:
    told = cg_bench("diff", base, worse)
    assert told.code == REGRESSION
    assert last_line(told.out) == (
        "regression: sort score +2 % (threshold 0.5 %), most of it in hot; 1 regression, 1 unchanged"
    )
    assert not told.err


def test_the_other_way_round_is_an_improvement_and_fine(cg_bench: CommandLine, base: str, worse: str) -> None:
    told = cg_bench("diff", worse, base)
    assert told.code == FINE
    assert last_line(told.out).startswith("improvement: sort score -1.96 %")


def test_equal_results_are_unchanged(cg_bench: CommandLine, base: str) -> None:
    told = cg_bench("diff", base, base)
    assert (told.code, last_line(told.out)) == (
        FINE,
        "unchanged: every benchmark is within its threshold; 2 unchanged",
    )


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--threshold", "3%"], FINE),
        (["--threshold", "3%", "--threshold", "so*=1%"], REGRESSION),
        (["--threshold", "sort=3%"], FINE),
        (["--threshold", "3%", "--threshold-ir", "1%"], REGRESSION),
        (["--threshold", "3%", "--metric", "ir"], FINE),
        (["--fail-on", "never"], FINE),
        (["--benchmark", "parse"], FINE),
        (["--benchmark", "parse", "--limit", "parse:Ir=999_999"], REGRESSION),
        (["--benchmark", "parse", "--limit", "sort:Ir=1"], FINE),
        (["--model", "ir"], REGRESSION),
    ],
)
def test_gates_decide(cg_bench: CommandLine, base: str, worse: str, options: list[str], code: int) -> None:
    assert cg_bench("diff", base, worse, *options).code == code


def test_any_change_can_fail(cg_bench: CommandLine, base: str, worse: str) -> None:
    assert cg_bench("diff", worse, base, "--fail-on", "any-change").code == REGRESSION


@pytest.mark.parametrize(
    ("candidates", "code", "word"),
    [
        ([with_profile("sort", 1_000_000)], INCOMPLETE, "missing"),
        ([with_profile("sort", 1_000_000), failed_benchmark(id="parse")], FAILED, "failed"),
        ([with_profile("sort", 1_000_000), with_profile("parse", 5_000)], INCOMPLETE, "suspicious drop"),
        ([with_profile("sort", 1_000_000), measured("parse", key="other")], INCOMPLETE, "not comparable"),
        ([measured("new")], INCOMPLETE, "missing"),
    ],
)
def test_what_was_not_compared_is_never_green(
    cg_bench: CommandLine, base: str, candidates: list[Benchmark], code: int, word: str
) -> None:
    told = cg_bench("diff", base, save("pr.json", *candidates))
    assert (told.code, last_line(told.out).partition(":")[0]) == (code, word)


def test_differing_keys_name_the_fields_and_force_compares_all_the_same(cg_bench: CommandLine, base: str) -> None:
    fields = {"libc": "def", "tool": "cachegrind"}
    other = save("pr.json", *(measured(name, key="other", key_fields=fields) for name in ("sort", "parse")))
    told = cg_bench("diff", base, other)
    assert (told.code, "libc abc → def" in told.out) == (INCOMPLETE, True)
    forced = cg_bench("diff", base, other, "--force")
    assert forced.code == FINE
    assert "notice: compared by force (--force), in spite of libc abc → def" in forced.out


def test_a_file_that_cannot_be_written_loses_no_comparison(cg_bench: CommandLine, base: str, worse: str) -> None:
    told = cg_bench("diff", base, worse, "--json", "/dev/full")
    assert told.code == BAD_INPUT
    assert "cannot write /dev/full" in told.err
    assert last_line(told.out).startswith("regression: sort score +2 %")


def test_formats_go_to_stdout_and_to_files_at_once(cg_bench: CommandLine, base: str, worse: str) -> None:
    told = cg_bench("diff", base, worse, "--format", "github", "--markdown", "a.md", "--json", "a.json")
    assert told.code == REGRESSION
    assert told.out.startswith("::error title=regression%3A sort::")
    assert Path("a.md").read_text(encoding="utf-8").startswith("### ❌ regression")
    document = json.loads(Path("a.json").read_text(encoding="utf-8"))
    assert (document["schema"], document["verdict"]) == ("cg-bench.diff/1", "regression")
    assert document["benchmarks"][0]["blamed"] == {"function": "hot", "file": "b.c", "share_ppm": 1_000_000}
    assert cg_bench("diff", base, worse, "--format", "json").out == Path("a.json").read_text(encoding="utf-8")


def test_gitlabs_code_quality_report_leads_to_the_function_or_else_to_the_line_of_the_configuration(
    cg_bench: CommandLine, base: str
) -> None:
    Path("b.c").touch()
    worse = save("pr.json", with_profile("sort", 1_020_000), measured("parse", counts(1_010_000), profile=None))
    Path("cg-bench.toml").write_text(
        '[[benchmark]]\nid = "parse"\ncommand = "true"\n\n[[benchmark]]\nid = "sort"\ncommand = "true"\n'
    )
    told = cg_bench("diff", base, worse, "--code-quality", "quality.json", "--format", "code-quality")
    assert told.code == REGRESSION
    places = [(entry["location"]["path"], entry["location"]["lines"]["begin"]) for entry in json.loads(told.out)]
    assert places == [("b.c", 1), ("cg-bench.toml", 1)]
    assert Path("quality.json").read_text() == told.out


def test_explanations_can_be_longer_shorter_by_file_or_none(cg_bench: CommandLine, base: str, worse: str) -> None:
    assert "function  file" in cg_bench("diff", base, worse).out
    assert "function  file" not in cg_bench("diff", base, worse, "--explain", "0").out
    assert "b.c" in cg_bench("diff", base, worse, "--by", "file").out
    assert "no source lines: measure" in cg_bench("diff", base, worse, "--lines").out
    assert "and 1 unchanged" in cg_bench("diff", base, worse, "--rows", "1").out


def test_a_benchmark_without_profile_is_compared_but_not_explained(cg_bench: CommandLine, base: str) -> None:
    bare = save("pr.json", measured("sort", counts(1_100_000), profile=None), with_profile("parse", 1_000_000))
    told = cg_bench("diff", base, bare)
    assert (told.code, last_line(told.out).startswith("regression: sort score +10 % (threshold 0.5 %);")) == (1, True)


def test_a_file_that_cannot_be_written_is_reported_before_anything_is_read(cg_bench: CommandLine, base: str) -> None:
    told = cg_bench("diff", base, "missing.json", "--markdown", "no/such/folder.md")
    assert told.code == BAD_INPUT
    assert "cannot write no/such/folder.md" in told.err


def test_bad_input_on_either_side_is_exit_code_2_and_names_the_file(cg_bench: CommandLine, base: str) -> None:
    Path("bad.json").write_bytes(b"{")
    for words in (["bad.json", base], [base, "bad.json"]):
        told = cg_bench("diff", *words)
        assert (told.code, "bad.json" in told.err, told.out) == (BAD_INPUT, True, "")
    for words in (["missing.json", base], [base, "missing.json"], ["-", "-"], [base], [base, base, base]):
        assert cg_bench("diff", *words).code == BAD_INPUT


@pytest.mark.parametrize(
    "options",
    [["--threshold", "1"], ["--limit", "x"], ["--threshold-cache", "a"], ["--max-drop", "-1%"], ["--model", "fast"]],
)
def test_a_bad_gate_is_exit_code_2(cg_bench: CommandLine, base: str, options: list[str]) -> None:
    assert cg_bench("diff", base, base, *options).code == BAD_INPUT


def test_a_pattern_that_fits_nothing_is_an_error_that_names_what_there_is(cg_bench: CommandLine, base: str) -> None:
    told = cg_bench("diff", base, base, "--benchmark", "nothing*")
    assert told.code == BAD_INPUT
    assert "sort, parse" in told.err


def test_a_saved_baseline_is_found_by_its_name(cg_bench: CommandLine, base: str, worse: str) -> None:
    assert cg_bench("baseline", "update", "main", base).code == FINE
    assert cg_bench("diff", "main", worse).code == REGRESSION
    assert cg_bench("diff", "baseline:main", f"file:{worse}").code == REGRESSION
    told = cg_bench("diff", "other", worse)
    assert (told.code, "saved baselines: main" in told.err) == (BAD_INPUT, True)


@pytest.mark.parametrize("form", ["json", "markdown", "code-quality"])
def test_a_report_in_the_file_called_dash_is_on_stdout_in_place_of_the_table(
    cg_bench: CommandLine, base: str, form: str
) -> None:
    told = cg_bench("diff", base, base, f"--{form}", "-")
    assert (told.code, told.out) == (FINE, cg_bench("diff", base, base, "--format", form).out)
    assert os.listdir() == ["main.json"]


def test_stdout_has_one_report_and_two_reports_need_two_files(cg_bench: CommandLine, base: str) -> None:
    for words in (
        ["--json", "-", "--markdown", "-"],
        ["--json", "-", "--format", "github"],
        ["--json", "x", "--markdown", "x"],
    ):
        assert cg_bench("diff", base, base, *words).code == BAD_INPUT
    assert sorted(os.listdir()) == ["main.json"]


def test_a_gate_for_a_benchmark_that_is_not_there_is_noticed(cg_bench: CommandLine, base: str) -> None:
    told = cg_bench("diff", base, base, "--threshold", "sert=2%")
    assert (told.code, "notice: --threshold sert=… does not match any benchmark" in told.out) == (FINE, True)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "cachegrind_bench", *words]


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent.parent)}


def test_either_side_may_come_from_a_pipe(base: str, worse: str, environment: dict[str, str]) -> None:
    for words, text in (([base, "-"], worse), (["-", worse], base)):
        with open(text, "rb") as stdin:
            done = subprocess.run(
                command("diff", *words), stdin=stdin, capture_output=True, env=environment, check=False
            )
        assert done.returncode == REGRESSION, done.stderr


def test_a_reader_that_leaves_does_not_make_a_regression_green(
    base: str, worse: str, environment: dict[str, str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        command("diff", base, worse), stdout=writer, stderr=subprocess.PIPE, env=environment, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (REGRESSION, b"")
