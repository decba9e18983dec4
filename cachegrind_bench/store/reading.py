"""From stored records to the runs that a history is read from: a few numbers of each benchmark, under its present name.

Knows the keys of a record that matter to a history; must not know where records are kept.
"""

from __future__ import annotations

import gc
import json
import re
import sys
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from cachegrind_bench.errors import StoreError
from cachegrind_bench.model.decoder import SCHEMA
from cachegrind_bench.model.history import Point, Snapshot
from cachegrind_bench.model.metrics import EVENTS, Counts
from cachegrind_bench.model.result import Commit, Score, Status
from cachegrind_bench.store.record import RENAME_SCHEMA, run_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cachegrind_bench.store.protocol import Query, Store
    from cachegrind_bench.store.record import Record

HINT = "'cg-bench history fsck' tells all that is wrong; 'cg-bench history prune' removes what is named"

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", re.ASCII)
_SHA = re.compile(r"[0-9a-f]{12,64}", re.ASCII)
_KEY = re.compile(r"[0-9a-f]{8,64}", re.ASCII)
_FAMILIES = ("cg-bench.run/", "cg-bench.rename/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """One rename: `old` is called `new` since `created_at`, UTC, as 2026-01-31T12:00:00Z."""

    old: str
    new: str
    created_at: str


def snapshot(record: Record) -> Snapshot:
    """Return what a history needs of a run's record, benchmarks under the names they had then. StoreError on nonsense."""
    return _Reader().read(record)


def rename(record: Record) -> Rename:
    """Return what a rename's record says. StoreError on nonsense."""
    try:
        document = _load(record, RENAME_SCHEMA)
        old, new, created_at = _text(document["old"]), _text(document["new"]), _time(document["created_at"])
        return Rename(old=old, new=new, created_at=created_at)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise _damaged(record, error) from error


def renames_of(records: Iterable[Record]) -> dict[str, str]:
    """Return the present name by each name that was given up. Records other than renames are passed over.

    Renames hold in the order of their times: of a to b and b to c, both lead to c. There is never a circle, as a name that
    is given again is a present name: after a to b and b to a, the name is a.
    """
    found = [(rename(record), record.uid) for record in records if run_name(record.name) is None]
    present: dict[str, str] = {}
    for item, _ in sorted(found, key=lambda pair: (pair[0].created_at, pair[1])):
        for name in [name for name, now in present.items() if now == item.old]:
            present[name] = item.new
        present[item.old] = item.new
        present.pop(item.new, None)
    return dict(sorted(present.items()))


def renames_in(store: Store) -> dict[str, str]:
    """Return the present name by each name that was given up in this store."""
    names = [name for name in store.names() if run_name(name) is None]
    return renames_of(store.read(names)) if names else {}


def candidates(names: Iterable[str], query: Query) -> list[str]:
    """Return those of these names, sorted, whose records can be what is asked for: the others need not be read."""
    short = None if query.shas is None else {sha[:12] for sha in query.shas}
    month = "" if query.since is None else query.since[:7]

    def fits(name: str) -> bool:
        said = run_name(name)
        return said is not None and said.month >= month and (short is None or said.sha12 in short)

    return sorted(filter(fits, names))


def snapshots(records: Iterable[Record], renames: Mapping[str, str], query: Query) -> Iterator[Snapshot]:
    """Return the runs that are asked for, in the order of `order`; records of renames are passed over.

    A benchmark whose new name another one of the same run has keeps its old name. All that is wanted is in memory before
    the first is returned, equal counts only once.
    """
    reader = _Reader()
    found: list[Snapshot] = []
    for record in records:
        if run_name(record.name) is None:
            continue
        run = reader.read(record)
        if _asked(run, query):
            found.append(replace(run, points=present(run.points, renames, query)))
    yield from sorted(found, key=order)


def order(run: Snapshot) -> tuple[str, str, str]:
    """Return what runs are sorted by: time of the commit (of the run, where there is none), time of the run, uid."""
    return run.created_at if run.commit is None else run.commit.committed_at, run.created_at, run.uid


def _asked(run: Snapshot, query: Query) -> bool:
    known = query.shas is None or (run.commit is not None and run.commit.sha in query.shas)
    return known and run.created_at >= (query.since or "")


def present(points: tuple[Point, ...], renames: Mapping[str, str], query: Query) -> tuple[Point, ...]:
    """Return the points that matter, under their present names; a name that is taken in the same run is not given."""
    if renames:
        taken = {point.id for point in points if point.id not in renames}
        named: list[Point] = []
        for point in points:
            name = renames.get(point.id, point.id)
            if name != point.id and name not in taken:
                taken.add(name)
                point = replace(point, id=name)  # noqa: PLW2901  # the same point, by its present name
            named.append(point)
        points = tuple(named)
    return points if query.wanted is None else tuple(point for point in points if query.wanted(point.id))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads records one after the other; what is the same in many is kept once, as counts mostly are."""

    _counts: dict[tuple[int, ...], Counts] = field(default_factory=dict[tuple[int, ...], Counts])
    _scores: dict[tuple[str, int], Score] = field(default_factory=dict[tuple[str, int], Score])

    def read(self, record: Record) -> Snapshot:
        try:
            document = _load(record, SCHEMA)
            return Snapshot(
                uid=record.uid,
                tool_version=_text(document["tool"]["version"]),
                created_at=_time(document["created_at"]),
                commit=_commit(document["commit"]),
                env_key=_matching(_KEY, document["env"]["key"]),
                points=self._points(document["benchmarks"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError, MemoryError) as error:
            raise _damaged(record, error) from error

    def _points(self, items: Any) -> tuple[Point, ...]:
        points = tuple([self._point(item) for item in items])
        if len({point.id for point in points}) < len(points):
            raise ValueError("two benchmarks have one id")
        return points

    def _point(self, item: Any) -> Point:
        status = Status(item["status"])
        if (status is Status.OK) != (item["counts"] is not None):
            raise ValueError("status and counts do not agree")
        return Point(
            id=sys.intern(_text(item["id"])),
            key=sys.intern(_text(item["key"])),
            status=status,
            counts=None if item["counts"] is None else self._counts_of(item["counts"]),
            score=None if item["counts"] is None else self._score_of(item["score"]),
        )

    def _counts_of(self, item: Any) -> Counts:
        values: tuple[int, ...] = tuple(map(item.__getitem__, EVENTS))
        if {*map(type, values)} != {int} or min(values) < 0:
            raise ValueError("a count is no whole number")
        found = self._counts.get(values)
        if found is None:
            found = self._counts[values] = Counts.of(values)
        return found

    def _score_of(self, item: Any) -> Score:
        model, value = _text(item["model"]), item["value"]
        if type(value) is not int or value < 0:
            raise ValueError("a score is no whole number")
        found = self._scores.get((model, value))
        if found is None:
            found = self._scores[model, value] = Score(model=sys.intern(model), value=value)
        return found


def _load(record: Record, schema: str) -> dict[str, Any]:
    document = parsed(record.data)
    if not isinstance(document, dict):
        raise TypeError("no object")
    found = cast("dict[str, Any]", document)
    said = found["schema"]
    if said != schema:
        text = str(said)[:80]
        known = text.startswith(_FAMILIES)
        advice = "install a newer cachegrind-bench" if known else HINT
        raise StoreError(f"{record.name}: its schema is {text!r}, and this cg-bench reads {schema}", hint=advice)
    return found


def parsed(data: bytes) -> Any:
    """Parse JSON. ValueError or RecursionError for anything else."""
    enabled = gc.isenabled()
    gc.disable()  # looking for circles among thousands of new objects doubles the time
    try:
        return json.loads(data)
    finally:
        if enabled:
            gc.enable()


def _commit(item: Any) -> Commit | None:
    if item is None:
        return None
    if type(item["dirty"]) is not bool:
        raise TypeError("dirty is neither true nor false")
    return Commit(
        sha=sys.intern(_matching(_SHA, item["sha"])),
        parent=None if item["parent"] is None else _matching(_SHA, item["parent"]),
        branch=None if item["branch"] is None else _text(item["branch"]),
        dirty=item["dirty"],
        committed_at=_time(item["committed_at"]),
    )


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("a text is none")
    if not value.isascii():
        value.encode()  # halves of surrogate pairs could not be written anywhere
    return value


def _matching(pattern: re.Pattern[str], value: Any) -> str:
    if pattern.fullmatch(_text(value)) is None:
        raise ValueError(f"{value[:80]!r} is not what should be there")
    return str(value)


def _time(value: Any) -> str:
    text = _matching(_TIME, value)
    datetime.fromisoformat(text)  # ValueError for the 31st of February
    return text


def _damaged(record: Record, error: Exception) -> StoreError:
    what = f"{error} is missing" if isinstance(error, KeyError) else str(error)[:200]
    return StoreError(f"{record.name} is not what a history keeps: {what}", hint=HINT)
