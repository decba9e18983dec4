"""Does as Python itself when it starts, under -S and without PYTHONPATH: makes the import path, carries out .pth files.

Python would have listed each folder of the path before anybody could keep it from that. What has to be listed, here and by
importlib.metadata, is listed in processes of their own: what else is in a folder then takes no memory here.
"""

from __future__ import annotations

import importlib.metadata
import mmap
import os
import site
import subprocess  # noqa: TID251 - to mend it, not to run anything
import threading
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

from cachegrind_bench.startup.import_finder import replace_until_measured
from cachegrind_bench.startup.os_functions import Real

_AT_START = (".pth", ".start")  # PEP 829: the latter since CPython 3.15
_DISTRIBUTIONS = (".dist-info", "egg-info", ".egg")
_MOST_BYTES, _LENGTH = 1 << 20, 4
# What was listed of a folder with distributions, and when that had been changed last.
_LISTED: dict[str, tuple[float, list[str]]] = {}


def begin(python_path: str) -> None:
    """Make the rest of the import path, as if `python_path`, which is in it already, were PYTHONPATH."""
    if python_path:
        os.environ["PYTHONPATH"] = python_path  # noqa: TID251 - for programs that are started here
    list_elsewhere()
    _hide_option()
    whole: Any = site
    whole.os = _Os("os")
    try:
        site.main()
    finally:
        whole.os = os


def _hide_option() -> None:
    """Let programs that this one starts have site-packages, too: multiprocessing hands options on.

    For good: what is measured may start some.
    """
    own: Any = subprocess
    whole = getattr(own, "_args_from_interpreter_flags", None)
    if whole is not None:
        own._args_from_interpreter_flags = lambda: [argument for argument in whole() if argument != "-S"]  # noqa: SLF001


class _Os(ModuleType):
    """The module os as `site` sees it: of a folder there are only files that say how Python starts."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    @staticmethod
    def listdir(folder: str) -> list[str]:
        try:
            return _listed(folder, _AT_START)
        except OSError:  # no such folder, or it cannot be listed elsewhere
            return os.listdir(folder)


def list_elsewhere() -> None:
    """From now on, and until all is given back, other processes list the folders in which distributions are looked for."""
    searched = getattr(importlib.metadata, "FastPath", None)
    replace_until_measured(searched, "children", _children)
    replace_until_measured(searched, "mtime", _mtime)


def _children(whole: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a substitute for FastPath.children: the entries of a folder that may be distributions."""

    def children(path: Any) -> Any:
        folder = path.root or "."
        if not os.path.isdir(folder):
            return whole(path)
        try:
            changed = os.stat(folder).st_mtime
            names = _listed(folder, _DISTRIBUTIONS)
        except OSError:
            return whole(path)
        _LISTED[folder] = changed, names
        return names

    return children


def _mtime(whole: property) -> property:
    """Return a substitute for FastPath.mtime: a folder has changed where there are other distributions than were listed."""

    def mtime(path: Any) -> Any:
        folder = path.root or "."
        if folder in _LISTED:
            # Another process looks each time: one that looked only at a changed folder would leave traces in this one.
            changed, names = _LISTED[folder]
            with suppress(OSError):  # no more processes, or somebody else waited for this one; or threads
                if _elsewhere(lambda: _names(folder, _DISTRIBUTIONS) == names):
                    return changed
        return whole.fget(path) if whole.fget is not None else None

    return property(mtime)


def _listed(folder: str, endings: tuple[str, ...]) -> list[str]:
    """Return the entries of a folder with one of these (lower case) endings, sorted; OSError if it cannot be listed."""
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


def _names(folder: str, endings: tuple[str, ...]) -> list[str]:
    return sorted(name for name in Real.listdir(folder) if name.lower().endswith(endings))


def _elsewhere(succeed: Callable[[], bool]) -> bool:
    """Return whether this succeeds in another process. OSError if no other process is safe, or if it would not see what we do."""
    if os.listdir is not Real.listdir:
        raise OSError("a test has put another file system in the place of the real one")
    if threading.active_count() > 1:
        raise OSError("a fork does not get along with threads")
    return Real.elsewhere(succeed) == 1
