"""A database of an older version is brought to the newest with all that is in it; one of a newer version is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import LargeBinary, MetaData, create_engine, insert, inspect, select, text

from cachegrind_bench.errors import StoreError
from cachegrind_bench.store.protocol import Query
from cachegrind_bench.store.sql.database import RECORDS as TABLE
from cachegrind_bench.store.sql.database import STEPS, VERSION, Database
from cachegrind_bench.store.sql.store import SqlStore
from tests.unit.stored import FEBRUARY, RECORDS, RENAME, all_names, stored

if TYPE_CHECKING:
    from sqlalchemy import Connection

pytest_plugins = ["tests.postgres"]

# Written by the program that made version 1, with `FEBRUARY`, `RECORDS` and `RENAME` in it. Never write it anew.
FROZEN = Path(__file__).resolve().parent.parent / "data" / "databases" / "version-1.sqlite"


def widen(connection: Connection) -> None:
    """Do what a next version may do: a new column, filled from what is there."""
    connection.exec_driver_sql("ALTER TABLE cg_bench_records ADD COLUMN size INTEGER")
    connection.exec_driver_sql("UPDATE cg_bench_records SET size = 1 WHERE length(data) > 0")


def fail(connection: Connection) -> None:
    """Fail halfway."""
    widen(connection)
    connection.exec_driver_sql("SELECT * FROM no_such_table")


# Opens the database with one step more than there is, when it is told to.
MIGRATE = """
import sys
from sqlalchemy import text
from cachegrind_bench.store.sql.database import Database
from cachegrind_bench.store.sql.database import RECORDS as TABLE
from cachegrind_bench.store.sql.database import STEPS, VERSION
from tests.unit.test_sql_migrations import widen
database = Database(sys.argv[1], patience=60, steps=(*STEPS, widen))
print("ready", flush=True)
sys.stdin.readline()
print(database.write(lambda connection: connection.scalar(text("SELECT SUM(size) FROM cg_bench_records"))))
"""


def version_1(url: str) -> None:
    """Make a database of version 1 with what the frozen file has."""
    if url.startswith("sqlite"):
        shutil.copy(FROZEN, url.removeprefix("sqlite:///"))
        return
    frozen, made = (
        create_engine(f"sqlite:///{FROZEN}"),
        create_engine(url.replace("postgresql:", "postgresql+psycopg:")),
    )
    with frozen.connect() as source, made.begin() as connection:
        there = MetaData()
        there.reflect(source, only=lambda name, _: name.startswith("cg_bench_"))
        there.tables[TABLE.name].c.data.type = LargeBinary()
        there.create_all(connection)
        for table in there.sorted_tables:
            connection.execute(insert(table), [row._asdict() for row in source.execute(select(table))])
        connection.exec_driver_sql("SELECT setval('cg_bench_records_id_seq', (SELECT MAX(id) FROM cg_bench_records))")
    frozen.dispose()
    made.dispose()


def tables(url: str) -> list[str]:
    """Return the names of the tables that are there."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        return sorted(inspect(engine).get_table_names())
    finally:
        engine.dispose()


def test_a_database_of_version_1_is_read_and_written(database_url: str) -> None:
    version_1(database_url)
    with SqlStore(database_url) as store:
        assert store.names() == all_names()
        assert list(store.read()) == sorted([*RECORDS, FEBRUARY, RENAME], key=lambda record: record.name)
        assert [point.id for run in store.snapshots(Query()) for point in run.points] == ["filter"] * 9
        assert store.check() == []
        assert "cg_bench_points" in tables(database_url)  # whoever only reads changes nothing
        assert store.add([*RECORDS, stored(99)]) == 1
        assert store.names() == sorted([*all_names(), stored(99).name])
        assert [point.id for run in store.snapshots(Query()) for point in run.points] == ["filter"] * 10
        assert store.check() == []
    assert [name for name in tables(database_url) if name.startswith("cg_bench_")] == [TABLE.name, VERSION.name]


def test_an_older_database_is_migrated_with_all_that_is_in_it(database_url: str) -> None:
    version_1(database_url)
    newer = Database(database_url, patience=5, steps=(*STEPS, widen))
    query = text("SELECT SUM(size) FROM cg_bench_records")
    assert newer.write(lambda connection: connection.scalar(query)) == 10
    with newer.reading() as connection:
        assert connection is not None
        assert connection.scalar(select(VERSION.c.version)) == len(STEPS) + 1
        assert len(connection.execute(select(TABLE)).all()) == 10
    newer.close()


def test_a_migration_that_fails_leaves_the_database_as_it_was(database_url: str) -> None:
    version_1(database_url)
    newer = Database(database_url, patience=5, steps=(*STEPS, fail))
    with pytest.raises(StoreError, match="no_such_table"):
        newer.write(lambda _: None)
    newer.close()
    with SqlStore(database_url) as store:
        assert store.names() == all_names()
        assert store.check() == []


def test_of_many_who_migrate_at_once_one_does_and_all_go_on(database_url: str) -> None:
    version_1(database_url)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", MIGRATE, database_url],
            env={"PYTHONPATH": os.getcwd(), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.communicate(timeout=120)[0] for process in processes] == ["10\n"] * 8
    assert [process.returncode for process in processes] == [0] * 8


def test_a_database_of_a_newer_version_is_refused_and_left_alone(database_url: str) -> None:
    version_1(database_url)
    newer = Database(database_url, patience=5, steps=(*STEPS, widen))
    newer.write(lambda _: None)
    with SqlStore(database_url) as store:
        for act in (store.names, store.check, lambda: store.add(RECORDS), lambda: store.remove(all_names())):
            with pytest.raises(StoreError, match=f"has version {len(STEPS) + 1} of the tables") as caught:
                act()
            assert caught.value.hint == "install a newer cachegrind-bench"
    with newer.reading() as connection:
        assert connection is not None
        assert len(connection.execute(select(TABLE)).all()) == 10
    newer.close()


@pytest.mark.parametrize("statement", ["DELETE FROM cg_bench_schema", "UPDATE cg_bench_schema SET version = 0"])
def test_a_database_that_lost_its_version_is_not_taken_for_empty(database_url: str, statement: str) -> None:
    version_1(database_url)
    database = Database(database_url, patience=5)
    database.write(lambda connection: connection.exec_driver_sql(statement))
    database.close()
    with SqlStore(database_url) as store, pytest.raises(StoreError, match="does not say which version"):
        store.names()
