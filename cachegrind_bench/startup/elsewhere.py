"""Lists folders in processes of their own: what else lies there then takes no memory here."""

from __future__ import annotations

import mmap
import os
import threading
from typing import TYPE_CHECKING

from cachegrind_bench.startup.real import Real

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_BYTES, _LENGTH = 1 << 20, 4


def listed(folder: str, endings: tuple[str, ...]) -> list[str]:
    """Return the entries of a folder with one of these (lower case) endings, sorted; OSError if they cannot be had."""
    with mmap.mmap(-1, _MOST_BYTES) as shared:

        def write() -> bool:
            data = b"\0".join(map(os.fsencode, _names(folder, endings)))
            shared[_LENGTH : _LENGTH + len(data)] = data
            shared[:_LENGTH] = len(data).to_bytes(_LENGTH, "little")
            return True

        if not _elsewhere(write):
            raise OSError(f"{folder} could not be listed")
        # In one piece: a heap knows in which ones something came.
        data = shared[_LENGTH : _LENGTH + int.from_bytes(shared[:_LENGTH], "little")]
    return [os.fsdecode(name) for name in data.split(b"\0") if name]


def are_still_there(folder: str, endings: tuple[str, ...], names: list[str]) -> bool:
    """Tell whether these are the folder's entries with such endings now; OSError if that cannot be known."""
    return _elsewhere(lambda: _names(folder, endings) == names)


def _elsewhere(succeed: Callable[[], bool]) -> bool:
    """Tell whether this succeeds in another process. OSError where that could not be had safely, or would not see what we do."""
    if os.listdir is not Real.listdir:
        raise OSError("a test has put another file system in the place of the real one")
    if threading.active_count() > 1:
        raise OSError("a fork does not get along with threads")
    pid = Real.fork()
    if not pid:
        status = 1
        try:
            status = int(not succeed())
        finally:
            Real.leave(status)
    return Real.waitpid(pid, 0)[1] == 0


def _names(folder: str, endings: tuple[str, ...]) -> list[str]:
    return sorted(name for name in Real.listdir(folder) if name.lower().endswith(endings))
