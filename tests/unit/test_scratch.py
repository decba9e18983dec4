"""The private directory: one name, one owner, nothing left behind, and nobody's else touched."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic import scratch as module
from cachegrind_bench.hermetic.scratch import scratch
from cachegrind_bench.pytest_plugin.inner import run
from cachegrind_bench.startup.os_functions import Real
from cachegrind_bench.startup.removal import empty_folder
from tests.conftest import ROOT
from tests.unit.samples import run_without_rights

if TYPE_CHECKING:
    from pathlib import Path


def test_the_first_directory_has_a_constant_name_is_private_and_goes_away(tmp_path: Path) -> None:
    with scratch(tmp_path) as found:
        assert found.path == tmp_path / "cg-bench.00"
        assert stat.S_IMODE(found.path.stat().st_mode) == 0o700
        assert (found.out, found.tmp, found.lib) == (found.path / "out", found.path / "tmp", found.path / "lib")
    assert os.listdir(tmp_path) == []


def test_runs_at_the_same_time_take_the_next_numbers(tmp_path: Path) -> None:
    with scratch(tmp_path) as first, scratch(tmp_path) as second:
        assert second.path.name == "cg-bench.01"
        assert len(str(first.path)) == len(str(second.path))
    with scratch(tmp_path) as again:
        assert again.path.name == "cg-bench.00"


def test_the_scratch_folder_is_removed_after_a_failure_too(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), scratch(tmp_path):
        raise RuntimeError
    assert os.listdir(tmp_path) == []


def test_every_execution_finds_it_empty(tmp_path: Path) -> None:
    with scratch(tmp_path) as found:
        for _ in range(2):
            found.renew()
            assert sorted(os.listdir(found.path)) == ["out", "tmp"]
            assert os.listdir(found.tmp) == []
            found.renew("/usr")
            assert os.readlink(found.lib) == "/usr"
            (found.path / "stdout").touch()
            (found.tmp / "deep" / "er").mkdir(parents=True)
            (found.tmp / "link").symlink_to(tmp_path)
            os.mkfifo(found.out / "fifo")
    assert os.listdir(tmp_path) == []


def test_what_a_killed_run_left_is_emptied_and_used_again(tmp_path: Path) -> None:
    stale = tmp_path / "cg-bench.00"
    (stale / "tmp").mkdir(parents=True)
    (stale / "tmp" / "left-over").touch()
    stale.chmod(0o700)
    with scratch(tmp_path) as found:
        assert found.path == stale
        found.renew()
        assert os.listdir(found.tmp) == []


def test_the_files_of_a_test_go_and_earlier_ones_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "kept").mkdir()
    monkeypatch.setattr(os, "unlink", None)  # as a test may have left it
    (tmp_path / "file").touch()
    run.empty_folder(str(tmp_path), frozenset({"kept"}))
    assert os.listdir(tmp_path) == ["kept"]


def test_folders_that_are_nested_too_deep_are_an_error_and_the_next_run_takes_another(tmp_path: Path) -> None:
    slot = tmp_path / "cg-bench.00"
    slot.mkdir(mode=0o700)
    descriptor = os.open(slot, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    with pytest.raises(OSError, match=r"nested too deep|File name too long"):
        empty_folder(str(slot))
    with scratch(tmp_path) as found:
        assert found.path.name == "cg-bench.01"
    subprocess.run(["rm", "-rf", slot], check=True)  # more than pytest can


def test_what_a_link_in_place_of_a_folder_leads_to_is_not_emptied(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir(mode=0o755)
    (precious / "file").touch()
    (tmp_path / "link").symlink_to(precious)
    run.empty_folder(str(tmp_path / "link"))
    with pytest.raises(NotADirectoryError):
        empty_folder(str(tmp_path / "link"))
    assert os.listdir(precious) == ["file"]
    assert stat.S_IMODE(precious.stat().st_mode) == 0o755


def test_what_a_program_has_mounted_is_neither_opened_nor_emptied(tmp_path: Path) -> None:
    precious, folder = tmp_path / "precious", tmp_path / "tmp"
    (precious / "folder").mkdir(parents=True)
    (precious / "file").touch()
    precious.chmod(0o755)
    places = (folder / "at the top", folder / "a folder" / "below", tmp_path / "itself")
    for place in places:
        place.mkdir(parents=True)
    (folder / "file").touch()
    script = 'for place in "$@"; do mount --bind precious "$place" || exit 9; done; exec "$PYTHON" -c "$PROGRAM"'
    program = """
from cachegrind_bench.startup.removal import empty_folder, remove
for clear, path in ((empty_folder, "tmp"), (remove, "tmp"), (remove, "itself")):
    try:
        clear(path)
    except OSError as error:
        print(error.strerror)
"""
    apart = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh")
    environ = {**os.environ, "PYTHON": sys.executable, "PROGRAM": program, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*apart, *places], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    if done.stderr.startswith(("unshare:", "mount:")):
        pytest.skip(f"needs mounts of its own: {done.stderr}")
    assert done.stdout.splitlines() == ["Device or resource busy"] * 3, done.stderr
    assert sorted(os.listdir(folder)) == ["a folder", "at the top"]
    assert sorted(os.listdir(precious)) == ["file", "folder"]
    assert stat.S_IMODE(precious.stat().st_mode) == 0o755


def test_what_cannot_be_removed_or_has_gone_meanwhile_does_not_keep_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c", "d/e"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").touch()
    real = Real.unlink

    def unlink(path: str) -> None:
        if path.endswith("b/file"):
            raise PermissionError(1, "Operation not permitted", path)
        real(path)
        if path.endswith("c/file"):
            raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr(Real, "unlink", staticmethod(unlink))
    with pytest.raises(PermissionError):
        empty_folder(str(tmp_path))
    assert os.listdir(tmp_path) == ["b"]
    run.empty_folder(str(tmp_path))


def test_an_odd_umask_neither_hinders_nor_leaves_anything(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        with scratch(tmp_path) as found:
            found.renew()
            assert (found.path.name, stat.S_IMODE(found.tmp.stat().st_mode)) == ("cg-bench.00", 0o700)
    finally:
        os.umask(before)
    assert os.listdir(tmp_path) == []


def refuse(path: object) -> None:
    raise PermissionError(1, "Operation not permitted", str(path))


def test_what_cannot_be_emptied_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cg-bench.00" / "tmp").mkdir(parents=True)
    (tmp_path / "cg-bench.00").chmod(0o700)
    monkeypatch.setattr(module, "empty_folder", lambda path: (refuse if path.endswith("00") else empty_folder)(path))
    with scratch(tmp_path) as found:
        assert found.path.name == "cg-bench.01"
    assert os.listdir(tmp_path) == ["cg-bench.00"]


def test_a_program_that_leaves_what_cannot_be_removed_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scratch(tmp_path) as found:
        monkeypatch.setattr(module, "empty_folder", refuse)
        with pytest.raises(MeasurementError, match="ready for the next execution"):
            found.renew()


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    with scratch(tmp_path) as found:
        found.renew()
        (found.path / "link").symlink_to(precious)
        (found.tmp / "link").symlink_to(precious)
        found.renew()
        (found.tmp / "link").symlink_to(precious)
    assert os.listdir(precious) == ["file"]


def test_a_link_that_waits_in_place_of_the_directory_is_passed_over(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    (victim / "file").touch()
    (tmp_path / "cg-bench.00").symlink_to(victim)
    (tmp_path / "cg-bench.01").symlink_to(tmp_path / "nowhere")
    (tmp_path / "cg-bench.02").touch()
    with scratch(tmp_path) as found:
        assert found.path.name == "cg-bench.03"
        found.renew()
    assert os.listdir(victim) == ["file"]
    assert not (tmp_path / "nowhere").exists()


def test_a_directory_that_others_can_enter_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "cg-bench.00").mkdir()
    (tmp_path / "cg-bench.00").chmod(0o755)
    with scratch(tmp_path) as found:
        assert found.path.name == "cg-bench.01"
    assert (tmp_path / "cg-bench.00").exists()


def test_anothers_directory_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cg-bench.00").mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    monkeypatch.setattr(module, "_SLOTS", 3)
    with pytest.raises(MeasurementError) as caught, scratch(tmp_path):
        pass
    assert caught.value.message == f"cg-bench cannot make a directory of its own in {tmp_path}"
    assert "cg-bench.00" in (caught.value.hint or "")


def test_a_directory_removed_between_opening_and_locking_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock
    removed: list[Path] = []

    def flock(descriptor: int, how: int) -> None:
        if not removed:
            removed.append(tmp_path / "cg-bench.00")
            removed[0].rmdir()
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with scratch(tmp_path) as found:
        assert found.path.name == "cg-bench.01"


def test_a_lock_that_was_inherited_holds_the_directory(tmp_path: Path) -> None:
    with scratch(tmp_path) as found:
        held = os.dup(found.lock)
    try:
        (tmp_path / "cg-bench.00").mkdir(mode=0o700)  # the name is free, the old directory is not this one
        with scratch(tmp_path) as again:
            assert again.path.name == "cg-bench.00"
    finally:
        os.close(held)


def test_no_place_for_it_is_reported(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError) as caught, scratch(tmp_path / "missing"):
        pass
    assert (
        caught.value.message
        == f"cannot make the scratch directory {tmp_path}/missing/cg-bench.00: No such file or directory"
    )


PROGRAM = """
import os, sys
from pathlib import Path
from cachegrind_bench.hermetic.scratch import scratch

begin()

def hide(folder):
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").touch()
    (folder / "readonly").mkdir()
    (folder / "readonly" / "file").touch()
    (folder / "readonly").chmod(0o555)  # as Go leaves its module cache
    (folder / "a" / "b").chmod(0)
    (folder / "a").chmod(0)

with scratch(Path(sys.argv[1])) as found:
    found.renew()
    hide(found.tmp)
    found.renew()
    assert os.listdir(found.tmp) == []
    hide(found.tmp)
    found.path.chmod(0o500)
print(os.listdir(sys.argv[1]))
"""


def test_what_a_program_made_unreadable_is_removed_all_the_same() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to others
        os.chmod(folder, 0o777)  # noqa: S103 - for the user without rights
        assert run_without_rights(PROGRAM, folder) == "[]\n"


def test_the_end_of_a_run_does_not_remove_the_directory_of_the_next(tmp_path: Path) -> None:
    first = contextlib.ExitStack()
    mine = first.enter_context(scratch(tmp_path))
    mine.path.rmdir()  # as the launcher does when it is told that we are gone
    with scratch(tmp_path) as others:
        others.renew()
        first.close()
        assert others.out.is_dir()
