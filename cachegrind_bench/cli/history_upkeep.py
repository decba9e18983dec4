"""`cg-bench history prune`, `rename`, `compact` and `sync`: what keeps a history small, whole and where it is wanted."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.options import Date, named_store, opened_store, store_option
from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.text import counted, plain, some
from cachegrind_bench.store.protocol import Query
from cachegrind_bench.store.record import rename_record, run_name
from cachegrind_bench.usecases.stored_runs import find_runs, name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.store.protocol import Store

_SHOWN = 20
_BATCH = 200
_NEAR = 10


@click.command(
    "prune",
    epilog="""\b
Examples:
  cg-bench history prune --before 2025-01-01 --keep 500 --dry-run
  cg-bench history prune --keep 1000
  cg-bench history prune 1a2b3c4d
""",
)
@click.option("--before", type=Date(), metavar="DATE", help="Remove runs measured before then: 2026-01-31, or 90d.")
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Keep the N runs measured last, remove the others.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@store_option
@click.argument("runs", nargs=-1, metavar="[RUN]...")
def prune_command(
    runs: tuple[str, ...], *, before: str | None, keep: int | None, dry_run: bool, **options: Any
) -> None:
    """Remove RUNs, for good: those that are named, and those that --before and --keep leave no reason to keep.

    With both, a run goes if it is older than --before and not among the last N. A commit means all its runs. A damaged one is
    named as 'fsck' does.
    """
    if not runs and before is None and keep is None:
        raise UsageError("nothing says which runs to keep", hint="as in --before 2025-01-01, --keep 500, or a run's id")
    with opened_store(options) as store:
        survey = store.survey()
        total = sum(run_name(name) is not None for name in survey.names)
        doomed = dict.fromkeys(name for text in runs for name in find_runs(store, text, survey))
        if before is not None or keep is not None:
            doomed |= dict.fromkeys(_outdated(store, before, keep))
        removed = len(doomed) if dry_run else store.remove(list(doomed))
        lines = [f"  {name}\n" for name in list(doomed)[:_SHOWN]]
        if len(doomed) > _SHOWN:
            lines.append(f"  and {counted(len(doomed) - _SHOWN, 'other')}\n")
        what = "would remove" if dry_run else "removed"
        output.write(f"{what} {removed} of {counted(total, 'run')} from {store.url}\n{''.join(lines)}")
        for problem in survey.problems:
            output.write_error(f"cg-bench: warning: {plain(problem.what)}; it stays as it is, with whatever it holds\n")


@click.command("rename", epilog="\b\nExamples:\n  cg-bench history rename parse 'parse[n=1000]'")
@store_option
@click.argument("old")
@click.argument("new")
def rename_command(old: str, new: str, **options: Any) -> None:
    """Say that the benchmark OLD is called NEW from now on: both are one series. Stored runs stay as they are."""
    if not new.strip() or old == new:
        raise UsageError("the new name is " + ("the old one" if old == new else "empty"), hint="give another name")
    with opened_store(options) as store:
        found = [{point.id for point in run.points} for run in store.snapshots(Query(wanted={old, new}.__contains__))]
        runs, taken = sum(names == {old} for names in found), sum(names == {old, new} for names in found)
        if not runs + taken:
            raise UsageError(f"no run in {store.url} has a benchmark {old!r}", hint=_known(store))
        if not runs:
            why = f"in {counted(taken, 'run')}, all that have {old!r}, another benchmark is called {new!r}"
            raise UsageError(why, hint="give a name that none of them has")
        store.add([rename_record(old, new, _after_all_others(store))])
        output.write(f"{plain(old)} is called {plain(new)} from now on, in {counted(runs, 'stored run')} as well\n")
        if taken:
            output.write_error(f"cg-bench: in {counted(taken, 'run')} both keep their names, as they have both\n")


@click.command(
    "compact",
    epilog="\b\nExamples:\n  cg-bench history compact --store git:cg-bench-data@origin\n  cg-bench history compact --before 2026-01",
)
@click.option("--before", metavar="MONTH", help="Fold the months before this one, as 2026-01. [default: this month]")
@store_option
def compact_command(*, before: str | None, **options: Any) -> None:
    """Fold the runs of past months into one compressed file for each month. Nothing is lost; a database has no need of it."""
    month = before or datetime.now(UTC).strftime("%Y-%m")
    try:
        datetime.strptime(month, "%Y-%m")  # noqa: DTZ007 - whether there is such a month
    except ValueError:
        raise UsageError(f"--before {month!r} is not a month", hint="as in --before 2026-01") from None
    with opened_store(options) as store:
        folded = store.compact(month)
        output.write(f"folded {counted(folded, 'run')} of the months before {month} in {store.url}\n")


@click.command(
    "sync",
    epilog="""\b
Examples:
  cg-bench history sync --from git:cg-bench-data@origin
  cg-bench history sync --from file:.cg-bench --to postgresql://ci@db.example/history
""",
)
@click.option("--from", "source", metavar="URL", help="Where to take records from. [default: the configured store]")
@click.option("--to", "target", metavar="URL", help="Where to add them. [default: the configured store]")
def sync_command(*, source: str | None, target: str | None) -> None:
    """Copy what one store has and another lacks, in one direction; run it again the other way round to make them equal.

    Nothing is removed; what was pruned from the target comes back. Profiles stay where they are.
    """
    if source is None and target is None:
        raise UsageError("neither --from nor --to was given", hint="as in --from git:cg-bench-data@origin")
    with named_store(source) as giving, named_store(target) as taking:
        if giving.url == taking.url:
            raise UsageError(f"both are {giving.url}", hint="name another store by --from or --to")
        if source is not None and not giving.exists():
            raise UsageError(f"there is no history at {giving.url}", hint="see that the URL after --from is right")
        names = giving.names()
        missing = sorted(set(names) - set(taking.names()))
        records = giving.read(missing) if missing else iter(())
        new = sum(taking.add(batch) for batch in iter(lambda: list(islice(records, _BATCH)), []))
        there = f"; {len(names) - new} already there" if len(names) > new else ""
        output.write(f"copied {counted(new, 'record')} from {giving.url} to {taking.url}{there}\n")


def _outdated(store: Store, before: str | None, keep: int | None) -> Sequence[str]:
    """Return the names of the runs to remove, oldest first, by the time when they were measured."""
    found = sorted((run.created_at, run.uid, name_of(run)) for run in store.snapshots(Query(wanted=lambda _: False)))
    rest = found[: max(0, len(found) - (keep or 0))]
    return [name for created_at, _, name in rest if before is None or created_at < before]


def _after_all_others(store: Store) -> str:
    """Return the time of a new rename: now, but after all others, as renames hold in the order of their times."""
    from cachegrind_bench.store.reading import rename

    now = datetime.now(UTC)
    others = [name for name in store.names() if run_name(name) is None]
    for record in store.read(others) if others else ():
        with suppress(ValueError, OverflowError):  # a time that there is not
            now = max(now, datetime.fromisoformat(rename(record).created_at) + timedelta(seconds=1))
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def _known(store: Store) -> str:
    names = sorted({point.id for run in store.snapshots(Query()) for point in run.points})
    return f"there are: {some(names, _NEAR) or 'none'}"


COMMANDS = prune_command, rename_command, compact_command, sync_command
