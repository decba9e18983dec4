"""Runs read back from their numbers: no record of a run is unpacked.

Knows the tables; must not know how the numbers came into them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import select

from cachegrind_bench.errors import StoreError
from cachegrind_bench.model.history import Point, Snapshot
from cachegrind_bench.model.metrics import Counts
from cachegrind_bench.model.result import Commit, Score
from cachegrind_bench.store.reading import HINT, Rename, order, present, renames_of
from cachegrind_bench.store.sql import schema
from cachegrind_bench.store.sql.ingest import MANY, chunks, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Table

    from cachegrind_bench.store.protocol import Query
    from cachegrind_bench.store.sql.database import Database

# Runs whose points are in memory at once.
_SOME = 32


def snapshots(database: Database, query: Query) -> Iterator[Snapshot]:
    """Return the runs that are asked for, in the order of `order`, renames applied. StoreError."""
    with database.reading() as connection:
        if connection is None:
            return
        renames = _renames(connection)
        heads = [(number, run) for number, run in heads_of(connection).items() if _is_asked(run, query)]
        heads.sort(key=lambda pair: order(pair[1]))
        reader = Reader.of(connection)
        benchmarks = _relevant(reader.benchmarks, renames, query)
    # A transaction for some runs at a time: whoever takes long over what is yielded holds nobody up.
    for some in chunks(heads, _SOME):
        with database.reading() as connection:
            found = {} if connection is None else reader.read(connection, dict(some), benchmarks)
        for run in found.values():
            yield replace(run, points=present(run.points, renames, query))


def heads_of(connection: Connection, numbers: Sequence[int] | None = None) -> dict[int, Snapshot]:
    """Return these few runs, or all, by number, without their points."""
    runs, records = schema.runs, schema.records
    statement = select(runs, records.c.uid).join(records, records.c.id == runs.c.id)
    if numbers is not None:
        statement = statement.where(runs.c.id.in_(numbers))
    return {row.id: _head(row) for row in connection.execute(statement)}


def rename_at(connection: Connection, number: int) -> Rename | None:
    """Return the rename that the record of this number is; None if it is none."""
    row = connection.execute(select(schema.renames).where(schema.renames.c.id == number)).one_or_none()
    return None if row is None else Rename(old=row.old, new=row.new, created_at=row.created_at)


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """Reads points; what is the same in many, as counts mostly are, is kept once. The three mappings are by number."""

    benchmarks: Mapping[int, str]
    keys: Mapping[int, str]
    models: Mapping[int, str]
    _counts: dict[tuple[int, ...], Counts] = msgspec.field(default_factory=dict[tuple[int, ...], Counts])
    _scores: dict[tuple[int, int], Score] = msgspec.field(default_factory=dict[tuple[int, int], Score])

    @classmethod
    def of(cls, connection: Connection) -> Reader:
        """Return a reader of the runs that are there now."""
        texts = [_texts(connection, table) for table in (schema.benchmarks, schema.keys, schema.models)]
        return cls(benchmarks=texts[0], keys=texts[1], models=texts[2])

    def read(
        self, connection: Connection, heads: Mapping[int, Snapshot], benchmarks: frozenset[int] | None
    ) -> dict[int, Snapshot]:
        """Return these runs, in this order, with their points of these benchmarks; without those removed since."""
        runs, points = schema.runs, schema.points
        numbers = [*heads]
        there = set(connection.scalars(select(runs.c.id).where(runs.c.id.in_(numbers))))
        statement = select(points).where(points.c.run.in_(numbers)).order_by(points.c.run, points.c.position)
        if benchmarks is not None and len(benchmarks) <= MANY:
            statement = statement.where(points.c.benchmark.in_(sorted(benchmarks)))
        found: dict[int, list[Point]] = {number: [] for number in numbers if number in there}
        for row in connection.execute(statement):
            if benchmarks is None or row[1] in benchmarks:
                found[row[0]].append(self._point(row))
        return {number: replace(heads[number], points=tuple(items)) for number, items in found.items()}

    def _point(self, row: Any) -> Point:
        _, benchmark, key, _, status, *_, model, score = row
        counts: Any = row[5:14]
        try:
            return Point(
                id=self.benchmarks[benchmark],
                key=self.keys[key],
                status=schema.STATUSES[status],
                counts=None if counts[0] is None else self._counts_of(counts),
                score=None if model is None else self._score_of(model, score),
            )
        except KeyError as error:
            raise StoreError(f"a point in the database refers to what is not there: {error}", hint=HINT) from error

    def _counts_of(self, values: tuple[int, ...]) -> Counts:
        found = self._counts.get(values)
        if found is None:
            found = self._counts[values] = Counts.of(values)
        return found

    def _score_of(self, model: int, value: int) -> Score:
        found = self._scores.get((model, value))
        if found is None:
            found = self._scores[model, value] = Score(model=self.models[model], value=value)
        return found


def _is_asked(run: Snapshot, query: Query) -> bool:
    if query.since is not None and run.created_at < query.since:
        return False
    return query.shas is None or (run.commit is not None and run.commit.sha in query.shas)


def _renames(connection: Connection) -> dict[str, str]:
    records, renames = schema.records, schema.renames
    rows = connection.execute(select(records.c.name, records.c.data).join(renames, renames.c.id == records.c.id))
    return renames_of([unpack(name, data) for name, data in rows])


def _relevant(benchmarks: Mapping[int, str], renames: Mapping[str, str], query: Query) -> frozenset[int] | None:
    """Return the numbers of all benchmarks that decide about what is asked for; None for all.

    Whether one appears under its new name depends on whether another one of the run has that name, so all that end up
    under one name belong together.
    """
    if query.wanted is None:
        return None
    names = {
        renames.get(name, name)
        for name in benchmarks.values()
        if query.wanted(name) or query.wanted(renames.get(name, name))
    }
    return frozenset(number for number, name in benchmarks.items() if renames.get(name, name) in names)


def _texts(connection: Connection, table: Table) -> dict[int, str]:
    return {row[0]: row[1] for row in connection.execute(select(table.c.id, table.c.name))}


def _head(row: Any) -> Snapshot:
    commit = None
    if row.sha is not None:
        commit = Commit(
            sha=row.sha, parent=row.parent, branch=row.branch, dirty=row.dirty, committed_at=row.committed_at
        )
    return Snapshot(
        uid=row.uid,
        tool_version=row.tool_version,
        created_at=row.created_at,
        commit=commit,
        env_key=row.env_key,
        points=(),
    )
