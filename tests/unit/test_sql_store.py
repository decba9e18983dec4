"""A database keeps what it is given, gives it back, and answers from it what a store of files would say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from sqlalchemy import create_engine, text, update

from cachegrind_bench.errors import StoreError
from cachegrind_bench.model.result import Status
from cachegrind_bench.store.files import FileStore
from cachegrind_bench.store.protocol import Query
from cachegrind_bench.store.record import Record, rename_record, run_record
from cachegrind_bench.store.sql import store as sql_store
from cachegrind_bench.store.sql.database import RECORDS as RECORDS_TABLE
from cachegrind_bench.store.sql.store import SqlStore
from tests.unit.samples import HOSTILE, failed_benchmark, result, rich_benchmark
from tests.unit.stored import FEBRUARY, NAMES, RECORDS, RENAME, all_names, measured, stored

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = ["tests.postgres"]


@pytest.fixture
def store(database_url: str) -> Iterator[SqlStore]:
    """Return a store with eight runs of January, one of February and a rename."""
    with SqlStore(database_url) as store:
        assert store.add([FEBRUARY, *reversed(RECORDS), RENAME]) == 10
        yield store


@pytest.fixture
def empty(database_url: str) -> Iterator[SqlStore]:
    with SqlStore(database_url) as store:
        yield store


def change(database_url: str, statement: str, **values: object) -> int:
    """Change the database behind the store's back; return how many rows that were."""
    engine = create_engine(database_url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with engine.begin() as connection:
            return connection.execute(text(statement), values).rowcount
    finally:
        engine.dispose()


def problems(store: SqlStore) -> list[str]:
    return [f"{problem.where}: {problem.what}" for problem in store.check()]


def test_what_was_added_is_read_back_byte_for_byte_in_the_order_of_names(store: SqlStore) -> None:
    assert store.names() == all_names()
    assert list(store.read()) == sorted([*RECORDS, FEBRUARY, RENAME], key=lambda record: record.name)
    assert list(store.read(reversed(NAMES))) == RECORDS
    assert list(store.read([])) == []
    assert problems(store) == []
    assert [store.profile(name) for name in NAMES] == [None] * 8


def test_adding_again_adds_nothing(store: SqlStore) -> None:
    assert store.add([*RECORDS, RENAME]) == 0
    assert store.add([stored(50), RECORDS[0], stored(50)]) == 1
    assert store.add([]) == 0
    assert len(store.names()) == 11
    assert problems(store) == []


def test_hostile_texts_are_kept_as_they_are(empty: SqlStore) -> None:
    odd = "nul \0 sub \x1a0\x1a1 \x1a\0 quote ' \" \\ %s %(x)s :x ? \U0001f600"
    ids = (HOSTILE, odd, "x" * 20_000, "", " ", "\u00c5", "A\u030a", "SIEVE", "sieve", "sieve ")
    benchmarks = [measured(name, key=odd if number == 1 else "0123456789ab") for number, name in enumerate(ids)]
    run = result(*benchmarks, rich_benchmark(), failed_benchmark(id="f"), tool_version=odd)
    assert run.commit is not None
    record = run_record(replace(run, commit=replace(run.commit, branch=odd, dirty=True, parent="a" * 40)))
    rename = rename_record(odd, "new\0", "2026-01-01T00:00:00Z")
    assert empty.add([record, rename]) == 2
    assert {item.name: item.data for item in empty.read()} == {record.name: record.data, rename.name: rename.data}
    assert problems(empty) == []
    (snapshot,) = empty.snapshots(Query())
    assert [point.id for point in snapshot.points] == [
        *("new\0" if name == odd else name for name in ids),
        f"odd {HOSTILE}",
        "f",
    ]
    assert snapshot.tool_version == odd
    assert snapshot.commit is not None
    assert (snapshot.commit.branch, snapshot.commit.dirty) == (odd, True)
    assert snapshot.points[1].key == odd


def test_runs_are_those_that_a_store_of_files_reads(tmp_path: Path, empty: SqlStore) -> None:
    statuses = [measured("t", counts=None, score=None, runs=(), status=Status.TIMEOUT, error="x"), measured("a", 3)]
    records = [
        *(stored(n, measured("z", n + 1), measured("a", n + 2), measured(f"b{n}")) for n in range(40)),
        stored(41, *statuses, failed_benchmark(id="f")),
        stored(42, commit=None),
        stored(43, measured("a"), measured("c")),
        stored(44, measured("old"), measured("older")),
        rename_record("a", "c", "2026-01-02T00:00:00Z"),
        rename_record("older", "old", "2026-01-03T00:00:00Z"),
        rename_record("old", "new", "2026-01-04T00:00:00Z"),
    ]
    files = FileStore(tmp_path / "files")
    files.add(records)
    empty.add(records)
    queries = [
        Query(),
        Query(since="2026-01-01T20:00:00Z"),
        Query(shas=frozenset({f"{n:040x}"[::-1] for n in (3, 41, 43)} | {"0" * 40})),
        *(Query(wanted=wanted.__contains__) for wanted in ({"a"}, {"c"}, {"old"}, {"new", "z"}, set[str]())),
        Query(wanted=lambda name: name.startswith("b"), since="2026-01-01T05:00:00Z"),
    ]
    for query in queries:
        expected = list(files.snapshots(query))
        assert list(empty.snapshots(query)) == expected
    assert len(list(empty.snapshots(Query()))) == 44


def test_many_benchmarks_that_are_wanted_are_all_found(empty: SqlStore) -> None:
    empty.add([stored(n, *(measured(f"b{i}", i + n) for i in range(1200))) for n in (1, 2)])
    for size in (3, 1000, 1200):
        wanted = {f"b{i}" for i in range(7, 7 + size)}
        found = list(empty.snapshots(Query(wanted=wanted.__contains__)))
        assert [len(run.points) for run in found] == [min(size, 1193)] * 2


def test_a_damaged_record_is_an_error_and_others_are_read(store: SqlStore, database_url: str) -> None:
    statement = "UPDATE cg_bench_records SET data = :data WHERE name = :name"
    assert change(database_url, statement, data=b"?", name=FEBRUARY.name) == 1
    assert len(list(store.snapshots(Query(shas=frozenset({f"{3:040x}"[::-1]}))))) == 1
    for read in (store.read, lambda: store.snapshots(Query())):
        with pytest.raises(StoreError, match="damaged"):
            list(read())
    assert [problem.where for problem in store.check()] == [FEBRUARY.name]


def test_records_are_unfolded_one_at_a_time(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    unfolded: list[str] = []

    def unfold(name: str, packed: bytes) -> Any:
        unfolded.append(name)
        return unpack(name, packed)

    unpack = sql_store._unpack
    monkeypatch.setattr(sql_store, "_unpack", unfold)
    for number, _ in enumerate(store.read(), 1):
        assert len(unfolded) == number


def test_what_was_removed_is_gone_and_can_come_back(store: SqlStore) -> None:
    assert store.remove([NAMES[0], NAMES[1], RENAME.name, "runs/2026/01/nocommit.00000000.00000000.json", "x"]) == 3
    assert store.names() == sorted([*NAMES[2:], FEBRUARY.name])
    assert {point.id for run in store.snapshots(Query()) for point in run.points} == {"sieve"}
    assert store.remove([NAMES[0]]) == 0
    assert problems(store) == []
    assert store.add(RECORDS) == 2
    assert problems(store) == []


def test_a_name_that_is_not_there_is_an_error(store: SqlStore) -> None:
    with pytest.raises(StoreError, match="has no runs/2026/01/nocommit"):
        list(store.read([NAMES[0], "runs/2026/01/nocommit.00000000.00000000.json"]))


def test_a_store_that_was_never_written_is_empty_and_reading_makes_nothing(empty: SqlStore, database_url: str) -> None:
    assert empty.names() == []
    assert list(empty.read()) == []
    assert list(empty.snapshots(Query())) == []
    assert empty.check() == []
    assert empty.remove(["x"]) == 0
    with pytest.raises(StoreError, match="has no x"):
        list(empty.read(["x"]))
    if database_url.startswith("sqlite"):
        assert not Path(database_url.removeprefix("sqlite:///")).exists()
    with pytest.raises(Exception, match="cg_bench_records"):
        change(database_url, "DELETE FROM cg_bench_records")


def test_a_batch_with_one_bad_record_is_not_kept_at_all(empty: SqlStore) -> None:
    good = stored(1)
    bad = [
        Record(name=good.name, data=good.data + b" "),
        Record(name="elsewhere.json", data=good.data),
    ]
    for record in bad:
        with pytest.raises(StoreError, match="cannot be stored"):
            empty.add([stored(2), record, stored(3)])
    assert empty.names() == []


def test_another_record_of_the_same_name_is_refused(store: SqlStore, database_url: str) -> None:
    change(database_url, "UPDATE cg_bench_records SET uid = '0000000000000000' WHERE name = :name", name=NAMES[0])
    with pytest.raises(StoreError, match="with another uid"):
        store.add([RECORDS[0], stored(77)])
    assert stored(77).name not in store.names()
    assert [problem for problem in problems(store) if "keeps it as 0000000000000000" in problem]


def test_records_that_were_swapped_are_found(store: SqlStore, database_url: str) -> None:
    (first,) = (item for item in store.read([NAMES[0]]))
    change(
        database_url,
        "UPDATE cg_bench_records SET data = (SELECT data FROM cg_bench_records WHERE name = :other) WHERE name = :name",
        name=first.name,
        other=NAMES[1],
    )
    with pytest.raises(StoreError, match="not those it was named after"):
        list(store.read())
    found = problems(store)
    assert any(problem.startswith(NAMES[0]) and "not those it was named after" in problem for problem in found)
    assert any("it is the same as" in problem for problem in found)


def test_a_slow_reader_holds_no_writer_up_and_sees_a_history_of_one_moment(database_url: str) -> None:
    records = [stored(n) for n in range(100)]
    with SqlStore(database_url, patience=2) as reader, SqlStore(database_url, patience=2) as writer:
        writer.add(records)
        runs, whole = reader.snapshots(Query()), reader.read()
        first, _ = next(runs), next(whole)
        assert writer.add([stored(200)]) == 1
        assert writer.remove([record.name for record in records[50:]]) == 50
        assert {run.uid for run in (first, *runs)} == {record.uid for record in records}
        assert len(list(whole)) < 100
        # The same store can be read and written at once, as when it is copied into itself.
        assert sum(reader.add([record]) for record in reader.read()) == 0


def test_of_many_records_all_are_kept_or_none(empty: SqlStore) -> None:
    many = [stored(100 + number) for number in range(1100)]  # more than one statement takes
    last = max(many, key=lambda record: record.uid)
    other = stored(99)
    empty.add([other])
    statement = update(RECORDS_TABLE).where(RECORDS_TABLE.c.name == other.name).values(name=last.name)
    empty._database.write(lambda connection: connection.execute(statement))
    with pytest.raises(StoreError, match="another uid"):
        empty.add(many)
    assert empty.names() == [last.name]
    empty.remove([last.name])
    assert empty.add(many) == 1100
    assert empty.add([*many, other]) == 1
