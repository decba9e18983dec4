"""Files are replaced whole or not at all, and what cannot be written is found out before."""

from __future__ import annotations

import errno
import os
import resource
import stat
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import UsageError
from cachegrind_bench.store.durable import check_writable, write_atomic
from tests.unit.samples import run_without_rights

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_a_new_file_has_the_mode_that_the_umask_gives(tmp_path: Path) -> None:
    write_atomic(tmp_path / "r.json", b"x")
    assert (tmp_path / "r.json").read_bytes() == b"x"
    assert stat.S_IMODE((tmp_path / "r.json").stat().st_mode) == 0o640
    assert os.umask(0o027) == 0o027


def test_a_replaced_file_keeps_its_mode_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(b"old")
    path.chmod(0o604)
    check_writable(path)
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert os.listdir(tmp_path) == ["r.json"]


def test_checking_leaves_no_trace(tmp_path: Path) -> None:
    check_writable(tmp_path / "r.json")
    assert os.listdir(tmp_path) == []


def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "latest").symlink_to("real/r.json")
    check_writable(tmp_path / "latest")
    write_atomic(tmp_path / "latest", b"1")
    write_atomic(tmp_path / "latest", b"2")
    assert (tmp_path / "latest").is_symlink()
    assert (tmp_path / "real" / "r.json").read_bytes() == b"2"
    assert os.listdir(tmp_path / "real") == ["r.json"]


def test_the_longest_possible_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("€" * 85)
    write_atomic(path, b"x")
    assert path.read_bytes() == b"x"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    check_writable(path)
    write_atomic(path, b"x")
    reader.join(10)
    assert got == [b"x"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_device_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "null").symlink_to("/dev/null")
    check_writable(tmp_path / "null")
    write_atomic(tmp_path / "null", b"x")
    assert stat.S_ISCHR((tmp_path / "null").stat().st_mode)


def test_a_working_directory_that_is_gone_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(UsageError, match=r"cannot write r\.json: No such file or directory"):
        write_atomic(Path("r.json"), b"x")


@pytest.mark.parametrize("action", [check_writable, lambda path: write_atomic(path, b"x")])
def test_a_missing_folder_is_named(tmp_path: Path, action: object) -> None:
    assert callable(action)
    with pytest.raises(UsageError) as caught:
        action(tmp_path / "no" / "r.json")
    assert caught.value.message == f"cannot write {tmp_path}/no/r.json: No such file or directory"
    assert caught.value.hint == "make the directory first"


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is a directory"):
        check_writable(tmp_path)
    with pytest.raises(UsageError, match="cannot write"):
        write_atomic(tmp_path, b"x")
    assert os.listdir(tmp_path) == []


def test_a_name_that_is_too_long_is_found_out_before(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="File name too long"):
        check_writable(tmp_path / ("x" * 300))


def test_a_file_used_as_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="Not a directory"):
        check_writable(tmp_path / "file" / "r.json")


FORBIDDEN = """
import sys
from pathlib import Path
from cachegrind_bench.errors import UsageError
from cachegrind_bench.store.durable import check_writable
begin()
try:
    check_writable(Path(sys.argv[1]))
except UsageError as error:
    print(error)
"""


@pytest.mark.parametrize("mode", [0o555, 0o700 if os.geteuid() == 0 else 0])
def test_a_folder_that_forbids_writing_or_entering_is_found_out_before(mode: int) -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to others
        os.chmod(folder, mode)
        told = run_without_rights(FORBIDDEN, f"{folder}/r.json")
        assert told == f"cannot write {folder}/r.json: Permission denied\n"


def test_a_full_disk_leaves_the_old_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(b"old")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError) as caught:
        write_atomic(path, b"new")
    assert caught.value.message == f"cannot write {path}: No space left on device"
    assert caught.value.hint == "choose another file or free some space"
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["r.json"]


def test_a_file_that_cannot_be_replaced_is_written_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(b"old and longer")

    def mounted(*_: object) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(os, "replace", mounted)
    with pytest.raises(UsageError, match="busy"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old and longer"
    write_atomic(path, b"new", in_place=True)
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["r.json"]


def test_a_file_size_limit_leaves_the_old_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))  # Python ignores SIGXFSZ
    try:
        with pytest.raises(UsageError, match="File too large"):
            write_atomic(path, b"x" * (1 << 21))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["r.json"]


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "r.json", b"new")
    assert os.listdir(tmp_path) == []
