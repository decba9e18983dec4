"""Adding records: whole and compressed, and their numbers drawn from them. Safe with many writers at once, of the same records too.

Nothing waits in a circle: everybody adds to the tables in one order, and to each table in the order of its unique texts.
"""

from __future__ import annotations

import zlib
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from sqlalchemy import bindparam, func, insert, or_, select
from sqlalchemy.dialects import postgresql, sqlite

from cachegrind_bench.errors import StoreError
from cachegrind_bench.model.history import Snapshot
from cachegrind_bench.model.metrics import EVENTS
from cachegrind_bench.store.reading import HINT, rename, snapshot
from cachegrind_bench.store.record import Record, run_name
from cachegrind_bench.store.sql import schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Table

    from cachegrind_bench.model.history import Point
    from cachegrind_bench.store.reading import Rename

T = TypeVar("T")

# Whole records in memory at once, and values in one condition of a query.
FEW = 16
MANY = 500

# Far above any record; less than what a few damaged or hostile bytes can unfold to.
MOST = 1_000_000_000


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield these items in their order, so many at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))


def pack(record: Record) -> bytes:
    """Return the bytes to keep. StoreError for a record of absurd size."""
    if len(record.data) > MOST:
        raise StoreError(f"{record.name} has {len(record.data)} bytes, and a database takes {MOST}")
    return zlib.compress(record.data)


def unpack(name: str, packed: bytes) -> Record:
    """Return the record of these bytes. StoreError if they are damaged."""
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(packed, MOST)
    except zlib.error as error:
        raise StoreError(f"{name} is damaged in the database: {error}", hint=HINT) from error
    if not reader.eof or reader.unused_data:
        raise StoreError(f"{name} is damaged in the database: its bytes are cut off or too many", hint=HINT)
    return Record(name=name, data=data)


def stored(connection: Connection, names: Sequence[str]) -> list[tuple[int, str, str, bytes]]:
    """Return number, uid, name and packed bytes of those of these few records that are there, sorted by name."""
    table = schema.records.c
    found = connection.execute(select(table.id, table.uid, table.name, table.data).where(table.name.in_(names)))
    return sorted(((number, uid, name, data) for number, uid, name, data in found), key=lambda row: row[2])


_counts_of = attrgetter(*EVENTS)
_NO_COUNTS = (None,) * len(EVENTS)
_LARGEST = (1 << 63) - 1


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A record ready for the database: its packed bytes, and the run or the rename that it is."""

    name: str
    uid: str
    packed: bytes
    content: Snapshot | Rename


def prepare(record: Record) -> Prepared:
    """Do all that takes no database. StoreError for a record that no database can take."""
    content: Snapshot | Rename
    if run_name(record.name) is None:
        content = rename(record)
    else:
        content = snapshot(record)
        for point in content.points:
            numbers = () if point.counts is None else _counts_of(point.counts)
            if max((*numbers, 0 if point.score is None else point.score.value)) > _LARGEST:
                raise StoreError(f"{record.name} cannot be stored: {point.id[:80]!r} has an absurdly large number")
    return Prepared(name=record.name, uid=record.uid, packed=pack(record), content=content)


def add(connection: Connection, batch: Sequence[Prepared]) -> int:
    """Add these records, which have different names, in the transaction that is open; return how many were new.

    StoreError where another record has the name of one, or the same one another name.
    """
    there = _numbers_of_records(connection, batch)
    new = sorted((item for item in batch if item.name not in there), key=lambda item: item.uid)
    statement = _insert_or_pass(connection, schema.records)
    added: list[Prepared] = []
    for item in new:
        done = connection.execute(statement, {"uid": item.uid, "name": item.name, "data": item.packed})
        if done.rowcount == 1:  # else another writer was faster
            added.append(item)
    numbers = _numbers_of_records(connection, new)  # not of one that was there, and that a third has removed since
    _add_runs(connection, {numbers[item.name]: item.content for item in added})
    return len(added)


def _numbers_of_records(connection: Connection, batch: Sequence[Prepared]) -> dict[str, int]:
    """Return the numbers of those that are there, by name."""
    table, uids = schema.records.c, {item.name: item.uid for item in batch}
    alike = or_(table.uid.in_([*uids.values()]), table.name.in_([*uids]))
    found: dict[str, int] = {}
    for number, uid, name in connection.execute(select(table.id, table.uid, table.name).where(alike)):
        if uids.get(name) != uid:
            what = f"{name} is there, with another uid or under another name than the record that was to be added"
            raise StoreError(what, hint=HINT)
        found[name] = number
    return found


def _add_runs(connection: Connection, contents: Mapping[int, Snapshot | Rename]) -> None:
    runs = {number: item for number, item in contents.items() if isinstance(item, Snapshot)}
    renames = [
        {"id": number, "old": item.old, "new": item.new, "created_at": item.created_at}
        for number, item in contents.items()
        if not isinstance(item, Snapshot)
    ]
    points = [point for run in runs.values() for point in run.points]
    benchmarks = _numbers(connection, schema.benchmarks, (point.id for point in points))
    keys = _numbers(connection, schema.keys, (point.key for point in points))
    models = _numbers(connection, schema.models, (point.score.model for point in points if point.score is not None))
    rows = [
        (number, benchmarks[point.id], keys[point.key], position, *_values(point, models))
        for number, run in runs.items()
        for position, point in enumerate(run.points)
    ]
    if runs:
        connection.execute(insert(schema.runs), [_run(number, run) for number, run in runs.items()])
    if rows:
        _add_points(connection, rows)
    if renames:
        connection.execute(insert(schema.renames), renames)


def _add_points(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    columns = [*schema.points.columns]
    if connection.dialect.name != "postgresql":
        names = [column.name for column in columns]
        connection.execute(insert(schema.points), [dict(zip(names, row, strict=True)) for row in rows])
        return
    # A list for each column, as rows one by one take this server three times as long.
    lists = [
        func.unnest(bindparam(column.name, [*values], type_=postgresql.ARRAY(column.type)))
        for column, values in zip(columns, zip(*rows, strict=True), strict=True)
    ]
    connection.execute(insert(schema.points).from_select(columns, select(*lists)))


def _run(number: int, run: Snapshot) -> dict[str, Any]:
    commit = run.commit
    return {
        "id": number,
        "tool_version": run.tool_version,
        "created_at": run.created_at,
        "env_key": run.env_key,
        "sha": None if commit is None else commit.sha,
        "parent": None if commit is None else commit.parent,
        "branch": None if commit is None else commit.branch,
        "dirty": None if commit is None else commit.dirty,
        "committed_at": None if commit is None else commit.committed_at,
    }


def _values(point: Point, models: Mapping[str, int]) -> tuple[int | None, ...]:
    """Return the columns of a point from its status on."""
    return (
        schema.STATUS_NUMBERS[point.status],
        *(_NO_COUNTS if point.counts is None else _counts_of(point.counts)),
        None if point.score is None else models[point.score.model],
        None if point.score is None else point.score.value,
    )


def _numbers(connection: Connection, table: Table, names: Iterable[str]) -> dict[str, int]:
    """Return the numbers of these texts in a lookup table; those that it lacks are added."""
    wanted = {schema.digest(name): name for name in set(names)}
    found = _find(connection, table, sorted(wanted))
    missing = sorted(wanted.keys() - found.keys())
    if missing:
        rows = [{"digest": key, "name": wanted[key]} for key in missing]
        connection.execute(_insert_or_pass(connection, table), rows)
        found |= _find(connection, table, missing)
    return {name: found[key] for key, name in wanted.items()}


def _find(connection: Connection, table: Table, digests: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for some in chunks(digests, MANY):
        rows = connection.execute(select(table.c.digest, table.c.id).where(table.c.digest.in_(some)))
        found.update((row[0], row[1]) for row in rows)
    return found


def _insert_or_pass(connection: Connection, table: Table) -> Any:
    """Return the statement that adds a row, and does nothing where a unique text is there; its `rowcount` tells."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(table).on_conflict_do_nothing().execution_options(preserve_rowcount=True)
