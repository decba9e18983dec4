"""Everything that can be wrong with a database of records: the file, the records, and the numbers drawn from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.exc import DatabaseError

from cachegrind_bench.errors import StoreError
from cachegrind_bench.store.checking import Inspection
from cachegrind_bench.store.reading import rename, snapshot
from cachegrind_bench.store.record import run_name
from cachegrind_bench.store.sql import schema
from cachegrind_bench.store.sql.ingest import FEW, chunks, stored, unpack
from cachegrind_bench.store.sql.query import Reader, heads_of, rename_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from cachegrind_bench.model.history import Snapshot
    from cachegrind_bench.store.protocol import Problem
    from cachegrind_bench.store.sql.database import Database

_UNLIKE = "what the database drew from it is not what it says"


def check(database: Database) -> list[Problem]:
    """Read everything, and tell what is wrong. StoreError where nothing can be read."""
    found = Inspection()
    try:
        for some in chunks(_names(database, found), FEW):
            with database.reading() as connection:
                if connection is not None:
                    _check_records(connection, some, found)
    except StoreError as error:
        if not found.problems:
            raise
        found.tell(database.url, error.message)
    return found.report()


def _names(database: Database, found: Inspection) -> list[str]:
    with database.reading() as connection:
        if connection is None:
            return []
        if connection.dialect.name == "sqlite":
            _check_file(connection, database.url, found)
        return sorted(connection.scalars(select(schema.records.c.name)))


def _check_file(connection: Connection, url: str, found: Inspection) -> None:
    """Ask SQLite itself: damaged pages, texts that are there twice, rows that refer to nothing."""
    try:
        for (what,) in connection.exec_driver_sql("PRAGMA integrity_check"):
            if what != "ok":
                found.tell(url, str(what))
        for table, *_ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
            found.tell(url, f"a row of {table} refers to what is not there")
    except DatabaseError as error:  # what can be read all the same is looked at nevertheless
        found.tell(url, str(error.orig))


def _check_records(connection: Connection, names: Sequence[str], found: Inspection) -> None:
    rows = stored(connection, names)
    heads = heads_of(connection, [number for number, *_ in rows])
    reader = Reader.of(connection)
    for number, uid, name, packed in rows:
        try:
            record = unpack(name, packed)
            found.see(record)
            if uid != record.uid:
                found.tell(name, f"the database keeps it as {uid}, and its bytes are {record.uid}")
            elif run_name(name) is None:
                if rename(record) != rename_at(connection, number):
                    found.tell(name, _UNLIKE)
            elif number not in heads or snapshot(record) != _run(connection, reader, number, heads[number]):
                found.tell(name, _UNLIKE)
        except StoreError as error:
            found.tell(name, error.message)


def _run(connection: Connection, reader: Reader, number: int, head: Snapshot) -> Snapshot | None:
    return reader.read(connection, {number: head}, None).get(number)
