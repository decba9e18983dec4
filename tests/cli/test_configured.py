"""What the configuration says instead of options: for whom it holds, and whose word goes before it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from cachegrind_bench.cli.main import read_configured
from cachegrind_bench.cli.options import configured_texts
from cachegrind_bench.model import codec
from cachegrind_bench.model.codec import decode
from tests.cli.conftest import commands
from tests.unit.comparing import counts, measured
from tests.unit.samples import result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cachegrind_bench.model.result import Benchmark
    from tests.cli.conftest import CommandLine, ReplayRunner

CONFIGURED = (
    "run",
    "ab",
    "check",
    "growth",
    "verify",
    "calibrate",
    "diff",
    "history",
    "trend",
    "bisect",
    "backfill",
    "fleet",
    "ci",
)
BROKEN = "repeet = 2\n"
TOLD = "cg-bench.toml:1: "


@pytest.fixture(autouse=True)
def _at_the_top_of_a_work_tree() -> None:
    Path(".git").mkdir()


def write(text: str) -> None:
    Path("cg-bench.toml").write_text(text, encoding="utf-8")


def configured(*words: str) -> Mapping[str, Mapping[str, object]]:
    """Return the defaults that the configuration gives to the command these words call."""
    return read_configured(words).defaults()


def variables() -> tuple[str, ...]:
    """Return the variables that the configuration passes on to what `run` measures."""
    with click.Context(click.Command("run"), obj=read_configured(["run"])):
        return configured_texts("env")


def save(name: str, *benchmarks: Benchmark) -> str:
    Path(name).write_bytes(codec.encode(result(*benchmarks)))
    return name


def of_file(name: str = "r.json") -> Benchmark:
    (found,) = decode(Path(name).read_bytes(), name).benchmarks
    return found


# What is read


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["-h", "run"],
        ["run", "--help"],
        *([name] for name in commands() if name not in CONFIGURED),
    ],
    ids=" ".join,
)
def test_others_do_not_even_read_the_configuration(words: list[str]) -> None:
    write(BROKEN)
    assert configured(*words) == {}


@pytest.mark.parametrize("command", CONFIGURED)
def test_without_a_configuration_nothing_is_set(command: str) -> None:
    assert configured(command) == {}
    assert variables() == ()


@pytest.mark.parametrize("command", ["run", "check", "verify"])
def test_variables_are_no_default_since_typing_one_would_lose_the_others(command: str) -> None:
    write("repeat = 2\nenv = ['A', 'B=1']\n")
    assert configured(command, "--", "true") == {command: {"repeat": 2}}
    assert variables() == ("A", "B=1")


def test_variables_may_be_a_table() -> None:
    write("env = { A = '1', B = 'x y' }\n")
    assert variables() == ("A=1", "B=x y")


def test_a_removed_working_directory_is_for_others_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Path("gone").absolute()
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert configured("run") == {}


# A broken configuration


@pytest.mark.parametrize("command", CONFIGURED)
def test_a_mistake_is_reported_with_its_place(cg_bench: CommandLine, command: str) -> None:
    write(BROKEN)
    told = cg_bench(command, "--", "/bin/true")
    assert told.code == (128 if command == "check" else 2)
    assert TOLD in told.err
    assert "did you mean 'repeat'?" in told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize("command", ["show", "baseline", "merge", "doctor"])
def test_a_mistake_does_not_stop_those_whom_it_does_not_concern(cg_bench: CommandLine, command: str) -> None:
    write(BROKEN)
    save("r.json", measured("a", counts(1000)))
    words = {"show": ["r.json"], "baseline": ["list"], "merge": ["-o", "all.json", "r.json"], "doctor": []}
    told = cg_bench(command, *words[command])
    assert TOLD not in told.err
    if command != "doctor":
        assert told.code == 0


def test_help_and_version_are_there_whatever_is_broken(cg_bench: CommandLine) -> None:
    write(BROKEN)
    for words in (["--help"], ["--version"], ["run", "--help"], ["diff", "-h"]):
        assert cg_bench(*words).code == 0


def test_a_benchmark_whose_folder_is_missing_concerns_the_suite_only(
    replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    del replay
    write("repeat = 2\n[[benchmark]]\nid = 'a'\ncommand = 'true'\ncwd = 'nonesuch'\n")
    assert cg_bench("run", "-q", "-o", "r.json", "--", "/bin/true").code == 0
    assert len(of_file().runs) == 2
    told = cg_bench("run")
    assert told.code == 2
    assert "nonesuch" in told.err


# Whose word counts, command by command


def test_run_takes_defaults_unless_told_otherwise(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("repeat = 2\nwarmup = 0\nmodel = '2l1+7ll+40ram'\ntimeout = '3s'\nI1 = '16384,8,64'\n")

    def run(*options: str) -> tuple[int, str, int | None]:
        replay.executed.clear()
        assert cg_bench("run", "-q", "-o", "r.json", *options, "--", "/bin/true").code == 0
        found = of_file()
        assert found.score is not None
        assert len(replay.executed) == len(found.runs)
        return len(found.runs), found.score.model, replay.executed[0].timeout_ms

    assert run() == (2, "2l1+7ll+40ram", 3000)
    assert replay.asked["geometry"].I1.size == 16384
    assert run("--repeat", "1", "--model", "l1+5ll+30ram", "--timeout", "1min") == (1, "l1+5ll+30ram", 60_000)
    monkeypatch.setenv("CG_BENCH_REPEAT", "3")
    monkeypatch.setenv("CG_BENCH_TIMEOUT", "250ms")
    assert run() == (3, "2l1+7ll+40ram", 250)
    assert run("--repeat", "1") == (1, "2l1+7ll+40ram", 250)


def test_variables_of_the_configuration_reach_a_single_command_too(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    write("env = ['A=configured', 'B=configured']\n")
    assert cg_bench("run", "-q", "--env", "B=typed", "--", "/bin/true").code == 0
    variables = replay.executed[0].variables
    assert (variables["A"], variables["B"]) == ("configured", "typed")


def test_a_configuration_in_pyproject_holds_as_well(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    Path("pyproject.toml").write_text("[tool.cg-bench]\nrepeat = 4\n")
    assert cg_bench("run", "-q", "-o", "r.json", "--", "/bin/true").code == 0
    assert len(of_file().runs) == 4


def test_check_measures_and_judges_by_the_defaults(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    assert cg_bench("run", "-q", "-o", "base.json", "--", "/bin/true").code == 0
    replay.executed.clear()
    write("warmup = 0\nrepeat = 3\nlimit = 'Ir=5'\n")
    assert cg_bench("check", "--base", "base.json", "--", "/bin/true").code == 1
    assert len(replay.executed) == 3
    assert cg_bench("check", "--base", "base.json", "--limit", "Ir=1_000_000", "--", "/bin/true").code == 0


def test_verify_takes_the_defaults_of_an_execution(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    write("env = ['TMPDIR=/x']\n")
    assert "TMPDIR" in cg_bench("verify", "--", "/bin/true").err
    write("I1 = '16384,8,64'\nD1 = '16384,8,64'\n")
    assert configured("verify", "--", "/bin/true") == {"verify": {"i1": "16384,8,64", "d1": "16384,8,64"}}


# diff


def sides() -> tuple[str, str]:
    """Return two results in which each of three benchmarks has one percent more."""
    names = ("a", "b", "pack[level=1]")
    return (
        save("main.json", *(measured(name, counts(1_000_000)) for name in names)),
        save("pr.json", *(measured(name, counts(1_010_000)) for name in names)),
    )


def regressions(cg_bench: CommandLine, *options: str) -> list[str]:
    """Return the ids of those that `diff` finds to be worse."""
    told = cg_bench("diff", *sides(), "--format", "json", *options)
    assert told.code in {0, 1}, told.err
    found = json.loads(told.out)["benchmarks"]
    return [item["id"] for item in found if item["state"] == "regression"]


ALL = ["a", "b", "pack[level=1]"]


def test_diff_takes_the_threshold_of_the_configuration(cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert regressions(cg_bench) == ALL
    write("threshold = '2%'\n")
    assert regressions(cg_bench) == []
    assert regressions(cg_bench, "--threshold", "0.1%") == ALL
    monkeypatch.setenv("CG_BENCH_THRESHOLD", "0.1%")
    assert regressions(cg_bench) == ALL
    assert regressions(cg_bench, "--threshold", "3%") == []


def test_thresholds_may_be_for_some_benchmarks(cg_bench: CommandLine) -> None:
    write("threshold = ['2%', 'b=0.1%']\n")
    assert regressions(cg_bench) == ["b"]


OWN = """\
[[benchmark]]
id = "a"
command = "true"
threshold = "5%"

[[benchmark]]
id = "b"
command = "true"
limit = "Ir=1000"

[[benchmark]]
id = "pack"
command = "true {level}"
parameters = { level = [1] }
threshold = "5%"
"""


def test_a_benchmarks_own_threshold_and_limits_hold_for_it_alone(cg_bench: CommandLine) -> None:
    write(OWN)
    assert regressions(cg_bench) == ["b"]
    assert regressions(cg_bench, "--threshold", "5%") == ["b"]
    assert regressions(cg_bench, "--limit", "Ir=10_000_000", "--threshold", "5%") == []


def test_a_benchmarks_own_threshold_goes_before_that_for_all(cg_bench: CommandLine) -> None:
    write(f"threshold = '0.1%'\n{OWN}")
    assert regressions(cg_bench) == ["b"]
    write(f"threshold = '5%'\n{OWN}".replace('"5%"', '"0.1%"', 1))
    assert regressions(cg_bench) == ["a", "b"]


def test_gates_of_benchmarks_that_were_not_measured_are_no_mistake(cg_bench: CommandLine) -> None:
    write(OWN)
    one = save("one.json", measured("b", counts(500)))
    told = cg_bench("diff", one, one)
    assert (told.code, told.err) == (0, "")
    assert "warning" not in told.out


def test_a_benchmarks_own_gates_hold_for_no_other_whatever_its_id_looks_like(cg_bench: CommandLine) -> None:
    write("""\
[[benchmark]]
id = "*"
command = "true"
threshold = "5%"
limit = "Ir=1000"
""")
    assert regressions(cg_bench) == ALL
    star = save("star.json", measured("*", counts(1_000_000)))
    assert cg_bench("diff", star, star).code == 1  # its limit


def test_the_model_of_the_configuration_is_that_of_a_comparison_too(cg_bench: CommandLine) -> None:
    write("model = 'ir'\n")
    assert regressions(cg_bench) == ALL
    write("model = 'best'\n")
    assert cg_bench("diff", *sides()).code == 2
