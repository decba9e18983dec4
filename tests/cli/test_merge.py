"""`cg-bench merge`: one file of several, where it goes, and what is told."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.store.baselines import Baselines
from tests.unit.samples import HOSTILE, benchmark, failed_benchmark, result

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Result
    from tests.cli.conftest import CommandLine

ONE = result(benchmark(id="a"), benchmark(id="b"))
TWO = result(benchmark(id="c"), created_at="2026-01-31T11:00:00Z")
WHOLE = result(benchmark(id="a"), benchmark(id="b"), benchmark(id="c"), created_at="2026-01-31T11:00:00Z")
BOTH = "one.json: 2 benchmarks\ntwo.json: 1 benchmark\ntogether: 3 benchmarks\n"


@pytest.fixture(autouse=True)
def _files() -> None:
    Path("one.json").write_bytes(encode(ONE))
    Path("two.json").write_bytes(encode(TWO))


def written(name: str) -> Result:
    return decode(Path(name).read_bytes(), name)


def test_two_files_become_one(cg_bench: CommandLine) -> None:
    told = cg_bench("merge", "one.json", "two.json", "-o", "all.json")
    assert (told.code, told.out, told.err) == (0, BOTH, "")
    assert written("all.json") == WHOLE


def test_what_a_file_repeats_and_what_failed_in_it_is_reported(cg_bench: CommandLine) -> None:
    Path("three.json").write_bytes(encode(result(benchmark(id="b"), failed_benchmark(id="d"), benchmark(id="e"))))
    told = cg_bench("merge", "-o", "all.json", "one.json", "three.json", "one.json")
    assert (told.code, told.err) == (0, "")
    assert told.out == (
        "one.json: 2 benchmarks\n"
        "three.json: 3 benchmarks, 1 failed, 1 of an earlier file\n"
        "one.json: 2 benchmarks, 2 of an earlier file\n"
        "together: 4 benchmarks\n"
    )
    assert [item.id for item in written("all.json").benchmarks] == ["a", "b", "d", "e"]


def test_a_merged_file_can_go_to_stdout_and_then_the_rest_goes_to_stderr(cg_bench: CommandLine) -> None:
    told = cg_bench("merge", "one.json", "two.json", "-o", "-")
    assert (told.code, told.err) == (0, BOTH)
    assert decode(told.out.encode(), "stdout") == WHOLE


@pytest.mark.parametrize(
    "value", ["\x9b31m", "\x85::error::q", "\u2028x", "\u202ex", "\U000e0041x", "\x7fx", "##[error]x", "ü€😀"]
)
def test_what_a_terminal_would_act_on_is_escaped_in_json_as_well(cg_bench: CommandLine, value: str) -> None:
    whole = result(benchmark(id="a", parameters={"x": value}))
    Path("one.json").write_bytes(encode(whole))
    told = cg_bench("merge", "one.json", "-o", "-")
    assert decode(told.out.encode(), "stdout") == whole
    assert (value in told.out) == (value == "ü€😀")


@pytest.mark.parametrize(
    "words",
    ["show a.json --format=json", "diff a.json a.json --format=json", "diff a.json a.json --format=code-quality"],
)
def test_no_json_report_has_a_command_to_the_log_of_a_job(cg_bench: CommandLine, words: str) -> None:
    Path("a.json").write_bytes(encode(result(failed_benchmark(id="##[error]x"))))
    told = cg_bench(*words.split())
    json.loads(told.out)
    assert "##[" not in told.out


def test_one_file_can_be_stdin(cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(encode(TWO))))
    told = cg_bench("merge", "one.json", "-", "-o", "all.json")
    assert (told.code, told.out) == (0, "one.json: 2 benchmarks\n<stdin>: 1 benchmark\ntogether: 3 benchmarks\n")
    assert written("all.json") == WHOLE


def test_a_baseline_can_be_merged(cg_bench: CommandLine) -> None:
    Baselines.find(Path.cwd()).save("main", encode(TWO))
    assert cg_bench("merge", "one.json", "main", "-o", "all.json").code == 0
    assert written("all.json") == WHOLE


def test_the_merged_file_may_replace_one_of_its_parts(cg_bench: CommandLine) -> None:
    assert cg_bench("merge", "one.json", "two.json", "-o", "one.json").code == 0
    assert written("one.json") == WHOLE


def test_only_one_file_can_be_stdin(cg_bench: CommandLine) -> None:
    told = cg_bench("merge", "-", "-", "-o", "all.json")
    assert (told.code, told.out) == (2, "")
    assert told.err == "cg-bench: error: only one file can be stdin\n  save the others to files first\n"


def test_files_that_do_not_belong_together_are_exit_code_3_and_nothing_is_written(cg_bench: CommandLine) -> None:
    Path("two.json").write_bytes(encode(result(benchmark(id="c"), tool_version="0.2.0")))
    told = cg_bench("merge", "one.json", "two.json", "-o", "all.json")
    assert (told.code, told.out) == (3, "")
    assert told.err == (
        "cg-bench: error: one.json was made by cg-bench 0.1.0, and two.json by cg-bench 0.2.0\n"
        "  measure all parts with the same version\n"
    )
    assert sorted(os.listdir()) == ["one.json", "two.json"]


def test_files_that_contradict_each_other_are_exit_code_3(cg_bench: CommandLine) -> None:
    Path("two.json").write_bytes(encode(result(benchmark(id="b", error=HOSTILE))))
    told = cg_bench("merge", "one.json", "two.json", "-o", "-")
    assert (told.code, told.out) == (3, "")
    assert told.err.startswith("cg-bench: error: b: error is missing in one.json and a|b <script>")
    assert "\\x1b[31mred" in told.err
    assert "\x1b" not in told.err


def test_a_file_that_cannot_be_read_leaves_the_old_one(cg_bench: CommandLine) -> None:
    Path("two.json").write_bytes(encode(TWO)[:-9])
    Path("all.json").write_bytes(b"{before}")
    told = cg_bench("merge", "one.json", "two.json", "-o", "all.json")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("cg-bench: error: two.json:1: not JSON")
    assert Path("all.json").read_bytes() == b"{before}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("one.json",), "missing option '-o' / '--output'"),
        (("-o", "all.json"), "missing argument 'FILE...'"),
        (("missing.json", "-o", "all.json"), "'missing.json' is neither a result file nor a saved baseline"),
        (("one.json", "-o", "no/all.json"), "cannot write no/all.json: No such file or directory"),
        (("missing.json", "-o", "."), "cannot write .: it is a directory"),
        (("one.json", "--max-size", "9", "-o", "all.json"), "one.json is too large"),
    ],
)
def test_bad_usage_is_exit_code_2(cg_bench: CommandLine, arguments: tuple[str, ...], message: str) -> None:
    told = cg_bench("merge", *arguments)
    assert (told.code, told.out) == (2, "")
    assert message in told.err
    assert not Path("all.json").exists()


def test_a_name_with_control_characters_is_shown_without_them(cg_bench: CommandLine) -> None:
    Path("one.json").rename("o\x1b[31m.json")
    told = cg_bench("merge", "o\x1b[31m.json", "-o", "all.json")
    assert (told.code, told.out) == (0, "o\\x1b[31m.json: 2 benchmarks\ntogether: 2 benchmarks\n")
