"""What is kept of a path that was read, and when it counts as unchanged."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from cachegrind_bench.hermetic import files
from cachegrind_bench.hermetic.trace_notes import (
    FILE,
    LINK,
    LIST,
    LOOK,
    Input,
    Notes,
    Recording,
    is_unchanged,
    merged,
    recording,
)

LONG_AGO = 1_600_000_000_000_000_001


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every file count as long unchanged, so that its stamp is trusted."""
    monkeypatch.setattr(files, "settled", lambda mark, _now: bool(mark))


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no file count as young, so that the launcher leaves it to be read afterwards."""
    monkeypatch.setattr("cachegrind_bench.hermetic.trace_notes._YOUNG_NS", 0)


def noted(path: Path, kind: str = FILE, scratch: Path = Path("/scratch")) -> Notes:
    notes = Notes(str(scratch))
    notes.read(kind, os.fsencode(path), os.getpid())
    return notes


def taken(notes: Notes) -> Recording:
    return recording(notes.incomplete, notes.as_list())  # type: ignore[arg-type] # as it comes through the pipe


def one(path: Path, kind: str = FILE) -> Input:
    (item,) = taken(noted(path, kind)).inputs
    return item


def test_nobody_sees_that_a_file_or_a_folder_was_read(tmp_path: Path) -> None:
    """A program that asks for a file's times executes other instructions once somebody has read it."""
    (tmp_path / "data").write_text("one")
    for read, path in ((files.content, tmp_path / "data"), (files.names, tmp_path)):
        os.utime(path, ns=(LONG_AGO, LONG_AGO))
        assert len(read(str(path))) > 60
        assert path.stat().st_atime_ns == LONG_AGO
        with files.opened(str(tmp_path / "data")) as plain:
            assert os.read(plain, 10) == b"one"


def test_what_belongs_to_somebody_else_is_read_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = tmp_path / "data", os.open

    def refuse(name: str, flags: int) -> int:
        if flags & os.O_NOATIME:
            raise PermissionError(1, "Operation not permitted")
        return real(name, flags)

    path.write_text("one")
    expected = files.content(str(path))
    monkeypatch.setattr(os, "open", refuse)
    assert files.content(str(path)) == expected


def test_a_file_is_known_by_its_bytes_whatever_its_date(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("one")
    item = one(path)
    assert is_unchanged(item)
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    assert is_unchanged(item)
    path.write_text("two")
    assert not is_unchanged(item)
    path.write_text("one")
    assert is_unchanged(item)
    path.unlink()
    assert not is_unchanged(item)


def test_permissions_belong_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("one")
    item = one(path)
    path.chmod(0o755)
    assert not is_unchanged(item)


def test_a_file_that_was_absent_must_stay_so(tmp_path: Path) -> None:
    path = tmp_path / "missing.py"
    for kind in (FILE, LOOK, LINK):
        item = one(path, kind)
        assert is_unchanged(item)
        path.write_text("")
        assert not is_unchanged(item)
        path.unlink()


def test_of_a_file_that_was_only_looked_at_the_date_counts(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("one")
    item = one(path, LOOK)
    assert is_unchanged(item)
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    assert not is_unchanged(item)


def test_of_a_file_that_was_read_as_well_the_date_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("one")
    notes = noted(path, LOOK)
    notes.read(LINK, os.fsencode(path), os.getpid())
    notes.read(FILE, os.fsencode(path), os.getpid())
    assert [item.kind for item in taken(notes).inputs] == [FILE]


def test_of_a_folder_that_was_opened_the_names_count(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    item = one(tmp_path)
    assert item.kind == LIST
    (tmp_path / "b").write_text("")
    assert not is_unchanged(item)
    (tmp_path / "b").unlink()
    assert is_unchanged(item)
    (tmp_path / "a").write_text("other bytes")
    assert is_unchanged(item)


def test_a_link_counts_by_where_it_leads_and_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("same")
    (tmp_path / "b").write_text("same")
    link = tmp_path / "link"
    link.symlink_to("a")
    followed, itself = one(link), one(link, LINK)
    link.unlink()
    link.symlink_to("b")
    assert is_unchanged(followed)
    assert not is_unchanged(itself)
    (tmp_path / "b").write_text("other")
    assert not is_unchanged(followed)


def test_a_slash_at_the_end_asks_for_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("")
    notes = Notes("/scratch")
    notes.read(FILE, os.fsencode(path) + b"/.", os.getpid())
    (item,) = taken(notes).inputs
    assert item.value == "ENOTDIR"
    assert is_unchanged(item)
    path.unlink()
    path.mkdir()
    assert not is_unchanged(item)


@pytest.mark.usefixtures("cold")
def test_a_file_with_the_same_stamp_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data"
    path.write_text("one")
    item = one(path)
    assert item.stamp
    monkeypatch.setattr(files, "content", lambda _path: pytest.fail("it was read"))
    assert is_unchanged(item)


@pytest.mark.usefixtures("cold")
def test_a_file_of_several_results_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data"
    path.write_text("one")
    item = one(path)
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    read: list[object] = []
    real = files.content

    def count(path: str | bytes) -> str:
        read.append(path)
        return real(path)

    monkeypatch.setattr(files, "content", count)
    assert [is_unchanged(item) for _ in range(5)] == [True] * 5
    assert len(read) == 1


def test_a_file_changed_within_a_tick_of_being_read_has_no_stamp_to_trust(tmp_path: Path) -> None:
    """The racily clean entry of git: the second change leaves size and dates as they are."""
    path = tmp_path / "data"
    path.write_text("one")
    before = path.stat()
    item = one(path)
    assert item.stamp == ()
    path.write_text("two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not is_unchanged(item)


@pytest.mark.parametrize(
    ("age_ns", "whole", "trusted"),
    [(10**7, False, False), (10**8, False, True), (10**9, True, False), (3 * 10**9, True, True)],
)
def test_a_stamp_is_trusted_when_the_clock_has_ticked(age_ns: int, whole: bool, trusted: bool) -> None:
    changed = 1_700_000_000_000_000_000 + (0 if whole else 123)
    assert files.settled((1, 2, 3, changed - 5, changed), changed + age_ns) is trusted


def test_a_young_file_counts_as_it_was_when_it_was_first_read(tmp_path: Path) -> None:
    """Another run may compile the same module, or the program may change what its preparation has made."""
    path = tmp_path / "data"
    path.write_text("one")
    notes = noted(path)
    path.unlink()
    assert [item.value for item in taken(notes).inputs] == [notes.as_list()[0][2]]
    (tmp_path / "new").write_text("one")
    (tmp_path / "new").rename(path)
    (item,) = taken(notes).inputs
    assert is_unchanged(item)


@pytest.mark.usefixtures("old")
@pytest.mark.parametrize("change", [lambda path: path.write_text("two"), Path.unlink])
def test_an_old_file_that_changes_meanwhile_makes_the_recording_incomplete(tmp_path: Path, change: object) -> None:
    path = tmp_path / "data"
    path.write_text("one")
    notes = noted(path)
    assert notes.as_list()[0][2] == ""
    time.sleep(0.02)
    assert callable(change)
    change(path)
    assert taken(notes) == Recording(inputs=(), incomplete=f"it reads {path}, which changed meanwhile")


def test_what_a_run_makes_itself_is_not_an_input(tmp_path: Path) -> None:
    notes = Notes("/scratch")
    notes.make(os.fsencode(tmp_path / "made"))
    (tmp_path / "made").mkdir()
    for name in ("made", "made/inner", "made/inner/deeper"):
        notes.read(FILE, os.fsencode(tmp_path / name), os.getpid())
    assert notes.as_list() == []


def test_what_it_tried_to_make_and_could_not_is_an_input(tmp_path: Path) -> None:
    notes = Notes("/scratch")
    (tmp_path / "made").mkdir()
    notes.make(os.fsencode(tmp_path / "made"))
    (tmp_path / "made" / "inner").write_text("x")  # its date moves, and still it is the one that was there before
    notes.read(FILE, os.fsencode(tmp_path / "made/inner"), os.getpid())
    assert [item[1] for item in notes.as_list()] == [os.fsencode(tmp_path / "made/inner")]
    assert not notes.is_ours(os.fsencode(tmp_path / "made"))


def test_a_way_out_of_what_is_its_own_leads_to_an_input(tmp_path: Path) -> None:
    scratch, data = tmp_path / "scratch", tmp_path / "data"
    scratch.mkdir()
    data.write_text("one")
    (scratch / "link").symlink_to(data)
    for path in (scratch / "link", scratch / ".." / "data"):
        assert [item[1] for item in noted(path, scratch=scratch).as_list()] == [os.fsencode(data)]
    assert noted(scratch / "own", scratch=scratch).as_list() == []


def test_a_link_that_it_has_made_leads_to_an_input(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("one")
    notes = Notes("/scratch")
    notes.alter(os.fsencode(tmp_path / "link"))
    (tmp_path / "link").symlink_to("data")
    notes.read(FILE, os.fsencode(tmp_path / "link"), os.getpid())
    assert [item[1] for item in notes.as_list()] == [os.fsencode(tmp_path / "data")]


def test_to_read_what_it_has_added_to_is_more_than_can_be_known(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("x")
    notes = Notes("/scratch")
    notes.alter(os.fsencode(path))
    notes.read(FILE, os.fsencode(path), os.getpid())
    assert notes.incomplete == f"it reads {path}, which it has changed itself"


def test_the_machine_is_not_an_input() -> None:
    for path in ("/proc/meminfo", "/proc/self/maps", "/sys/kernel", "/proc", "/dev/null", "/dev/urandom", "/etc/mtab"):
        for kind in (FILE, LOOK):
            notes = noted(Path(path), kind)
            assert notes.incomplete is None
            assert [item[2] for item in notes.as_list() if item[2] != "ENOENT"] == []


def test_a_file_reached_through_proc_is_an_input(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("one")
    with path.open() as file:
        for way in (f"/dev/fd/{file.fileno()}", f"/proc/self/fd/{file.fileno()}", f"/proc/self/root{path}"):
            assert [item[1] for item in noted(Path(way)).as_list()] == [os.fsencode(path)]


def test_a_pipe_that_is_opened_cannot_be_known(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert noted(tmp_path / "pipe").incomplete == f"it reads {tmp_path / 'pipe'}, which is not a regular file"
    assert noted(tmp_path / "pipe", LOOK).incomplete is None


def test_too_many_files_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachegrind_bench.hermetic.trace_notes._MOST", 3)
    notes = Notes("/scratch")
    for number in range(5):
        notes.read(FILE, os.fsencode(tmp_path / str(number)), os.getpid())
    assert notes.incomplete == "it reads more than 3 files"
    assert taken(notes) == Recording(inputs=(), incomplete="it reads more than 3 files")


def test_recordings_of_several_runs_are_put_together() -> None:
    a, b = Input(FILE, "/a", "ENOENT"), Input(LOOK, "/b", "ENOENT")
    assert merged([Recording(inputs=(b,)), Recording(inputs=(a, b))]) == Recording(inputs=(a, b))
    incomplete = Recording(inputs=(), incomplete="it uses the network")
    assert merged([Recording(inputs=(a,)), incomplete]) == incomplete


def test_a_file_that_differed_between_runs_is_no_basis_for_reuse() -> None:
    runs = [Recording(inputs=(Input(FILE, "/a", value),)) for value in ("ENOENT", "100644 00")]
    assert merged(runs) == Recording(inputs=(), incomplete="it reads /a, which changed between its executions")


def test_a_name_that_is_not_utf8_is_a_path_like_any_other(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    path.write_text("one")
    item = one(path)
    assert is_unchanged(item)
    path.write_text("two")
    assert not is_unchanged(item)


def test_a_folder_reached_by_a_link_is_another_one_when_that_leads_elsewhere(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "file").touch()
    link = tmp_path / "link"
    link.symlink_to("one")
    for path in (link, link / "deep"):
        for kind in (FILE, LOOK):  # it is opened, or looked at, as chdir does
            notes = Notes("/scratch")
            notes.read(kind, os.fsencode(path), os.getpid())
            (found,) = taken(notes).inputs
            assert is_unchanged(found)
            link.unlink()
            link.symlink_to("two")
            assert not is_unchanged(found)
            link.unlink()
            link.symlink_to("one")
