"""`cg-bench backfill`: measure the commits of a past into the history."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.fleet import clone_option, workers_option, workforce
from cachegrind_bench.cli.help import options_group
from cachegrind_bench.cli.options import (
    BENCHMARKS,
    TrailingCommand,
    date,
    filter_options,
    measure_request,
    names_of,
    opened_destination,
    refuse_options_of_a_suite,
    refuse_typed,
    repetition_options,
    repository,
    store_option,
    struct_of,
    trailing_words,
    typed,
    typed_words,
)
from cachegrind_bench.cli.run import measured_in
from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from cachegrind_bench.store.protocol import Store
    from cachegrind_bench.usecases.executors import Workforce
    from cachegrind_bench.vcs.revisions import Repository

_EPILOG = """\b
Each commit is checked out into a temporary git worktree, at the same path; your own work tree is left alone. Your checkout's
configuration is laid over it, with the files of --carry (key 'carry'), so that commits are measured by benchmarks that are
younger than they are; a set-up command builds what belongs to the commit.

\b
Measured are the first commit, the last and the tagged ones, then the middle of those whose scores differ, until each step
is one commit. Counts repeat, so nothing is measured between commits that cost the same: what goes up and down again
there is missed, unless --every N finds it. Each commit is stored as soon as it is measured. Call the command again to go on.

\b
Exit code: 0; 4 if not one of the commits could be measured, now or before.

\b
Examples:
  cg-bench backfill v1.0..main
  cg-bench backfill main --tags 'v*' --carry benchmarks
  cg-bench backfill HEAD~200..HEAD --budget 8h -- python bench.py
  cg-bench trend
"""
# The options among these that are typed go to the measuring side.
_run_options = options_group(filter_options, repetition_options)


@click.command("backfill", cls=TrailingCommand, epilog=_EPILOG)
@options_group(
    click.option("--tags", "tagged", metavar="PATTERN", help="Only commits with such a tag, as in 'v*'."),
    click.option("--since", type=date, metavar="DATE", help="Only commits since then: 2026-01-31, or 365d."),
    click.option("--all-commits", is_flag=True, help="Commits of merged branches, too, not first parents alone."),
    click.option("--every", type=click.IntRange(1), metavar="N", help="Measure each N-th commit in any case."),
    click.option("--every-commit", is_flag=True, help="Measure all, also between commits that cost the same."),
    click.option(
        "--budget", metavar="N|TIME", help="Measure at most N commits, or begin none after a time such as 8h."
    ),
    click.option("--min-step", default="0.2%", metavar="PERCENT", help="Ignore steps smaller than this."),
    click.option("--fresh", is_flag=True, help="Measure also what read the same files at another commit."),
    click.option("--retry", is_flag=True, help="Measure commits again that could not be measured before."),
    heading="Which commits",
)
@options_group(
    click.option(
        "-j",
        "--jobs",
        type=click.IntRange(1),
        metavar="N",
        help="Commits to measure at the same time, on one CPU each. [default: one per CPU]",
    ),
    workers_option,
    clone_option,
    click.option(
        "--split",
        type=click.IntRange(1, 1000),
        default=1,
        metavar="N",
        help="Measure each commit in N parts of its suite, on other workers, each after the set-up.",
    ),
    heading="Where",
)
@options_group(
    click.option(
        "--carry",
        multiple=True,
        metavar="PATH",
        help="Lay this file or folder of your checkout over each commit. Repeatable.",
    ),
    click.option("--own-suite", is_flag=True, help="Measure each commit by its own configuration and files."),
    heading=BENCHMARKS,
)
@_run_options
@options_group(store_option, heading="Result")
@click.argument("revisions")
def command(revisions: str, **options: Any) -> int:
    """Measure the commits of REVISIONS (v1.0..main, or a branch) into the history, as few of them as needed.

    The steps between them are reported at the end, and by 'cg-bench trend'.
    """
    from cachegrind_bench.model.metrics import CostModel
    from cachegrind_bench.model.thresholds import percentage
    from cachegrind_bench.render import listings
    from cachegrind_bench.usecases.backfill import BackfillRequest, backfill, past_of
    from cachegrind_bench.usecases.selection import SelectRequest

    if trailing_words():
        refuse_options_of_a_suite()
        refuse_typed(("split",), "is for a suite", "leave it out")
    if options["own_suite"] and typed("carry"):
        raise UsageError("--carry and --own-suite exclude each other", hint="leave one out")
    commits, seconds = _budget(options["budget"])
    request = struct_of(
        BackfillRequest,
        options,
        revisions=revisions,
        tags=options["tagged"],
        every=1 if options["every_commit"] else options["every"],
        min_step=percentage(options["min_step"], "--min-step"),
        commits=commits,
        seconds=seconds,
        model=CostModel.parse(options["model"]),
        carry=None if options["own_suite"] else tuple(options["carry"]),
        words=(*typed_words(names_of(_run_options)), *trailing_words()),
        command=tuple(trailing_words()[1:]),
        select=struct_of(SelectRequest, options),
    )
    here, destination = repository(), opened_destination(options)
    past = past_of(request, here)
    with _workforce(options, here, destination.store) as force:
        done = backfill(past, destination, force)
    output.write(listings.backfilled(done, width=output.terminal_width()))
    return 0


@contextmanager
def _workforce(options: dict[str, Any], here: Repository, store: Store) -> Generator[Workforce]:
    """Return who measures: threads, or with --workers those of Dask."""
    request = measure_request({**options, "command": ()})
    if options["workers"] is None:
        from cachegrind_bench.usecases.executors import local

        with local(request, here, measured_in, options["jobs"]) as force:
            yield force
        return
    from cachegrind_bench.usecases.backfill import newest_key

    with workforce(options, request, here, newest_key(store), measured_in) as force:
        yield force


def _budget(text: str | None) -> tuple[int | None, float | None]:
    """Return a number of commits, or seconds."""
    from cachegrind_bench.config.command import milliseconds

    if text is None:
        return None, None
    return (int(text), None) if re.fullmatch(r"[0-9]{1,9}", text) else (None, milliseconds(text) / 1000)
