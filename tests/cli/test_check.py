"""`cg-bench check`: the exit codes that `git bisect run` understands, whatever happens."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.errors import CommandFailedError, CommandTimeoutError, MeasurementError, NoValgrindError
from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.metrics import DEFAULT_MODEL, Counts
from cachegrind_bench.model.result import Run, Score, Status
from cachegrind_bench.store.baselines import Baselines
from tests.unit.repositories import PATH, Repository, git_environment
from tests.unit.samples import failed_benchmark

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Benchmark, Result
    from tests.cli.conftest import CommandLine, ReplayRunner

GOOD, BAD, SKIP, STOP = 0, 1, 125, 128


@pytest.fixture
def measured(replay: ReplayRunner, cg_bench: CommandLine) -> Result:
    """Return what measuring /bin/true gives here."""
    assert cg_bench("run", "-q", "-o", "measured.json", "--", "/bin/true").code == 0
    replay.executed.clear()
    path = Path("measured.json")
    result = decode(path.read_bytes(), "measured.json")
    path.unlink()
    return result


def scaled(benchmark: Benchmark, percent: int, **changes: Any) -> Benchmark:
    """Return the benchmark as if it had cost this much of what it did."""
    assert benchmark.counts is not None
    counts = Counts.of([value * percent // 100 for value in benchmark.counts.as_tuple()])
    score = Score(model=DEFAULT_MODEL.name, value=DEFAULT_MODEL.score(counts))
    runs = (Run(layout=0, counts=counts),)
    return replace(benchmark, **{"counts": counts, "score": score, "runs": runs, "profile": None, **changes})


def save(result: Result, *benchmarks: Benchmark, name: str = "base.json") -> None:
    Path(name).write_bytes(encode(replace(result, benchmarks=benchmarks or result.benchmarks)))


# Good, bad, skip


def test_an_equal_program_is_good_and_the_comparison_is_printed(measured: Result, cg_bench: CommandLine) -> None:
    save(measured)
    told = cg_bench("check", "--base", "base.json", "--", "/bin/true")
    assert told.code == GOOD
    assert "true" in told.out
    assert "unchanged" in told.out
    assert "said by the program\n" in told.err
    assert os.listdir() == ["base.json"]


@pytest.mark.parametrize(
    ("percent", "options", "code"),
    [
        (99, [], BAD),
        (99, ["--threshold", "5%"], GOOD),
        (99, ["--threshold", "5%", "--threshold-ir", "0.1%"], BAD),
        (100, ["--limit", "Ir=12_000"], BAD),
        (101, [], GOOD),
        (300, [], SKIP),  # a suspicious drop
        (300, ["--max-drop", "99%"], GOOD),
    ],
)
def test_the_gates_are_those_of_diff(
    measured: Result, cg_bench: CommandLine, percent: int, options: list[str], code: int
) -> None:
    save(measured, scaled(measured.benchmarks[0], percent))
    assert cg_bench("check", "--base", "base.json", *options, "--", "/bin/true").code == code


@pytest.mark.parametrize(
    "error",
    [
        CommandFailedError("the command failed with exit status 1", exit_status=1),
        CommandFailedError("the command was killed by SIGSEGV", signal=11),
        CommandTimeoutError("the command ran longer than 1 s"),
        MeasurementError("Valgrind failed"),
    ],
    ids=lambda error: error.message,
)
@pytest.mark.parametrize("execution", [0, 1])
def test_a_program_that_cannot_be_measured_is_skipped(
    measured: Result, replay: ReplayRunner, cg_bench: CommandLine, error: Exception, execution: int
) -> None:
    save(measured)
    replay.failures = [*[None] * execution, error]
    told = cg_bench("check", "--base", "base.json", "-o", "new.json", "--", "/bin/true")
    assert (told.code, told.out) == (SKIP, "")
    assert f"cg-bench: error: {error}\n" in told.err
    assert os.listdir() == ["base.json"]


def test_another_libc_or_interpreter_is_skipped(measured: Result, cg_bench: CommandLine) -> None:
    (only,) = measured.benchmarks
    save(measured, replace(only, key="f" * 12, key_fields={**only.key_fields, "libc": "another"}))
    told = cg_bench("check", "--base", "base.json", "--", "/bin/true")
    assert told.code == SKIP
    assert "not comparable" in told.out
    assert "another" in told.out
    assert cg_bench("check", "--base", "base.json", "--force", "--", "/bin/true").code == GOOD


def test_a_failing_preparation_is_skipped(measured: Result, replay: ReplayRunner, cg_bench: CommandLine) -> None:
    save(measured)
    told = cg_bench("check", "--base", "base.json", "--prepare", "exit 2", "--", "/bin/true")
    assert (told.code, told.out) == (SKIP, "")
    assert "the --prepare command failed with exit status 2" in told.err
    assert replay.executed == []


def test_a_program_may_be_what_the_preparation_builds(
    measured: Result, replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    save(measured)
    build = ["--prepare", "cp /bin/true built", "--cleanup", "rm built"]
    told = cg_bench("check", "--base", "base.json", *build, "--", "./built")
    assert (told.code, len(replay.executed)) == (GOOD, 2)
    assert replay.executed[0].executable.endswith("/built")


@pytest.mark.parametrize("prepare", [[], ["--prepare", "true"]])
def test_a_program_that_is_not_in_this_commit_is_skipped(
    measured: Result, cg_bench: CommandLine, prepare: list[str]
) -> None:
    save(measured)
    told = cg_bench("check", "--base", "base.json", *prepare, "--", "./built")
    assert (told.code, told.err) == (SKIP, "cg-bench: error: there is no ./built here\n  use --prepare to build it\n")


# Stop


@pytest.mark.parametrize(
    "words",
    [
        ["--nonsense"],
        ["--", "/bin/true"],
        ["--base", "missing.json", "--", "/bin/true"],
        ["--base", "oops.json", "--", "/bin/true"],
        ["--base", "base.json", "--repeat", "0", "--", "/bin/true"],
        ["--base", "base.json", "-o", "no/where.json", "--", "/bin/true"],
        ["--base", "base.json", "--", "no-such-program-anywhere"],
    ],
    ids=" ".join,
)
def test_bad_usage_stops_the_bisection(
    measured: Result, replay: ReplayRunner, cg_bench: CommandLine, words: list[str]
) -> None:
    save(measured)
    Path("oops.json").write_text("oops")
    told = cg_bench("check", *words)
    assert (told.code, told.out) == (STOP, "")
    assert told.err
    assert replay.executed == []


def test_bad_usage_before_the_commands_name_stops_it_too(cg_bench: CommandLine) -> None:
    assert cg_bench("--nonsense", "check", "--base", "base.json", "--", "/bin/true").code == STOP


def test_a_base_of_another_machine_stops_the_bisection(measured: Result, cg_bench: CommandLine) -> None:
    (only,) = measured.benchmarks
    env = replace(measured.env, key="f" * 12, fields={**measured.env.fields, "valgrind": "3.18.1"})
    save(replace(measured, env=env), replace(only, key="f" * 12))
    told = cg_bench("check", "--base", "base.json", "--", "/bin/true")
    assert told.code == STOP
    assert "valgrind" in told.out
    assert "3.18.1" in told.out
    told = cg_bench("check", "--base", "base.json", "--force", "--", "/bin/true")
    assert told.code == GOOD


def test_forcing_does_not_make_a_suspicious_drop_stop_the_bisection(measured: Result, cg_bench: CommandLine) -> None:
    save(replace(measured, env=replace(measured.env, key="f" * 12)), scaled(measured.benchmarks[0], 300, key="f" * 12))
    assert cg_bench("check", "--base", "base.json", "--force", "--", "/bin/true").code == SKIP


def test_a_base_that_failed_stops_the_bisection_before_any_work(
    measured: Result, replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    save(measured, failed_benchmark(id="true", status=Status.FAILED))
    told = cg_bench("check", "--base", "base.json", "--", "/bin/true")
    assert (told.code, told.out) == (STOP, "")
    assert told.err.startswith("cg-bench: error: in the base base.json the benchmark 'true' is failed: the command")
    assert replay.executed == []


def test_a_bug_stops_the_bisection(measured: Result, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def boom(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    save(measured)
    monkeypatch.setattr("cachegrind_bench.measure.session.valgrind_setup", boom)
    told = cg_bench("check", "--base", "base.json", "--", "/bin/true")
    assert (told.code, told.out) == (STOP, "")
    assert "ZeroDivisionError" in told.err


def test_an_interrupt_stops_the_bisection(measured: Result, replay: ReplayRunner, cg_bench: CommandLine) -> None:
    save(measured)
    replay.failures = [KeyboardInterrupt()]
    assert cg_bench("check", "--base", "base.json", "--", "/bin/true").code == 130


def test_help_is_not_a_failure(cg_bench: CommandLine) -> None:
    assert cg_bench("check", "--help").code == 0


# Which benchmark of the base


def test_the_only_benchmark_of_the_base_is_meant_whatever_its_id(measured: Result, cg_bench: CommandLine) -> None:
    (only,) = measured.benchmarks
    save(measured, replace(only, id="parser[1]"))
    told = cg_bench("check", "--base", "base.json", "-o", "new.json", "--threshold", "parser*=9%", "--", "/bin/true")
    assert told.code == GOOD
    assert decode(Path("new.json").read_bytes(), "new.json").benchmarks[0].id == "parser[1]"
    told = cg_bench("check", "--base", "base.json", "-o", "new.json", "--id", "mine", "--", "/bin/true")
    assert told.code == GOOD
    assert decode(Path("new.json").read_bytes(), "new.json").benchmarks[0].id == "mine"


def test_of_several_that_of_the_id_is_meant(measured: Result, cg_bench: CommandLine) -> None:
    (only,) = measured.benchmarks
    save(measured, only, scaled(only, 90, id="faster"))
    assert cg_bench("check", "--base", "base.json", "--", "/bin/true").code == GOOD
    assert cg_bench("check", "--base", "base.json", "--id", "faster", "--", "/bin/true").code == BAD


def test_an_id_that_the_base_lacks_is_reported_with_those_it_has(measured: Result, cg_bench: CommandLine) -> None:
    (only,) = measured.benchmarks
    save(measured, *(replace(only, id=f"b{number:02}") for number in range(12)))
    told = cg_bench("check", "--base", "base.json", "--", "/bin/true", "x")
    assert (told.code, told.out) == (STOP, "")
    first, hint = told.err.splitlines()
    assert first == "cg-bench: error: the base base.json has no benchmark 'true x'"
    assert hint.startswith("  --id names one of those it has: b00, b01, ")
    assert hint.endswith(", b09 and 2 more")


# Words around it


def test_the_base_can_be_a_saved_baseline(
    measured: Result, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Baselines.find(Path.cwd()).save("good", encode(measured))
    assert cg_bench("check", "--base", "good", "--", "/bin/true").code == GOOD
    monkeypatch.setenv("CG_BENCH_BASE", "baseline:good")
    assert cg_bench("check", "--", "/bin/true").code == GOOD


def test_repetitions_and_warm_ups_are_those_of_run(
    measured: Result, replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    save(measured)
    told = cg_bench("check", "--base", "base.json", "--repeat", "3", "--warmup", "2", "--", "/bin/true")
    assert (told.code, len(replay.executed)) == (GOOD, 5)


def test_the_result_on_stdout_leaves_the_report_to_stderr(measured: Result, cg_bench: CommandLine) -> None:
    save(measured)
    told = cg_bench("check", "--base", "base.json", "-o", "-", "--", "/bin/true")
    assert decode(told.out.encode(), "-") == measured
    assert "unchanged" in told.err


def test_a_result_that_cannot_be_written_after_all_is_left_in_a_file(
    measured: Result, replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    save(measured)
    Path("o").mkdir()
    replay.failures = [None, Path("o").rmdir]
    told = cg_bench("check", "--base", "base.json", "-o", "o/r.json", "--", "/bin/true")
    assert told.code == STOP
    (file,) = Path(".cg-bench/unstored").iterdir()
    assert f"what was measured is kept in {file.absolute()}" in told.err


def test_quiet_leaves_the_verdict_and_the_code(measured: Result, cg_bench: CommandLine) -> None:
    save(measured, scaled(measured.benchmarks[0], 90))
    told = cg_bench("check", "-q", "--base", "base.json", "--", "/bin/true")
    assert (told.code, told.out.count("\n"), told.err) == (BAD, 1, "")
    assert told.out.startswith("regression: ")


def test_scripts_get_the_comparison_in_json(measured: Result, cg_bench: CommandLine) -> None:
    save(measured)
    told = cg_bench("check", "--base", "base.json", "--format", "json", "--", "/bin/true")
    assert json.loads(told.out)["schema"].startswith("cg-bench.")


def test_a_reader_who_leaves_early_does_not_make_a_bad_commit_good(
    measured: Result, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: object) -> None:
        raise BrokenPipeError

    save(measured, scaled(measured.benchmarks[0], 90))
    monkeypatch.setattr("cachegrind_bench.cli.output.write", gone)
    monkeypatch.setattr("cachegrind_bench.cli.output.forget", lambda stream: stream is sys.stdout)
    assert cg_bench("check", "--base", "base.json", "--", "/bin/true").code == BAD


def test_a_missing_valgrind_stops_the_bisection_as_no_commit_could_be_measured(
    measured: Result, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def session(**_: object) -> None:
        raise NoValgrindError("Valgrind was not found", hint="install it")

    save(measured)
    monkeypatch.setattr("cachegrind_bench.measure.session.valgrind_setup", session)
    told = cg_bench("check", "--base", "base.json", "--", "/bin/true")
    assert (told.code, "install it" in told.err) == (STOP, True)


# The suite

SUITE = """\
[[benchmark]]
id = "one"
command = "/bin/true 1"
tags = ["quick"]

[[benchmark]]
id = "two"
command = "/bin/true 2"
"""


@pytest.fixture
def suite(replay: ReplayRunner, cg_bench: CommandLine) -> Result:
    """Return what measuring a suite gives here."""
    Path("cg-bench.toml").write_text(SUITE)
    assert cg_bench("run", "-q", "-o", "measured.json").code == 0
    replay.executed.clear()
    return decode(Path("measured.json").read_bytes(), "measured.json")


def test_without_a_command_the_suite_is_compared_by_ids(suite: Result, cg_bench: CommandLine) -> None:
    one, two = suite.benchmarks
    save(suite, scaled(two, 99), one)
    told = cg_bench("check", "--base", "base.json", "-o", "new.json", "--evidence", "never")
    assert (told.code, "[2/2]" in told.err) == (BAD, True)
    assert "1 regression, 1 unchanged" in told.out
    assert decode(Path("new.json").read_bytes(), "new.json").benchmarks == suite.benchmarks
    assert cg_bench("check", "-q", "--base", "base.json", "--threshold", "two=5%").code == GOOD


@pytest.mark.parametrize("choice", [["-k", "one"], ["--benchmark", "o*"], ["--tag", "quick"]], ids=" ".join)
def test_of_a_suite_the_chosen_benchmarks_are_measured(
    suite: Result, replay: ReplayRunner, cg_bench: CommandLine, choice: list[str]
) -> None:
    save(suite, *(scaled(item, 99 if item.id == "two" else 100) for item in suite.benchmarks))
    assert cg_bench("check", "-q", "--base", "base.json", *choice).code == GOOD
    assert {execution.argv[-1] for execution in replay.executed} == {"1"}


def test_of_a_suite_what_the_base_does_not_have_is_not_measured(
    suite: Result, replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    save(suite, suite.benchmarks[0])
    assert cg_bench("check", "-q", "--base", "base.json").code == GOOD
    assert {execution.argv[-1] for execution in replay.executed} == {"1"}


def test_the_benchmarks_own_thresholds_hold(suite: Result, cg_bench: CommandLine) -> None:
    save(suite, *(scaled(item, 99) for item in suite.benchmarks))
    Path("cg-bench.toml").write_text(SUITE.replace("id =", "threshold = '5%'\nid ="))
    told = cg_bench("check", "-q", "--base", "base.json")
    assert (told.code, told.err) == (GOOD, "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SUITE.replace('"two"', '"other"'), "the base has it, the candidate does not"),
        (
            SUITE.replace('"two"', '"other"').replace('"one"', '"another"'),
            "none of the benchmarks to compare: one, two",
        ),
        (SUITE.replace("/bin/true 2", "./there-is-none"), "the candidate failed: command not found"),
        ("[[benchmark]]\ngoogle-benchmark = './bench'\nsetup = 'exit 3'\n", "its setup failed with exit status 3"),
        ("[[benchmark]]\ngoogle-benchmark = './bench'\n", "there is no program ./bench"),
        ("", "no benchmark"),
    ],
)
def test_a_suite_that_cannot_be_measured_in_this_commit_is_skipped(
    suite: Result, cg_bench: CommandLine, text: str, message: str
) -> None:
    save(suite)
    Path("cg-bench.toml").write_text(text)
    told = cg_bench("check", "--base", "base.json")
    assert told.code == SKIP
    assert message in told.out + told.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-k", "three"], "no benchmark of the base base.json was selected\n  there are: one, two\n"),
        (["-k", "(one"], "-k '(one'"),
        (["--id", "one"], "--id belongs to one command\n  of a suite, --benchmark chooses by ids\n"),
        (["--prepare", "make"], "--prepare belongs to one command\n"),
        (["-k", "one", "--", "/bin/true"], "-k is for a suite\n"),
        (["--harness", "go"], "--harness needs a command\n"),
        (["--harness", "gone", "--", "go"], "--harness 'gone' is not known\n"),
    ],
)
def test_bad_usage_of_a_suite_stops_the_bisection(
    suite: Result, replay: ReplayRunner, cg_bench: CommandLine, words: list[str], message: str
) -> None:
    save(suite)
    told = cg_bench("check", "--base", "base.json", *words)
    assert (told.code, told.out, replay.executed) == (STOP, "", [])
    assert told.err.startswith(f"cg-bench: error: {message}")


def test_a_benchmark_of_a_suite_that_failed_in_the_base_stops_the_bisection(
    suite: Result, replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    one, _two = suite.benchmarks
    save(suite, one, failed_benchmark(id="two", status=Status.FAILED))
    told = cg_bench("check", "--base", "base.json")
    assert (told.code, replay.executed) == (STOP, [])
    assert "the benchmark 'two' is failed" in told.err
    assert cg_bench("check", "-q", "--base", "base.json", "-k", "one").code == GOOD


@pytest.mark.skipif(shutil.which("git", path=PATH) is None, reason="no git")
@pytest.mark.parametrize(("place", "code"), [("tracked, bisected", SKIP), ("tracked", STOP), ("bisected", STOP)])
def test_a_wrong_configuration_of_a_commit_that_is_bisected_is_skipped(
    suite: Result, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, place: str, code: int
) -> None:
    save(suite, suite.benchmarks[0])
    repository = Repository(Path("repository").absolute(), git_environment(Path.cwd()))
    monkeypatch.chdir(repository.path)
    Path("cg-bench.toml").write_text("[[benchmark]\n")
    if "tracked" in place:
        repository.git("add", "cg-bench.toml")
    repository.commit("wrong")
    if "bisected" in place:
        repository.git("bisect", "start")
    for command in ([], ["--", "/bin/true"]):
        told = cg_bench("check", "--base", "../base.json", *command)
        assert (told.code, told.out) == (code, "")
        assert told.err.startswith("cg-bench: error: cg-bench.toml:1: ")
