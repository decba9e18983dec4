"""How runs of a history are named on the command line: by the beginning of an id, by a commit, by a date."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cachegrind_bench.errors import UsageError
from cachegrind_bench.store.protocol import Query
from cachegrind_bench.store.record import name_of_run, run_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cachegrind_bench.model.history import Snapshot
    from cachegrind_bench.store.protocol import Store, Survey

if TYPE_CHECKING:
    _Text = click.ParamType[str]
else:
    _Text = click.ParamType  # generic since click 8.4 only

Function = TypeVar("Function", bound="Callable[..., Any]")

_AGO = re.compile(r"([0-9]{1,5})\s*([dw])", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{4,64}", re.ASCII)
_SHOWN = 5


class Date(_Text):
    """A day, a time, or how long ago, as in 2026-01-31, 2026-01-31T12:00:00Z or 30d; the value is UTC, with a Z."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the time as records have it."""
        text = str(value).strip()
        ago = _AGO.fullmatch(text)
        try:
            if ago:
                days = int(ago[1]) * (7 if ago[2] == "w" else 1)
                found = datetime.now(UTC) - timedelta(days=days)
            else:
                found = datetime.fromisoformat(text)
                found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is not a date: write 2026-01-31, 2026-01-31T12:00:00Z, or 30d for 30 days ago", param, ctx
            )
        return found.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


def since_option(function: Function) -> Function:
    """Take the time since when runs are wanted, as `since`."""
    return click.option(
        "--since",
        type=Date(),
        metavar="DATE",
        help="Only runs measured since then: 2026-01-31, or 30d for 30 days ago.",
    )(function)


def name_of(run: Snapshot) -> str:
    """Return the name of the record of this run."""
    return name_of_run(run.uid, run.created_at, None if run.commit is None else run.commit.sha, run.env_key)


def find_run(store: Store, text: str | None) -> str:
    """Return the name of the record that is meant: by its name, the beginning of its uid or of its commit's id.

    Of several runs of one commit it is the last, and None means the run of the newest commit. UsageError if there is no such
    run, or several could be meant.
    """
    if text is None:
        newest = None
        for newest in store.snapshots(Query()):  # noqa: B007 - the last one is wanted
            pass
        if newest is None:
            raise UsageError(f"there are no runs in {store.url}", hint="'cg-bench run --save' stores one")
        return name_of(newest)
    return find_runs(store, text)[-1]


def find_runs(store: Store, text: str, survey: Survey | None = None) -> list[str]:
    """Return the names of the records that are meant in the same way: one, or all runs of a commit, the last at the end.

    With a `survey` of the store, a whole name is enough where something cannot be read.
    """
    if survey is not None and text in survey.names:
        return [text]
    names = store.names()
    if text in names:
        return [text]
    wanted = text.lower()
    if _HEX.fullmatch(wanted) is None:
        raise UsageError(
            f"{text!r} names no run", hint="write the beginning of its id, or of its commit's: 4 digits or more"
        )
    by_uid = _by_uid(store, names, wanted)
    by_commit = _by_commit(store, names, wanted)
    if len(by_uid) + len({sha for sha, _, _ in by_commit}) > 1:
        told = ", ".join([*by_uid, *(name for _, _, name in by_commit)][:_SHOWN])
        raise UsageError(f"{text!r} could be several runs: {told}", hint="write more of its id")
    if not by_uid and not by_commit:
        raise UsageError(f"there is no run {text!r} in {store.url}", hint="'cg-bench history list' shows them")
    return by_uid or [name for _, _, name in sorted(by_commit)]


def _by_uid(store: Store, names: Sequence[str], wanted: str) -> list[str]:
    found = [name for name in names if (said := run_name(name)) and said.uid8.startswith(wanted[:8])]
    return found if len(wanted) <= 8 else [record.name for record in store.read(found) if record.uid.startswith(wanted)]


def _by_commit(store: Store, names: Sequence[str], wanted: str) -> list[tuple[str, str, str]]:
    """Return commit, time and name of each run of the commits whose id begins so."""
    from cachegrind_bench.store.reading import snapshot

    found = [name for name in names if (said := run_name(name)) and (said.sha12 or "").startswith(wanted[:12])]
    runs = [(snapshot(record), record.name) for record in (store.read(found) if found else ())]
    return [
        (run.commit.sha, run.created_at, name)
        for run, name in runs
        if run.commit is not None and run.commit.sha.startswith(wanted)
    ]
