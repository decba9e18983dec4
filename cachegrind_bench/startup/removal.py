"""Removes folders, whatever a program has left there."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Container, Iterator
from contextlib import suppress
from itertools import count

from cachegrind_bench.startup.os_functions import Real

_MOST_PASSES = 100_000  # one removes a level of folders; something may still write there


def remove(path: str) -> None:
    """Remove a folder with all in it, or else what is there, but nothing that a link leads to or that is mounted. OSError if something stays."""
    if not _is_folder(path):
        Real.unlink(path)
    elif not _removed_empty(path):
        _empty(path, ())
        Real.rmdir(path)


def remove_own_file(path: str) -> None:
    """Remove a regular file of this user, if it is one, from a folder that is everybody's."""
    with suppress(OSError):
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
            Real.unlink(path)


def empty_folder(path: str, keep: Container[str] = ()) -> None:
    """Remove what is in the folder but these names, also what a program has made unreadable. OSError if something stays."""
    if not _is_folder(path):  # but a link to one, perhaps
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    if _has_entries(path) and _removed_empty(path):
        Real.mkdir(path, 0o700)  # something else has emptied it meanwhile
    _empty(path, keep)


def _empty(path: str, keep: Container[str]) -> None:
    """Remove what is in a folder that nothing is mounted on, but these names.

    Without recursion, and with short paths: a program may nest deeper than either can go. Folders within others come up
    into `path`, until all are gone.
    """
    stays, numbers = dict[str, OSError](), count()
    _open_up(path)
    for _ in range(_MOST_PASSES):
        entries = [entry for entry in Real.scandir(path) if entry.name not in keep and entry.name not in stays]
        if not entries:
            break
        for entry in entries:
            try:
                _take_away(entry, path, numbers)
            except FileNotFoundError:  # it has gone meanwhile
                pass
            except OSError as error:  # the rest goes all the same
                stays[entry.name] = error
    if stays:
        raise next(iter(stays.values()))


def _take_away(entry: os.DirEntry[str], top: str, numbers: Iterator[int]) -> None:
    """Remove a file, or a folder with its files; folders in it are moved to the top."""
    if not entry.is_dir(follow_symlinks=False):
        Real.unlink(entry.path)
        return
    if _removed_empty(entry.path):
        return
    _open_up(entry.path)
    stays: OSError | None = None
    for inner in list(Real.scandir(entry.path)):
        try:
            if inner.is_dir(follow_symlinks=False):
                _move(inner.path, next(path for path in (f"{top}/moved.{n}" for n in numbers) if _is_free(path)))
            else:
                Real.unlink(inner.path)
        except FileNotFoundError:
            pass
        except OSError as error:
            stays = error
    if stays is not None:
        raise stays
    Real.rmdir(entry.path)


def _removed_empty(path: str) -> bool:
    """Remove a folder if it is empty. OSError if something is mounted on it: what is in it is not the program's."""
    try:
        Real.rmdir(path)
    except OSError as error:
        if error.errno in {errno.EBUSY, errno.EPERM}:  # the latter where what it is mounted on cannot be changed
            raise
        return False
    return True


def _has_entries(path: str) -> bool:
    try:
        return bool(Real.listdir(path))
    except PermissionError:
        return False


def _move(path: str, to: str) -> None:
    try:
        Real.rename(path, to)
    except PermissionError:  # its `..` changes, so it must be writable
        if not _removed_empty(path):
            _open_up(path)
            Real.rename(path, to)


def _is_folder(path: str) -> bool:
    return stat.S_ISDIR(Real.lstat(path).st_mode)


def _open_up(path: str) -> None:
    """Make a directory our own to read and write (Go leaves its module cache read-only)."""
    with suppress(PermissionError):  # another's: it goes if it is empty
        Real.chmod(path, 0o700)


def _is_free(path: str) -> bool:
    try:
        Real.lstat(path)
    except FileNotFoundError:
        return True
    return False
