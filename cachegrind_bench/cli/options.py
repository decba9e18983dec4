"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from cachegrind_bench.cli.defaults import configured_variables
from cachegrind_bench.config.command import milliseconds
from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.valgrind.options import Geometry

if TYPE_CHECKING:
    _Milliseconds = click.ParamType[int]
else:
    _Milliseconds = click.ParamType  # generic since click 8.4 only

Function = TypeVar("Function", bound="Callable[..., Any]")


class Duration(_Milliseconds):
    """Seconds, or a number with a unit (ms, s, min, h); the value is in milliseconds."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return milliseconds."""
        if isinstance(value, int):
            return value
        try:
            return milliseconds(str(value))
        except UsageError as error:
            self.fail(f"{error.message}: {error.hint}", param, ctx)


def format_option(function: Function) -> Function:
    """Take the format of the report."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(["table", "json", "markdown"]),
        default="table",
        show_default=True,
        help="Report's format.",
    )(function)


def command_argument(function: Function) -> Function:
    """Take the measured command: everything from the first word that is no option of ours."""
    return click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True, metavar="-- COMMAND [ARG]...")(
        function
    )


def execution_options(function: Function) -> Function:
    """Take the options that say how a command is executed."""
    for option in reversed(
        (
            click.option(
                "--I1", "i1", metavar="SIZE,ASSOC,LINE", help="First-level instruction cache. [default: 32768,8,64]"
            ),
            click.option("--D1", "d1", metavar="SIZE,ASSOC,LINE", help="First-level data cache. [default: 32768,8,64]"),
            click.option("--LL", "ll", metavar="SIZE,ASSOC,LINE", help="Last-level cache. [default: 8388608,16,64]"),
            click.option(
                "--model",
                default="l1+5ll+30ram",
                show_default=True,
                help="Weights of the score; 'ir' is plain instructions.",
            ),
            click.option(
                "--env", "env", multiple=True, metavar="NAME[=VALUE]", help="Pass a variable on, or set it. Repeatable."
            ),
            click.option("--stdin", "stdin", metavar="FILE", help="The program's standard input. [default: empty]"),
            click.option("--prepare", metavar="CMD", help="Shell command before every execution, not measured."),
            click.option("--cleanup", metavar="CMD", help="Shell command after every execution, not measured."),
            click.option(
                "--timeout", type=Duration(), help="End an execution that takes longer (each one, warm-up too)."
            ),
            click.option("--ignore-exit-status", is_flag=True, help="Measure the command even if it fails."),
            click.option(
                "--pin-clock",
                is_flag=True,
                help="Answer clock readings, each 1 ms after the one before; waits take no time.",
            ),
            click.option(
                "--keep-place",
                is_flag=True,
                help="Let the program see its project where it is, not at a constant path.",
            ),
            click.option("--valgrind", metavar="PATH", help="The Valgrind to use. [default: the one on PATH]"),
        )
    ):
        function = option(function)
    return function


def require_command(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command without a leading `--`."""
    words = command[1:] if command[:1] == ("--",) else command
    if not words:
        raise UsageError("no command was given", hint="as in: cg-bench run -- python benchmark.py")
    return words


def typed(name: str) -> bool:
    """Tell whether the user gave this option of the present command, on the command line or by the environment."""
    source = click.get_current_context().get_parameter_source(name)
    return source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def passed_variables(options: Mapping[str, Any], own: Sequence[str] = ()) -> tuple[str, ...]:
    """Return what is passed on to a program: what the configuration says, what is its `own`, and what was typed."""
    return (*configured_variables(), *own, *options["env"])


def execution_plan(options: Mapping[str, Any], cwd: Path | None = None, passed: Sequence[str] | None = None) -> Plan:
    """Return what `command_argument` and `execution_options` ask for, in `cwd` if given; the environment is read here.

    `passed` are the variables that go on to the program, as --env takes them. [default: `passed_variables`]
    """
    from cachegrind_bench.hermetic.environment import Request
    from cachegrind_bench.hermetic.launch import PINNED_CLOCK
    from cachegrind_bench.measure.command import resolve
    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.model.score import CostModel

    environ, cwd = dict(os.environ), cwd or working_directory()
    return Plan(
        command=resolve(require_command(options["command"]), environ, cwd),
        cwd=cwd,
        environ=environ,
        request=Request.parse(passed_variables(options) if passed is None else passed),
        model=CostModel.parse(options["model"]),
        timeout_ms=options["timeout"],
        stdin=_input(options["stdin"], cwd),
        prepare=options["prepare"],
        cleanup=options["cleanup"],
        ignore_exit_status=options["ignore_exit_status"],
        clock=PINNED_CLOCK if options["pin_clock"] else None,
        keep_place=options["keep_place"],
    )


def geometry(options: Mapping[str, Any]) -> Geometry:
    """Return the simulated caches that `execution_options` ask for."""
    from cachegrind_bench.valgrind.options import Cache, Geometry

    given = {
        name: Cache.parse(options[key], f"--{name}")
        for name, key in (("I1", "i1"), ("D1", "d1"), ("LL", "ll"))
        if options[key] is not None
    }
    return Geometry(**given)


def working_directory() -> Path:
    """Return the working directory. UsageError if it has been removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("the working directory no longer exists", hint="cd to another one") from None


def _input(name: str | None, cwd: Path) -> Path | None:
    if name is None:
        return None
    path = cwd / name
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISCHR(mode):
            raise UsageError(
                f"cannot use --stdin {name}: it is not a regular file",
                hint="every execution reads it anew, which a pipe does not allow; save it to a file first",
            )
        with path.open("rb"):
            return path
    except OSError as error:
        raise UsageError(f"cannot read --stdin {name}: {error.strerror}") from error
