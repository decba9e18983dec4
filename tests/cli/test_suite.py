"""`cg-bench run` without a command, through a runner that replays a recording: the suite of the configuration."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import CommandFailedError, CommandTimeoutError
from cachegrind_bench.interruption import cancellation
from cachegrind_bench.model.codec import decode
from cachegrind_bench.store.timings import read_timings, write_timings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cachegrind_bench.model.result import Benchmark
    from tests.cli.conftest import CommandLine, ReplayRunner

STORE = Path(".cg-bench")
SUITE = """\
[[benchmark]]
id = "one"
command = "/bin/true 1"
tags = ["quick"]

[[benchmark]]
id = "two"
command = "/bin/true {n}"
parameters = { n = [2, 3] }

[[benchmark]]
id = "last"
command = "/bin/false"
tags = ["quick", "odd"]
"""
IDS = ["one", "two[n=2]", "two[n=3]", "last"]
NO_SUITE = "cg-bench: error: there is no command to measure, and no suite is configured\n"


@pytest.fixture(autouse=True)
def _suite() -> None:
    Path(".git").mkdir()
    Path("cg-bench.toml").write_text(SUITE)


def measured(name: str = "r.json") -> list[Benchmark]:
    return list(decode(Path(name).read_bytes(), name).benchmarks)


def ids(name: str = "r.json") -> list[str]:
    return [item.id for item in measured(name)]


def without_times(text: str) -> str:
    return re.sub(r"\([0-9.]+ (ms|s)\)", "(TIME)", text)


# What is measured


def test_the_report_goes_to_stdout_and_a_line_for_each_benchmark_to_stderr(
    replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    told = cg_bench("run", "-j", "1")
    assert told.code == 0
    assert told.out == (
        "4 benchmarks\n"
        "\n"
        "  benchmark   score      Ir  RAM hits  measured in\n"
        "  one        15,731  12,207        68  5 ms\n"
        "  two[n=2]   15,731  12,207        68  5 ms\n"
        "  two[n=3]   15,731  12,207        68  5 ms\n"
        "  last       15,731  12,207        68  5 ms\n"
        "\n"
        "  sealed    fully (clock kept)\n"
        "  measured  4 runs under Cachegrind 3.24.0 in 20 ms\n"
    )
    assert without_times(told.err) == "".join(
        f"cg-bench: [{number}/4] {name}  score 15,731  (TIME)\n" for number, name in enumerate(IDS, 1)
    )
    assert len(replay.executed) == 8


@pytest.mark.usefixtures("replay")
def test_what_changed_since_the_last_run_is_a_column(cg_bench: CommandLine) -> None:
    def changes() -> list[str]:
        rows = cg_bench("run", "-k", "two").out.splitlines()[2:5]
        return [row.split("  ")[2].strip() for row in rows] if "since last run" in rows[0] else []

    assert changes() == []
    assert cg_bench("run", "-o", "r.json").code == 0  # whoever keeps a result compares it
    assert len(changes()) == 3


def test_two_dashes_without_a_command_mean_the_suite_too(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    assert cg_bench("run", "-q", "--").code == 0
    assert len(replay.executed) == 8


@pytest.mark.parametrize("jobs", ["1", "2", "64"])
def test_the_file_has_the_benchmarks_in_the_order_of_the_configuration(
    replay: ReplayRunner, cg_bench: CommandLine, jobs: str
) -> None:
    del replay
    STORE.mkdir()
    write_timings(STORE, {"last": 60_000, "one": 1})  # the longest is begun first
    assert cg_bench("run", "-q", "-j", jobs, "-o", "r.json").code == 0
    assert ids() == IDS
    found = measured()
    assert [item.command for item in found] == [
        ("/bin/true", "1"),
        ("/bin/true", "2"),
        ("/bin/true", "3"),
        ("/bin/false",),
    ]
    assert [dict(item.parameters) for item in found] == [{}, {"n": "2"}, {"n": "3"}, {}]
    assert [item.tags for item in found] == [("quick",), (), (), ("quick", "odd")]


def test_quiet_says_nothing(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    told = cg_bench("run", "-q", "-o", "r.json")
    assert (told.code, told.out, told.err) == (0, "", "")


def test_the_result_on_stdout_leaves_the_report_to_stderr(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    told = cg_bench("run", "-o", "-")
    assert [item.id for item in decode(told.out.encode(), "-").benchmarks] == IDS
    assert "\n4 benchmarks\n" in told.err


def test_the_report_in_json_and_in_markdown(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    found = json.loads(cg_bench("run", "--format", "json").out)
    assert (found["schema"], found["created_at"]) == ("cg-bench.summary/1", "2026-01-31T12:00:00Z")
    assert [item["id"] for item in found["benchmarks"]] == IDS
    text = cg_bench("run", "--format", "markdown").out
    assert text.startswith("### 4 benchmarks\n\n| benchmark | score | Ir |")


def test_a_suite_is_found_from_a_folder_below_and_measured_in_its_own(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Path("below").mkdir()
    monkeypatch.chdir("below")
    assert cg_bench("run", "-q", "-o", "r.json").code == 0
    assert {execution.cwd for execution in replay.executed} == {str(tmp_path)}
    assert ids() == IDS
    assert os.listdir() == ["r.json"]


# Choosing


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        (["-k", "two"], ["two[n=2]", "two[n=3]"]),
        (["-k", "two and not 3"], ["two[n=2]"]),
        (["--tag", "quick"], ["one", "last"]),
        (["--tag", "odd", "--tag", "quick", "-k", "not one"], ["last"]),
        (["--benchmark", "two[n=2]", "--benchmark", "la*"], ["two[n=2]", "last"]),
        (["--shard", "1/1"], IDS),
    ],
)
def test_only_what_was_chosen_is_measured(
    replay: ReplayRunner, cg_bench: CommandLine, options: list[str], chosen: list[str]
) -> None:
    assert cg_bench("run", "-q", "-o", "r.json", *options).code == 0
    assert ids() == chosen
    assert len(replay.executed) == 2 * len(chosen)


@pytest.mark.parametrize("known", [{}, {"one": 9, "last": 1}, dict.fromkeys(IDS, 5)], ids=len)
def test_shards_one_after_the_other_are_the_suite(
    replay: ReplayRunner, cg_bench: CommandLine, known: dict[str, int]
) -> None:
    del replay
    STORE.mkdir()
    write_timings(STORE, known)
    for number in "12":
        assert cg_bench("run", "-q", "-o", f"{number}.json", "--shard", f"{number}/2").code == 0
    assert sorted(ids("1.json") + ids("2.json")) == sorted(IDS)
    assert cg_bench("merge", "-o", "all.json", "1.json", "2.json").code == 0
    assert sorted(ids("all.json")) == sorted(IDS)
    assert read_timings(STORE) == known  # else the second would have been another half


def test_a_shard_that_nothing_is_left_for_is_a_result_without_benchmarks(
    replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    assert cg_bench("run", "-o", "9.json", "--shard", "9/9").code == 0
    assert replay.executed == []
    assert ids("9.json") == []
    for number in range(1, 9):
        assert cg_bench("run", "-q", "-o", f"{number}.json", "--shard", f"{number}/9").code == 0
    assert cg_bench("merge", "-o", "all.json", *(f"{number}.json" for number in range(1, 10))).code == 0
    assert sorted(ids("all.json")) == sorted(IDS)


def test_shards_of_machines_that_know_other_times_are_not_merged(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    STORE.mkdir()
    assert cg_bench("run", "-q", "-o", "1.json", "--shard", "1/2").code == 0
    write_timings(STORE, {"one": 9, "last": 1})
    assert cg_bench("run", "-q", "-o", "2.json", "--shard", "2/2").code == 0
    told = cg_bench("merge", "-o", "all.json", "1.json", "2.json")
    assert told.code == 3
    assert "1.json and 2.json are parts of a suite that was split in two ways" in told.err
    assert "timings.json" in told.err
    assert not Path("all.json").exists()


def test_a_shard_that_was_forgotten_is_reported(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    for number in "123":
        assert cg_bench("run", "-q", "-o", f"{number}.json", "--shard", f"{number}/3").code == 0
    told = cg_bench("merge", "-o", "all.json", "1.json", "3.json")
    assert told.code == 0
    assert "! 1 benchmark of the suite missing: did you leave out a shard's file?\n" in told.out
    assert "missing" not in cg_bench("merge", "-o", "whole.json", "all.json", "2.json").out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-k", "nonesuch"], "no benchmark was selected\n  there are: one, two[n=2], two[n=3], last\n"),
        (["--tag", "nonesuch"], "no benchmark was selected\n"),
        (["-k", "one and"], ""),
        (["--shard", "3/2"], ""),
        (["--model", "best"], "'best' is not a cost model\n"),
        (["-o", "no/r.json"], "cannot write no/r.json: "),
        (["--env", "TMPDIR=/x"], "--env TMPDIR: "),
        (["--id", "x"], "--id belongs to one command\n  of a suite, --benchmark chooses by ids\n"),
        (
            ["--stdin", "cg-bench.toml"],
            "--stdin belongs to one command\n  in the configuration, write it into the benchmark's table\n",
        ),
        (["--keep-out-files", "x"], "--keep-out-files belongs to one command\n"),
        (["--save-baseline", "../x"], ""),
    ],
)
def test_bad_options_are_reported_before_anything_is_measured(
    replay: ReplayRunner, cg_bench: CommandLine, options: list[str], message: str
) -> None:
    told = cg_bench("run", *options)
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith(f"cg-bench: error: {message}")
    assert replay.executed == []


@pytest.mark.parametrize(
    "option",
    [["-k", "x"], ["--tag", "x"], ["--shard", "1/2"], ["-j", "2"], ["--fail-fast"], ["--capture-output"], ["--cached"]],
    ids=" ".join,
)
def test_options_of_a_suite_are_refused_with_a_command(
    replay: ReplayRunner, cg_bench: CommandLine, option: list[str]
) -> None:
    told = cg_bench("run", *option, "--", "/bin/true")
    assert told.code == 2
    assert "is for a suite\n" in told.err
    assert replay.executed == []


@pytest.mark.parametrize("text", ["", "repeat = 2\n"])
def test_a_configuration_without_benchmarks_is_reported(replay: ReplayRunner, cg_bench: CommandLine, text: str) -> None:
    Path("cg-bench.toml").write_text(text)
    told = cg_bench("run")
    assert told.code == 2
    assert told.err.endswith("cg-bench.toml has no benchmarks\n  'cg-bench init' shows what one looks like\n")
    assert replay.executed == []


def test_no_configuration_is_reported(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    Path("cg-bench.toml").unlink()
    told = cg_bench("run", "-k", "x")
    assert told.code == 2
    assert told.err.startswith(NO_SUITE)
    assert replay.executed == []
    assert os.listdir() == [".git"]


# What goes wrong


FAILED = CommandFailedError("the command failed with exit status 3", hint="look \x1b[31m", exit_status=3)


def test_a_failing_benchmark_stops_no_other(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    replay.failures = [None, None, None, FAILED, CommandTimeoutError("it ran longer than 2 s")]
    told = cg_bench("run", "-j", "1", "-o", "r.json")
    assert told.code == 4
    found = measured()
    assert [item.status.value for item in found] == ["ok", "failed", "timeout", "ok"]
    assert (found[1].exit_status, found[1].counts) == (3, None)
    assert told.out.startswith("4 benchmarks, 2 failed\n")
    assert (
        "two[n=2]  FAILED  (TIME)\n  the command failed with exit status 3\n  | said by the program\n  look \\x1b[31m\n"
        in without_times(told.err)
    )


def test_failing_fast_leaves_the_rest_and_names_it(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    replay.failures = [None, None, FAILED]
    told = cg_bench("run", "-j", "1", "--fail-fast", "--warmup", "1", "-o", "r.json")
    assert told.code == 4
    assert [item.status.value for item in measured()] == ["ok", "failed"]
    assert "last was not measured\n" in told.out


@pytest.fixture
def _as_python_starts() -> Iterator[None]:
    """Undo what a test of the whole program did to this process: it is deaf for a while after an interrupt."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def ctrl_c() -> None:
    """Have a user lose patience while a benchmark runs."""
    os.kill(os.getpid(), signal.SIGINT)
    cancel = cancellation()
    assert cancel is not None
    for _ in range(1000):
        cancel.check()
        time.sleep(0.01)


@pytest.mark.usefixtures("_as_python_starts")
def test_after_an_interrupt_what_finished_is_in_the_file(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    replay.failures = [None, None, None, ctrl_c]
    told = cg_bench("run", "-j", "1", "-o", "r.json")
    assert told.code == 130
    assert told.err.endswith("cg-bench: interrupted\n")
    assert ids() == ["one"]
    assert told.out.startswith("1 benchmark, 3 not measured\n")
    assert "two[n=2] was not measured\n" in told.out


@pytest.mark.usefixtures("_as_python_starts")
def test_an_interrupt_before_anything_finished_leaves_an_old_file(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    Path("r.json").write_text("{as it was}")
    replay.failures = [ctrl_c]
    assert cg_bench("run", "-j", "1", "-o", "r.json").code == 130
    assert Path("r.json").read_text() == "{as it was}"


@pytest.mark.usefixtures("_as_python_starts")
def test_an_interrupt_of_a_check_stops_the_bisection(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    assert cg_bench("run", "-q", "-o", "base.json").code == 0
    replay.failures = [None, None, None, ctrl_c]
    told = cg_bench("check", "--base", "base.json", "-j", "1")
    assert (told.code, told.out) == (130, "")


def test_a_bug_is_not_a_failed_benchmark(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    replay.failures = [ZeroDivisionError("deep down")]
    told = cg_bench("run", "-j", "1")
    assert told.code == 70
    assert "ZeroDivisionError: deep down" in told.err


def test_a_program_that_is_not_there_fails_alone(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    Path("cg-bench.toml").write_text(SUITE.replace("/bin/false", "./nonesuch"))
    assert cg_bench("run", "-q", "-o", "r.json").code == 4
    found = measured()
    assert [item.status.value for item in found] == ["ok", "ok", "ok", "error"]
    assert "command not found: ./nonesuch" in (found[3].error or "")


# Set-up


def test_a_set_up_may_build_the_program_and_runs_once(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    Path("cg-bench.toml").write_text(
        "[[benchmark]]\nid = 'built'\ncommand = './built {n}'\nparameters = { n = [1, 2] }\n"
        "setup = 'cp /bin/true built; echo x >> count'\n"
        "[[benchmark]]\nid = 'broken'\ncommand = 'true'\nsetup = 'echo no compiler >&2; exit 2'\n"
    )
    told = cg_bench("run", "-j", "1", "-o", "r.json")
    assert told.code == 4
    assert Path("count").read_text() == "x\n"
    assert [item.status.value for item in measured()] == ["ok", "ok", "error"]
    assert told.err.startswith("cg-bench: setup: cp /bin/true built; echo x >> count\ncg-bench: setup: echo no")
    assert "  its setup failed with exit status 2: echo no compiler >&2; exit 2\n  no compiler\n" in told.err


# What is kept


def test_what_programs_said_is_kept_on_request(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    assert cg_bench("run", "-q", "-o", "r.json").code == 0
    assert {item.output for item in measured()} == {None}
    assert cg_bench("run", "-q", "--capture-output", "-o", "r.json").code == 0
    assert {item.output for item in measured()} == {"said by the program\n" * 2}


def test_source_lines_are_recorded_in_a_suite_too(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    assert cg_bench("run", "-q", "--lines").code == 0
    assert {collect.lines for collect in replay.collected} == {True}


def test_a_python_profile_of_a_suite_leaves_out_what_is_not_python(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    assert cg_bench("run", "-q", "--python-profile", "-k", "one", "-o", "r.json").code == 0
    (found,) = measured()
    assert (found.status.value, found.python) == ("ok", None)
    assert found.warnings == (
        "its Python functions were not profiled: --python-profile is for Python programs, and /bin/true is not a Python interpreter",
    )


def test_a_python_profile_that_the_configuration_wants_cannot_be_left_out(
    replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    Path("cg-bench.toml").write_text(
        SUITE.replace('command = "/bin/true 1"', 'command = "/bin/true 1"\npython-profile = true')
    )
    for options in ([], ["--python-profile"]):
        assert cg_bench("run", "-q", "-k", "one", "-o", "r.json", *options).code == 4
        (found,) = measured()
        assert (found.status.value, found.counts) == ("error", None)
        assert (found.error or "").startswith(
            "--python-profile is for Python programs, and /bin/true is not a Python interpreter\n"
        )
    assert replay.executed == []


def test_functions_that_are_counted_alone_have_no_python_profile(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    text = SUITE.replace('command = "/bin/true 1"', 'command = "/bin/true 1"\ntoggle = "main"')
    Path("cg-bench.toml").write_text(text)
    assert cg_bench("run", "-q", "--python-profile", "-k", "one", "-o", "r.json").code == 0
    (found,) = measured()
    assert "its Python functions were not profiled: " in found.warnings[0]
    assert "--toggle" in found.warnings[0]
    Path("cg-bench.toml").write_text(text.replace("toggle =", "python-profile = true\ntoggle ="))
    told = cg_bench("run", "-q")
    assert told.code == 2
    assert "where only some functions are counted, there is no Python profile" in told.err


def test_set_up_commands_run_in_the_order_of_the_file_however_long_benchmarks_take(
    replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    del replay
    text = "".join(
        f"[[benchmark]]\nid = '{name}'\ncommand = 'true'\nsetup = 'echo {name} >> order'\n" for name in "abc"
    )
    Path("cg-bench.toml").write_text(text)
    STORE.mkdir()
    write_timings(STORE, {"a": 1, "b": 5, "c": 9})
    assert cg_bench("run", "-q", "-j", "2").code == 0
    assert Path("order").read_text() == "a\nb\nc\n"


def test_times_are_remembered_in_a_store_that_git_ignores(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    replay.failures = [None, None, FAILED]
    assert cg_bench("run", "-q", "-j", "1").code == 4
    assert sorted(read_timings(STORE)) == ["last", "one", "two[n=3]"]
    assert (STORE / ".gitignore").read_text() == "*\n"


def test_a_store_that_cannot_be_made_does_no_harm(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    STORE.touch()
    told = cg_bench("run", "-q", "-o", "r.json")
    assert (told.code, told.err) == (0, "")


def test_a_whole_suite_can_be_a_baseline_and_one_that_failed_is_none(
    replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    assert cg_bench("run", "-q", "--save-baseline", "main").code == 0
    before = (STORE / "baselines" / "main.json").read_bytes()
    assert [item.id for item in decode(before, "main").benchmarks] == IDS
    replay.failures = [FAILED]
    assert cg_bench("run", "-q", "--save-baseline", "main").code == 4
    assert (STORE / "baselines" / "main.json").read_bytes() == before


@pytest.mark.parametrize("chosen", [["-k", "two"], ["--tag", "quick"], ["--shard", "1/2"]], ids=" ".join)
def test_a_part_of_a_suite_does_not_take_the_place_of_a_baseline_of_all(
    replay: ReplayRunner, cg_bench: CommandLine, chosen: list[str]
) -> None:
    assert cg_bench("run", "-q", "--save-baseline", "main").code == 0
    before = (STORE / "baselines" / "main.json").read_bytes()
    replay.executed.clear()
    told = cg_bench("run", "-q", "--save-baseline", "main", *chosen)
    assert told.code == 2
    assert "the baseline 'main' holds other benchmarks, which would be lost: " in told.err
    assert replay.executed == []
    assert (STORE / "baselines" / "main.json").read_bytes() == before
    assert cg_bench("run", "-q", "--save-baseline", "part", *chosen).code == 0
    assert cg_bench("run", "-q", "--save-baseline", "part", *chosen).code == 0


@pytest.mark.parametrize("place", ["below", "above"])
def test_a_limit_that_was_exceeded_is_reported_and_fails_nothing_yet(
    replay: ReplayRunner, cg_bench: CommandLine, place: str
) -> None:
    del replay
    text = Path("cg-bench.toml").read_text()
    Path("cg-bench.toml").write_text(f"{text}limit = 'Ir=5'\n" if place == "below" else f"limit = 'last:Ir=5'\n{text}")
    told = cg_bench("run")
    assert told.code == 0
    assert "  warning: last: Ir 12,207 exceeds the limit of 5\n" in told.out
    assert "one: Ir" not in told.out


def test_quiet_does_not_keep_a_failure_quiet(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    replay.failures = [None, None, FAILED]
    told = cg_bench("run", "-q", "-j", "1")
    assert (told.code, told.out, told.err) == (4, "", "cg-bench: warning: 1 of 4 benchmarks failed: two[n=2]\n")


# Whose word counts


def test_a_benchmarks_table_goes_before_the_defaults_and_what_is_typed_before_both(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("cg-bench.toml").write_text(
        "repeat = 2\nwarmup = 0\n[[benchmark]]\nid = 'a'\ncommand = '/bin/true'\nrepeat = 3\n"
        "[[benchmark]]\nid = 'b'\ncommand = '/bin/true'\n"
    )

    def runs(*options: str) -> list[int]:
        replay.executed.clear()
        assert cg_bench("run", "-q", "-o", "r.json", *options).code == 0
        assert len(replay.executed) == sum(len(item.runs) for item in measured())
        return [len(item.runs) for item in measured()]

    assert runs() == [3, 2]
    assert runs("--repeat", "1") == [1, 1]
    monkeypatch.setenv("CG_BENCH_REPEAT", "4")
    assert runs() == [4, 4]
    assert runs("--repeat", "1") == [1, 1]


def test_variables_add_up_and_the_nearest_word_counts(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSED", "from here")
    Path("cg-bench.toml").write_text(
        "env = ['PASSED', 'A=default', 'B=default', 'C=default']\n"
        "[[benchmark]]\nid = 'a'\ncommand = '/bin/true'\nenv = ['B=table', 'C=table']\n"
        "[[benchmark]]\nid = 'b'\ncommand = '/bin/true'\n"
    )
    assert cg_bench("run", "-q", "-j", "1", "--warmup", "0", "--env", "C=typed").code == 0
    names = ("PASSED", "A", "B", "C")
    assert [[execution.variables.get(name) for name in names] for execution in replay.executed] == [
        ["from here", "default", "table", "typed"],
        ["from here", "default", "default", "typed"],
    ]


def test_jobs_of_the_configuration_hold(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    del replay
    asked: list[object] = []

    def job_count(jobs: object, total: int) -> int:
        asked.append(jobs)
        return total

    monkeypatch.setattr("cachegrind_bench.usecases.suite.job_count", job_count)
    Path("cg-bench.toml").write_text(f"jobs = 3\n{SUITE}")
    assert cg_bench("run", "-q").code == 0
    assert cg_bench("run", "-q", "-j", "5").code == 0
    assert asked == [3, 5]


def test_as_many_run_at_once_as_there_are_cpus_for_us(monkeypatch: pytest.MonkeyPatch) -> None:
    from cachegrind_bench.usecases.suite import job_count

    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 2, 5})
    assert [job_count(None, 10), job_count(None, 2), job_count(2, 10), job_count(99, 10), job_count(None, 0)] == [
        3,
        2,
        2,
        3,
        1,
    ]
