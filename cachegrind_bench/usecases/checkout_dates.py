"""Dates of the files of a checkout: a file that is as it was in the checkout before, at the same path, keeps its date.

What is compared between commits may hold dates, as compiled Python modules do, and `git` gives each checkout new ones. But no
change may be older than what was built of the files before: Cargo and make build what is newer than that, and Go what has
another date.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from cachegrind_bench.errors import CgBenchError
from cachegrind_bench.store.durable import make_folder, open_regular, read_file, write_atomic

_MOST_BYTES = 1 << 30
# By the paths of files: their contents, as hashes, and their dates in nanoseconds.
_Book = dict[bytes, tuple[bytes, int]]


def date_files(tree: Path, folder: Path) -> None:
    """Date all files of a checkout, with what this folder knows of the one before it at this path; nothing follows links."""
    path = folder / hashlib.sha256(os.fsencode(tree)).hexdigest()[:16]
    now, before, found = time.time_ns(), _known(path), _Book()
    for file in _files(str(tree)):
        content = _content(file)
        then, date = before.get(file, (b"", 0))
        found[file] = content, date if content and content == then else now
    try:  # before anything is built of them
        write_atomic(make_folder(folder) / path.name, msgspec.msgpack.encode(found))
    except CgBenchError:  # the next checkout is not to find what is not of this one
        found = dict.fromkeys(found, (b"", now))
        with suppress(OSError):
            path.unlink()
    for file, (_, date) in found.items():
        with suppress(OSError):
            os.utime(file, ns=(date, date), follow_symlinks=False)


def _known(path: Path) -> _Book:
    with suppress(CgBenchError, OSError, msgspec.MsgspecError):
        return msgspec.msgpack.decode(read_file(path, _MOST_BYTES), type=_Book)
    return {}


def _files(tree: str) -> Iterator[bytes]:
    """Yield all files and links but git's own."""
    folders = [os.fsencode(tree)]
    while folders:
        with suppress(OSError):  # a path may be too long, or closed
            for entry in list(os.scandir(folders.pop())):
                if not entry.is_dir(follow_symlinks=False):
                    yield entry.path
                elif entry.name != b".git":
                    folders.append(entry.path)


def _content(file: bytes) -> bytes:
    """Return a hash of what a file has, or of where a link leads; nothing where that cannot be read."""
    with suppress(OSError, CgBenchError):
        if stat.S_ISLNK(os.lstat(file).st_mode):
            return hashlib.sha256(os.readlink(file)).digest()
        with open_regular(Path(os.fsdecode(file))) as stream:
            return hashlib.file_digest(stream, "sha256").digest()  # type: ignore[arg-type]
    return b""
