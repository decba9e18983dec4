"""The entry point: exit codes, help pages, and output that nobody takes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
import pytest

from cachegrind_bench import errors
from cachegrind_bench._version import __version__
from cachegrind_bench.cli import main
from cachegrind_bench.cli.main import COMMANDS
from cachegrind_bench.cli.output import forget
from cachegrind_bench.errors import CgBenchError, FileFormatError, UsageError
from cachegrind_bench.model.codec import encode
from cachegrind_bench.render.progress import Display
from tests.unit.samples import benchmark, result

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine

ROOT = Path(__file__).resolve().parent.parent.parent
ARGUMENTS = {
    "run": ["--", "/bin/true"],
    "list": [],
    "init": [],
    "show": ["r.json"],
    "diff": ["r.json", "r.json"],
    "merge": ["r.json", "-o", "all.json"],
    "ab": ["main"],
    "trend": [],
    "bisect": ["x"],
    "backfill": ["HEAD"],
    "fleet": ["--workers", "tcp://127.0.0.1:1"],
    "check": ["--base", "r.json", "--", "/bin/true"],
    "baseline": ["update", "main", "r.json"],
    "history": ["add", "r.json"],
    "verify": ["--", "/bin/true"],
    "calibrate": ["laptop"],
    "growth": ["--sizes", "1..8x2", "--", "/bin/true", "{size}"],
    "doctor": [],
    "ci": ["plan"],
    "completion": ["fish"],
}
BUG = {"check": 128}  # 70 for all others
CODES = {"UsageError": 2, "NotComparableError": 3, "MeasurementError": 4, "CgBenchError": 70}


def command_of(name: str) -> click.Command:
    found = main.cli.get_command(click.Context(main.cli), name)
    assert found is not None
    return found


def raise_inside(monkeypatch: pytest.MonkeyPatch, name: str, error: BaseException) -> None:
    """Have this command raise, in place of everything it does."""

    def failing(**_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(command_of(name), "callback", failing)


def subclasses(kind: type[CgBenchError]) -> list[type[CgBenchError]]:
    return [kind, *(inner for sub in kind.__subclasses__() for inner in subclasses(sub))]


# Exit codes


def test_every_command_has_arguments_to_be_tested_with() -> None:
    assert set(ARGUMENTS) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    "error", [RuntimeError("boom"), RecursionError(), MemoryError(), AssertionError(), KeyError("x")], ids=repr
)
def test_a_bug_inside_a_command_is_exit_code_70_and_never_1(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, name: str, error: Exception
) -> None:
    raise_inside(monkeypatch, name, error)
    told = cg_bench(name, *ARGUMENTS[name])
    assert (told.code, told.out) == (BUG.get(name, 70), "")
    assert told.err.startswith("Traceback (most recent call last):\n")
    assert type(error).__name__ in told.err
    assert told.err.endswith("cg-bench: this is a bug in cg-bench; please report it with the lines above\n")


# And in the depth of each: the function it calls first.
DEPTHS = {
    "run": "cachegrind_bench.measure.session.valgrind_setup",
    "list": "cachegrind_bench.config.source.folders_up",
    "init": "cachegrind_bench.config.source.folders_up",
    "show": "cachegrind_bench.model.codec.ResultFile",
    "diff": "cachegrind_bench.model.codec.ResultFile",
    "merge": "cachegrind_bench.model.codec.ResultFile",
    "ab": "cachegrind_bench.vcs.git.Git.run",
    "trend": "cachegrind_bench.usecases.trend.series_set",
    "bisect": "cachegrind_bench.usecases.trend.series_set",
    "backfill": "cachegrind_bench.vcs.git.Git.run",
    "fleet": "cachegrind_bench.cli.fleet.measure_request",
    "check": "cachegrind_bench.model.codec.ResultFile",
    "baseline": "cachegrind_bench.model.codec.ResultFile",
    "history": "cachegrind_bench.model.codec.ResultFile",
    "verify": "cachegrind_bench.measure.session.valgrind_setup",
    "calibrate": "cachegrind_bench.usecases.calibration.least_squares",
    "growth": "cachegrind_bench.measure.session.valgrind_setup",
    "doctor": "cachegrind_bench.measure.doctor.examine",
    "ci": "cachegrind_bench.usecases.ci.job.read_event",
    "completion": "click.shell_completion.ShellComplete.source",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_bug_deep_below_a_command_is_exit_code_70_too(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def failing(*_: object, **__: object) -> NoReturn:
        raise ZeroDivisionError("deep down")

    Path("r.json").write_bytes(b"{}")
    monkeypatch.setattr(DEPTHS[name], failing)
    told = cg_bench(name, *ARGUMENTS[name])
    assert (told.code, told.out) == (BUG.get(name, 70), "")
    assert "ZeroDivisionError: deep down" in told.err


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()], ids=repr)
def test_an_interrupt_is_exit_code_130(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, name: str, error: BaseException
) -> None:
    raise_inside(monkeypatch, name, error)
    told = cg_bench(name, *ARGUMENTS[name])
    assert (told.code, told.out) == (130, "")
    assert told.err.endswith("cg-bench: interrupted\n")


# A library that is interrupted while it is imported, and cg-bench interrupted while Python ends.
INTERRUPTED = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(0.1)"
AT_THE_END = "import atexit, os; atexit.register(os.kill, os.getpid(), 2); import cachegrind_bench.__main__ as start; start.main()"


@pytest.mark.parametrize(
    "start", [("-m", "cachegrind_bench"), ("-c", "from cachegrind_bench.__main__ import main; main()")]
)
def test_an_interrupt_at_the_start_ends_without_a_traceback_and_never_with_code_1(
    tmp_path: Path, start: tuple[str, str]
) -> None:
    (tmp_path / "click.py").write_text(INTERRUPTED)
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run([sys.executable, *start, "list"], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


def test_an_interrupt_at_the_end_leaves_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", AT_THE_END, "--version"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


def test_the_command_begins_where_an_interrupt_is_seen_to() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"cg-bench": "cachegrind_bench.__main__:main"}


@pytest.mark.parametrize("kind", subclasses(CgBenchError), ids=lambda kind: kind.__name__)
def test_every_expected_failure_has_its_code_and_no_traceback(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, kind: type[CgBenchError]
) -> None:
    error = (
        FileFormatError("odd", path="f", line=3) if kind is FileFormatError else kind("odd \x1b[31m", hint="try\nthis")
    )
    raise_inside(monkeypatch, "run", error)
    told = cg_bench("run", "x")
    (code,) = {
        CODES[parent.__name__] for parent in kind.__mro__ if parent.__name__ in CODES and parent is not CgBenchError
    } or {70}
    assert (told.code, told.out) == (code, "")
    if kind is FileFormatError:
        assert told.err == "cg-bench: error: f:3: odd\n"
    else:
        assert told.err == "cg-bench: error: odd \\x1b[31m\n  try\n  this\n"


def test_all_classes_of_errors_are_covered() -> None:
    named = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, CgBenchError)}
    assert named <= set(subclasses(CgBenchError))


@pytest.mark.parametrize(("status", "code"), [(None, 0), (0, 0), (1, 1), (3, 3)])
def test_a_command_can_return_its_code(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, status: int | None, code: int
) -> None:
    monkeypatch.setattr(command_of("doctor"), "callback", lambda **_: status)
    assert cg_bench("doctor").code == code


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["--nonsense"], ["\x1b[31m"], ["run", "--\x1b[31m"], ["show"], ["-o"]]
)
def test_bad_usage_is_exit_code_2(cg_bench: CommandLine, arguments: list[str]) -> None:
    told = cg_bench(*arguments)
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("cg-bench: error: ")
    assert "\x1b" not in told.err


def test_main_exits_with_the_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["cg-bench", "nonsense"])
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with pytest.raises(SystemExit) as caught:
            main.main()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert caught.value.code == 2
    assert "there is no command 'nonsense'" in capsys.readouterr().err


# Help


def test_help_lists_all_commands_and_reports_of_the_environment(cg_bench: CommandLine) -> None:
    told = cg_bench("--help")
    assert (told.code, told.err) == (0, "")
    for name, summary in COMMANDS.items():
        assert f"  {name} " in told.out
        assert summary in told.out
    assert "CG_BENCH_KEEP_OUT_FILES" in told.out


def test_without_arguments_help_is_shown_as_bad_usage(cg_bench: CommandLine) -> None:
    told = cg_bench()
    assert told.code == 2
    assert "\nMeasure:\n" in told.out + told.err


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_explains_itself_with_an_example(cg_bench: CommandLine, name: str, option: str) -> None:
    told = cg_bench(name, option)
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith(f"Usage: cg-bench {name}")
    assert re.search(rf"\n  .*\bcg-bench {name}", told.out)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help_and_a_variable_of_its_plain_name(name: str) -> None:
    found = command_of(name)
    below = found.commands.values() if isinstance(found, click.Group) else [found]
    options = [option for command in below for option in command.params if isinstance(option, click.Option)]
    assert options or name == "completion"
    for option in options:
        assert option.help, option.name
        long = min(option.opts, key=lambda name: not name.startswith("--")).lstrip("-")
        assert option.envvar == f"CG_BENCH_{long.upper().replace('-', '_')}"


def test_the_version_is_reported(cg_bench: CommandLine) -> None:
    assert cg_bench("--version").out == f"cg-bench, version {__version__}\n"


def test_a_shell_is_given_its_completion(cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_CG_BENCH_COMPLETE", "zsh_source")
    told = cg_bench()
    assert told.code == 0
    assert told.out.startswith("#compdef cg-bench")
    monkeypatch.setenv("_CG_BENCH_COMPLETE", "zsh_complete")
    monkeypatch.setenv("COMP_WORDS", "cg-bench sh")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert "show\n" in cg_bench().out


# Output that nobody takes


def show(
    redirection: str, *, environ: dict[str, str] | None = None, file: str = "r.json"
) -> subprocess.CompletedProcess[bytes]:
    """Run `cg-bench show` in a shell, and tell its own exit status on descriptor 9."""
    Path("r.json").write_bytes(encode(result(*(benchmark(id=f"b{number} é") for number in range(300)))))
    line = f'{{ "$0" -m cachegrind_bench show --top 10 {file}; echo "code $?" >&9; }} {redirection}'
    return subprocess.run(
        ["bash", "-c", f"exec 9>codes; {line}", sys.executable],
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], **(environ or {})},
        capture_output=True,
        check=False,
    )


def code() -> int:
    return int(Path("codes").read_text().split()[-1])


def test_a_reader_who_leaves_early_is_not_a_failure() -> None:
    done = show("| head -n 1")
    assert (code(), done.stdout, done.stderr) == (0, "b0 é\n".encode(), b"")


@pytest.mark.parametrize("file", ["r.json", "--help"])
def test_a_full_disk_under_stdout_is_reported(file: str) -> None:
    done = show("> /dev/full", file=file)
    assert code() == 2
    assert done.stderr.decode().startswith("cg-bench: error: cannot write to stdout: No space left on device\n")
    assert b"Traceback" not in done.stderr


def test_a_closed_stdout_is_reported() -> None:
    done = show(">&-")
    assert code() == 2
    assert done.stderr.decode().startswith("cg-bench: error: cannot write to stdout: it is closed\n")


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", "2> >(exit 0)"])
def test_errors_that_nobody_reads_keep_their_code(redirection: str) -> None:
    show(redirection, file="missing.json")
    assert code() == 2


def test_progress_on_a_closed_stderr_is_shown_to_nobody() -> None:
    with Display(None) as display:
        display.phase("x")
        display.write(b"y")


def test_an_output_that_lacks_a_letter_gets_it_escaped() -> None:
    done = show("", environ={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert (code(), done.stderr) == (0, b"")
    assert done.stdout.startswith(b"b0 \\xe9\n")


def test_a_reader_who_leaves_is_not_a_failure_in_this_process_either(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    raise_inside(monkeypatch, "show", BrokenPipeError())
    told = cg_bench("show", "x")
    assert (told.code, told.out, told.err) == (0, "", "")


def test_success_that_nobody_hears_of_stays_success() -> None:
    Path("r.json").write_bytes(encode(result()))
    code = "import sys; from cachegrind_bench.cli import main; sys.stderr.write('x'); main.main(['show', 'r.json'])"
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=full,
            check=False,
        )
    assert done.returncode == 0
    assert done.stdout.startswith(b"sieve\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_an_exit_from_somewhere_below_is_never_code_1(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    raise_inside(monkeypatch, name, SystemExit(1))
    assert cg_bench(name, *ARGUMENTS[name]).code == BUG.get(name, 70)


def test_a_stdout_without_a_descriptor_is_forgotten_without_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    forget(sys.stdout)


def test_writing_to_a_closed_stdout_is_bad_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    from cachegrind_bench.cli import output

    monkeypatch.setattr(sys, "stdout", None)
    output.flush()
    with pytest.raises(UsageError, match="it is closed"):
        output.write("x")


def test_a_clock_that_python_cannot_read_is_an_error_of_one_line(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late() -> NoReturn:
        raise OverflowError("timestamp too large")

    monkeypatch.setattr("cachegrind_bench.cli.main.time.time", late)
    told = cg_bench("trend")
    assert (told.code, told.err) == (
        2,
        "cg-bench: error: the clock of this machine is past the year 2262\n  set it right\n",
    )


def test_an_interrupt_while_an_error_is_reported_is_no_traceback(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cachegrind_bench.cli.main._report", interrupted)
    told = cg_bench("nonsense")
    assert (told.code, told.err) == (130, "")
