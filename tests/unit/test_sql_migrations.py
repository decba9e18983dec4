"""A database of an older version is brought to the newest with all that is in it; one of a newer version is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import MetaData, create_engine, insert, inspect, select, text

from cachegrind_bench.errors import StoreError
from cachegrind_bench.store.protocol import Query
from cachegrind_bench.store.sql import schema
from cachegrind_bench.store.sql.database import Database
from cachegrind_bench.store.sql.migrations import STEPS
from cachegrind_bench.store.sql.store import SqlStore
from tests.unit.stored import FEBRUARY, RECORDS, RENAME, all_names, stored

if TYPE_CHECKING:
    from sqlalchemy import Connection

pytest_plugins = ["tests.postgres"]

# Written by the program that made version 1, with `FEBRUARY`, `RECORDS` and `RENAME` in it. Never write it anew.
FROZEN = Path(__file__).resolve().parent.parent / "data" / "databases" / "version-1.sqlite"


def widen(connection: Connection) -> None:
    """Do what a next version may do: a new column, filled from what is there."""
    connection.exec_driver_sql("ALTER TABLE cg_bench_runs ADD COLUMN size INTEGER")
    connection.exec_driver_sql(
        "UPDATE cg_bench_runs SET size = (SELECT COUNT(*) FROM cg_bench_points WHERE run = cg_bench_runs.id)"
    )


def fail(connection: Connection) -> None:
    """Fail halfway."""
    widen(connection)
    connection.exec_driver_sql("SELECT * FROM no_such_table")


# Opens the database with one step more than there is, when it is told to.
MIGRATE = """
import sys
from sqlalchemy import text
from cachegrind_bench.store.sql.database import Database
from cachegrind_bench.store.sql.migrations import STEPS
from tests.unit.test_sql_migrations import widen
database = Database(sys.argv[1], patience=60, steps=(*STEPS, widen))
print("ready", flush=True)
sys.stdin.readline()
with database.reading() as connection:
    print(connection.scalar(text("SELECT SUM(size) FROM cg_bench_runs")))
"""


def version_1(url: str) -> None:
    """Make a database of version 1 with what the frozen file has."""
    if url.startswith("sqlite"):
        shutil.copy(FROZEN, url.removeprefix("sqlite:///"))
        return
    database = Database(url, patience=5, steps=STEPS[:1])
    database.write(fill)
    database.close()


def fill(connection: Connection) -> None:
    frozen = create_engine(f"sqlite:///{FROZEN}")
    with frozen.connect() as source:
        there = MetaData()
        there.reflect(source)
        for table in there.sorted_tables:
            if table.name not in {"cg_bench_schema", "sqlite_sequence"}:
                connection.execute(insert(table), [row._asdict() for row in source.execute(select(table))])
    frozen.dispose()
    for kind in ("records", "benchmarks", "keys", "models"):
        name = f"cg_bench_{kind}"
        connection.exec_driver_sql(f"SELECT setval('{name}_id_seq', (SELECT MAX(id) FROM {name}))")  # noqa: S608


def test_a_database_of_version_1_is_read_and_written(database_url: str) -> None:
    version_1(database_url)
    with SqlStore(database_url) as store:
        assert store.names() == all_names()
        assert list(store.read()) == sorted([*RECORDS, FEBRUARY, RENAME], key=lambda record: record.name)
        assert [point.id for run in store.snapshots(Query()) for point in run.points] == ["filter"] * 9
        assert store.add([*RECORDS, stored(99)]) == 1
        assert store.check() == []


@pytest.mark.parametrize("writing", [False, True])
def test_an_older_database_is_migrated_with_all_that_is_in_it(database_url: str, writing: bool) -> None:
    version_1(database_url)
    newer = Database(database_url, patience=5, steps=(*STEPS, widen))
    query = text("SELECT SUM(size) FROM cg_bench_runs")
    if writing:
        assert newer.write(lambda connection: connection.scalar(query)) == 9
    with newer.reading() as connection:
        assert connection is not None
        assert connection.scalar(query) == 9
        assert connection.scalar(select(schema.version.c.version)) == len(STEPS) + 1
        assert len(connection.execute(select(schema.records)).all()) == 10
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
    assert [process.communicate(timeout=120)[0] for process in processes] == ["9\n"] * 8
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
        assert len(connection.execute(select(schema.records)).all()) == 10
    newer.close()


@pytest.mark.parametrize("statement", ["DELETE FROM cg_bench_schema", "UPDATE cg_bench_schema SET version = 0"])
def test_a_database_that_lost_its_version_is_not_taken_for_empty(database_url: str, statement: str) -> None:
    version_1(database_url)
    database = Database(database_url, patience=5)
    database.write(lambda connection: connection.exec_driver_sql(statement))
    database.close()
    with SqlStore(database_url) as store, pytest.raises(StoreError, match="does not say which version"):
        store.names()


def test_the_steps_make_the_tables_that_queries_name(database_url: str) -> None:
    database = Database(database_url, patience=5)
    database.write(lambda _: None)
    with database.reading() as connection:
        assert connection is not None
        made, dialect = inspect(connection), connection.dialect
        assert sorted(made.get_table_names()) == sorted(schema.tables.tables)
        for name, table in schema.tables.tables.items():
            there = {
                column["name"]: (column["type"].compile(dialect), column["nullable"])
                for column in made.get_columns(name)
            }
            assert there == {
                column.name: (column.type.compile(dialect), column.nullable) for column in table.columns
            }, name
            assert made.get_pk_constraint(name)["constrained_columns"] == [*table.primary_key.columns.keys()]
            unique = {tuple(item["column_names"]) for item in made.get_unique_constraints(name)}
            assert unique == {(column.name,) for column in table.columns if column.unique}
            assert {key["referred_table"] for key in made.get_foreign_keys(name)} == {
                key.column.table.name for key in table.foreign_keys
            }
    database.close()
