"""Names of functions, and where they are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cachegrind_bench.model.symbols import UNKNOWN

if TYPE_CHECKING:
    from cachegrind_bench.compare.call_split import Label

_NAMELESS = "code without symbols"


def function_name(label: Label) -> str:
    """Return what a function is called; code without a name, by its library."""
    if label.name == UNKNOWN and label.object not in {"", UNKNOWN}:
        return f"{_NAMELESS} in {os.path.basename(label.object)}"
    return shown_name(label.name)


def shown_name(name: str) -> str:
    """Return a function's name without what compilers add to it."""
    from cachegrind_bench.valgrind.demangling import demangled

    return _NAMELESS if name == UNKNOWN else demangled(name)


def short_place(label: Label) -> str:
    """Return where a function is, without the folders of an absolute path; of the system's, only the library."""
    path = label.object if label.code.is_system else label.place
    return os.path.basename(path) if path.startswith("/") else path
