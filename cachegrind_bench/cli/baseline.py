"""`cg-bench baseline`: list, show, remove and update saved baselines."""

from __future__ import annotations

from typing import Any

import click

from cachegrind_bench.cli import output, show
from cachegrind_bench.cli.help import Group
from cachegrind_bench.cli.options import format_option, size_limit_option, working_directory
from cachegrind_bench.errors import FileFormatError, MeasurementError, UsageError
from cachegrind_bench.model.result import Result
from cachegrind_bench.model.text import counted, some
from cachegrind_bench.store.baselines import Baselines
from cachegrind_bench.usecases.comparison_inputs import resolve
from cachegrind_bench.usecases.result_files import read_bytes, read_result, shown_name

_SHOWN = 10

_EPILOG = """\b
Baselines are kept in .cg-bench/baselines: in the nearest folder .cg-bench from the working directory up to the top of
its git work tree, else at that top, else in the working directory. A new .cg-bench is ignored by git.

\b
Examples:
  cg-bench run --save-baseline main -- python benchmark.py
  cg-bench baseline list
  cg-bench baseline update main result.json
"""


@click.group("baseline", cls=Group, epilog=_EPILOG)
def command() -> None:
    """List, show, remove or update saved baselines.

    A baseline is a result saved under a name. 'cg-bench run --save-baseline NAME' saves one, 'cg-bench diff NAME CANDIDATE'
    and 'cg-bench check --base NAME' compare with it.
    """


@command.command("list", epilog="\b\nExamples:\n  cg-bench baseline list --format json")
@format_option
def list_command(form: str) -> None:
    """List all baselines with their benchmarks, commit, branch and date. A damaged one is marked as damaged."""
    from cachegrind_bench.render import listings

    saved = Baselines.find(working_directory())
    held = {name: _held(saved, name) for name in saved.names()}
    output.write(listings.baselines(held, str(saved.store), form))


@command.command("show", epilog="\b\nExamples:\n  cg-bench baseline show main --top 20")
@show.options
@click.argument("name")
def show_command(name: str, **options: Any) -> None:
    """Show a baseline as 'cg-bench show' does: score, hits, events, hottest functions, seal and origin."""
    saved = Baselines.find(working_directory())
    click.get_current_context().invoke(show.command, file=_existing(saved, name), **options)


@command.command("remove", epilog="\b\nExamples:\n  cg-bench baseline remove old older")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def remove_command(names: tuple[str, ...]) -> None:
    """Remove baselines: all that are named, or none if one of them does not exist."""
    saved = Baselines.find(working_directory())
    for name in names:
        _existing(saved, name)
    for name in dict.fromkeys(names):
        saved.remove(name)
        output.write(f"removed {name}\n")


@command.command(
    "update",
    epilog="""\b
Exit code: 0 if it was updated, 2 if FILE cannot be read or benchmarks would be lost, 4 if a benchmark of FILE failed.

\b
Examples:
  cg-bench baseline update main result.json
  cg-bench run -q -o - -- ./parser data.txt | cg-bench baseline update main -
""",
)
@click.option("--force", is_flag=True, help="Drop benchmarks that the result lacks, or replace a damaged baseline.")
@size_limit_option
@click.argument("name")
@click.argument("file")
def update_command(name: str, file: str, *, force: bool, max_size: int) -> None:
    """Replace a baseline with a result, or make a new one.

    FILE is a result file, '-' for stdin, or the name of another baseline. It is refused if one of its benchmarks failed, or
    if it lacks a benchmark of the baseline. The command says what was added, replaced and dropped.
    """
    from cachegrind_bench.model.codec import ResultFile
    from cachegrind_bench.render.listings import updated

    saved = Baselines.find(working_directory())
    saved.path(name)
    source = resolve(file, working_directory())
    # Saved as they are: a newer cg-bench may have written more than we know.
    data = read_bytes(source, limit=max_size)
    opened = ResultFile(data, shown_name(source))
    opened.whole()  # a damaged profile is an error as well
    after = opened.result
    if not after.benchmarks:
        raise UsageError(f"{source} has no benchmarks")
    if failed := after.failed:
        raise MeasurementError(
            f"{source} holds {counted(len(failed), 'failed benchmark')}: {some(failed, _SHOWN)}",
            hint="the baseline is unchanged; measure again when they work",
        )
    before = _replaced(saved, name, force=force)
    lost = {item.id for item in before.benchmarks} - {item.id for item in after.benchmarks} if before else set[str]()
    if lost and not force:
        raise UsageError(
            f"{source} lacks {counted(len(lost), 'benchmark')} of the baseline {name!r}: {some(sorted(lost), _SHOWN)}",
            hint="use --force to drop them",
        )
    saved.save(name, data)
    output.write(updated(name, before, after))


def _held(saved: Baselines, name: str) -> Result | str:
    try:
        return read_result(str(saved.path(name))).result
    except UsageError as error:
        return error.message


def _existing(saved: Baselines, name: str) -> str:
    path = saved.path(name)
    if not saved.exists(name):
        raise UsageError(f"there is no baseline {name!r}", hint=saved.known())
    return str(path)


def _replaced(saved: Baselines, name: str, *, force: bool) -> Result | None:
    """Return the baseline that will be replaced; None if it is new, or damaged and not to be kept."""
    if not saved.exists(name):
        return None
    try:
        return read_result(str(saved.path(name))).result
    except FileFormatError as error:
        if force:
            return None
        raise UsageError(
            f"the baseline {name!r} is damaged: {error.message}", hint="use --force to replace it"
        ) from error
