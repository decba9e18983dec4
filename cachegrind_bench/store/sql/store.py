"""The store `sqlite:///PATH` or `postgresql://…`: a row for each record, safe with many writers at once.

What the Store protocol asks for, each method a transaction or a few. Writers add in the order of uids, so that nobody
waits in a circle.
"""

# ruff: noqa: D102  # what the methods of `Store` do is said there
from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, delete, or_, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DatabaseError

from cachegrind_bench.errors import StoreError
from cachegrind_bench.model.result import Snapshot
from cachegrind_bench.store import reading
from cachegrind_bench.store.checking import Inspection, checked, intact
from cachegrind_bench.store.durable import check_writable
from cachegrind_bench.store.protocol import Problem, Query, Report, Store
from cachegrind_bench.store.record import Record
from cachegrind_bench.store.sql.database import RECORDS, Database
from cachegrind_bench.waiting import Waiting

T = TypeVar("T")

_PATIENCE = 60.0
# Whole records in memory at once, and values in one condition of a query.
_FEW = 16
_MANY = 500
_TRIES = 10  # of adding the same rows


class SqlStore(Store):
    """A database of records. Made when something is first added; one of an older version is then brought to the newest.

    `patience` is how long, in seconds, one waits for other writers before that is an error. UsageError for a bad URL.
    """

    def __init__(self, url: str, *, patience: float = _PATIENCE, waiting: Waiting | None = None) -> None:
        self._database = Database(url, patience=patience, waiting=waiting or Waiting())

    @property
    def url(self) -> str:
        return self._database.url

    def check_usable(self) -> None:
        if self._database.path is not None:
            check_writable(Path(self._database.path))

    def add(self, records: Sequence[Record]) -> int:
        """Keep these, durably; return how many were new. All are kept or none: one transaction, as each waits for the disk."""
        rows = [
            {"uid": record.uid, "name": record.name, "data": zlib.compress(record.data)}
            for record in sorted(checked(records).values(), key=lambda record: record.uid)
        ]
        return self._database.write(partial(_add, rows=rows)) if rows else 0

    def exists(self) -> bool:
        with self._database.reading() as connection:
            return connection is not None

    def names(self) -> list[str]:
        with self._database.reading() as connection:
            return _names(connection)

    def read(self, names: Iterable[str] | None = None, report: Report | None = None) -> Iterator[Record]:
        for some in _chunks(self.names() if names is None else sorted(set(names)), _FEW):
            # A transaction for a few at a time: whoever takes long over what is yielded holds nobody up.
            with self._database.reading() as connection:
                rows = _rows(connection, some)
            missing = {*some} - {name for _, name, _ in rows}
            if missing and names is not None and report is None:
                raise StoreError(f"{self.url} has no {min(missing)[:200]}")
            yield from _unfolded(rows, report)

    def remove(self, names: Collection[str]) -> int:
        count = 0
        for some in _chunks(sorted(set(names)), _MANY) if self.names() else ():
            count += self._database.write(partial(_remove, names=some))
        return count

    def snapshots(self, query: Query, report: Report | None = None) -> Iterator[Snapshot]:
        with self._database.reading() as connection:
            read = partial(_records, connection, report=report)
            found = reading.snapshots(_names(connection), read, query, report)
        yield from found

    def check(self) -> list[Problem]:
        found = Inspection()
        try:
            with self._database.reading() as connection:
                if connection is not None and connection.dialect.name == "sqlite":
                    _check_file(connection, self.url, found)
                names = _names(connection)
            for some in _chunks(names, _FEW):
                with self._database.reading() as connection:
                    rows = _rows(connection, some)
                for uid, name, packed in rows:
                    try:
                        record = _unpack(name, packed)
                    except StoreError as error:
                        found.report(name, error.message)
                        continue
                    found.see(record)
                    if uid != record.uid:
                        found.report(name, f"the database keeps it as {uid}, and its bytes are {record.uid}")
        except StoreError as error:
            if not found.problems:
                raise
            found.report(self.url, error.message)
        return found.result()

    def __exit__(self, *_: object) -> None:
        """Let go of connections."""
        self._database.close()


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield these items in their order, in batches of this size."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _unpack(name: str, packed: Any) -> Record:
    """Return the record of these bytes. StoreError if they are damaged: SQLite keeps values of any type in any column."""
    try:
        return Record(name=name, data=zlib.decompress(packed))
    except (TypeError, zlib.error) as error:
        raise StoreError(f"{name} is damaged in the database: {error}", hint=reading.HINT) from error


def _names(connection: Connection | None) -> list[str]:
    names: list[Any] = [] if connection is None else [*connection.scalars(select(RECORDS.c.name))]
    if not all(isinstance(name, str) for name in names):
        raise StoreError("the database is damaged: the name of a record is not a text", hint=reading.HINT)
    return sorted(names)


def _rows(connection: Connection | None, names: Sequence[str]) -> list[tuple[str, str, Any]]:
    """Return uid, name and packed bytes of those of these few records that are there, sorted by name."""
    if connection is None:
        return []
    columns = RECORDS.c
    rows = connection.execute(select(columns.uid, columns.name, columns.data).where(columns.name.in_(names)))
    return sorted(((uid, name, data) for uid, name, data in rows), key=lambda row: row[1])


def _records(connection: Connection | None, names: Sequence[str], report: Report | None = None) -> Iterator[Record]:
    """Return those of these records that are there, in this order, which is that of names. StoreError for a damaged one."""
    for some in _chunks(names, _FEW):
        yield from _unfolded(_rows(connection, some), report)


def _unfolded(rows: Iterable[tuple[str, str, Any]], report: Report | None) -> Iterator[Record]:
    """Return the records of these rows, one at a time: a few bytes may unfold to very many. StoreError for a damaged one."""
    for _, name, packed in rows:
        with reading.reported(report, name):
            yield intact(_unpack(name, packed), name)


def _add(connection: Connection, rows: Sequence[dict[str, Any]]) -> int:
    """Add these rows, which have different names; return how many were new.

    StoreError where another record has the name of one, or the same one another name.
    """
    return sum(_add_some(connection, some) for some in _chunks(rows, _MANY))


def _add_some(connection: Connection, rows: Sequence[dict[str, Any]]) -> int:
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(RECORDS).on_conflict_do_nothing().execution_options(preserve_rowcount=True)
    count = 0
    for _ in range(_TRIES):  # another writer may be faster, and what it has added be removed at once
        there = _refuse_others(connection, rows)
        new = [row for row in rows if row["name"] not in there]
        added = sum(connection.execute(statement, row).rowcount for row in new)
        count += added
        if added == len(new):
            return count
    raise StoreError(f"the database does not keep what is added to {RECORDS.name}", hint="are there rules or triggers?")


def _refuse_others(connection: Connection, rows: Sequence[dict[str, Any]]) -> set[str]:
    """Return the names of those that are there."""
    columns, uids = RECORDS.c, {row["name"]: row["uid"] for row in rows}
    alike = or_(columns.uid.in_([*uids.values()]), columns.name.in_([*uids]))
    found: dict[str, str] = {
        name: uid for uid, name in connection.execute(select(columns.uid, columns.name).where(alike))
    }
    for name, uid in found.items():
        if uids.get(name) != uid:
            what = f"{name} is there, with another uid or under another name than the record that was to be added"
            raise StoreError(what, hint=reading.HINT)
    return {*found}


def _remove(connection: Connection, names: Sequence[str]) -> int:
    """Remove these records. In one order, so that nobody waits in a circle."""
    columns = RECORDS.c
    statement = select(columns.id).where(columns.name.in_(names)).order_by(columns.id).with_for_update()
    numbers = connection.scalars(statement).all()
    return connection.execute(delete(RECORDS).where(columns.id.in_(numbers))).rowcount


def _check_file(connection: Connection, url: str, found: Inspection) -> None:
    """Ask SQLite itself for damaged pages, and texts that are there twice."""
    try:
        for (what,) in connection.exec_driver_sql("PRAGMA integrity_check"):
            if what != "ok":
                found.report(url, str(what))
    except DatabaseError as error:  # what can be read all the same is looked at nevertheless
        found.report(url, str(error.orig))
