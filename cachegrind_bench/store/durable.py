"""Files that are whole or not there at all, and on the disk before anyone hears of it: added for ever, or replaced.

Knows files, links and locks; must not know what is in them. What concerns a store is a StoreError, what concerns a file
that somebody named a UsageError.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from cachegrind_bench.errors import StoreError, UsageError
from cachegrind_bench.waiting import Waiting

WAIT_S = 60.0

_PREFIX = ".cg-bench."
_DAY_S = 86_400
_POLL_S = 0.02
_LOOK = 1 << 12  # bytes
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
# What file systems without hard links say: FAT, some network and FUSE ones.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
# What is said of a file that is mounted alone, as into a container, and of another user's in a folder such as /tmp.
_NO_REPLACING = {errno.EBUSY, errno.EPERM}
# What file systems say on which a folder cannot be synced.
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EACCES, errno.EBADF}


def add_file(path: Path, data: bytes, lock: Path) -> bool:
    """Add a file of these bytes; False, and nothing changed, if there is one of this name. StoreError if it fails.

    The caller compares, and calls `sync_folder` before it reports the new file. `lock` is taken only where files cannot
    be linked. A killed process leaves a temporary file, which is ignored.
    """
    temporary = _temporary(path.parent)
    try:
        with store_errors(path.parent, "write in"):
            _fill(os.open(temporary, _NEW, 0o666), lambda stream: stream.write(data))
        return _publish(temporary, path, lock)
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _temporary(folder: Path) -> Path:
    """Return the name of a file to write in this folder, which nobody else has."""
    return folder / f"{_PREFIX}{os.urandom(8).hex()}"


def _fill(descriptor: int, write: Callable[[BinaryIO], object]) -> None:
    with os.fdopen(descriptor, "wb") as stream:
        write(stream)
        stream.flush()
        os.fsync(stream.fileno())


def _publish(temporary: Path, path: Path, lock: Path) -> bool:
    """Give the temporary file its name, next to it; False if that is taken."""
    with store_errors(path, "write"):
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
        else:
            return True
        # A rename replaces what is there, so one at a time looks and renames. A file made with O_EXCL and then written
        # would be half there for whoever is killed.
        with locked(lock):
            if os.path.lexists(path):
                return False
            os.rename(temporary, path)
            return True


def read_file(path: Path, most: int) -> bytes:
    """Return the bytes of a file of at most this many. FileNotFoundError if it is not there, else StoreError."""
    try:
        with path.open("rb") as stream:
            if (size := os.fstat(stream.fileno()).st_size) > most:
                raise StoreError(f"cannot read {path}: it has {size} bytes, and {most} is the most")
            return stream.read()
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            accept_absence(path)
            raise
        raise StoreError(f"cannot read {path}: {error.strerror}") from error


def dangling(path: Path) -> Path | None:
    """Return the first symbolic link on the way to this path, itself included, that leads nowhere; None if there is none."""
    # Not Path's own questions, which raise where a folder may not be looked into.
    way = (*reversed(path.parents), path)
    return next((part for part in way if os.path.islink(part) and not os.path.exists(part)), None)


def accept_absence(path: Path) -> None:
    """Accept that there is nothing at this path. StoreError if a link on the way leads nowhere: a disk may be missing."""
    link = dangling(path)
    if link is not None:
        hint = "mount or make its target, or remove the link"
        raise StoreError(f"cannot read {path}: the link {link} leads nowhere", hint=hint)


def is_there(path: Path) -> bool:
    """Return whether there is something at this path. StoreError if that cannot be found out, or a link leads nowhere."""
    with store_errors(path, "read"):
        try:
            path.stat()
        except FileNotFoundError:
            accept_absence(path)
            return False
        return True


def sync_folder(folder: Path) -> None:
    """Make sure that the names in this folder outlive a loss of power, where the file system can do that."""
    with store_errors(folder, "write in"):
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except PermissionError:
            return
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _NO_SYNC:
                raise
        finally:
            os.close(descriptor)


def is_temporary(name: str) -> bool:
    """Return whether a file of this name is one that is being written, or was when its writer was killed."""
    return name.startswith(_PREFIX)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files that nobody writes any more: those of more than a day ago. Failing costs nothing."""
    before = time.time() - _DAY_S
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_temporary(entry.name):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < before:
                        os.unlink(entry.path)


@contextmanager
def locked(path: Path, wait: float = WAIT_S, waiting: Waiting | None = None) -> Generator[None]:
    """Hold the lock of this file, which the kernel takes from whoever dies. StoreError if it takes longer than `wait` s."""
    since, waiting = time.monotonic(), waiting or Waiting()
    with store_errors(path, "lock"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        with store_errors(path, "lock"):
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    past = time.monotonic() - since
                    if past > wait:
                        what = f"another process has held {path} for {wait:g} s"
                        raise StoreError(what, hint="try again when it is done") from None
                    waiting.look(str(path), past)
                    time.sleep(_POLL_S)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def store_errors(path: Path, doing: str) -> Generator[None]:
    """Turn what the system says into a StoreError that names the file."""
    try:
        yield
    except OSError as error:
        hint = "free some space" if error.errno in {errno.ENOSPC, errno.EDQUOT} else None
        raise StoreError(f"cannot {doing} {path}: {error.strerror or error}", hint=hint) from error


def write_atomic(path: Path, data: bytes | Iterable[bytes], *, in_place: bool = False) -> None:
    """Replace the file by these bytes, or pieces, whole or not at all; pipes and devices are written to.

    With `in_place`, also write into a file that cannot be replaced, such as one that is mounted alone.
    """
    # The file behind a symbolic link: the link stays (`latest.json`, and above all `/dev/stdout`).
    with store_errors(path, "write"):  # the working directory may be gone
        target = Path(os.path.realpath(path))
    temporary = _temporary(target.parent)
    pieces = (data,) if isinstance(data, bytes) else data
    try:
        if is_special(path):
            with path.open("wb") as stream:
                stream.writelines(pieces)
            return
        mode = _mode(target)
        descriptor = os.open(temporary, _NEW, 0o666 if mode is None else stat.S_IMODE(mode))
        if mode is not None:
            os.fchmod(descriptor, stat.S_IMODE(mode))
        _fill(descriptor, lambda stream: stream.writelines(pieces))
        try:
            os.replace(temporary, target)
        except OSError as error:
            if not in_place or error.errno not in _NO_REPLACING:
                raise
            _copy_into(temporary, target)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _copy_into(temporary: Path, target: Path) -> None:
    """Write into a file that cannot be replaced. UsageError names a file that keeps the bytes if that fails."""
    try:
        shutil.copyfile(temporary, target)
    except OSError as error:
        kept = target.with_name(f"{target.name}.kept")
        os.replace(temporary, kept)
        hint = f"what it was to hold is in {kept}"
        raise UsageError(f"cannot write {target}: {error.strerror}", hint=hint) from error


def check_writable(path: Path) -> None:
    """Find out before any work whether `write_atomic` will work; UsageError naming the file if not."""
    if is_special(path):
        return
    if os.path.isdir(path):  # unlike Path's, never an exception (Python up to 3.13)
        raise UsageError(f"cannot write {path}: it is a directory", hint="name a file in it")
    try:
        with suppress(FileNotFoundError):
            path.stat()  # fails where the name is too long
        target = Path(os.path.realpath(path))
        temporary = _temporary(target.parent)
        os.close(os.open(temporary, _NEW, 0o600))
        os.unlink(temporary)
    except OSError as error:
        raise _cannot_write(path, error) from error


def check_replaceable(path: Path) -> None:
    """Find out before any work whether a result may take the place of this file: UsageError if it is something else."""
    if is_special(path):
        return
    try:
        with path.open("rb") as file:
            start = file.read(_LOOK).lstrip()
    except OSError:  # it is not there, or `check_writable` says what is wrong
        return
    if start and not start.startswith(b"{"):
        raise UsageError(f"{path} exists, and is not a result file", hint="name another file, or remove it first")


def make_folder(folder: Path) -> Path:
    """Make a folder, and those above it, where it is not there. UsageError if it cannot be, or nothing be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        link = dangling(folder)
        what = error.strerror if link is None else f"the link {link} leads nowhere"
        raise UsageError(f"cannot make the folder {folder}: {what}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        code = errno.EROFS if os.statvfs(folder).f_flag & os.ST_RDONLY else errno.EACCES
        raise UsageError(f"cannot write into the folder {folder}: {os.strerror(code)}", hint="choose another folder")
    return folder


def _mode(path: Path) -> int | None:
    """Return type and mode of the file that is there; None for a new one."""
    with suppress(OSError):
        return path.stat().st_mode
    return None


def is_special(path: Path) -> bool:
    """Return whether there is a pipe, a device or a socket at this path."""
    mode = _mode(path)
    return mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _cannot_write(path: Path, error: OSError) -> UsageError:
    hint = (
        "make the directory first" if isinstance(error, FileNotFoundError) else "choose another file or free some space"
    )
    return UsageError(f"cannot write {path}: {error.strerror}", hint=hint)
