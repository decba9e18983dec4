"""The private directory of one run: out files, temporary files and Valgrind's library link, under a path of constant text.

The path is the same in every run (`/tmp/cg-bench.00`), since a program may hash or sort it; runs at the same time
take the next number. A lock marks a directory in use; one left by a killed run has none, and is emptied and used again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Generator
from pathlib import Path

import msgspec

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.startup.removal import empty_folder, remove

_SLOTS = 1000
FIRST_SLOT = 500  # of folders by which no measured process chooses its CPU


class Scratch(msgspec.Struct, frozen=True, kw_only=True):
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

    def renew(self, libraries: str | None = None) -> None:
        """Empty it for the next execution; `lib` will lead to these libraries. MeasurementError where that fails."""
        try:
            empty_folder(str(self.path))
            for folder in (self.out, self.tmp):
                folder.mkdir()
                folder.chmod(0o700)  # whatever the umask is
            if libraries is not None:
                self.lib.symlink_to(libraries)
        except OSError as error:
            raise MeasurementError(
                f"cannot make {self.path} ready for the next execution: {error.filename}: {error.strerror}",
                hint="check whether the disk is full, or the command left a mount or another user's files in its TMPDIR",
            ) from error


@contextlib.contextmanager
def scratch(base: Path, *, first: int = 0) -> Generator[Scratch]:
    """Take a free directory under `base` (`/tmp`); it is removed in the end. MeasurementError where none can be made.

    Its number is `first` or higher: lower ones are for what measures, as it chooses its CPU by that.
    """
    for slot in range(first, _SLOTS):
        path = base / f"cg-bench.{slot:02}"
        lock = _take(path)
        if lock is None:
            continue
        try:
            try:
                empty_folder(str(path))
            except OSError:  # a killed run left what we may not remove: it must not block all later ones
                continue
            try:
                yield Scratch(path=path, lock=lock, slot=slot)
            finally:
                with contextlib.suppress(OSError):
                    # Unless the launcher has removed it, and another run has made one of the same name.
                    if os.path.samestat(os.fstat(lock), path.lstat()):
                        remove(str(path))
        finally:
            os.close(lock)
        return
    raise MeasurementError(
        f"cg-bench cannot make a directory of its own in {base}",
        hint=f"check whether {base}/cg-bench.00 and the like belong to you",
    )


def _take(path: Path) -> int | None:
    """Make or reclaim this directory and lock it; None if it is another's."""
    try:
        path.mkdir(mode=0o700)
        path.chmod(0o700)  # whatever the umask is
    except FileExistsError:
        pass
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
