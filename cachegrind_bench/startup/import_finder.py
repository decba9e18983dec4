"""Lets Python import without listing folders: a new file next to modules must not move counts.

It lists each folder of its import path once, which executes code and takes memory for each entry; and anew when the
folder was changed meanwhile, if only for a moment. Replaces private functions; where a version has them no more, counts
move with the entries of folders, and nothing else changes.

Loaded by its path, as finding it would list folders: imports nothing of its own package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import FileFinder
from typing import Any

TYPE_CHECKING = False  # that of typing would have to be found

# What was replaced: where, its name, and what it was.
_REPLACED: list[tuple[Any, str, Any]] = []


def import_without_listing() -> None:
    """From now on, Python looks for each module that it imports, instead of once listing a folder with all that is in it."""
    replace_until_measured(FileFinder, "_fill_cache", lambda _whole: _list_nothing)
    for finder in _finders():
        _list_nothing(finder)


def replace_until_measured(owner: Any, name: str, made: Callable[[Any], object]) -> None:
    """Replace a private function until `undo_replacements`; do nothing if this Python has no such function."""
    whole = getattr(owner, name, None)
    if whole is not None:
        _REPLACED.append((owner, name, owner.__dict__.get(name, whole)))  # of a class, not what is bound to it
        setattr(owner, name, made(whole))


def undo_replacements() -> None:
    """Let all be as it was: what is measured may import, and look for distributions, and that is to cost what it costs.

    Nothing is listed here: whoever imports from a folder lists it then.
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
    """Names of a folder's entries: each may be there; a look at the file itself decides."""

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        return "/" not in str(name) and "\0" not in str(name)
