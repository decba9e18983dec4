"""Does as Python itself when it starts, under -S and without PYTHONPATH: makes the import path, carries out .pth files.

Python would have listed each folder of the path before anybody could keep it from that.
"""

from __future__ import annotations

import os
import site
import subprocess  # noqa: TID251 - to mend it, not to run anything
from types import ModuleType
from typing import Any

from cachegrind_bench.startup.distributions import look_elsewhere
from cachegrind_bench.startup.elsewhere import listed

_ENDINGS = (".pth", ".start")  # PEP 829: the latter since CPython 3.15


def begin(python_path: str) -> None:
    """Make the rest of the import path, as if `python_path`, which is in it already, were PYTHONPATH."""
    if python_path:
        os.environ["PYTHONPATH"] = python_path  # noqa: TID251 - for programs that are started here
    look_elsewhere()
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
    """The module os as `site` sees it: of a folder there are only files that tell Python how to start."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    @staticmethod
    def listdir(folder: str) -> list[str]:
        try:
            return listed(folder, _ENDINGS)
        except OSError:  # no such folder, or it cannot be listed elsewhere
            return os.listdir(folder)
