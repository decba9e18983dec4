"""Lets importlib.metadata see of folders only what may be distributions, listed in other processes."""

from __future__ import annotations

import importlib.metadata
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cachegrind_bench.startup.elsewhere import are_still_there, listed
from cachegrind_bench.startup.unlisted import replace

if TYPE_CHECKING:
    from collections.abc import Callable

_ENDINGS = (".dist-info", "egg-info", ".egg")
# What was listed of a folder, and when that had been changed last.
_LISTED: dict[str, tuple[float, list[str]]] = {}


def look_elsewhere() -> None:
    """From now on, and until all is given back, other processes list the folders in which distributions are looked for."""
    searched = getattr(importlib.metadata, "FastPath", None)
    replace(searched, "children", _children)
    replace(searched, "mtime", _mtime)


def _children(whole: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what stands for FastPath.children: the entries of a folder that may be distributions."""

    def children(path: Any) -> Any:
        folder = path.root or "."
        if not os.path.isdir(folder):
            return whole(path)
        try:
            changed = os.stat(folder).st_mtime
            names = listed(folder, _ENDINGS)
        except OSError:
            return whole(path)
        _LISTED[folder] = changed, names
        return names

    return children


def _mtime(whole: property) -> property:
    """Return what stands for FastPath.mtime: a folder has changed where there are other distributions than were listed."""

    def mtime(path: Any) -> Any:
        folder = path.root or "."
        if folder in _LISTED:
            # Another process looks each time: one that looked only at a changed folder would leave traces in this one.
            changed, names = _LISTED[folder]
            with suppress(OSError):  # no more processes, or somebody else waited for this one; or threads
                if are_still_there(folder, _ENDINGS, names):
                    return changed
        return whole.fget(path) if whole.fget is not None else None

    return property(mtime)
