"""From stored records to the runs that a history is read from: a few numbers of each benchmark, under its present name.

Knows the keys of a record that matter to a history; must not know where records are kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, TypeVar

import msgspec
from msgspec.structs import replace

from cachegrind_bench.errors import FileFormatError, StoreError
from cachegrind_bench.model.codec import SCHEMA
from cachegrind_bench.model.metrics import Counts
from cachegrind_bench.model.parsing import Head, parse
from cachegrind_bench.model.result import Commit, Point, Score, Snapshot, Status
from cachegrind_bench.store.protocol import Query, Report, Store
from cachegrind_bench.store.record import RENAME_SCHEMA, Record, run_name

HINT = "'cg-bench history fsck' lists all that is wrong; 'cg-bench history prune' removes what is named"

_FAMILIES = ("cg-bench.run/", "cg-bench.rename/")


@contextmanager
def reported(report: Report | None, where: str) -> Generator[None]:
    """Report the StoreError of a block, with this place, instead of raising it; without `report` it is raised."""
    try:
        yield
    except StoreError as error:
        if report is None:
            raise
        report(where, error.message)


def snapshot(record: Record) -> Snapshot:
    """Return what a history needs of a run's record, benchmarks under the names they had then. StoreError on nonsense."""
    return _Reader().read(record)


def rename(record: Record) -> Rename:
    """Return what a rename's record says. StoreError on nonsense."""
    found = _load(record, Rename, RENAME_SCHEMA)
    try:
        _check_time(found.created_at)
    except ValueError as error:
        raise _damaged(record, str(error)) from error
    return found


def renames_of(records: Iterable[Record], report: Report | None = None) -> dict[str, str]:
    """Return the present name by each name that was given up. Records other than renames are passed over.

    Renames hold in the order of their times: of a to b and b to c, both lead to c. There is never a circle, as a name that
    is given again is a present name: after a to b and b to a, the name is a.
    """
    found: list[tuple[Rename, str]] = []
    for record in records:
        if run_name(record.name) is None:
            with reported(report, record.name):
                found.append((rename(record), record.uid))
    present: dict[str, str] = {}
    for item, _ in sorted(found, key=lambda pair: (pair[0].created_at, pair[1])):
        for name in [name for name, now in present.items() if now == item.old]:
            present[name] = item.new
        present[item.old] = item.new
        present.pop(item.new, None)
    return dict(sorted(present.items()))


def renames_in(store: Store, report: Report | None = None) -> dict[str, str]:
    """Return the present name by each name that was given up in this store."""
    known = store.names() if report is None else store.survey().names
    names = [name for name in known if run_name(name) is None]
    return renames_of(store.read(names, report), report) if names else {}


def candidates(names: Iterable[str], query: Query) -> list[str]:
    """Return those of these names, sorted, whose records can be what is asked for: the others need not be read."""
    short = None if query.shas is None else {sha[:12] for sha in query.shas}
    month = "" if query.since is None else query.since[:7]

    def fits(name: str) -> bool:
        said = run_name(name)
        return said is not None and said.month >= month and (short is None or said.sha12 in short)

    return sorted(filter(fits, names))


def snapshots(
    names: Collection[str],
    read: Callable[[list[str]], Iterable[Record]],
    query: Query,
    report: Report | None = None,
) -> Iterator[Snapshot]:
    """Return the runs that are asked for, by time of commit (of the run, where there is none), time of run and uid.

    `names` are all that there are, and `read` reads some of them. A benchmark whose new name another one of the same run
    has keeps its old name. All that is wanted is in memory when this returns, equal counts only once.
    """
    renames = renames_of(read(sorted(name for name in names if run_name(name) is None)), report)
    reader = _Reader()
    found: list[Snapshot] = []
    for record in read(candidates(names, query)):
        with reported(report, record.name):
            run = reader.read(record)
            if _asked(run, query):
                found.append(replace(run, points=_present(run.points, renames, query)))
    return iter(sorted(found, key=_order))


def _order(run: Snapshot) -> tuple[str, str, str]:
    return run.created_at if run.commit is None else run.commit.committed_at, run.created_at, run.uid


def _asked(run: Snapshot, query: Query) -> bool:
    known = query.shas is None or (run.commit is not None and run.commit.sha in query.shas)
    return known and run.created_at >= (query.since or "")


def _present(points: tuple[Point, ...], renames: Mapping[str, str], query: Query) -> tuple[Point, ...]:
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


_Time = Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z\Z")]
_Sha = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{12,64}\Z")]
_Key = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{8,64}\Z")]


# Of records, what matters to a history.
class _Tool(msgspec.Struct):
    version: str


class _Environment(msgspec.Struct):
    key: _Key


class _Commit(Commit, frozen=True, kw_only=True):
    sha: _Sha
    parent: _Sha | None
    committed_at: _Time


class _Run(Head):
    tool: _Tool
    created_at: _Time
    commit: _Commit | None
    env: _Environment
    benchmarks: list[Point]


class Rename(Head):
    """One rename: `old` is called `new` since `created_at`, UTC, as 2026-01-31T12:00:00Z."""

    old: str
    new: str
    created_at: _Time


class _Reader(msgspec.Struct, frozen=True):
    """Reads records one after the other; what is the same in many is kept once, as counts mostly are."""

    _counts: dict[Counts, Counts] = msgspec.field(default_factory=dict[Counts, Counts])
    _scores: dict[Score, Score] = msgspec.field(default_factory=dict[Score, Score])

    def read(self, record: Record) -> Snapshot:
        run, commit = _load(record, _Run, SCHEMA), None
        try:
            _check_time(run.created_at)
            if run.commit is not None:
                _check_time(run.commit.committed_at)
                commit = replace(Commit(**msgspec.structs.asdict(run.commit)), sha=sys.intern(run.commit.sha))
            return Snapshot(
                uid=record.uid,
                tool_version=run.tool.version,
                created_at=run.created_at,
                commit=commit,
                env_key=run.env.key,
                points=self._points(run.benchmarks),
            )
        except ValueError as error:
            raise _damaged(record, str(error)) from error

    def _points(self, items: Sequence[Point]) -> tuple[Point, ...]:
        points = tuple([self._point(item) for item in items])
        if len({point.id for point in points}) < len(points):
            raise ValueError("two benchmarks have the same id")
        return points

    def _point(self, item: Point) -> Point:
        counts, score = item.counts, item.score
        if (item.status is Status.OK) != (counts is not None) or (counts is None) != (score is None):
            raise ValueError("status, counts and score do not agree")
        if counts is not None and score is not None:
            if counts not in self._counts and min(counts.as_tuple()) < 0:
                raise ValueError("a count is negative")
            if score.value < 0:
                raise ValueError("a score is negative")
            counts = self._counts.setdefault(counts, counts)
            score = self._scores.setdefault(score, score)
        return replace(item, id=sys.intern(item.id), key=sys.intern(item.key), counts=counts, score=score)


_Document = TypeVar("_Document", bound=Head)


def _load(record: Record, kind: type[_Document], schema: str) -> _Document:
    try:
        found: Head = parse(record.data, kind, record.name)
    except FileFormatError as error:
        try:  # a newer one may well not be readable as this kind
            found = parse(record.data, Head, record.name)
        except FileFormatError:
            found = Head(schema=schema)
        if found.schema == schema:
            raise _damaged(record, error.what) from error
    if isinstance(found, kind) and found.schema == schema:
        return found
    text = found.schema[:80]
    known = text.startswith(_FAMILIES)
    advice = "install a newer cachegrind-bench" if known else HINT
    raise StoreError(f"{record.name}: its schema is {text!r}, and this cg-bench reads {schema}", hint=advice)


def _check_time(text: str) -> None:
    datetime.fromisoformat(text)  # ValueError for the 31st of February


def _damaged(record: Record, what: str) -> StoreError:
    return StoreError(f"{record.name} is not what a history keeps: {what[:200]}", hint=HINT)
