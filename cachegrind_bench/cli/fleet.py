"""`cg-bench fleet`: what the workers of a Dask scheduler have; and how all commands with --workers reach it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.help import Command
from cachegrind_bench.cli.options import format_options, measure_request, valgrind_option
from cachegrind_bench.errors import NotComparableError, UsageError
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    from cachegrind_bench.usecases.executors import Workforce
    from cachegrind_bench.usecases.measurement import MeasureRequest
    from cachegrind_bench.vcs.revisions import Repository

_EPILOG = """\b
Workers of one set have the same Valgrind, processor features, C library and seal: their counts can be compared, and one set is
used for a series. Others are named by 'backfill' and 'run' and not used.

\b
Exit code: 0; 3 if no worker can measure; 4 if the scheduler cannot be reached.

\b
Example:
  cg-bench fleet --workers tcp://scheduler:8786
"""

workers_option = click.option(
    "--workers", metavar="URL", help="Measure on the workers of this Dask scheduler, as in tcp://scheduler:8786."
)
clone_option = click.option(
    "--clone",
    metavar="URL",
    help="Where workers clone the repository. [default: it is sent to them, with its branches and tags]",
)


@click.command("fleet", cls=Command, epilog=_EPILOG)
@workers_option
@valgrind_option
@format_options("table", "markdown")
def command(**options: Any) -> int:
    """Show what each worker of a Dask scheduler has: Valgrind, C library, Python, CPUs, seal; and which are comparable."""
    if options["workers"] is None:
        raise UsageError("which workers?", hint="as in: cg-bench fleet --workers tcp://scheduler:8786")
    from cachegrind_bench.render import table
    from cachegrind_bench.usecases import fleet

    settings = dict.fromkeys(("i1", "d1", "ll", "timeout", "pin_clock")) | {"model": "ir", "command": ()}
    request = measure_request({**options, **settings})
    with _scheduler(options["workers"]) as (dask, client):
        found = dask.machines(client, request, Waiting(output.NOTICES.note))
        report = fleet.report(found, client.nthreads())
    output.write(table.render(report, options["form"], width=output.terminal_width()))
    return 0 if report.sections else NotComparableError.exit_code


@contextmanager
def workforce(
    options: dict[str, Any], request: MeasureRequest, here: Repository, key: str | None
) -> Generator[Workforce]:
    """Return the workers of a scheduler that measure like the history of this `key`, or like most of them."""
    with _scheduler(options["workers"]) as (dask, client):
        source = dask.Source.at(options["clone"]) if options["clone"] else dask.Source.of(here)
        with dask.workforce(client, request, source, key, output.NOTICES) as force:
            yield force


@contextmanager
def _scheduler(url: str) -> Generator[tuple[Any, Any]]:
    try:
        from cachegrind_bench.usecases import dask_workers
    except ImportError as error:
        raise UsageError(
            "--workers needs Dask, which is not installed", hint="in a checkout of cg-bench: pip install '.[fleet]'"
        ) from error
    with dask_workers.connected(url, Waiting(output.NOTICES.note)) as client:
        yield dask_workers, client
