"""`cg-bench fleet`: what the workers of a Dask scheduler have; and how all commands with --workers reach it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.help import Command
from cachegrind_bench.cli.options import format_options, measure_request, valgrind_option
from cachegrind_bench.errors import NotComparableError, UsageError
from cachegrind_bench.model.text import counted, joined
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    from cachegrind_bench.render.table import Report
    from cachegrind_bench.usecases.commit_task import Machine
    from cachegrind_bench.usecases.executors import Workforce
    from cachegrind_bench.usecases.measurement import MeasureRequest
    from cachegrind_bench.usecases.worktrees import Run
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
    from cachegrind_bench.model.metrics import DEFAULT_MODEL
    from cachegrind_bench.render import table

    settings = dict.fromkeys(("i1", "d1", "ll", "timeout", "pin_clock")) | {"model": DEFAULT_MODEL.name, "command": ()}
    request = measure_request({**options, **settings})
    with _scheduler(options["workers"]) as (dask, client):
        found = dask.machines(client, request, Waiting())
        report = report_of(found, client.nthreads())
    output.write(table.render(report, options["form"], width=output.terminal_width()))
    return 0 if report.sections else NotComparableError.exit_code


def report_of(found: Mapping[str, Machine | str], threads: Mapping[str, int]) -> Report:
    """Return the workers by those that measure alike, most of them first; and why others cannot measure."""
    from cachegrind_bench.render.table import Report, Section
    from cachegrind_bench.usecases.commit_task import difference

    usable = {name: item for name, item in found.items() if not isinstance(item, str)}
    first = {item.key: item for item in reversed(usable.values())}
    votes = Counter(item.key for item in usable.values())
    keys = sorted(votes, key=lambda key: (-votes[key], list(first)[::-1].index(key)))
    rows = [
        (str(number), name, item.name, *_has(item, threads.get(name, 1)))
        for number, key in enumerate(keys, start=1)
        for name, item in usable.items()
        if item.key == key
    ]
    warnings = [
        f"those of set {number} cannot be compared with set 1: {difference(first[keys[0]], first[key])}"
        for number, key in enumerate(keys[1:], start=2)
    ]
    warnings += [f"{name} cannot measure: {item}" for name, item in found.items() if isinstance(item, str)]
    warnings += [
        f"{name}: not sealed is {part}: {item.unsealed[part]}"
        for name, item in usable.items()
        for part in _unsealed(item)
    ]
    columns = "set", "worker", "host", "CPUs", "at once", "Valgrind", "C library", "Python", "sealed"
    section = Section(columns=columns, rows=tuple(rows), shrinkable=(2, 1))
    alike = joined([str(votes[key]) for key in keys]) or "none"
    title = f"{counted(len(found), 'worker')}: {alike} {'measure alike' if keys else 'can measure'}"
    return Report(title=title, sections=(section,) if rows else (), warnings=tuple(warnings))


def _has(machine: Machine, threads: int) -> tuple[str, ...]:
    info, fields = machine.environment.info, machine.fields
    values = (info.get("cpus_online"), threads, fields.get("valgrind"), info.get("libc"), info.get("python"))
    sealed = f"not {joined(_unsealed(machine))}" if _unsealed(machine) else "whole"
    return (*(str("" if value is None else value) for value in values), sealed)


def _unsealed(machine: Machine) -> list[str]:
    from cachegrind_bench.usecases.commit_task import PARTS

    return [part for part in PARTS if part in machine.unsealed]  # others vary with what else is at work


@contextmanager
def workforce(
    options: dict[str, Any], request: MeasureRequest, here: Repository, key: str | None, run: Run
) -> Generator[Workforce]:
    """Return the workers of a scheduler that measure like the history of this `key`, or like most of them."""
    with _scheduler(options["workers"]) as (dask, client):
        source = dask.Source.at(options["clone"]) if options["clone"] else dask.Source.of(here)
        with dask.workforce(client, request, source, key, run) as force:
            yield force


@contextmanager
def _scheduler(url: str) -> Generator[tuple[Any, Any]]:
    try:
        from cachegrind_bench.usecases import dask_workers
    except ImportError as error:
        raise UsageError(
            "--workers needs Dask, which is not installed", hint="in a checkout of cg-bench: pip install '.[fleet]'"
        ) from error
    with dask_workers.connected(url, Waiting()) as client:
        yield dask_workers, client
