"""What lies at a path at this moment, as text that can be stored and compared.

Knows the file system; must not know who asks or why. Used inside the launcher too: only the standard library, and
little of it. Every function takes an absence or a refusal as an answer like any other, and never raises OSError.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager

# Changes are dated by a clock that ticks up to a hundred times a second, on old file systems every other second.
_TICK_NS, _COARSE_TICK_NS, _SECOND_NS = 20_000_000, 2_000_000_000, 1_000_000_000

Path = str | bytes
Stamp = tuple[int, ...]


def reason(error: OSError) -> str:
    """Return the name of the error, such as ENOENT."""
    return errno.errorcode.get(error.errno or 0, str(error.errno))


def stamp(status: os.stat_result) -> Stamp:
    """Return what stays the same as long as a file does: git asks for the same to see what was edited."""
    return (status.st_ino, status.st_size, status.st_mode, status.st_mtime_ns, status.st_ctime_ns)


def stamp_of(path: Path) -> Stamp:
    """Return the stamp of the file at this path, empty if there is none."""
    try:
        return stamp(os.stat(path))
    except (OSError, ValueError):
        return ()


def settled(mark: Stamp, now_ns: int) -> bool:
    """Return whether a later change would surely give another stamp than this, which was taken at that time.

    A file changed once more within one tick of the clock looks unchanged: git calls such an entry "racily clean".
    """
    if not mark:
        return False
    latest = max(mark[3:])
    return now_ns - latest > (_TICK_NS if latest % _SECOND_NS else _COARSE_TICK_NS)


@contextmanager
def opened(path: Path, flags: int = 0) -> Generator[int]:
    """Open for reading within the block, as far as possible without a trace. OSError if that cannot be.

    To read a file sets its access time, once a day; a program that asks for a file's times, as Python does for each module,
    executes other instructions afterwards, if only because of the digits. Only a file's owner may leave it as it is.
    """
    flags |= os.O_RDONLY | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags | os.O_NOATIME)
    except PermissionError:
        descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def look(path: Path, *, follow: bool = True) -> str:
    """Return what a program can learn of a path without opening it: kind, permissions, and a file's size and date.

    Of a folder only that it is there, and where links to it lead: its date moves with everything that comes and goes in it.
    """
    try:
        status = os.stat(path, follow_symlinks=follow)
        if stat.S_ISLNK(status.st_mode):
            return "-> " + os.readlink(os.fsdecode(path))
    except OSError as error:
        return reason(error)
    if stat.S_ISREG(status.st_mode):
        return f"{status.st_mode:o} {status.st_size} {status.st_mtime_ns}"
    return f"{status.st_mode:o}{_leads(path)}"


def _leads(path: Path) -> str:
    """Return where a folder is that links lead to, empty without links: another one may have the same names."""
    real = os.path.realpath(path)
    return "" if real == path else f" -> {os.fsdecode(real)}"


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "l"
    return "d" if entry.is_dir() else "f" if entry.is_file() else "o"


def names(path: Path) -> str:
    """Return a hash of the names in a folder, and of the kinds that a list of it tells with them: folders, links, files, others."""
    try:
        with opened(path, os.O_DIRECTORY) as descriptor, os.scandir(descriptor) as entries:
            found = sorted(os.fsencode(f"{entry.name}/{_kind(entry)}") for entry in entries)
    except OSError as error:
        return reason(error)
    return hashlib.sha256(b"\0".join(found)).hexdigest() + _leads(path)


def content(path: Path) -> str:
    """Return permissions and a hash of the bytes of a file."""
    try:
        with opened(path) as descriptor:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                return f"{mode:o}"
            with open(descriptor, "rb", buffering=0, closefd=False) as file:
                return f"{mode:o} {hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError as error:
        return reason(error)
