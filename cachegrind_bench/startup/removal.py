"""Removes folders and what a program has left in them, read-only folders too."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Container
from contextlib import suppress

from cachegrind_bench.startup.os_functions import Real


def remove(path: str) -> None:
    """Remove a file, link or folder with its contents, but nothing that is mounted there. OSError if something stays."""
    if not stat.S_ISDIR(Real.lstat(path).st_mode):
        Real.unlink(path)
    elif not _removed_empty(path):
        empty_folder(path)
        Real.rmdir(path)


def remove_own_file(path: str) -> None:
    """Remove a regular file of this user, if it is one, from a folder that is everybody's."""
    with suppress(OSError):
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
            Real.unlink(path)


def empty_folder(path: str, keep: Container[str] = ()) -> None:
    """Remove the contents of a folder except these names, also unreadable ones. OSError if something stays."""
    if not stat.S_ISDIR(Real.lstat(path).st_mode):  # a link to a folder, perhaps
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    with suppress(PermissionError):  # of another user: it goes if it is empty
        Real.chmod(path, 0o700)  # Go leaves its module cache read-only
    stays: OSError | None = None
    for entry in list(Real.scandir(path)):
        try:
            if entry.name not in keep:
                remove(entry.path)
        except FileNotFoundError:  # it has gone meanwhile
            pass
        except OSError as error:  # the rest goes all the same
            stays = error
        except RecursionError:
            stays = OSError(errno.ENAMETOOLONG, "folders are nested too deep", entry.path)
    if stays is not None:
        raise stays


def _removed_empty(path: str) -> bool:
    """Remove a folder if it is empty. OSError if something is mounted on it: its contents are not the program's."""
    try:
        Real.rmdir(path)
    except OSError as error:
        if error.errno in {errno.EBUSY, errno.EPERM}:  # EPERM where the folder below the mount cannot be changed
            raise
        return False
    return True
