"""Lets importlib.metadata list folders in processes of their own, and see only what may be distributions.

What else lies there, and when it came, then takes no memory here. Runs inside of Valgrind.
"""

from __future__ import annotations

import mmap
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cachegrind_bench.pytest_plugin.real import Real

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_BYTES, _LENGTH = 1 << 20, 4
_ENDINGS = (".dist-info", "egg-info", ".egg")
# What was listed of a folder, and when that had been changed last.
_LISTED: dict[str, tuple[float, list[str]]] = {}


def children(whole: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what stands for FastPath.children: the entries of a folder that may be distributions."""

    def children(path: Any) -> Any:
        folder = path.root or "."
        if not _may_fork() or not os.path.isdir(folder):
            return whole(path)
        try:
            changed = os.stat(folder).st_mtime
            names = _listed_elsewhere(folder)
        except OSError:
            return whole(path)
        _LISTED[folder] = changed, names
        return names

    return children


def mtime(whole: property) -> property:
    """Return what stands for FastPath.mtime: a folder has changed where there are other distributions than were listed."""

    def mtime(path: Any) -> Any:
        folder = path.root or "."
        if folder in _LISTED and _may_fork():
            # Another process looks each time: one that looked only at a changed folder would leave traces in this one.
            changed, names = _LISTED[folder]
            with suppress(OSError):  # no more processes; or it was somebody else who waited for this one
                if _are_still_there(folder, names):
                    return changed
        return whole.fget(path) if whole.fget is not None else None

    return property(mtime)


def _may_fork() -> bool:
    """Tell whether other processes see what this one does: not a file system that a test has put in the place of the real."""
    return os.listdir is Real.listdir and threading.active_count() == 1  # and a fork does not get along with threads


def _names(folder: str) -> list[str]:
    return sorted(name for name in Real.listdir(folder) if name.lower().endswith(_ENDINGS))


def _listed_elsewhere(folder: str) -> list[str]:
    """Return the names of what may be distributions in this folder, in their order; OSError if they cannot be had."""
    with mmap.mmap(-1, _MOST_BYTES) as shared:
        pid = Real.fork()
        if not pid:
            status = 1
            try:
                data = b"\0".join(map(os.fsencode, _names(folder)))
                shared[_LENGTH : _LENGTH + len(data)] = data
                shared[:_LENGTH] = len(data).to_bytes(_LENGTH, "little")
                status = 0
            finally:
                Real.leave(status)
        if Real.waitpid(pid, 0)[1]:
            raise OSError(f"{folder} could not be listed")
        # In one piece: a heap knows in which ones something came.
        data = shared[_LENGTH : _LENGTH + int.from_bytes(shared[:_LENGTH], "little")]
    return [os.fsdecode(name) for name in data.split(b"\0") if name]


def _are_still_there(folder: str, names: list[str]) -> bool:
    """Tell whether these are what may be distributions there, as another process finds."""
    pid = Real.fork()
    if not pid:
        status = 1
        try:
            status = int(_names(folder) != names)
        finally:
            Real.leave(status)
    return Real.waitpid(pid, 0)[1] == 0
