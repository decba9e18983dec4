"""The tables, and how a database of an older version comes to have them: step by step, in one transaction.

A step that was released never changes. Knows connections; must not know records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import column, delete, insert, inspect, select, table

from cachegrind_bench.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection

    Step = Callable[[Connection], None]

# The names begin alike, as others may keep their tables in the same database.
VERSION = table("cg_bench_schema", column("version"))
# One row for each record; `data` is its bytes, compressed.
RECORDS = table("cg_bench_records", column("id"), column("uid"), column("name"), column("data"))

# Any number that others are unlikely to lock in the same database.
_LOCK = 0x63672D62656E6368


def current(connection: Connection, newest: int, url: str) -> int:
    """Return the version of this database, 0 where it has no tables of ours.

    StoreError if this program is too old for it, or if it is the file of another program: somebody named the wrong one.
    """
    if not inspect(connection).has_table(VERSION.name):
        others = inspect(connection).get_table_names() if connection.dialect.name == "sqlite" else []
        if others:
            what = f"{url} is a database of something else: it has the table {min(others)[:80]!r}"
            raise StoreError(what, hint="name another file")
        return 0
    found: list[int] = [*connection.scalars(select(VERSION.c.version))]
    if len(found) != 1 or found[0] < 1:
        raise StoreError(f"{url} does not say which version it has: {VERSION.name} was altered")
    if found[0] > newest:
        raise StoreError(
            f"{url} has version {found[0]} of the tables, and this cg-bench knows them up to {newest}",
            hint="install a newer cachegrind-bench",
        )
    return found[0]


def migrate(connection: Connection, steps: Sequence[Step], url: str) -> None:
    """Bring the database to the newest version, in the transaction that is open; nothing to do is fine.

    Of two at once, one waits for the other and then finds it done: SQLite's transactions that write exclude each other,
    in PostgreSQL a lock does it. StoreError as for `current`.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    there = current(connection, len(steps), url)
    for step in steps[there:]:
        step(connection)
    if there < len(steps):
        connection.execute(delete(VERSION))
        connection.execute(insert(VERSION).values(version=len(steps)))


def exclude(connection: Connection) -> None:
    """Let nobody migrate before the transaction that is open ends."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock_shared({_LOCK})")


def _make_tables(connection: Connection) -> None:
    """Make the tables of version 1, but for those that version 2 is without."""
    postgresql = connection.dialect.name == "postgresql"
    # AUTOINCREMENT: the number of a removed record is never given to another.
    serial = "SERIAL PRIMARY KEY" if postgresql else "INTEGER PRIMARY KEY AUTOINCREMENT"
    blob = "BYTEA" if postgresql else "BLOB"
    connection.exec_driver_sql("CREATE TABLE cg_bench_schema (version INTEGER NOT NULL)")
    connection.exec_driver_sql(
        f"CREATE TABLE cg_bench_records (id {serial} NOT NULL, uid CHAR(16) NOT NULL, name TEXT NOT NULL,"
        f" data {blob} NOT NULL, UNIQUE (uid), UNIQUE (name))"
    )


def _drop_numbers(connection: Connection) -> None:
    """Drop what version 1 kept twice: the numbers that are in the records as well."""
    for name in ("points", "runs", "renames", "benchmarks", "keys", "models"):
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS cg_bench_{name}")


STEPS: tuple[Step, ...] = (_make_tables, _drop_numbers)
