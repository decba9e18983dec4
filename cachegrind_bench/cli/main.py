"""The entry point: finds the sub-command, and is the one place that turns exceptions into exit codes.

docs/code-map.md follows commands from here.
"""

from __future__ import annotations

import gc
import importlib
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import cache
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click
from click.shell_completion import shell_complete

from cachegrind_bench._version import __version__
from cachegrind_bench.cli.help import Group
from cachegrind_bench.cli.options import Configured
from cachegrind_bench.cli.output import flush, forget, occupy_standard_descriptors, write_error
from cachegrind_bench.errors import CgBenchError, MeasurementError, NotComparableError, UsageError
from cachegrind_bench.interruption import Cancel, is_postponed
from cachegrind_bench.interruption import interrupt as interrupt_now
from cachegrind_bench.log import LOG, heard_by, say_from
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    from cachegrind_bench.config.benchmarks import Configuration

# Each command is one module with a click command `command`; imported only when it is used, for a quick start.
# On the help page they are in this order: under each heading what is used most is first.
SECTIONS = {
    "Measure": {
        "run": "Measure a command, or the project's suite.",
        "show": "Show a result again: score, hits, hottest functions.",
        "list": "List the benchmarks of the suite.",
        "growth": "Find out how a command's cost grows with its input.",
        "verify": "Find out what makes a command's counts vary.",
        "calibrate": "Find out what events take in time on this machine.",
    },
    "Compare": {
        "diff": "Compare two results: what changed, and where.",
        "ab": "Measure two commits here and now, and compare them.",
        "check": "Measure and compare in one step, for 'git bisect run'.",
        "baseline": "List, show, remove or update saved baselines.",
        "merge": "Merge results into one, such as those of shards.",
    },
    "History": {
        "history": "Store, list, export and sync results.",
        "trend": "Report which commits changed the cost.",
        "bisect": "Narrow a finding of 'trend' down to one commit.",
        "backfill": "Measure the commits of a past, as few as needed.",
        "fleet": "Show which Dask workers can measure, and which alike.",
    },
    "Set up": {
        "init": "Write a configuration to start from.",
        "doctor": "Check that this machine can measure.",
        "completion": "Print the completion script of a shell.",
        "ci": "Run one step of a GitHub Actions job.",
    },
}
COMMANDS = {name: summary for commands in SECTIONS.values() for name, summary in commands.items()}

# Those whose options the configuration may set. Others must not fail over a mistake in it.
_CONFIGURABLE = frozenset(
    {
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
    }
)

COMPLETE = "_CG_BENCH_COMPLETE"  # set by the script that a shell was given for completing commands

_SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
_DEAF_S = 2.5  # ending a tree takes less, unless one of its processes cannot be killed

OK, USAGE, INTERNAL, INTERRUPTED = 0, 2, 70, 130

# Commands that answer to another protocol than ours. `git bisect run` takes 1 to 127 for a bad commit, except 125, which
# skips it; it stops from 128 on, as it must where every other commit would end alike.
_CODES: Mapping[str, Mapping[int, int]] = {
    "check": {USAGE: 128, NotComparableError.exit_code: 128, MeasurementError.exit_code: 125, INTERNAL: 128}
}

_EPILOG = """\b
Examples:
  cg-bench run -o main.json -- python benchmark.py
  cg-bench diff main.json pr.json
  cg-bench ab main
  cg-bench COMMAND --help

Every option can also be set in the environment: --keep-out-files is CG_BENCH_KEEP_OUT_FILES.
"""


class _Commands(Group):
    """Sub-commands by name, loaded late."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order of the help page."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of this command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"cachegrind_bench.cli.{cmd_name}").command
        return _completed(command)

    def sections(self) -> Mapping[str, Mapping[str, str]]:
        """Return the commands under their headings, without importing them."""
        return SECTIONS


def _include_dir(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - as click calls it
    """Print the folder of the header for C and C++: gcc -I"$(cg-bench --include-dir)"."""
    del parameter
    if wanted:
        click.echo(Path(__file__).resolve().parent.parent / "include")
        ctx.exit()


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
    epilog=_EPILOG,
)
@click.version_option(__version__, prog_name="cg-bench")
@click.option(
    "--include-dir",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_include_dir,
    help="Print where cg_bench.h is, for compilers, and exit.",
)
def cli() -> None:
    """Measure the cost of a program as a number that is the same on every run, however busy the machine is.

    The program runs under Valgrind's Cachegrind, sealed off from nearly everything that makes two runs differ. Its score is
    computed from the instructions it executes and the cache hits and misses of a simulated machine. Less is better.
    """


def _speak_up(context: click.Context, _option: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - as click calls it
    """Say what is done from now on, beginning with the configuration, which was read before."""
    if wanted:
        say_from(logging.DEBUG)
        configured = context.find_object(Configured)
        found = None if configured is None else configured.found
        LOG.debug("no configuration was read" if found is None else f"read {found.path}")


@cache
def _completed(command: click.Command) -> click.Command:
    """Return a copy of a command in which it and those below it have --verbose, and every option can be given by the environment.

    A copy, since what is called in process by another command (`cli.run.measured_in`) does not read the environment.
    """
    command = copy(command)
    command.params = [*map(copy, command.params)]
    if not isinstance(command, click.Group):
        text = "Say which commands are run and what is decided: for reports of bugs."
        command.params.append(
            click.Option(["--verbose"], is_flag=True, expose_value=False, callback=_speak_up, help=text)
        )
    for option in command.params:
        if isinstance(option, click.Option):
            name = min(option.opts, key=lambda name: not name.startswith("--"))  # the first long one, if any
            option.envvar = "CG_BENCH_" + name.lstrip("-").replace("-", "_").upper()
    if isinstance(command, click.Group):
        command.commands = {name: _completed(below) for name, below in command.commands.items()}
    return command


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with one of our codes, 0, 1, 2, 3, 4, 70 or 130, or one of the command's own."""
    # A profile is ten thousands of small tuples that all live: to look for garbage among them only costs start-up.
    gc.set_threshold(100_000, 20, 20)
    occupy_standard_descriptors()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored by our parent, it would hide how our children ended
    cancel = Cancel()
    received = _interruptions(cancel)
    with cancel.under():
        status = run(arguments)
    for number in _SIGNALS:  # nothing is left to tidy up, and while Python ends it would print a traceback
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if received and received[0] != signal.SIGINT:  # end as it would have without us
        os.kill(os.getpid(), received[0])
    sys.exit(status)


def _interruptions(cancel: Cancel) -> list[int]:
    """Let SIGTERM and SIGHUP interrupt as Ctrl-C does, so that --cleanup runs; return a list of those that will have.

    A second one, as an impatient user or a closing terminal sends it, must not cut short the end of the process tree.
    Python drops an exception that is raised while it tidies up an object; `cancel` reminds whoever waits for a program.
    """
    received: list[int] = []
    deaf_until = 0.0

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal deaf_until
        if time.monotonic() >= deaf_until and not is_postponed(number, frame):
            deaf_until = time.monotonic() + _DEAF_S
            received.append(number)
            cancel.set()
            interrupt_now()

    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, interrupt)
    return received


def read_configured(words: Sequence[str]) -> Configured:
    """Return what the configuration, found from the working directory upwards, says to the command that is called.

    UsageError if it is wrong.
    """
    command = next((word for word in words if not word.startswith("-")), "")
    if command == "ci" and os.environ.get("GITHUB_EVENT_NAME") == "workflow_run":
        # It may write, and what lies around may be what a pull request's job left there.
        return Configured(command=command, found=None)
    known = command in _CONFIGURABLE and not {"-h", "--help"} & set(words[:2])
    try:
        return Configured(command=command, found=_configuration(command) if known else None)
    except CgBenchError as error:
        if command != "ci":
            raise
        return Configured(command=command, found=None, error=error)


def _configuration(command: str) -> Configuration | None:
    from cachegrind_bench.config.source import find

    try:
        path = find(Path.cwd())
    except FileNotFoundError:  # reported where a working directory is needed
        return None
    if path is None:
        return None
    from cachegrind_bench.config.load import load

    try:
        return load(path, check_files=False)  # which files there are matters to the suite only
    except CgBenchError as error:
        if command == "check" and _bisects(path):  # a mistake of this commit, which others may not have
            raise MeasurementError(error.message, hint=error.hint) from error
        raise


def _bisects(file: Path) -> bool:
    from cachegrind_bench.vcs.revisions import Repository

    with suppress(MeasurementError):
        return Repository(Path.cwd(), dict(os.environ), Waiting()).bisects(file)
    return False


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; errors are reported on stderr."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with heard_by(lambda text: write_error(f"cg-bench: {text}\n"), logging.INFO):
            status = _run(words)
    except KeyboardInterrupt:  # while an error was reported
        status = INTERRUPTED
    command = next((word for word in words if not word.startswith("-")), "")  # none of our own options takes a value
    return _CODES.get(command, {}).get(status, status)


def _run(words: list[str]) -> int:
    try:
        _check_clock()
        # Not `cli.main`, which turns a broken pipe into exit code 1 and interrupts into its own words.
        if os.environ.get(COMPLETE):
            return shell_complete(cli, {}, "cg-bench", COMPLETE, os.environ[COMPLETE])
        status = _invoked(words)
        flush()
        return status if isinstance(status, int) else OK
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        _report(*error.format_message().splitlines())
        return USAGE
    except CgBenchError as error:
        advice = [line for line in (error.hint or "").splitlines() if line not in error.repeated]
        _report(f"cg-bench: error: {error.message}", *(f"  {line}" for line in advice))
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:
        _report("cg-bench: interrupted", *(f"  {line}" for line in getattr(error, "__notes__", ())))
        return INTERRUPTED
    except BrokenPipeError:
        forget(sys.stdout)  # its reader has gone (`| head`), which is not a failure
        return OK
    except (Exception, SystemExit):  # noqa: BLE001 - Python's own exit code 1 would look like a regression
        import traceback

        write_error(traceback.format_exc())
        _report("cg-bench: this is a bug in cg-bench; please report it with the lines above")
        return INTERNAL
    finally:
        write_error("")  # what progress could not write may still wait there


def _check_clock() -> None:
    """Raise UsageError where the time is one that Python cannot read: so would whatever is imported or stored."""
    try:
        time.time()
    except OverflowError:
        raise UsageError("the clock of this machine is past the year 2262", hint="set it right") from None


def _invoked(words: list[str]) -> object:
    """Run the command that is called and return what it does; click's errors become ours."""
    configured = read_configured(words)
    try:
        with cli.make_context("cg-bench", words, default_map=configured.defaults(), obj=configured) as context:
            return cli.invoke(context)
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.ClickException as error:
        from cachegrind_bench.cli.suggestions import usage_error

        raise usage_error(error) from None


def _report(*lines: str) -> None:
    """Write lines, which may hold text from outside, on stderr."""
    from cachegrind_bench.model.text import plain

    write_error("".join(f"{plain(line)}\n" for line in lines))
