"""From the version a database has to the newest, step by step, in one transaction.

A step that was released never changes: it says in plain SQL what it did, whatever `schema` says today. Knows connections;
must not know records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import inspect, select

from cachegrind_bench.errors import StoreError
from cachegrind_bench.store.sql import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection

    Step = Callable[[Connection], None]

# Any number that others are unlikely to lock in the same database.
LOCK = 0x63672D62656E6368


def current(connection: Connection, newest: int, url: str) -> int:
    """Return the version of this database, 0 where it has no tables of ours.

    StoreError if this program is too old for it, or if it is the file of another program: somebody named the wrong one.
    """
    if not inspect(connection).has_table(schema.version.name):
        others = inspect(connection).get_table_names() if connection.dialect.name == "sqlite" else []
        if others:
            what = f"{url} is a database of something else: it has the table {min(others)[:80]!r}"
            raise StoreError(what, hint="name another file")
        return 0
    found: list[int] = [*connection.scalars(select(schema.version.c.version))]
    if len(found) != 1 or found[0] < 1:
        raise StoreError(f"{url} does not say which version it has: {schema.version.name} was altered")
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
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
    there = current(connection, len(steps), url)
    for step in steps[there:]:
        step(connection)
    if there < len(steps):
        connection.execute(schema.version.delete())
        connection.execute(schema.version.insert().values(version=len(steps)))


def exclude(connection: Connection) -> None:
    """Let nobody migrate before the transaction that is open ends."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock_shared({LOCK})")


def _first(connection: Connection) -> None:
    """Make the tables of version 1."""
    postgresql = connection.dialect.name == "postgresql"
    # AUTOINCREMENT: the number of a removed record is never given to another.
    serial = "SERIAL PRIMARY KEY" if postgresql else "INTEGER PRIMARY KEY AUTOINCREMENT"
    blob = "BYTEA" if postgresql else "BLOB"
    # The rows in the order of the key, and no second tree: half the size.
    clustered = "" if postgresql else " WITHOUT ROWID"
    lookup = f"id {serial} NOT NULL, digest CHAR(32) NOT NULL, name TEXT NOT NULL, UNIQUE (digest)"
    drawn = "id INTEGER NOT NULL PRIMARY KEY REFERENCES cg_bench_records ON DELETE CASCADE"
    points = """
        run INTEGER NOT NULL REFERENCES cg_bench_runs ON DELETE CASCADE,
        benchmark INTEGER NOT NULL REFERENCES cg_bench_benchmarks, key INTEGER NOT NULL REFERENCES cg_bench_keys,
        position INTEGER NOT NULL, status SMALLINT NOT NULL,
        ir BIGINT, i1mr BIGINT, ilmr BIGINT, dr BIGINT, d1mr BIGINT, dlmr BIGINT, dw BIGINT, d1mw BIGINT, dlmw BIGINT,
        model INTEGER REFERENCES cg_bench_models, score BIGINT, PRIMARY KEY (run, benchmark)"""
    records = f"""
        id {serial} NOT NULL, uid CHAR(16) NOT NULL, name TEXT NOT NULL, data {blob} NOT NULL,
        UNIQUE (uid), UNIQUE (name)"""
    runs = f"""
        {drawn}, tool_version TEXT NOT NULL, created_at TEXT NOT NULL, env_key TEXT NOT NULL,
        sha TEXT, parent TEXT, branch TEXT, dirty BOOLEAN, committed_at TEXT"""
    for table, columns, options in (
        ("schema", "version INTEGER NOT NULL", ""),
        ("records", records, ""),
        ("runs", runs, ""),
        ("renames", f"{drawn}, old TEXT NOT NULL, new TEXT NOT NULL, created_at TEXT NOT NULL", ""),
        ("benchmarks", lookup, ""),
        ("keys", lookup, ""),
        ("models", lookup, ""),
        ("points", points, clustered),
    ):
        connection.exec_driver_sql(f"CREATE TABLE cg_bench_{table} ({columns}){options}")


STEPS: tuple[Step, ...] = (_first,)
