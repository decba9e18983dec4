"""Directories as a sealed program sees them: read by this process itself, through descriptors of its own."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import struct
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.hermetic import kernel
from cachegrind_bench.hermetic.kernel import architecture
from cachegrind_bench.hermetic.listings import Listings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RECORD = struct.Struct("=QqHB")


class Reader:
    """An open directory that is read as the supervisor reads it for a program."""

    def __init__(self, path: Path, scratch: str = "/nowhere") -> None:
        table = architecture()
        if table is None:
            pytest.skip("no table of system calls for this machine")
        self.listings = Listings(table, scratch)
        self.descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def read(self, length: int = 32768) -> list[tuple[str, int]]:
        """Return the names of one answer, each with the position after it."""
        data = self.listings.read(os.getpid(), self.descriptor, length)
        assert data is not None
        assert len(data) <= length
        names, at = [], 0
        while at < len(data):
            _inode, after, size, _kind = RECORD.unpack_from(data, at)
            assert size % 8 == 0
            names.append((os.fsdecode(data[at + RECORD.size : at + size].partition(b"\0")[0]), after))
            at += size
        return names

    def rest(self, length: int = 32768) -> list[str]:
        """Read on to the end."""
        found: list[str] = []
        while names := self.read(length):
            found += [name for name, _after in names]
        return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    for name in ("b", "c", "a", "!", "-", "ü", "long" * 50):
        (made / name).touch()
    return made


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    before = set(os.listdir("/proc/self/fd"))
    yield
    for number in map(int, set(os.listdir("/proc/self/fd")) - before):
        with contextlib.suppress(OSError):
            os.close(number)


NAMES = [".", "..", "!", "-", "a", "b", "c", "long" * 50, "ü"]


@pytest.mark.parametrize("length", [240, 300, 32768])
def test_entries_come_in_the_order_of_their_names_whatever_the_buffer(folder: Path, length: int) -> None:
    assert Reader(folder).rest(length) == NAMES


def test_rewinding_reads_the_directory_as_it_is_by_then(folder: Path) -> None:
    reader = Reader(folder)
    reader.rest()
    (folder / "aa").touch()
    os.lseek(reader.descriptor, 0, os.SEEK_SET)
    assert reader.rest() == [*NAMES[:5], "aa", *NAMES[5:]]


def test_reading_goes_on_at_a_position_that_was_reported_before(folder: Path) -> None:
    reader = Reader(folder)
    first = reader.read(240)
    reader.rest()
    os.lseek(reader.descriptor, first[3][1], os.SEEK_SET)
    assert reader.rest() == NAMES[4:]


def test_what_is_removed_while_reading_disturbs_nothing(folder: Path) -> None:
    reader, other = Reader(folder), Reader(folder)
    other.listings = reader.listings
    seen = [name for name, _ in reader.read(240)]
    for name in ("a", "b"):
        (folder / name).unlink()
    assert other.rest() == [name for name in NAMES if name not in ("a", "b")]
    assert seen + reader.rest() == NAMES


def test_who_shares_an_open_directory_shares_how_far_it_was_read(folder: Path) -> None:
    reader = Reader(folder)
    first = [name for name, _ in reader.read(240)]
    reader.descriptor = os.dup(reader.descriptor)
    assert first + reader.rest() == NAMES


def test_a_buffer_that_is_too_small_for_an_entry_is_refused(folder: Path) -> None:
    with pytest.raises(BufferError):
        Reader(folder).read(20)


def test_files_of_ours_are_not_listed_but_in_the_programs_own_folder(folder: Path) -> None:
    (folder / ".cg-bench").mkdir()
    counts = {"D1mr": 1, "D1mw": 2}
    document = {"benchmarks": [{"command": ["x"], "counts": counts}], "schema": "cg-bench.run/1"}
    (folder / "result.json").write_text(json.dumps(document, separators=(",", ":"), sort_keys=True))
    (folder / "empty.json").write_text('{"benchmarks":[],"schema":"cg-bench.run/1"}')
    (folder / "theirs.json").write_text('{"benchmarks":[1, 2]}')
    (folder / "broken.json").symlink_to("nowhere")
    (folder / "folder.json").mkdir()
    assert sorted(set(Reader(folder).rest()) - set(NAMES)) == ["broken.json", "folder.json", "theirs.json"]
    assert {".cg-bench", "result.json"} < set(Reader(folder, scratch=str(folder.parent)).rest())


def test_what_the_kernel_says_of_itself_is_left_to_it() -> None:
    reader = Reader("/proc/self/fd")  # type: ignore[arg-type]
    assert reader.listings.read(os.getpid(), reader.descriptor, 1000) is None


def test_a_descriptor_that_is_not_a_directory_is_the_kernels_to_refuse(folder: Path) -> None:
    reader = Reader(folder)
    for flags, error in ((os.O_RDONLY, errno.ENOTDIR), (None, errno.EBADF)):
        number = 99 if flags is None else os.open(folder / "a", flags)
        with pytest.raises(OSError, match=r".") as caught:
            reader.listings.read(os.getpid(), number, 1000)
        assert caught.value.errno == error


def test_a_thread_is_asked_through_its_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, real = Reader(folder), kernel.descriptor_of

    def refusing(pid: int, number: int) -> int:
        if pid == -5:
            raise OSError(errno.EINVAL, "not a leader")
        return real(pid, number)

    monkeypatch.setattr(kernel, "descriptor_of", refusing)
    monkeypatch.setattr("cachegrind_bench.hermetic.listings.group_of", lambda _thread: os.getpid())
    with pytest.raises(FileNotFoundError):  # it got as far as /proc/-5
        reader.listings.read(-5, reader.descriptor, 1000)
