"""Finds files of a benchmark that the set-up or build of another one writes over: all are run before the first one is measured."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_MOST_BYTES = 1 << 31


def named(folder: Path, command: Iterable[str]) -> Iterator[Path]:
    """Yield the paths that the words of a command may name; `--in=data` may mean `data`."""
    for word in command:
        yield from (folder / part for part in (word, word.partition("=")[2]) if part)


class NamedFiles:
    """Contents of the files that commands name: programs, what these execute, and their data."""

    def __init__(self) -> None:
        self._contents: dict[tuple[str, Path], bytes] = {}
        self._known: dict[tuple[int, ...], bytes] = {}

    def note(self, owner: str, paths: Iterable[Path]) -> None:
        """Take what these files of an owner's command have now, as far as they are there."""
        for path in paths:
            if contents := self._hash(path):
                self._contents[owner, path] = contents

    def overwritten(self) -> dict[str, Path]:
        """Return the owners that have a file with other contents now, with one such file each."""
        return {
            owner: path for (owner, path), contents in self._contents.items() if self._hash(path) not in {b"", contents}
        }

    def _hash(self, path: Path) -> bytes:
        """Return a hash of a regular file of at most 2 GiB, else nothing."""
        # ValueError is for what cannot be a path.
        with suppress(OSError, ValueError):
            at = path.stat()
            if stat.S_ISREG(at.st_mode) and at.st_size <= _MOST_BYTES:
                key = at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns
                if key not in self._known:
                    with path.open("rb") as file:
                        self._known[key] = hashlib.file_digest(file, "sha256").digest()
                return self._known[key]
        return b""
