"""The private directory of one run: out files, temporary files and Valgrind's library link, under a path of constant text.

The path is the same in every run (`/tmp/cg-bench.00`), since a program may hash or sort it; runs at the same time
take the next number. A lock tells a directory in use from one left by a killed run, which is emptied and used again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cachegrind_bench.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_SLOTS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """A directory that is ours alone while `lock` is open; `lock` may be inherited to hold it longer."""

    path: Path
    lock: int
    slot: int = 0

    @property
    def out(self) -> Path:
        """Where out files and logs go."""
        return self.path / "out"

    @property
    def tmp(self) -> Path:
        """The program's TMPDIR."""
        return self.path / "tmp"

    @property
    def lib(self) -> Path:
        """The link to Valgrind's libraries."""
        return self.path / "lib"

    def renew(self) -> None:
        """Empty it for the next execution."""
        _empty(self.path)
        self.out.mkdir()
        self.tmp.mkdir()


@contextlib.contextmanager
def scratch(base: Path) -> Generator[Scratch]:
    """Take a free directory under `base` (`/tmp`); it is removed in the end. MeasurementError where none can be made."""
    for slot in range(_SLOTS):
        path = base / f"cg-bench.{slot:02}"
        lock = _take(path)
        if lock is None:
            continue
        try:
            yield Scratch(path=path, lock=lock, slot=slot)
        finally:
            with contextlib.suppress(OSError):
                _empty(path)
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)
        return
    raise MeasurementError(
        f"no directory of our own can be made in {base}",
        hint=f"see whether {base}/cg-bench.00 and the like belong to you",
    )


def _take(path: Path) -> int | None:
    """Make or reclaim this directory and lock it; None if it is another's."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        return None
    except OSError as error:
        raise MeasurementError(
            f"cannot make the scratch directory {path}: {error.strerror}", hint="make room there, or allow writing"
        ) from error
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        status = os.fstat(lock)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The former owner may have removed the directory between our opening and locking it.
        same = os.path.samestat(status, path.lstat())
        if same and status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == 0o700:
            return lock
    except OSError:
        pass
    os.close(lock)
    return None


def _empty(path: Path) -> None:
    """Remove what is in the directory, also what a program has made unreadable."""
    for entry in os.scandir(path):
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)
            continue
        try:
            shutil.rmtree(entry.path)
        except PermissionError:
            _open_up(entry.path)
            shutil.rmtree(entry.path)


def _open_up(path: str) -> None:
    """Make every directory from here on our own to read and write (Go leaves its module cache read-only)."""
    os.chmod(path, 0o700)
    for folder, names, _files in os.walk(path):
        for name in names:
            full = os.path.join(folder, name)
            if not os.path.islink(full):  # chmod would follow it
                os.chmod(full, 0o700)  # before the walk descends into it
