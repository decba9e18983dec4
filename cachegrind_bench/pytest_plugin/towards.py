"""Lets pytest and Python see of folders only what they need: a new file beside the tests must not move counts.

Both list folders, which executes code and takes memory for each entry; and Python lists one again when it was changed
meanwhile, if only for a moment. Replaces private functions of the two, until a benchmark is called; where a version has
them no more, counts move with the entries of folders, and nothing else changes.
"""

from __future__ import annotations

import importlib.metadata
import os
import stat
import sys
from importlib.machinery import FileFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

import _pytest.main
import _pytest.python

from cachegrind_bench.pytest_plugin import distributions

if TYPE_CHECKING:
    from collections.abc import Callable


# What was replaced: where, its name, and what it was.
_REPLACED: list[tuple[Any, str, Any]] = []


def look_only_towards(file: str) -> None:
    """From now on, pytest sees of each folder above this file only what leads to it."""
    path = Path(os.path.abspath(file))
    ways = {str(parent): child.name for child, parent in zip((path, *path.parents), path.parents, strict=False)}
    for module in (_pytest.main, _pytest.python):  # they have it since pytest 8.0
        _replace(module, "scandir", lambda whole: _narrow(whole, ways))


def import_without_listing() -> None:
    """From now on, Python looks for each module that it imports, instead of once listing a folder with all that is in it."""
    _replace(FileFinder, "_fill_cache", lambda _whole: _list_nothing)
    for finder in _finders():
        _list_nothing(finder)
    searched = getattr(importlib.metadata, "FastPath", None)
    _replace(searched, "children", distributions.children)
    _replace(searched, "mtime", distributions.mtime)


def give_back() -> None:
    """Let all be as it was: what is measured may import, and look for distributions, and that is to cost what it costs.

    Nothing is listed here: who imports from a folder lists it then.
    """
    if not _REPLACED:
        return
    while _REPLACED:
        owner, name, whole = _REPLACED.pop()
        setattr(owner, name, whole)
    for finder in _finders():
        if isinstance(finder, _Unlisted):
            own: Any = finder
            own.__class__ = FileFinder
        finder.invalidate_caches()


def _finders() -> list[Any]:
    return [finder for finder in list(sys.path_importer_cache.values()) if isinstance(finder, FileFinder)]


def _replace(owner: Any, name: str, made: Callable[[Any], object]) -> None:
    whole = getattr(owner, name, None)
    if whole is not None:
        _REPLACED.append((owner, name, whole))
        setattr(owner, name, made(whole))


def _list_nothing(finder: Any) -> None:
    finder._path_cache = _Everything()  # noqa: SLF001
    if finder.__class__ is FileFinder:  # what is derived from it has ways of its own
        finder.__class__ = _Unlisted


class _Unlisted(FileFinder):
    """Looks for modules in a folder without having listed it, so that it is nothing to it when the folder changes."""

    @property
    def _path_mtime(self) -> Any:
        return _WHENEVER

    @_path_mtime.setter
    def _path_mtime(self, when: object) -> None:
        pass


class _Whenever:
    """When a folder was changed last: there is no other time."""

    def __ne__(self, other: object) -> bool:
        return False


_WHENEVER = _Whenever()


class _Everything(frozenset[str]):
    """Names of a folder's entries: each may be there, and a look at the file itself tells."""

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        return True


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
