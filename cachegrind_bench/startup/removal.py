"""Removes folders, whatever a program has left there."""

from __future__ import annotations

import stat
from collections.abc import Container
from contextlib import suppress

from cachegrind_bench.startup.os_functions import Real


def remove(path: str) -> None:
    """Remove a folder with all that is in it, or else what is there, but nothing that a link leads to. OSError where that is not possible."""
    if stat.S_ISDIR(Real.lstat(path).st_mode):
        empty_folder(path)
        Real.rmdir(path)
    else:
        Real.unlink(path)


def empty_folder(path: str, keep: Container[str] = ()) -> None:
    """Remove what is in the folder but these names, also what a program has made unreadable. OSError where that is not possible.

    Without recursion, and with short paths: a program may nest deeper than either can go. What is in a folder below comes up
    into `path`, until there are no folders.
    """
    moved = 0
    _open_up(path)
    while entries := [entry for entry in Real.scandir(path) if entry.name not in keep]:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                Real.unlink(entry.path)
                continue
            _open_up(entry.path)
            for inner in list(Real.scandir(entry.path)):
                if not inner.is_dir(follow_symlinks=False):
                    Real.unlink(inner.path)
                    continue
                _open_up(inner.path)  # its `..` changes, so it must be writable
                while _exists(target := f"{path}/moved.{moved}"):
                    moved += 1
                Real.rename(inner.path, target)
            Real.rmdir(entry.path)


def _open_up(path: str) -> None:
    """Make a directory our own to read and write (Go leaves its module cache read-only)."""
    with suppress(PermissionError):  # another's: it goes if it is empty
        Real.chmod(path, 0o700)


def _exists(path: str) -> bool:
    try:
        return bool(Real.lstat(path))
    except FileNotFoundError:
        return False
