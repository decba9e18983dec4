"""Options that several commands share, their defaults in the configuration, and the values that are made of both."""

from __future__ import annotations

import logging
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
import msgspec
from click.core import ParameterSource

from cachegrind_bench.cli.help import Command, options_group
from cachegrind_bench.errors import CgBenchError, UsageError
from cachegrind_bench.log import say_from
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Configuration, Entry
    from cachegrind_bench.model.time_model import TimeModel
    from cachegrind_bench.store.protocol import Store
    from cachegrind_bench.usecases.measurement import MeasureRequest
    from cachegrind_bench.usecases.saving import Destination
    from cachegrind_bench.vcs.revisions import Repository

Function = TypeVar("Function", bound="Callable[..., Any]")
Struct = TypeVar("Struct", bound=msgspec.Struct)

_SIZE = re.compile(r"([0-9]{1,15})\s*(?:([kmgt])(i?)b|b)?", re.ASCII | re.IGNORECASE)
_PYTEST = re.compile(r"(?:^|/)(?:pytest|py\.test)$")
# Headings of help pages that several commands have.
BENCHMARKS, COMPARED, MEASURED, REPORT = (
    "Which benchmarks",
    "What is compared",
    "How it is measured",
    "Report and result",
)
_AGO = re.compile(r"([0-9]{1,5})\s*([dw])", re.ASCII)
DEFAULT_STORE = "file:.cg-bench"
# What the steps of `ci` that compare take of it.
_JUDGING = frozenset(
    {"threshold", "threshold_ir", "threshold_allocations", "threshold_cache", "max_drop", "limit", "metric"}
)
# These add to what benchmarks say; as defaults of options they would be lost as soon as one is typed.
_ADDED = frozenset({"env"})
# A suite's benchmarks say this for themselves.
_OF_ONE_COMMAND = ("stdin", "prepare", "cleanup", "keep_out_files", "regions", "toggles")


def names_of(*options: Callable[[Any], Any]) -> list[str]:
    """Return the names of the values of these options."""
    command = click.command()(options_group(*options)(lambda: None))
    return [option.name or "" for option in command.params]


def struct_of(kind: type[Struct], options: Mapping[str, Any], **others: Any) -> Struct:
    """Return a struct whose fields are the options of the same names, as far as a command has them, and these others."""
    return kind(**{name: options[name] for name in kind.__struct_fields__ if name in options} | others)


def seconds(value: object) -> int:
    """Return the milliseconds of seconds, or of a number with a unit (ms, s, min, h)."""
    from cachegrind_bench.config.command import milliseconds

    if isinstance(value, int):
        return value
    try:
        return milliseconds(str(value))
    except UsageError as error:
        raise click.BadParameter(f"{error.message}: {error.hint}") from error


def size(value: object) -> int:
    """Return the bytes of a size, as in 500MB, 2GB, 1GiB or 1000000."""
    if isinstance(value, int):
        return value
    match = _SIZE.fullmatch(str(value).strip())
    found = 0
    if match:
        power = " kmgt".index((match[2] or " ").lower())
        found = int(match[1]) * (1024 if match[3] else 1000) ** power
    if found <= 0:
        raise click.BadParameter(f"{value!r} is not a size: write bytes, or as in 500MB, 2GB or 1GiB")
    return found


def date(value: object) -> str:
    """Return a day, a time, or how long ago (2026-01-31, 2026-01-31T12:00:00Z or 30d) as records have it: in UTC, with a Z."""
    text = str(value).strip()
    ago = _AGO.fullmatch(text)
    try:
        if ago:
            days = int(ago[1]) * (7 if ago[2] == "w" else 1)
            found = datetime.now(UTC) - timedelta(days=days)
        else:
            found = datetime.fromisoformat(text)
            found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        form = "write 2026-01-31, 2026-01-31T12:00:00Z, or 30d for 30 days ago"
        raise click.BadParameter(f"{value!r} is not a date: {form}") from error
    return found.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


class TrailingCommand(Command):
    """Takes what follows `--` for the command to measure; its own arguments and options are before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what is before `--`."""
        place = args.index("--") if "--" in args else len(args)
        ctx.meta["words"] = args[place:]
        return super().parse_args(ctx, args[:place])


def trailing_words() -> list[str]:
    """Return `--` and what follows it; nothing if it was not given."""
    words: list[str] = click.get_current_context().meta["words"]
    _refuse_measuring_pytest(words[1:])
    return words


# What is measured, and how


def _refuse_measuring_pytest(words: Sequence[str]) -> None:
    """UsageError for a pytest that measures by itself: Valgrind within Valgrind takes hours, or for ever."""
    place = next((place for place, word in enumerate(words) if _PYTEST.search(word)), len(words))
    if "--cg-bench" not in words[place:]:
        return
    rest = [word for word in words[place + 1 :] if not word.startswith("--cg-bench")]
    written = shlex.join(rest or ["tests"]).replace("\\", "\\\\").replace('"', '\\"')
    raise UsageError(
        f"this pytest measures by itself: {shlex.join(words)}",
        hint="call it without cg-bench in front, or make it a suite, for 'run', 'ab' and a history; in cg-bench.toml:\n"
        f'  [[benchmark]]\n  pytest = "{written}"\n'
        f"then: cg-bench {'ab main' if click.get_current_context().info_name == 'ab' else 'run'}",
    )


def _without_dashes(_ctx: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a command without a leading `--`."""
    found = words[1:] if words[:1] == ("--",) else words
    if parameter.required and not found:
        raise UsageError("no command was given", hint="as in: cg-bench run -- python benchmark.py")
    _refuse_measuring_pytest(found)
    return found


_command_argument = partial(click.argument, "command", nargs=-1, type=click.UNPROCESSED, callback=_without_dashes)
command_argument = _command_argument(required=True, metavar="-- COMMAND [ARG]...")
optional_command_argument = _command_argument(metavar="[-- COMMAND [ARG]...]")
valgrind_option = click.option("--valgrind", metavar="PATH", help="The Valgrind to use. [default: the one on PATH]")
_program_options = options_group(
    click.option("--env", multiple=True, metavar="NAME[=VALUE]", help="Pass a variable on, or set it. Repeatable."),
    click.option("--stdin", metavar="FILE", help="The program's standard input. [default: empty]"),
    click.option("--prepare", metavar="CMD", help="Shell command before every execution, not measured."),
    click.option("--cleanup", metavar="CMD", help="Shell command after every execution, not measured."),
    click.option(
        "--timeout", type=seconds, help="Stop what takes longer: an execution, even a warm-up, --prepare or --cleanup."
    ),
    click.option("--ignore-exit-status", is_flag=True, help="Measure the command even if it fails."),
    click.option(
        "--pin-clock",
        is_flag=True,
        help="Show the program a fixed clock that advances by 1 ms at each reading; waits take no time.",
    ),
    click.option(
        "--keep-place", is_flag=True, help="Let the program see the project at its real path, not at a constant one."
    ),
    heading="The program's surroundings",
)
caches_options = options_group(
    click.option("--I1", "i1", metavar="SIZE,ASSOC,LINE", help="First-level instruction cache. [default: 32768,8,64]"),
    click.option("--D1", "d1", metavar="SIZE,ASSOC,LINE", help="First-level data cache. [default: 32768,8,64]"),
    click.option("--LL", "ll", metavar="SIZE,ASSOC,LINE", help="Last-level cache. [default: 8388608,16,64]"),
)
_machine_options = options_group(
    click.option(
        "--model",
        metavar="MODEL",
        default="l1+5ll+30ram",
        help="Weights of the score; 'ir' counts instructions only, in half the time.",
    ),
    caches_options,
    click.option(
        "--estimate",
        is_flag=True,
        help="Estimate the time, too: a branch predictor is simulated, which takes a tenth longer.",
    ),
    valgrind_option,
    heading="The simulated machine",
)
execution_options = options_group(_program_options, _machine_options)
repetition_options = options_group(
    options_group(
        click.option("--repeat", type=click.IntRange(1, 1000), default=1, help="Number of measured executions."),
        click.option(
            "--layouts",
            type=click.IntRange(1, 64),
            default=1,
            help="Number of memory layouts to measure in, --repeat times each.",
        ),
        click.option(
            "--warmup",
            type=click.IntRange(0, 100),
            default=1,
            help="Number of executions without Valgrind before the measured ones.",
        ),
        click.option("--require-sealed", is_flag=True, help="Fail if any part of the seal is unavailable."),
        heading=MEASURED,
    ),
    execution_options,
)
id_option = click.option(
    "--id", "benchmark_id", metavar="TEXT", help="Name of the benchmark. [default: made from the command]"
)


def _quiet(_context: click.Context, _option: click.Parameter, value: bool) -> bool:  # noqa: FBT001 - as click calls it
    """Let only warnings be written."""
    if value:
        say_from(logging.WARNING)
    return value


measuring_options = options_group(
    repetition_options,
    options_group(
        id_option,
        click.option("-o", "--output", metavar="FILE", help="Write the result file here; '-' is stdout."),
        click.option(
            "-q",
            "--quiet",
            is_flag=True,
            callback=_quiet,
            help="Print no progress, no output of the program, and no report unless --format asks for one.",
        ),
        heading=REPORT,
    ),
)

# Which benchmarks of a suite

filter_options = options_group(
    click.option("-k", "expression", metavar="EXPR", help="Only ids that match, as in 'json and not slow'."),
    click.option(
        "--benchmark",
        "patterns",
        multiple=True,
        metavar="PATTERN",
        help="Only benchmarks with this id (* and ? are wildcards). Repeatable.",
    ),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only benchmarks with this tag. Repeatable."),
    heading=BENCHMARKS,
)
selection_options = options_group(
    filter_options,
    click.option("--shard", metavar="M/N", help="Only the M-th of N parts, to spread a suite over N machines."),
    heading=BENCHMARKS,
)
jobs_option = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Benchmarks to measure at the same time. [default: one per CPU]",
)
suite_options = options_group(
    selection_options,
    jobs_option,
    click.option("--fail-fast", is_flag=True, help="Stop the suite at the first benchmark that fails."),
    click.option(
        "--cached",
        is_flag=True,
        help="Skip benchmarks whose input files have not changed since their last measurement.",
    ),
    click.option("--capture-output", is_flag=True, help="Keep the programs' output in the result."),
    heading="The suite",
)

harness_option = click.option(
    "--harness", metavar="NAME", help="The command's benchmarks are those of this framework (criterion, go, ...)."
)

# What is read and written


def format_options(*forms: str, help: str = "Format of the report.") -> Callable[[Function], Function]:  # noqa: A002 - as click has it
    """Return --format with these choices, of which the first is the default."""
    return click.option("--format", "form", type=click.Choice(forms), default=forms[0], help=help)


format_option = format_options("table", "json", "markdown")
color_option = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Colour states and changes; auto: on a terminal, unless NO_COLOR is set.",
)
size_limit_option = click.option("--max-size", type=size, default="1GB", help="Refuse result files larger than this.")
store_timeout_option = click.option(
    "--store-timeout",
    type=seconds,
    help="Give up on a store that is locked or does not answer for this long. [default: 1 to 5 min]",
)
store_option = options_group(
    click.option(
        "--store",
        default=DEFAULT_STORE,
        metavar="URL",
        help="History: file:DIR, git:BRANCH[@REMOTE], sqlite:///PATH or postgresql://...",
    ),
    store_timeout_option,
)
with_profile_option = click.option(
    "--with-profile", is_flag=True, help="Keep profiles too, compressed next to the run (stores of files only)."
)
time_model_option = click.option(
    "--time-model", metavar="NAME", help="Tell times by this model of 'calibrate' (needs 'run --estimate')."
)
pattern_option = click.option(
    "--benchmark", "pattern", metavar="PATTERN", help="Only benchmarks with this id (* and ? are wildcards)."
)
since_option = click.option(
    "--since", type=date, metavar="DATE", help="Only runs measured since then: 2026-01-31, or 30d for 30 days ago."
)
history_options = options_group(
    options_group(
        store_option,
        click.option("--branch", metavar="REV", default="HEAD", help="Follow the first parents from this commit."),
        pattern_option,
        heading="Which runs",
    ),
    options_group(
        click.option("--min-step", default="0.2%", metavar="PERCENT", help="Ignore steps smaller than this."),
        click.option(
            "--creep-budget",
            default="2%",
            metavar="PERCENT",
            help="How far a level may creep up before it is reported.",
        ),
        click.option(
            "--accepted",
            metavar="FILE",
            help="File with the accepted changes. [default: cg-bench-accepted.toml at the top]",
        ),
        click.option(
            "--previous",
            metavar="FILE",
            help="The last report, as --json wrote it; findings that are not in it are new.",
        ),
        heading="What is a finding",
    ),
)


# What the configuration says instead of options: read once, when the command line is; commands ask click's context for it


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration, the variables and the working directory of the command that was called."""

    command: str
    found: Configuration | None
    error: CgBenchError | None = None  # for `ci`, which reports errors in its own way
    cwd: Path | None = None  # of a command that another one calls
    environ: Mapping[str, str] = msgspec.field(default_factory=lambda: dict(os.environ))

    def defaults(self) -> Mapping[str, Mapping[str, object]]:
        """Return the defaults of the command, by the names of its options."""
        if self.found is None:
            return {}
        found = {name: value for name, value in self.found.defaults.items() if name not in _ADDED}
        if self.command == "ci":  # whose steps measure and report by commands of their own, but for these
            judging = {name: value for name, value in found.items() if name in _JUDGING}
            return {"ci": {"compare": judging, "gitlab-comment": judging}}
        return {self.command: found}


def configured_texts(name: str) -> tuple[str, ...]:
    """Return what the configuration has for an option that can be repeated."""
    found = configured().found
    return () if found is None else tuple(cast("Sequence[str]", found.defaults.get(name, ())))


def configured_benchmarks() -> tuple[BenchmarkSpec, ...]:
    """Return the benchmarks of the configuration, which may have thresholds and limits of their own."""
    found = configured().found
    return () if found is None else found.benchmarks


def configured_entries() -> tuple[Entry, ...]:
    """Return the tables of the configuration that stand for all benchmarks of a harness."""
    found = configured().found
    return () if found is None else found.entries


def configured_store() -> tuple[str, Path] | None:
    """Return the URL of the store that the configuration names, and the folder where its path begins; None if it does not."""
    found = configured().found
    url = None if found is None else found.defaults.get("store")
    return None if found is None or url is None else (str(url), found.root)


def configured() -> Configured:
    """Return what the present command may know."""
    return click.get_current_context().find_object(Configured) or Configured(command="", found=None)


# The values that commands work with


def typed(name: str) -> bool:
    """Return whether the user gave this option of the present command, on the command line or by the environment."""
    source = click.get_current_context().get_parameter_source(name)
    return source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def working_directory() -> Path:
    """Return the working directory. UsageError if it has been removed."""
    try:
        return configured().cwd or Path.cwd()
    except FileNotFoundError:
        raise UsageError("the working directory no longer exists", hint="cd to another one") from None


def project_root() -> str:
    """Return the top of the work tree, or the working directory outside of one: files below it are shown relative to it.

    Empty where a benchmark has removed that: its result is reported all the same.
    """
    from cachegrind_bench.vcs.git import top_folder

    try:
        cwd = working_directory()
    except UsageError:
        return ""
    return str(top_folder(cwd) or cwd)


def repository() -> Repository:
    """Return the repository of the working directory, if it is in one. UsageError if that has been removed."""
    from cachegrind_bench.vcs.revisions import Repository

    return Repository(cwd=working_directory(), environ=dict(os.environ), waiting=_waiting())


def _waiting() -> Waiting:
    """Return how long to wait for stores and remotes, by option or configuration, which is said on stderr meanwhile."""
    found, name = configured().found, "store_timeout"
    value = click.get_current_context().params.get(name) or (found and found.defaults.get(name))
    return Waiting(None if value is None else seconds(value) / 1000)


def opened_store(options: Mapping[str, Any]) -> Store:
    """Return the store that `store_option` names; nothing of it is touched yet. UsageError for what is not a store URL.

    A relative path of the configuration begins where the configuration is.
    """
    return named_store(options["store"] if typed("store") else None)


def opened_destination(options: Mapping[str, Any], *, with_profile: bool = False) -> Destination:
    """Return that store as a place for what will be measured, with the command that stores it later."""
    from cachegrind_bench.usecases.saving import Destination

    store = opened_store(options)
    again = ["cg-bench", "history", "add", *(["--store", store.url] if typed("store") else [])]
    again += ["--with-profile"] * with_profile
    return Destination(store=store, cwd=working_directory(), again=tuple(again), with_profile=with_profile)


def named_store(url: str | None) -> Store:
    """Return the store at this URL, or if it is None that of the configuration, or the default."""
    from cachegrind_bench.store.open import open_store

    configured = configured_store()
    cwd = working_directory()
    if url is None:
        url, cwd = configured or (DEFAULT_STORE, cwd)
    return open_store(url, cwd=cwd, environ=dict(os.environ), waiting=_waiting())


def named_time_model(name: str | None) -> TimeModel | None:
    """Return the model of the time that `time_model_option` names. UsageError if it does not exist."""
    if name is None:
        return None
    from cachegrind_bench.store.baselines import Baselines
    from cachegrind_bench.store.time_models import read

    return read(Baselines.find(working_directory()).store, name)


def measure_request(options: Mapping[str, Any], **others: Any) -> MeasureRequest:
    """Return what `execution_options` and `measuring_options` ask for, and these `others`. UsageError for what is wrong."""
    from cachegrind_bench.hermetic.launch import PINNED_CLOCK
    from cachegrind_bench.model.metrics import CostModel
    from cachegrind_bench.model.text import printable
    from cachegrind_bench.usecases.measurement import MeasureRequest
    from cachegrind_bench.valgrind.options import Geometry

    identity, geometry = options.get("benchmark_id"), Geometry.chosen(options, "--")
    if not geometry.simulated:
        refuse_typed(("i1", "d1", "ll"), "is for simulated caches", "--model ir simulates none: leave one out")
    parsed: dict[str, Any] = {
        "cwd": working_directory(),
        "environ": configured().environ,
        "now": datetime.now(UTC),
        "id": None if identity is None else printable(identity),
        "default_env": configured_texts("env"),
        "geometry": geometry,
        "model": CostModel.parse(options["model"]),
        "timeout_ms": options["timeout"],
        "clock": PINNED_CLOCK if options["pin_clock"] else None,
    }
    return struct_of(MeasureRequest, options, **parsed, **others)


def refuse_typed(names: Iterable[str], why: str, hint: str) -> None:
    """UsageError if one of these options was given."""
    options = {item.name: item.opts[0] for item in click.get_current_context().command.params}
    for name in names:
        if name in options and typed(name):
            raise UsageError(f"{options[name]} {why}", hint=hint)


def refuse_options_of_a_suite() -> None:
    """UsageError if an option was given that only means something without a command."""
    names = names_of(suite_options)
    refuse_typed(names, "is for a suite", "leave the command out to measure the suite of the configuration")


def is_suite(options: Mapping[str, Any]) -> bool:
    """Return whether a suite is to be measured, and not one command. UsageError for options that belong to the other."""
    if options["harness"] and not options["command"]:
        raise UsageError(
            "--harness needs a command", hint="as in: cg-bench run --harness google-benchmark -- build/bench"
        )
    if options["command"] and not options["harness"]:
        refuse_options_of_a_suite()
        refuse_typed(("workers",), "is for a suite", "leave it out to measure the command here")
        return False
    refuse_typed(("benchmark_id",), "belongs to one command", "of a suite, --benchmark chooses by ids")
    refuse_typed(_OF_ONE_COMMAND, "belongs to one command", "in the configuration, write it into the benchmark's table")
    return True


def typed_words(names: Collection[str]) -> list[str]:
    """Return those of these options that the user gave, as words for `cg-bench run`."""
    context, words = click.get_current_context(), list[str]()
    for option in context.command.params:
        name = option.name or ""
        if name not in names or not typed(name):
            continue
        value, flag = context.params[name], max(option.opts, key=len)
        if isinstance(option, click.Option) and option.is_flag:
            words += [flag] * bool(value)
        else:
            unit = "ms" if option.type.name == seconds.__name__ else ""
            texts = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
            words += [word for text in texts for word in (flag, f"{text}{unit}")]
    return words
