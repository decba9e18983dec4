"""`cg-bench history`: the stored runs of a project."""

from __future__ import annotations

from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Any

import click

from cachegrind_bench.cli import output, show
from cachegrind_bench.cli.help import Group
from cachegrind_bench.cli.options import (
    date,
    format_option,
    named_store,
    opened_store,
    pattern_option,
    repository,
    since_option,
    size_limit_option,
    store_option,
    store_timeout_option,
    struct_of,
    with_profile_option,
    working_directory,
)
from cachegrind_bench.errors import UsageError
from cachegrind_bench.log import LOG
from cachegrind_bench.model.codec import ResultFile
from cachegrind_bench.model.text import printable
from cachegrind_bench.render import listings
from cachegrind_bench.store.checking import Inspection
from cachegrind_bench.store.durable import check_writable, write_atomic
from cachegrind_bench.store.protocol import Store
from cachegrind_bench.usecases import history
from cachegrind_bench.usecases.comparison_inputs import resolve_all
from cachegrind_bench.usecases.result_files import check_outputs
from cachegrind_bench.usecases.stored_runs import find_run, kept_result, runs_of, subjects_of, warn_of_damage

_FORMATS = "csv", "jsonl", "bmf", "github-action-benchmark", "openmetrics", "otava-csv"
_BATCH = 200

_EPILOG = """\b
A history is a set of runs that only grows. --store, or 'store' in the configuration, says where it is kept:
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


@click.group("history", cls=Group, epilog=_EPILOG)
def command() -> None:
    """Add, list, show, export, import, rename, remove and check stored runs.

    'cg-bench run --save' stores what it measures: counts, scores, keys, the commit and facts about the machine.
    Profiles and programs' output are not stored, unless --with-profile asks for it.
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

    Runs that are already stored stay as they are. Benchmarks that failed are added as failed, without counts.
    """
    names = resolve_all(files, working_directory())
    store = opened_store(options)
    if options["with_profile"]:
        store.check_profiles()
    output.write(history.add(store, names, limit=options["max_size"], with_profile=options["with_profile"]))


@command.command(
    "list",
    epilog="""\b
Exit code: 0, or 2 if some of the history cannot be read, which is left out with a warning.

\b
Examples:
  cg-bench history list --last 5
  cg-bench history list --since 30d --format json
""",
)
@click.option("--last", type=click.IntRange(0), default=20, metavar="N", help="Number of runs to list; 0 for all.")
@since_option
@click.option("--benchmark", "pattern", metavar="PATTERN", help="Only runs with a benchmark of this id (* and ?).")
@format_option
@store_option
def list_command(*, last: int, since: str | None, pattern: str | None, form: str, **options: Any) -> int:
    """List the runs, the newest commit first: commit and its subject, dates, benchmarks, and the key of the environment."""
    damage = Inspection()
    with opened_store(options) as store:
        with _watched(store):
            found = [*runs_of(store, since, pattern, damage.report)][::-1]
        shown = found[:last] if last else found
        subjects = {} if form == "json" else subjects_of(shown, repository())
        text = listings.runs(shown, len(found), store.url, form, width=output.terminal_width(), subjects=subjects)
        problems = damage.result()
        empty = not found and not problems and not store.names()
    output.write(text)
    warn_of_damage(problems)
    if empty:
        LOG.info("'cg-bench run --save' stores a run")
    return UsageError.exit_code if problems else 0


def _watched(store: Store) -> AbstractContextManager[None]:
    """Say in a line that records are read, where that takes long."""
    return output.watched(f"the records of {store.url}")


@command.command(
    "show", epilog="\b\nExamples:\n  cg-bench history show\n  cg-bench history show 1a2b3c4d --format json"
)
@show.options
@store_option
@click.argument("run", required=False)
def show_command(run: str | None, **options: Any) -> None:
    """Show a RUN as 'cg-bench show' does: by the beginning of its id (see 'history list') or of its commit's id.

    If a commit has several runs, the last one is shown; without RUN, that of the newest commit.
    """
    check_outputs(show.checked_files(options))
    with opened_store(options) as store:
        name = find_run(store, run)
        source = ResultFile(kept_result(store, name), name)
    show.write_result(source, name, options)


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
    """Read everything that is stored, and report what is wrong: unreadable, altered, misnamed or kept twice."""
    with opened_store(options) as store, _watched(store):
        problems, survey = store.check(), store.survey()
        known = {problem.where for problem in problems}
        problems += [problem for problem in survey.problems if problem.where not in known]
        text = listings.problems(problems, len(survey.names), store.url, form)
    output.write(text)
    return UsageError.exit_code if problems else 0


@command.command(
    "export",
    epilog="""\b
Formats, and what they carry:
  jsonl                    everything, one line for each record; 'import' makes the same history of it
  csv                      a row for each benchmark of each run: commit, keys, status, counts, score
  github-action-benchmark  one run's scores, counts and commit, for its tool customSmallerIsBetter
  bmf                      one run's scores and counts, for 'bencher run --adapter json'
  openmetrics              scores and counts by the times of commits, for Prometheus
  otava-csv                scores and Ir, one row for each run, for Apache Otava

\b
Examples:
  cg-bench history export --format csv -o history.csv
  cg-bench history export --format jsonl | gzip > history.jsonl.gz
  cg-bench history export --format github-action-benchmark --run 1a2b3c4d -o output.json
""",
)
@click.option("--format", "form", type=click.Choice(_FORMATS), required=True, help="Format to write.")
@click.option(
    "-o", "--output", "target", default="-", show_default=False, metavar="FILE", help="File to write. [default: stdout]"
)
@since_option
@pattern_option
@click.option(
    "--run",
    metavar="RUN",
    help="The run to export, for formats that hold only one. [default: that of the newest commit]",
)
@store_option
def export_command(*, target: str, **options: Any) -> None:
    """Write the history in another tool's format, or as jsonl.

    Only jsonl keeps everything.
    """
    request = struct_of(history.ExportRequest, options)
    request.check()
    if target != "-":
        check_writable(Path(target))
    with opened_store(options) as store:
        pieces = history.export(store, request)
        if target != "-":
            with _watched(store):
                write_atomic(Path(target), pieces, in_place=True)
            return
        for chunk in iter(lambda: b"".join(islice(pieces, _BATCH)), b""):
            output.write(chunk)


@command.command(
    "import",
    epilog="""\b
What can be imported:
  jsonl                    everything, with the same ids: the way to move a history
  csv                      as it was exported; columns in any order
  github-action-benchmark  what 'export' wrote for it, also from the page's data.js; entries of other tools are skipped

Runs from csv and github-action-benchmark lack what these do not carry. Their keys say where they come from, so that they
compare with each other, but never with runs that were measured. A run that is already in the store is not imported again.

\b
Examples:
  cg-bench history import history.jsonl
  gunzip < history.jsonl.gz | cg-bench history import - --store sqlite:///history.db
""",
)
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), help="Format of FILE. [default: detected from its content]"
)
@store_option
@size_limit_option
@click.argument("file")
def import_command(file: str, *, form: str | None, max_size: int, **options: Any) -> None:
    """Add the runs of a FILE ('-' is stdin) that 'history export' wrote: all of them, or none if one is damaged."""
    output.write(history.import_file(opened_store(options), file, form, limit=max_size))


@command.command(
    "prune",
    epilog="""\b
Examples:
  cg-bench history prune --before 2025-01-01 --keep 500 --dry-run
  cg-bench history prune --keep 1000
  cg-bench history prune 1a2b3c4d
""",
)
@click.option("--before", type=date, metavar="DATE", help="Remove runs measured before then: 2026-01-31, or 90d.")
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Keep the N runs measured last, remove the others.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@store_option
@click.argument("runs", nargs=-1, metavar="[RUN]...")
def prune_command(
    runs: tuple[str, ...], *, before: str | None, keep: int | None, dry_run: bool, **options: Any
) -> None:
    """Remove runs for good: those that are named, and those that --before and --keep select.

    With both options, a run goes if it is older than --before and not among the last N. A commit means all its runs. A
    damaged run is named as 'fsck' does.
    """
    if not runs and before is None and keep is None:
        raise UsageError(
            "say which runs to keep or to remove", hint="as in --before 2025-01-01, --keep 500, or a run's id"
        )
    with opened_store(options) as store, _watched(store):
        output.write(history.prune(store, runs, before=before, keep=keep, dry_run=dry_run))


@command.command("rename", epilog="\b\nExamples:\n  cg-bench history rename parse 'parse[n=1000]'")
@store_option
@click.argument("old")
@click.argument("new")
def rename_command(old: str, new: str, **options: Any) -> None:
    """Rename a benchmark: OLD and NEW become one series.

    Stored runs stay as they are.
    """
    if not new.strip() or old == new or printable(new) != new:
        why = "the old one" if old == new else "not UTF-8" if new.strip() else "empty"
        raise UsageError(f"the new name is {why}", hint="give another name")
    with opened_store(options) as store, _watched(store):
        output.write(history.rename(store, old, new))


@command.command(
    "sync",
    epilog="""\b
Examples:
  cg-bench history sync --from git:cg-bench-data@origin
  cg-bench history sync --from file:.cg-bench --to postgresql://ci@db.example/history
""",
)
@click.option("--from", "source", metavar="URL", help="Where to take records from. [default: the configured store]")
@click.option("--to", "target", metavar="URL", help="Where to add them. [default: the configured store]")
@store_timeout_option
def sync_command(*, source: str | None, target: str | None, **_: Any) -> None:
    """Copy the records that one store has and another lacks.

    This is one direction: run it the other way round as well to make both equal. Nothing is removed, and what was pruned
    from the target comes back. Profiles stay where they are.
    """
    if source is None and target is None:
        raise UsageError("neither --from nor --to was given", hint="as in --from git:cg-bench-data@origin")
    with named_store(source) as giving, named_store(target) as taking, _watched(giving):
        if giving.url == taking.url:
            raise UsageError(f"both are {giving.url}", hint="name a different store by --from or --to")
        if source is not None and not giving.exists():
            raise UsageError(f"there is no history at {giving.url}", hint="check that the URL after --from is right")
        output.write(history.copy(giving, taking))
