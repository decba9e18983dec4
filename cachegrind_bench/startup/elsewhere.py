"""Lists folders in processes of their own: what else lies there then takes no memory here."""

from __future__ import annotations

import mmap
import os
import threading

from cachegrind_bench.startup.real import Real

_MOST_BYTES, _LENGTH = 1 << 20, 4


def listed(folder: str, endings: tuple[str, ...]) -> list[str]:
    """Return the entries of a folder with one of these (lower case) endings, sorted; OSError if they cannot be had."""
    _check()
    with mmap.mmap(-1, _MOST_BYTES) as shared:
        pid = Real.fork()
        if not pid:
            status = 1
            try:
                data = b"\0".join(map(os.fsencode, _names(folder, endings)))
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


def are_still_there(folder: str, endings: tuple[str, ...], names: list[str]) -> bool:
    """Tell whether these are the folder's entries with such endings now; OSError if that cannot be known."""
    _check()
    pid = Real.fork()
    if not pid:
        status = 1
        try:
            status = int(_names(folder, endings) != names)
        finally:
            Real.leave(status)
    return Real.waitpid(pid, 0)[1] == 0


def _check() -> None:
    """Raise OSError where another process would not see what this one does, or could not be had safely."""
    if os.listdir is not Real.listdir:
        raise OSError("a test has put another file system in the place of the real one")
    if threading.active_count() > 1:
        raise OSError("a fork does not get along with threads")


def _names(folder: str, endings: tuple[str, ...]) -> list[str]:
    return sorted(name for name in Real.listdir(folder) if name.lower().endswith(endings))
