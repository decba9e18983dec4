"""The file store keeps what it is given, gives it back, and forgets nothing but what it is told to."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench import waiting
from cachegrind_bench.errors import StoreError
from cachegrind_bench.model.codec import decode
from cachegrind_bench.store.durable import locked
from cachegrind_bench.store.files import FileStore
from cachegrind_bench.store.protocol import Query
from cachegrind_bench.store.record import Record, uid_of
from tests.unit.samples import VECTOR, benchmark, profile_of
from tests.unit.stored import (
    FEBRUARY,
    NAMES,
    RECORDS,
    RENAME,
    all_names,
    files,
    filled,
    fold,
    measured,
    problems,
    run,
    stored,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """Return a store with eight runs of January, one of February and a rename."""
    return filled(tmp_path / ".cg-bench")


def test_a_run_is_one_file_under_its_month_with_its_very_bytes(store: FileStore) -> None:
    assert RECORDS[0].name.startswith("runs/2026/01/")
    for record in RECORDS:
        assert (store.folder / record.name).read_bytes() == record.data
    assert [name for name in files(store) if "lock" not in name] == sorted([".gitignore", *all_names()])
    assert (store.folder / ".gitignore").read_text() == "*\n"


def test_what_was_added_is_read_back_in_the_order_of_names(store: FileStore) -> None:
    assert store.names() == all_names()
    assert [record.name for record in store.read()] == all_names()
    assert list(store.read(reversed(NAMES))) == RECORDS
    assert list(store.read([])) == []
    assert problems(store) == []


def test_adding_again_changes_nothing(store: FileStore) -> None:
    before = {name: (store.folder / name).stat().st_mtime_ns for name in all_names()}
    assert store.add([*RECORDS, RENAME]) == 0
    assert store.add([RECORDS[0], RECORDS[0], stored(30), stored(30)]) == 1
    assert {name: (store.folder / name).stat().st_mtime_ns for name in all_names()} == before


def test_a_store_that_is_not_there_is_empty_and_not_made_by_asking(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "none")
    assert (store.names(), list(store.read()), list(store.snapshots(Query())), store.check()) == ([], [], [], [])
    assert store.add([]) == 0
    assert os.listdir(tmp_path) == []


def test_a_new_file_has_the_mode_that_the_umask_gives(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        FileStore(tmp_path / "s").add(RECORDS[:1])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "s" / NAMES[0]).stat().st_mode) == 0o664


@pytest.mark.parametrize(
    "record",
    [
        Record(name="../evil.json", data=b"{}\n"),
        Record(name=NAMES[0], data=RECORDS[1].data),
        Record(name=NAMES[0].replace("/01/", "/02/"), data=RECORDS[0].data),
        Record(name=NAMES[0].replace(NAMES[0].split("/")[3][:12], "nocommit"), data=RECORDS[0].data),
        Record(name=f"renames/{uid_of(RENAME.data + b' ')}.json", data=RENAME.data + b" "),
    ],
)
def test_what_is_not_a_record_is_refused_and_nothing_of_the_batch_is_written(record: Record, tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        FileStore(tmp_path / "s").add([RECORDS[2], record])
    assert os.listdir(tmp_path) == []


def test_a_record_that_is_not_there_is_an_error(store: FileStore) -> None:
    missing = stored(99).name
    with pytest.raises(StoreError, match=missing):
        list(store.read([NAMES[0], missing]))


def test_snapshots_apply_renames_and_the_query(store: FileStore) -> None:
    runs = list(store.snapshots(Query()))
    assert [run.uid for run in runs] == [stored(n).uid for n in range(8)] + [FEBRUARY.uid]
    assert {point.id for run in runs for point in run.points} == {"filter"}
    assert [run.uid for run in store.snapshots(Query(since="2026-02-01T00:00:00Z"))] == [FEBRUARY.uid]
    commit = runs[4].commit
    assert commit is not None
    assert list(store.snapshots(Query(shas=frozenset({commit.sha})))) == [runs[4]]


def test_runs_that_are_not_asked_for_are_not_read(store: FileStore) -> None:
    (store.folder / NAMES[0]).write_bytes(b"damaged")
    assert len(list(store.snapshots(Query(since="2026-02-01T00:00:00Z")))) == 1


def test_removed_records_are_gone(store: FileStore) -> None:
    assert store.remove([NAMES[0], NAMES[1], stored(99).name, RENAME.name]) == 3
    assert store.names() == sorted([*NAMES[2:], FEBRUARY.name])
    assert store.remove([NAMES[0], "../../etc/passwd"]) == 0
    assert problems(store) == []


def test_removing_touches_nothing_outside_the_store(store: FileStore, tmp_path: Path) -> None:
    victim = tmp_path / "victim.json"
    victim.write_text("x")
    assert store.remove(["../victim.json", str(victim), ".gitignore"]) == 0
    assert victim.exists()
    assert (store.folder / ".gitignore").exists()


def test_the_segment_of_an_older_version_is_read_as_it_is_and_unfolded_to_remove_a_run(store: FileStore) -> None:
    before = list(store.read())
    runs = list(store.snapshots(Query()))
    path = fold(store)
    (store.folder / NAMES[0]).write_bytes(RECORDS[0].data)  # as after a fold that was killed
    for again in (store, FileStore(store.folder)):
        assert list(again.read()) == before
        assert list(again.read(NAMES[2:4])) == RECORDS[2:4]
        assert list(again.snapshots(Query())) == runs
        assert again.names() == all_names()
        assert problems(again) == []
    assert store.remove(NAMES[:2]) == 2
    assert not path.exists()
    assert list(store.read()) == [RENAME, *RECORDS[2:], FEBRUARY]
    assert problems(store) == []


def test_left_over_temporary_files_are_ignored_and_removed_after_a_day(store: FileStore) -> None:
    folder = store.folder / "runs" / "2026" / "01"
    fresh, old = folder / ".cg-bench.fresh", folder / ".cg-bench.old"
    for path in (fresh, old):
        path.write_bytes(b'{"half')
    before = time.time() - 90_000
    os.utime(old, (before, before))
    assert store.names() == all_names()
    assert problems(store) == []
    store.add([stored(70)])
    assert fresh.exists()
    assert not old.exists()


def test_a_profile_is_kept_whole_beside_its_record(store: FileStore) -> None:
    whole = run(3, benchmark(profile=profile_of(main=VECTOR), output="hello"))
    record = stored(3, *whole.benchmarks)
    assert store.profile(record.name) is None
    store.add([record])
    store.keep_profile(record, whole)
    store.keep_profile(record, whole)
    kept = store.profile(record.name)
    assert kept is not None
    assert decode(kept, "kept") == whole
    assert store.profile_path(record.name).parent == (store.folder / record.name).parent
    assert record.name in store.names()
    assert problems(store) == []
    store.remove([record.name])
    assert store.profile(record.name) is None


def test_a_profile_of_another_run_or_another_profile_is_refused(store: FileStore) -> None:
    with pytest.raises(StoreError):
        store.keep_profile(RECORDS[0], run(77))
    whole = run(3, measured(output="one"))
    record = stored(3, *whole.benchmarks)
    store.keep_profile(record, whole)
    with pytest.raises(StoreError, match="another profile"):
        store.keep_profile(record, run(3, measured(output="two")))


def test_a_name_of_no_run_has_no_profile(store: FileStore) -> None:
    assert store.profile("../../etc/passwd") is None
    assert store.profile(RENAME.name) is None


def test_only_one_removes_at_a_time_while_others_add_and_read(store: FileStore) -> None:
    with locked(store.folder / ".cg-bench.removing.lock"):
        hasty = FileStore(store.folder, wait=0.1)
        with pytest.raises(StoreError, match="another process"):
            hasty.remove(NAMES)
        assert store.add([stored(99)]) == 1
        assert len(list(store.read())) == 11
    assert store.remove(NAMES) == 8


def test_whoever_waits_to_remove_is_told(store: FileStore, monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.setattr(waiting, "_FIRST_S", 0.1)
    path = store.folder / ".cg-bench.removing.lock"
    with locked(path), pytest.raises(StoreError, match=r"another process has held .* for 0\.3 s"):
        FileStore(store.folder, waiting=waiting.Waiting(longest=0.3)).remove(NAMES)
    assert f"waiting for {path}, 0 s" in said


def test_a_lock_dies_with_its_holder(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom cachegrind_bench.store.durable import locked\n"
        "with locked(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "l")], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        holder.kill()
        holder.wait(10)
    with locked(tmp_path / "l", 5):
        pass
