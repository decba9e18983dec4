"""Lets pytest see of folders only what leads to a file of tests: a new file beside it must not move counts.

pytest lists folders, which executes code and takes memory for each entry.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import _pytest.main
import _pytest.python

from cachegrind_bench.startup.unlisted import replace

if TYPE_CHECKING:
    from collections.abc import Callable


def look_only_towards(file: str) -> None:
    """From now on, pytest sees of each folder above this file only what leads to it."""
    path = Path(os.path.abspath(file))
    ways = {str(parent): child.name for child, parent in zip((path, *path.parents), path.parents, strict=False)}
    for module in (_pytest.main, _pytest.python):  # they have it since pytest 8.0
        replace(module, "scandir", lambda whole: _narrow(whole, ways))


def _narrow(whole: Callable[..., Any], ways: dict[str, str]) -> Callable[..., Any]:
    def scandir(path: Any, sort_key: Callable[[Any], Any] = _by_name) -> Any:
        name = ways.get(str(path))
        if name is None:
            return whole(path, sort_key)
        found = (_Entry(str(path), name) for name in {name, "__init__.py"})
        return sorted((entry for entry in found if os.path.lexists(entry.path)), key=sort_key)

    return scandir


class _Entry:
    """An entry of a folder as os.scandir has it, without looking at the others."""

    def __init__(self, folder: str, name: str) -> None:
        self.name, self.path = name, os.path.join(folder, name)

    def __fspath__(self) -> str:
        return self.path

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISDIR(self._mode(follow_symlinks=follow_symlinks))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISREG(self._mode(follow_symlinks=follow_symlinks))

    def is_symlink(self) -> bool:
        return stat.S_ISLNK(self._mode(follow_symlinks=False))

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(self.path, follow_symlinks=follow_symlinks)

    def _mode(self, *, follow_symlinks: bool) -> int:
        try:
            return os.stat(self.path, follow_symlinks=follow_symlinks).st_mode
        except FileNotFoundError:  # a link that leads nowhere
            return 0


def _by_name(entry: Any) -> Any:
    return entry.name
