"""The file store replaces nothing, and never takes what it cannot read or write for nothing."""

from __future__ import annotations

import errno
import gzip
import os
import resource
import tempfile
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import StoreError
from cachegrind_bench.store import durable
from cachegrind_bench.store.files import FileStore
from cachegrind_bench.store.protocol import Query
from tests.unit.samples import run_without_rights
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
    stored,
)

if TYPE_CHECKING:
    from pathlib import Path


def open_parents(path: Path) -> None:
    """Let other users reach a folder of the test's."""
    temporary = tempfile.gettempdir()
    for parent in path.parents:
        if str(parent) != temporary and parent.is_relative_to(temporary):
            parent.chmod(0o755)


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """Return a store with eight runs of January, one of February and a rename."""
    return filled(tmp_path / ".cg-bench")


def test_a_file_that_differs_is_never_replaced(store: FileStore) -> None:
    path = store.folder / NAMES[0]
    path.write_bytes(RECORDS[0].data[:-10])
    with pytest.raises(StoreError, match=NAMES[0]):
        store.add(RECORDS)
    assert path.read_bytes() == RECORDS[0].data[:-10]
    assert not [name for name in os.listdir(path.parent) if durable.is_temporary(name)]


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "folder", "dangling", "huge"])
def test_a_damaged_file_is_an_error_that_names_it_and_never_passed_over(store: FileStore, damage: str) -> None:
    path, data = store.folder / NAMES[3], RECORDS[3].data
    path.unlink()
    match damage:
        case "cut":
            path.write_bytes(data[: len(data) // 2])
        case "flip":
            path.write_bytes(data.replace(b"1353", b"1354", 1).replace(b"sieve", b"sievf", 1))
        case "empty":
            path.touch()
        case "folder":
            path.mkdir()
        case "dangling":
            path.symlink_to("/nonexistent/file")
        case _:
            with path.open("wb") as file:
                file.truncate(1 << 40)
    assert store.names() == all_names()
    for ask in (lambda: list(store.read()), lambda: list(store.snapshots(Query()))):
        with pytest.raises(StoreError, match=NAMES[3]):
            ask()
    assert [problem.where for problem in store.check()] == [NAMES[3]]
    assert len(store.names()) == 10
    if damage != "folder":
        assert store.remove({NAMES[3]}) == 1
        assert problems(store) == []


def test_what_cannot_be_read_is_not_taken_for_empty(store: FileStore) -> None:
    code = (
        "from pathlib import Path\nimport sys\nfrom cachegrind_bench.store.files import FileStore\n"
        "from cachegrind_bench.errors import StoreError\nbegin()\n"
        "try:\n    print(len(FileStore(Path(sys.argv[1])).names()))\nexcept StoreError as error:\n    print(error.message)\n"
    )
    open_parents(store.folder)
    for place in ("runs", "runs/2026", "runs/2026/01", "renames", "."):
        folder = store.folder / place
        folder.chmod(0o000)
        said = run_without_rights(code, str(store.folder))
        folder.chmod(0o755)
        assert "cannot read" in said, place
    assert run_without_rights(code, str(store.folder)) == "10\n"


def test_a_file_in_place_of_a_folder_is_not_taken_for_empty(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "runs").write_text("x")
    (tmp_path / "t").write_text("x")
    for name in ("s", "t"):
        with pytest.raises(StoreError):
            FileStore(tmp_path / name).names()
        with pytest.raises(StoreError):
            FileStore(tmp_path / name).add(RECORDS)


def test_where_nothing_of_a_store_can_be_read_it_is_one_error_and_not_one_for_each_folder(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    said: list[str] = []
    with pytest.raises(StoreError, match="program/segments: Not a directory"):
        FileStore(path).snapshots(Query(), lambda where, _what: said.append(where))
    assert not said


def test_a_damaged_segment_is_an_error_for_everyone(store: FileStore) -> None:
    segment = fold(store)
    data = segment.read_bytes()
    segment.write_bytes(data[: len(data) // 2])
    with pytest.raises(StoreError, match=segment.name):
        list(FileStore(store.folder).read())
    assert [problem.where for problem in store.check()] == [f"segments/{segment.name}"]
    segment.write_bytes(b"")
    with pytest.raises(StoreError, match=segment.name):
        FileStore(store.folder).names()


def unmounted(path: Path) -> None:
    """Put in the place of a file or folder a link to where it would be on a disk that is not there."""
    if path.exists():
        path.rename(path.parent / f".cg-bench.{path.name}")
    path.symlink_to("/nonexistent/disk/place")


@pytest.mark.parametrize("place", [".", "..", "runs/2026", "segments"])
def test_a_link_that_leads_nowhere_is_not_taken_for_empty(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "a" / "b"
    store = filled(folder)
    fold(store)
    unmounted({".": folder, "..": folder.parent}.get(place, folder / place))
    acts = [
        store.names,
        lambda: list(store.read()),
        lambda: list(store.snapshots(Query())),
        lambda: store.remove(NAMES),
    ]
    if place != "segments":  # nothing is added there
        acts.append(lambda: store.add([FEBRUARY, *RECORDS, RENAME]))
    whole = place in {".", ".."}
    for act in [*acts, store.check] if whole else acts:
        with pytest.raises(StoreError, match="leads nowhere"):
            act()
    assert whole or [problem for problem in problems(store) if "leads nowhere" in problem]


def test_a_segment_that_is_a_link_to_nowhere_is_named_by_everyone(store: FileStore) -> None:
    segment = fold(store)
    unmounted(segment)
    again = FileStore(store.folder)
    with pytest.raises(StoreError, match=f"{segment.name}.* leads nowhere"):
        again.names()
    assert [problem.where for problem in again.check()] == [f"segments/{segment.name}"]


def test_all_that_can_be_reported_of_a_damaged_store_is_reported(store: FileStore) -> None:
    segment = fold(store)
    segment.write_bytes(segment.read_bytes()[:40])
    (store.folder / FEBRUARY.name).write_text("{}")
    (store.folder / "runs" / "2026" / "03").symlink_to("/nonexistent")
    again = FileStore(store.folder)
    where = [FEBRUARY.name, "runs/2026/03", f"segments/{segment.name}"]
    assert [problem.where for problem in again.check()] == where
    assert again.survey().names == [RENAME.name, FEBRUARY.name]
    assert [problem.where for problem in again.survey().problems] == where[1:]


def test_beside_a_damaged_segment_what_has_a_file_is_removed_and_the_segment_stays(store: FileStore) -> None:
    segment = fold(store)
    damaged = segment.read_bytes()[:40]
    segment.write_bytes(damaged)
    late = stored(30)
    (store.folder / late.name).parent.mkdir(parents=True, exist_ok=True)
    (store.folder / late.name).write_bytes(late.data)
    again = FileStore(store.folder)
    assert again.remove([FEBRUARY.name, late.name]) == 2
    with pytest.raises(
        StoreError, match=rf"{segment.name} cannot be read.*it stays, and not removed is {NAMES[0]} .1 "
    ):
        again.remove([NAMES[0], RENAME.name])
    assert segment.read_bytes() == damaged
    assert again.survey().names == []


def test_a_run_in_a_segment_that_cannot_be_unfolded_stays_and_others_go(store: FileStore) -> None:
    segment = fold(store)
    name = f"segments/{segment.name}"
    whole = segment.read_bytes()
    lines = gzip.decompress(whole).splitlines(keepends=True)
    damaged = gzip.compress(b"".join([*lines[:-1], b"{}\n"]), mtime=0)
    segment.write_bytes(damaged)
    (store.folder / NAMES[0]).write_bytes(RECORDS[0].data)  # a fold that was killed
    again = FileStore(store.folder)
    with pytest.raises(StoreError, match=rf"{name}.*not removed is {NAMES[0]} .1 were"):
        again.remove([NAMES[0], FEBRUARY.name])
    assert segment.read_bytes() == damaged
    assert (store.folder / NAMES[0]).exists()
    assert FEBRUARY.name not in again.names()


def test_check_reports_what_does_not_belong(store: FileStore) -> None:
    month = store.folder / "runs" / "2026" / "01"
    (month / "notes.txt").write_text("x")
    (month / os.fsdecode(b"z\xff.json")).write_text("x")
    (store.folder / "runs" / "odd").mkdir()
    (store.folder / "segments").mkdir()
    (store.folder / "segments" / "x.gz").write_bytes(b"")
    (store.folder / "runs/2026/03").mkdir()
    wrong = NAMES[0].replace("/01/", "/03/")
    (store.folder / wrong).write_bytes(RECORDS[0].data)
    said = problems(store)
    assert [line.partition(":")[0] for line in said] == [
        "runs/2026/01/notes.txt",
        "runs/2026/01/z\\udcff.json",
        wrong,
        wrong,
        "runs/odd",
        "segments/x.gz",
    ]
    assert any(f"the same as {NAMES[0]}" in line for line in said)


@pytest.mark.parametrize("data", [b"", b"no gzip", gzip.compress(b"{}"), gzip.compress(b"x" * 999)[:-9]], ids=range(4))
def test_a_damaged_profile_is_reported_and_harms_no_run(store: FileStore, data: bytes) -> None:
    path = store.profile_path(NAMES[0])
    path.write_bytes(data)
    assert len(list(store.snapshots(Query()))) == 9
    assert [problem.where for problem in store.check()] == [f"runs/2026/01/{path.name}"]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_without_hard_links_files_are_added_and_never_replaced_all_the_same(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    store = FileStore(tmp_path / "s")
    assert store.add(RECORDS) == 8
    assert store.add(RECORDS) == 0
    assert store.add([stored(9)]) == 1
    assert len(list(store.read())) == 9
    assert problems(store) == []
    path = store.folder / stored(9).name
    path.write_bytes(b"other")
    with pytest.raises(StoreError):
        store.add([stored(9)])
    assert path.read_bytes() == b"other"
    assert not [name for name in files(store) if durable.is_temporary(name.rpartition("/")[2]) and "/" in name]


def test_a_full_disk_is_an_error_and_leaves_nothing_behind(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "s")
    store.add(RECORDS[:1])
    large = stored(9, *(measured(f"b{n}") for n in range(50)))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(StoreError, match="cannot write"):
            store.add([large])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert store.names() == NAMES[:1]
    assert not [name for name in files(store) if durable.is_temporary(name.rpartition("/")[2])]


def test_a_folder_without_permission_to_write_can_be_read(store: FileStore) -> None:
    code = (
        "from pathlib import Path\nimport sys\nfrom cachegrind_bench.store.files import FileStore\n"
        "from cachegrind_bench.errors import StoreError\nfrom tests.unit.stored import stored\nbegin()\n"
        "store = FileStore(Path(sys.argv[1]))\nprint(len(list(store.read())), len(store.check()))\n"
        "for act in (lambda: store.add([stored(99)]), lambda: store.remove(store.names())):\n"
        "    try:\n        act()\n    except StoreError as error:\n        print(error.message)\n"
    )
    open_parents(store.folder)
    lines = run_without_rights(code, str(store.folder)).splitlines()
    assert lines[0] == "10 0"
    assert len(lines) == 3
    assert all("Permission denied" in line for line in lines[1:])
    assert store.names() == all_names()
