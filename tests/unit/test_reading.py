"""A record gives exactly the numbers of its run, or an error that names it; renames lead to the present name."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.errors import StoreError
from cachegrind_bench.model.codec import decode
from cachegrind_bench.model.result import Status
from cachegrind_bench.store.protocol import Query
from cachegrind_bench.store.reading import candidates, renames_of, snapshot
from cachegrind_bench.store.reading import snapshots as snapshots_of
from cachegrind_bench.store.record import Record, rename_record, run_name, uid_of
from cachegrind_bench.usecases import numbers
from tests.unit.samples import HOSTILE, VECTOR, failed_benchmark, rich_benchmark, times
from tests.unit.stored import filled, measured, stored

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cachegrind_bench.model.result import Snapshot


def changed(record: Record, **members: Any) -> Record:
    """Return the record with other members; a name of None removes it."""
    document = json.loads(record.data) | members
    data = (
        json.dumps({name: value for name, value in document.items() if value != "gone"}, sort_keys=True).encode()
        + b"\n"
    )
    return Record(name=record.name.replace(record.uid[:8], uid_of(data)[:8]), data=data)


def with_benchmark(record: Record, **members: Any) -> Record:
    benchmark = json.loads(record.data)["benchmarks"][0] | members
    return changed(record, benchmarks=[benchmark])


def snapshots(records: list[Record], query: Query) -> Iterator[Snapshot]:
    """Return what a store with these records answers."""
    held = {record.name: record for record in records}
    return snapshots_of(held, lambda names: [held[name] for name in names], query)


def ids(record: Record, *renames: str) -> list[str]:
    """Return the names of the benchmarks after these renames."""
    (run,) = snapshots([record, *renamed(*renames)], Query())
    return [point.id for point in run.points]


def test_a_snapshot_says_what_the_whole_record_says() -> None:
    record = stored(7, rich_benchmark(), failed_benchmark(id="bad"), measured("ok", 3))
    whole, seen = decode(record.data, "r"), snapshot(record)
    assert (seen.uid, seen.tool_version, seen.created_at) == (record.uid, whole.tool_version, whole.created_at)
    assert (seen.commit, seen.env_key) == (whole.commit, whole.env.key)
    for point, benchmark in zip(seen.points, whole.benchmarks, strict=True):
        assert (point.id, point.key, point.status) == (benchmark.id, benchmark.key, benchmark.status)
        assert (point.counts, point.score) == (benchmark.counts, benchmark.score)
    assert [point.status for point in seen.points] == [Status.OK, Status.FAILED, Status.OK]


def test_a_run_without_a_commit_is_a_run() -> None:
    record = stored(7, commit=None)
    assert "/nocommit." in record.name
    assert snapshot(record).commit is None


@pytest.mark.parametrize(
    "members",
    [
        {"benchmarks": "gone"},
        {"benchmarks": [1]},
        {"commit": {"sha": "HEAD"}},
        {"created_at": "yesterday"},
        {"env": {"key": "../.."}},
        {"tool": {"version": 1}},
        {"tool": {"version": "\ud800"}},
    ],
)
def test_nonsense_in_a_record_is_an_error_that_names_it(members: dict[str, Any]) -> None:
    record = changed(stored(1), **members)
    with pytest.raises(StoreError) as caught:
        snapshot(record)
    assert record.name in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    "members",
    [
        {"id": 1},
        {"status": "fine"},
        {"counts": None},
        {"counts": VECTOR.as_dict() | {"Ir": -1}},
        {"counts": {"Ir": 1}},
        {"score": None},
        {"score": {"model": "ir", "value": 0.5}},
    ],
)
def test_nonsense_in_a_benchmark_is_an_error(members: dict[str, Any]) -> None:
    with pytest.raises(StoreError):
        snapshot(with_benchmark(stored(1), **members))


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"[" * 100_000, b'{"schema": "x"}'])
def test_bytes_that_are_no_record_are_an_error(data: bytes) -> None:
    for name in (stored(1).name, rename_record("a", "b", "2026-01-01T00:00:00Z").name):
        with pytest.raises(StoreError):
            list(snapshots([Record(name=name, data=data)], Query()))


def test_a_newer_schema_asks_for_a_newer_program() -> None:
    with pytest.raises(StoreError) as caught:
        snapshot(changed(stored(1), schema="cg-bench.run/2"))
    assert "newer" in (caught.value.hint or "")


def test_two_benchmarks_of_one_id_are_an_error() -> None:
    one = json.loads(stored(1).data)["benchmarks"][0]
    with pytest.raises(StoreError, match="the same id"):
        snapshot(changed(stored(1), benchmarks=[one, one]))


def test_the_garbage_collector_is_as_it_was_after_good_and_bad_records() -> None:
    snapshot(stored(1))
    with pytest.raises(StoreError):
        snapshot(Record(name=stored(1).name, data=b"{"))
    assert gc.isenabled()


def test_runs_come_by_time_of_commit_then_of_run_then_by_uid() -> None:
    commit = snapshot(stored(5)).commit
    late, early = stored(9), stored(2)
    twice = [stored(5, measured(factor=n), commit=commit, created_at=f"2026-02-0{n}T00:00:00Z") for n in (3, 1, 2)]
    same = sorted((stored(6, measured(factor=n)) for n in range(4)), key=lambda record: record.uid)
    without = stored(3, commit=None)
    found = list(snapshots([late, *reversed(same), *twice, without, early], Query()))
    wanted = [early, without, twice[1], twice[2], twice[0], *same, late]
    assert [run.uid for run in found] == [record.uid for record in wanted]


def test_a_query_gives_the_runs_and_benchmarks_it_asks_for() -> None:
    records = [stored(n, measured("a", 1 + n), measured("b")) for n in range(5)]
    runs = [snapshot(record) for record in records]
    assert list(snapshots(records, Query())) == runs
    assert list(snapshots(records, Query(since=runs[3].created_at))) == runs[3:]
    shas = frozenset(run.commit.sha for run in runs[1:3] if run.commit)
    assert list(snapshots(records, Query(shas=shas))) == runs[1:3]
    assert list(snapshots(records, Query(shas=frozenset()))) == []
    (run, *_) = snapshots(records, Query(wanted=lambda name: name == "b"))
    assert [point.id for point in run.points] == ["b"]
    assert not next(snapshots(records, Query(wanted=lambda _: False))).points


def test_only_records_that_can_be_asked_for_are_candidates() -> None:
    old, new, bare = stored(1), stored(2, created_at="2026-03-01T00:00:00Z"), stored(3, commit=None)
    names = [record.name for record in (new, old, bare, rename_record("a", "b", "2026-01-01T00:00:00Z"))]
    assert candidates(names, Query()) == sorted([new.name, old.name, bare.name])
    assert candidates(names, Query(since="2026-02-15T00:00:00Z")) == [new.name]
    assert candidates(names, Query(since="2026-03-31T00:00:00Z")) == [new.name]
    sha = snapshot(old).commit
    assert sha is not None
    assert candidates(names, Query(shas=frozenset({sha.sha}))) == [old.name]


def test_a_candidate_whose_commit_only_begins_alike_is_left_out() -> None:
    record = stored(1)
    said = run_name(record.name)
    assert said is not None
    query = Query(shas=frozenset({f"{said.sha12}{'f' * 28}"}))
    assert candidates([record.name], query) == [record.name]
    assert list(snapshots([record], query)) == []


def test_equal_counts_are_in_memory_once() -> None:
    first, second = snapshots([stored(1, measured(factor=9)), stored(2, measured(factor=9))], Query())
    assert first.points[0].counts is second.points[0].counts


def renamed(*pairs: str) -> list[Record]:
    """Return the renames of pairs such as "a b", one a day."""
    return [
        rename_record(pair.split()[0], pair.split()[1], f"2026-01-{day:02}T00:00:00Z")
        for day, pair in enumerate(pairs, 1)
    ]


@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [
        ((), {}),
        (("a b",), {"a": "b"}),
        (("a b", "b c"), {"a": "c", "b": "c"}),
        (("b c", "a b"), {"a": "b"}),
        (("a b", "a c"), {"a": "c"}),
        (("a b", "b a"), {"b": "a"}),
        (("a b", "b c", "c a"), {"b": "a", "c": "a"}),
        (("a a",), {}),
        (("a b", "c b"), {"a": "b", "c": "b"}),
    ],
)
def test_renames_hold_in_the_order_of_their_times_and_never_go_in_circles(
    pairs: tuple[str, ...], wanted: dict[str, str]
) -> None:
    records = renamed(*pairs)
    assert renames_of(records) == wanted
    assert renames_of([*reversed(records), stored(1)]) == wanted


def test_points_have_their_present_names_and_are_asked_for_by_them() -> None:
    record = stored(1, measured("old", 2), measured("other"))
    hostile = rename_record("old", HOSTILE, "2026-01-01T00:00:00Z")
    (run,) = snapshots([record, hostile], Query())
    assert [point.id for point in run.points] == [HOSTILE, "other"]
    (run,) = snapshots([record, *renamed("old new")], Query(wanted=lambda name: name == "new"))
    assert [(point.id, point.counts) for point in run.points] == [("new", times(VECTOR, 2))]
    assert snapshot(record).points[0].id == "old"


def test_a_new_name_that_another_benchmark_has_is_not_given_twice() -> None:
    record = stored(1, measured("a"), measured("b"), measured("c"))
    assert ids(record, "a b") == ["a", "b", "c"]
    assert ids(record, "a d", "b d") == ["d", "b", "c"]


def test_numbers_of_iterations_are_those_of_the_last_three_months(tmp_path: Path) -> None:
    store = filled(tmp_path)
    for month, iterations in ((6, 10), (4, 1000), (2, 1), (6, 100)):
        both = (measured(name, iterations=iterations) for name in ("sieve", f"only {month}"))
        store.add([stored(iterations, *both, created_at=f"2026-{month:02}-01T00:00:{iterations // 100:02}Z")])
    assert numbers.stored(store) == {"filter": 100, "only 6": 100, "only 4": 1000, "only 2": 1}
    assert numbers.stored(store, {"only 4", "filter"}) == {"filter": 100, "only 4": 1000}
    store.add([stored(30, created_at="2026-07-01T00:00:00Z")])
    assert "only 2" not in numbers.stored(store)
