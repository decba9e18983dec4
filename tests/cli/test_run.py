"""`cg-bench run`, through a runner that replays a recording: exact output and exit codes."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.cli.main import run
from cachegrind_bench.errors import CommandFailedError
from cachegrind_bench.model.codec import decode
from cachegrind_bench.vcs import commits
from cachegrind_bench.vcs.git import GitTimeoutError
from tests.unit.samples import run_without_rights

if TYPE_CHECKING:
    from cachegrind_bench.vcs.git import Git
    from tests.cli.conftest import CommandLine, ReplayRunner

ROOT = Path(__file__).resolve().parent.parent.parent
REPORT = """\
true

  score     15,731  l1+5ll+30ram
  Ir        12,207  instructions executed
  L1 hits   13,691  99.5 %
  LL hits        0  0.0 %
  RAM hits      68  0.5 %

  sealed    fully (clock kept)
  measured  1 run under Cachegrind 3.24.0 in 5 ms
"""
PHASES = (
    "cg-bench: warm-up, without Valgrind\nsaid by the program\n"
    "cg-bench: measuring under Cachegrind\nsaid by the program\n"
)


def test_the_report_goes_to_stdout_and_the_programs_output_to_stderr(
    replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    told = cg_bench("run", "--", "/bin/true")
    assert (told.code, told.err) == (0, PHASES)
    assert told.out == REPORT
    assert len(replay.executed) == 2


def test_the_double_dash_may_be_left_out(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    assert cg_bench("run", "/bin/true").out == REPORT
    assert replay.executed[0].argv == ("/bin/true",)


@pytest.mark.parametrize(
    "words", [["/bin/true", "--help"], ["--", "/bin/true", "--help"], ["/bin/true", "-q", "-o", "x"]]
)
def test_options_behind_the_command_belong_to_the_command(
    replay: ReplayRunner, cg_bench: CommandLine, words: list[str]
) -> None:
    told = cg_bench("run", *words)
    assert told.code == 0
    assert replay.executed[0].argv == tuple(word for word in words if word != "--")
    assert os.listdir() == []


def test_the_report_in_json(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    told = cg_bench("run", "--format", "json", "--id", "a", "--", "/bin/true")
    found = json.loads(told.out)
    assert (told.code, found["schema"], found["created_at"]) == (0, "cg-bench.summary/1", "2026-01-31T12:00:00Z")
    (benchmark,) = found["benchmarks"]
    assert (benchmark["id"], benchmark["runs_identical"], benchmark["status"]) == ("a", True, "ok")


def test_the_report_in_markdown(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    told = cg_bench("run", "--format", "markdown", "--repeat", "2", "--", "/bin/true")
    assert told.out.startswith("### true\n\n|  |  |  |\n| --- | --: | --- |\n| score | ")
    assert "| noise | 0 | all nine counts of 2 runs are identical |\n" in told.out


@pytest.mark.parametrize("option", ["-q", "--quiet"])
def test_quiet_means_neither_report_nor_the_programs_output(
    replay: ReplayRunner, cg_bench: CommandLine, option: str
) -> None:
    told = cg_bench("run", option, "-o", "r.json", "--", "/bin/true")
    assert (told.code, told.out, told.err) == (0, "", "")
    assert len(replay.executed) == 2
    assert decode(Path("r.json").read_bytes(), "r.json").benchmarks[0].id == "true"


def test_the_result_file_holds_what_was_reported(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    told = cg_bench("run", "-o", "r.json", "--id", "tïny", "--", "/bin/true", "x")
    assert told.out == REPORT.replace("true\n", "tïny\n", 1)
    result = decode(Path("r.json").read_bytes(), "r.json")
    (benchmark,) = result.benchmarks
    assert (benchmark.id, benchmark.command, benchmark.exit_status) == ("tïny", ("/bin/true", "x"), 0)
    assert result.created_at == "2026-01-31T12:00:00Z"
    assert os.listdir() == ["r.json"]


def test_the_result_on_stdout_leaves_the_report_to_stderr(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    told = cg_bench("run", "-o", "-", "--", "/bin/true")
    assert told.code == 0
    assert decode(told.out.encode(), "-").benchmarks[0].id == "true"
    assert told.err == PHASES + REPORT


def test_the_result_alone_on_stdout(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    told = cg_bench("run", "-q", "-o", "-", "--", "/bin/true")
    assert told.err == ""
    assert decode(told.out.encode(), "-").benchmarks[0].id == "true"


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (
            "no/r.json",
            "cg-bench: error: cannot write no/r.json: No such file or directory\n  make the directory first\n",
        ),
        ("/", "cg-bench: error: cannot write /: it is a directory\n  name a file in it\n"),
    ],
)
def test_an_output_that_cannot_be_written_is_found_out_before_measuring(
    replay: ReplayRunner, cg_bench: CommandLine, output: str, message: str
) -> None:
    told = cg_bench("run", "-o", output, "--", "/bin/true")
    assert (told.code, told.out, told.err) == (2, "", message)
    assert replay.executed == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "best"], "cg-bench: error: 'best' is not a cost model\n  write weights"),
        (["--I1", "1,2,3"], "cg-bench: error: --I1 1,2,3: the line size must be a power of two and at least 16\n"),
        (["--D1", "32k"], "cg-bench: error: --D1 '32k' is not a cache\n"),
        (["--env", "=x"], "cg-bench: error: --env '=x' does not name a variable\n"),
        (["--env", "TMPDIR=/x"], "cg-bench: error: --env TMPDIR: this variable belongs to the seal\n"),
        (["-o", "x" * 300], f"cg-bench: error: cannot write {'x' * 300}: File name too long\n"),
        (["--stdin", "."], "cg-bench: error: cannot use --stdin .: it is not a regular file\n"),
        (["--stdin", "missing"], "cg-bench: error: cannot read --stdin missing: No such file or directory\n"),
        (
            ["--keep-out-files", "/dev/null/x"],
            "cg-bench: error: cannot make the folder /dev/null/x: Not a directory\n",
        ),
        (["--timeout", "soon"], "cg-bench: error: invalid value for '--timeout': "),
        (["--timeout", "0"], "cg-bench: error: invalid value for '--timeout': "),
        (["--repeat", "0"], "cg-bench: error: invalid value for '--repeat': "),
        (["--warmup", "-1"], "cg-bench: error: invalid value for '--warmup': "),
        (["--format", "xml"], "cg-bench: error: invalid value for '--format': "),
        (["--nonsense"], "cg-bench: error: 'run' has no option --nonsense\n"),
    ],
)
def test_a_bad_option_is_reported_and_nothing_is_executed(
    replay: ReplayRunner, cg_bench: CommandLine, arguments: list[str], message: str
) -> None:
    told = cg_bench("run", *arguments, "--", "/bin/true")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith(message)
    assert "Traceback" not in told.err
    assert replay.executed == []


FORBIDDEN = """
import sys
from pathlib import Path
from cachegrind_bench.usecases.measurement import readable_input
from cachegrind_bench.store.durable import make_folder
from cachegrind_bench.errors import UsageError
begin()
try:
    make_folder(Path(sys.argv[2])) if sys.argv[1] == "--keep-out-files" else readable_input(sys.argv[2], Path("/"))
except UsageError as error:
    print(error)
"""


def test_a_folder_for_out_files_that_forbids_writing_is_found_out_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to others
        os.chmod(folder, 0o555)  # noqa: S103 - for the user without rights
        told = run_without_rights(FORBIDDEN, "--keep-out-files", folder)
    assert told == f"cannot write into the folder {folder}: Permission denied\n"


def test_an_input_in_a_folder_that_cannot_be_entered_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o700 if os.geteuid() == 0 else 0)
        told = run_without_rights(FORBIDDEN, "--stdin", f"{folder}/file")
    assert told == f"cannot read --stdin {folder}/file: Permission denied\n"


def test_a_bad_time_is_reported_with_the_form() -> None:
    import click

    from cachegrind_bench.cli.options import seconds

    for text, wanted in (
        ("90", 90_000),
        ("1.5min", 90_000),
        ("250ms", 250),
        (" 2 h ", 7_200_000),
        ("0.5s", 500),
        ("1m", 60_000),
    ):
        assert seconds(text) == wanted
    assert seconds(5) == 5
    with pytest.raises(click.BadParameter, match=r"write seconds, as in 90, or 1\.5min"):
        seconds("1 day")


@pytest.mark.parametrize("arguments", [[], ["--"], ["--repeat", "2"], ["-q", "--"]])
def test_without_a_command_and_without_a_suite_both_are_reported(
    replay: ReplayRunner, cg_bench: CommandLine, arguments: list[str]
) -> None:
    told = cg_bench("run", *arguments)
    assert (told.code, told.out) == (2, "")
    assert "there is no command to measure, and no suite is configured" in told.err
    assert "cg-bench init" in told.err
    assert replay.executed == []


def test_a_command_that_does_not_exist_is_reported(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    told = cg_bench("run", "--", "./nonesuch")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("cg-bench: error: command not found: ./nonesuch\n")
    assert replay.executed == []


def test_a_failing_command_saves_nothing_and_harms_nothing(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    Path("r.json").write_text("{earlier}")
    replay.failures = [
        None,
        CommandFailedError(
            "the command failed with exit status 3", hint="its last lines were:\n  | x\n\x1b[31mtry this", exit_status=3
        ),
    ]
    told = cg_bench("run", "-o", "r.json", "--", "/bin/true")
    assert (told.code, told.out) == (4, "")
    assert told.err.endswith("cg-bench: error: the command failed with exit status 3\n  \\x1b[31mtry this\n")
    assert Path("r.json").read_text() == "{earlier}"
    assert os.listdir() == ["r.json"]


@pytest.mark.parametrize("quiet", [False, True])
def test_the_last_words_of_a_command_are_shown_once(replay: ReplayRunner, cg_bench: CommandLine, quiet: bool) -> None:
    error = CommandFailedError("failed", hint="its last lines were:\n  | said by the program\nadvice", exit_status=3)
    replay.failures = [None, error]
    told = cg_bench("run", *["-q"] * quiet, "--", "/bin/true")
    assert told.err.count("said by the program") == 1
    assert told.err.endswith("  advice\n")


@pytest.mark.usefixtures("replay")
def test_quiet_keeps_a_format_that_was_asked_for(cg_bench: CommandLine) -> None:
    told = cg_bench("run", "-q", "--format", "json", "--", "/bin/true")
    assert (told.code, told.err) == (0, "")
    assert json.loads(told.out)["schema"] == "cg-bench.summary/1"
    assert cg_bench("run", "-q", "--", "/bin/true").out == ""


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("./prog fast data.txt", "without the quotes, it is a program and its arguments: ./prog fast data.txt"),
        ("sh -x", "without the quotes, it is a program and its arguments: sh -x"),
        ("./prog | wc", "for a shell to read it: sh -c './prog | wc'"),
    ],
)
def test_a_command_line_that_is_one_word_is_recognised(cg_bench: CommandLine, word: str, advice: str) -> None:
    Path("prog").touch()
    told = cg_bench("run", word)
    assert told.code == 2
    assert told.err == f"cg-bench: error: command not found: {word}\n  it is one word, with spaces in it; {advice}\n"


def test_a_missing_program_whose_name_has_spaces_is_only_missing(cg_bench: CommandLine) -> None:
    assert "it is one word" not in cg_bench("run", "./no such program").err


def test_options_reach_the_execution(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("in").touch()
    monkeypatch.setenv("PASSED", "1")
    told = cg_bench(
        *[
            "run",
            "--env",
            "PASSED",
            "--env",
            "SET=2",
            "--stdin",
            "in",
            "--timeout",
            "1.5",
            "--ignore-exit-status",
            "--pin-clock",
            "--model",
            "2l1+7ll+40ram",
        ],
        *["--I1", "65536,4,64", "--valgrind", "/opt/vg", "--keep-out-files", "kept", "--lines", "-o", "r.json", "--"],
        "/bin/true",
    )
    assert told.code == 0
    execution = replay.executed[0]
    assert (execution.variables["PASSED"], execution.variables["SET"]) == ("1", "2")
    assert (execution.stdin, execution.timeout_ms, execution.ignore_status) == (f"{os.getcwd()}/in", 1500, True)
    assert execution.clock is not None
    assert replay.collected[0].lines
    assert str(replay.asked["geometry"]).startswith("I1=65536,4,64 D1=32768,8,64")
    assert (replay.asked["valgrind"], replay.asked["keep"]) == ("/opt/vg", Path("kept"))
    result = decode(Path("r.json").read_bytes(), "r.json")
    assert result.benchmarks[0].score is not None
    assert result.benchmarks[0].score.model == "2l1+7ll+40ram"
    assert sorted(result.env.info) == ["env.PASSED", "env.SET"]
    assert "1" not in result.env.info.values()


def test_bytes_that_are_no_text_are_stored_and_shown_escaped(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    told = cg_bench("run", "-o", "r.json", "--env", "\udcff=\udcfe", "--id", "\udcfd", "--", "/bin/true", "\udcfc")
    assert told.code == 0
    assert told.out.startswith("\\xfd\n")
    result = decode(Path("r.json").read_bytes(), "r.json")
    assert (result.benchmarks[0].command, list(result.env.info)) == (("/bin/true", "\\xfc"), ["env.\\xff"])


# The environment


@pytest.mark.parametrize(
    ("variable", "wanted"),
    [
        ("TIMEOUT=2", {"timeout_ms": 2000}),
        ("IGNORE_EXIT_STATUS=1", {"ignore_status": True}),
        ("IGNORE_EXIT_STATUS=0", {"ignore_status": False}),
        ("IGNORE_EXIT_STATUS=", {"ignore_status": False}),
        ("STDIN=/dev/null", {"stdin": "/dev/null"}),
    ],
)
def test_options_of_the_execution_can_be_given_by_the_environment(
    replay: ReplayRunner,
    cg_bench: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    wanted: dict[str, object],
) -> None:
    name, _, value = variable.partition("=")
    monkeypatch.setenv(f"CG_BENCH_{name}", value)
    assert cg_bench("run", "--", "/bin/true").code == 0
    for attribute, expected in wanted.items():
        assert getattr(replay.executed[0], attribute) == expected


def test_every_other_option_can_be_given_by_the_environment(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "ID": "mine",
        "OUTPUT": "r.json",
        "REPEAT": "3",
        "WARMUP": "2",
        "I1": "65536,4,64",
        "D1": "65536,4,64",
        "LL": "65536,4,64",
        "MODEL": "2l1+7ll+40ram",
        "ENV": "A=1 B=2",
        "PREPARE": "echo x >> trace",
        "CLEANUP": "echo y >> trace",
        "PIN_CLOCK": "true",
        "VALGRIND": "/opt/vg",
        "REQUIRE_SEALED": "1",
        "KEEP_OUT_FILES": "kept",
        "QUIET": "1",
    }.items():
        monkeypatch.setenv(f"CG_BENCH_{name}", value)
    told = cg_bench("run", "--", "/bin/true")
    assert (told.code, told.out, told.err) == (0, "", "")
    assert len(replay.executed) == 5
    assert replay.executed[0].clock is not None
    assert (replay.executed[0].variables["A"], replay.executed[0].variables["B"]) == ("1", "2")
    assert str(replay.asked["geometry"]) == "I1=65536,4,64 D1=65536,4,64 LL=65536,4,64"
    assert (replay.asked["valgrind"], replay.asked["keep"]) == ("/opt/vg", Path("kept"))
    assert Path("trace").read_text().split() == ["x", "y"] * 5
    (benchmark,) = decode(Path("r.json").read_bytes(), "r.json").benchmarks
    assert benchmark.id == "mine"


def test_options_beat_the_environment(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CG_BENCH_REPEAT", "5")
    monkeypatch.setenv("CG_BENCH_FORMAT", "json")
    told = cg_bench("run", "--repeat", "1", "--format", "table", "--", "/bin/true")
    assert told.out == REPORT
    assert len(replay.executed) == 2


def test_a_bad_value_in_the_environment_is_reported_as_that_options(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CG_BENCH_REPEAT", "often")
    told = cg_bench("run", "--", "/bin/true")
    assert told.code == 2
    assert "'--repeat'" in told.err
    assert replay.executed == []


@pytest.mark.parametrize("before", ["[[benchmark]]\n", "int main;\n", "\x00"])
def test_a_file_that_is_not_a_result_is_not_overwritten(
    replay: ReplayRunner, cg_bench: CommandLine, before: str
) -> None:
    Path("r.json").write_text(before)
    told = cg_bench("run", "-o", "r.json", "--", "/bin/true")
    assert told.code == 2
    assert "r.json exists, and is not a result file\n  name another file, or remove it first\n" in told.err
    assert Path("r.json").read_text() == before
    assert replay.executed == []


@pytest.mark.parametrize("before", ["", "{}", " {\n"])
def test_a_file_that_may_be_a_result_is(replay: ReplayRunner, cg_bench: CommandLine, before: str) -> None:
    del replay
    Path("r.json").write_text(before)
    assert cg_bench("run", "-q", "-o", "r.json", "--", "/bin/true").code == 0
    assert len(Path("r.json").read_text()) > 100


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--", "pytest", "t", "--cg-bench"],
        ["run", "python", "-m", "pytest", "--cg-bench", "--cg-bench-output=x", "t"],
        ["ab", "main", "--", "/a/b/py.test", "t", "--cg-bench"],
        ["verify", "--", "uv", "run", "pytest", "--cg-bench", "t"],
        ["check", "--base", "x", "--", "pytest", "t", "--cg-bench"],
    ],
)
def test_a_pytest_that_measures_by_itself_is_answered_at_once_with_what_to_write(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == (128 if words[0] == "check" else 2)
    said = capsys.readouterr().err
    assert "this pytest measures by itself: " in said
    assert '[[benchmark]]\n    pytest = "t"\n' in said
    assert said.endswith(f"then: cg-bench {'ab main' if words[0] == 'ab' else 'run'}\n")


def test_what_of_git_is_waited_for_and_not_known_stays_on_a_terminal(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    del replay

    def hanging(git: Git) -> None:
        git.waiting.look("git status", 2.5)
        raise GitTimeoutError("git status took more than 60 s")

    monkeypatch.setattr(commits, "commit_info", hanging)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    told = cg_bench("run", "--", "/bin/true")
    assert told.code == 0
    assert "cg-bench: waiting for git status, 2 s\n" in told.err
    assert "cg-bench: the commit is not known: git status took more than 60 s\n" in told.err


def test_a_limit_of_what_is_not_simulated_is_refused_before_anything_is_measured(
    replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    Path("cg-bench.toml").write_text('model = "ir"\nlimit = "RAM=5"\n')
    told = cg_bench("run", "--", "/bin/true")
    assert (told.code, replay.executed) == (2, [])
    assert "the limit of RAM for '*' needs simulated caches" in told.err


def test_caches_are_not_chosen_where_none_are_simulated(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    told = cg_bench("run", "--model", "ir", "--LL", "65536,4,64", "--", "/bin/true")
    assert (told.code, told.out) == (2, "")
    assert "--model ir simulates none" in told.err
