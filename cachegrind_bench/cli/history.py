"""`cg-bench history`: the stored runs of a project. This module: add, list, show, fsck; the others are beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cachegrind_bench.cli import history_exchange, history_upkeep, output, show
from cachegrind_bench.cli.options import (
    format_option,
    opened_store,
    since_option,
    size_limit_option,
    store_option,
    with_profile_option,
    working_directory,
)
from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.text import matches
from cachegrind_bench.usecases import Notices
from cachegrind_bench.usecases.comparison_inputs import resolve
from cachegrind_bench.usecases.result_files import read_result
from cachegrind_bench.usecases.stored_runs import find_run, kept_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from cachegrind_bench.model.result import Result
    from cachegrind_bench.store.record import Record

_EPILOG = """\b
A history is a set of runs that only grows. Where it is kept is said by --store, or by 'store' in the configuration:
  file:DIR                 files in a folder; file:.cg-bench is that of the nearest .cg-bench up to the top of the work tree
  git:BRANCH[@REMOTE]      a branch of its own, pushed to the remote; the work tree is left alone
  sqlite:///PATH           a database file
  postgresql://HOST/NAME   a database for many machines (extra 'sql')

\b
Examples:
  cg-bench run --save
  cg-bench history list --last 5
  cg-bench history show 1a2b3c4d
  cg-bench history sync --from git:cg-bench-data@origin --to sqlite:///history.db
"""


@click.group("history", epilog=_EPILOG)
def command() -> None:
    """Add, list, show, export, import, rename, remove and check stored runs.

    'cg-bench run --save' stores what it measures: counts, scores, keys, the commit and what is known of the machine.
    Profiles and what programs wrote are not stored, unless --with-profile asks for it.
    """


@command.command(
    "add",
    epilog="""\b
Exit code: 0 if all files are in the history now, 2 if one cannot be read or is not a result; then none was added.

\b
Examples:
  cg-bench history add result.json
  cg-bench history add shard-*.json --store git:cg-bench-data@origin
""",
)
@store_option
@with_profile_option
@size_limit_option
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def add_command(files: tuple[str, ...], **options: Any) -> None:
    """Add result FILEs ('-' is stdin), or saved baselines: all of them, or none if one cannot be read.

    What is there already stays as it is. Benchmarks that failed are added as failed, without counts.
    """
    from cachegrind_bench.model.text import counted
    from cachegrind_bench.store.checking import wrong_with
    from cachegrind_bench.store.record import run_record
    from cachegrind_bench.usecases.saving import profile_store

    if files.count("-") > 1:
        raise UsageError("only one file can be stdin", hint="save the others to files first")
    store, cwd = opened_store(options), working_directory()
    keeper = profile_store(store) if options["with_profile"] else None
    names = [resolve(name, cwd) for name in files]
    whole: list[Result] = []
    records: dict[str, Record] = {}
    for name in names:
        source = read_result(name, limit=options["max_size"])
        record = run_record(source.result)
        problem = wrong_with(record)
        if problem is not None:
            raise UsageError(f"{name} cannot be added: {problem}", hint="measure again to make a new one")
        records[record.name] = record
        if keeper is not None:
            whole.append(source.whole())
    with store:
        new = store.add(list(records.values()))
        if keeper is not None:
            for result in whole:
                keeper.keep_profile(run_record(result), result)
        there = len(records) - new
        also = f"; {there} already there" if there else ""
        output.write(f"added {counted(new, 'run')} to {store.url}{also}\n")


@command.command(
    "list",
    epilog="\b\nExamples:\n  cg-bench history list --last 5\n  cg-bench history list --since 30d --format json",
)
@click.option("--last", type=click.IntRange(0), default=20, show_default=True, metavar="N", help="Runs; 0 for all.")
@since_option
@click.option("--benchmark", "pattern", metavar="PATTERN", help="Only runs with a benchmark of this id (* and ?).")
@format_option
@store_option
def list_command(*, last: int, since: str | None, pattern: str | None, form: str, **options: Any) -> None:
    """List the runs, the newest commit first: commit, dates, benchmarks, and the key of the environment."""
    from cachegrind_bench.render import listings
    from cachegrind_bench.store.protocol import Query

    wanted: Callable[[str], bool] | None = None if pattern is None else lambda name: matches(name, pattern)
    with opened_store(options) as store:
        found = [run for run in store.snapshots(Query(since=since, wanted=wanted)) if pattern is None or run.points]
        found.reverse()
        shown = found[:last] if last else found
        text = listings.runs(shown, len(found), store.url, form, width=output.terminal_width())
        empty = not found and not store.names()
    output.write(text)
    if empty:
        output.write_error("cg-bench: 'cg-bench run --save' stores a run\n")


def _show(run: str | None, **options: Any) -> None:
    from cachegrind_bench.model.codec import ResultFile
    from cachegrind_bench.render.report import sort_name

    sort_name(options["sort"])
    with opened_store(options) as store:
        name = find_run(store, run)
        data = kept_result(store, name, Notices(write=output.write_error))
        source = ResultFile(data, name)
    view = {option: options[option] for option in ("top", "sort", "pattern", "form")}
    output.write(show.shown_text(source, name, **view))


# It takes what `show` takes, but for the file.
command.add_command(
    store_option(
        click.Command(
            "show",
            callback=_show,
            params=[
                *(item for item in show.command.params if isinstance(item, click.Option)),
                click.Argument(["run"], required=False),
            ],
            help="""Show a RUN as 'cg-bench show' does: by the beginning of its id (see 'history list') or of its commit's.

            Of several runs of a commit it is the last one; without RUN, that of the newest commit.""",
            epilog="\b\nExamples:\n  cg-bench history show\n  cg-bench history show 1a2b3c4d --format json",
        )
    )
)


@command.command(
    "fsck",
    epilog="""\b
Exit code: 0 if nothing is wrong, 2 if something is.

\b
Examples:
  cg-bench history fsck --store git:cg-bench-data
""",
)
@format_option
@store_option
def fsck_command(*, form: str, **options: Any) -> int:
    """Read everything that is stored, and tell what is wrong: unreadable, altered, misnamed or kept twice."""
    from cachegrind_bench.render import listings

    with opened_store(options) as store:
        problems, survey = store.check(), store.survey()
        told = {problem.where for problem in problems}
        problems += [problem for problem in survey.problems if problem.where not in told]
        text = listings.problems(problems, len(survey.names), store.url, form)
    output.write(text)
    return UsageError.exit_code if problems else 0


for _more in (*history_exchange.COMMANDS, *history_upkeep.COMMANDS):
    command.add_command(_more)
