"""Has one process execute a program with many command lines, each in a child that it forks: a start for all of them.

A small library in C, preloaded, does that; see `forks.c`. It is compiled when it is first needed. In its folder are `lines`: for each
child the length of the words and the words, which replace those after the program's name; and `forked`: the number of each child, and how it ended.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from cachegrind_bench import process
from cachegrind_bench.errors import MeasurementError

VARIABLE, PRELOAD = "CG_BENCH_FORKS", "LD_PRELOAD"
_SOURCE = Path(__file__).with_name("forks.c")
_NAME = "forks.so"
_LENGTH, _ENDED = struct.Struct("=H"), struct.Struct("=ii")
_MOST_BYTES = (1 << 16) - 1
_COMPILER_S = 20.0
_ALLOCATORS = (b"jemalloc", b"mimalloc", b"tcmalloc", b"snmalloc")


@cache
def library() -> bytes | None:
    """Return the library, None where there is no C compiler."""
    with suppress(MeasurementError, OSError), tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / _NAME
        words = ["cc", "-O1", "-fPIC", "-shared", "-o", str(target), str(_SOURCE), "-ldl"]
        if process.run(words, env=None, timeout=_COMPILER_S, guarded=True).status == 0:
            return target.read_bytes()
    return None


def has_own_allocator(executable: str) -> bool:
    """Return whether a program brings an allocator: its variables cannot be put back without the memory that it has mapped."""
    with open(executable, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(name) >= 0 for name in _ALLOCATORS)


def put(folder: Path, lines: Sequence[Sequence[str]]) -> None:
    """Write what the library needs in this folder."""
    (folder / _NAME).write_bytes(library() or b"")
    # The first child ends at once: what its parent does after a fork is in the simulated caches of all others.
    texts = [b"", *map(_text, lines)]
    (folder / "lines").write_bytes(b"".join(_LENGTH.pack(len(text)) + text for text in texts))


def _text(words: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(word) + b"\0" for word in words)


def fits(words: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether words can replace the others."""
    return len(words) == len(others) and len(_text(words)) <= _MOST_BYTES


def variables(folder: str) -> Mapping[str, str]:
    """Return the variables by which a program loads the library from this folder."""
    return {PRELOAD: f"{folder}/{_NAME}", VARIABLE: folder}


def ended(folder: Path, count: int) -> list[tuple[int, int]]:
    """Return the number of each of this many children that came to its end, and its wait status, in the order of the lines."""
    return _reports(folder, count)[1:]


def running(folder: Path, count: int) -> int | None:
    """Return which of this many children, one after the other, is executed now; None before the first and after the last."""
    at = len(_reports(folder, count)) - 1
    return at if 0 <= at < count else None


def _reports(folder: Path, count: int) -> list[tuple[int, int]]:
    """Read how children ended, with the empty one."""
    with suppress(OSError, struct.error):
        return list(_ENDED.iter_unpack((folder / "forked").read_bytes()[: (1 + count) * _ENDED.size]))
    return []
