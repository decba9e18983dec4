"""The interpreters whose memory is looked into. Any other one is left alone: benchmarks are measured without.

All code that knows where something is in CPython's memory, or replaces private parts of its import system, asks here first.
"""

from __future__ import annotations

import platform
import sys
from typing import Any, Final

# Under these, twenty benchmarks of real suites counted the same alone, in company and in reverse order; tests/suites.py
# repeats it for 3.11 to 3.13 only.
VERSIONS: Final = ((3, 11), (3, 12), (3, 13), (3, 14), (3, 15))
MACHINES: Final = ("x86_64",)
_KNOWN: Final = f"CPython 3.{VERSIONS[0][1]} to 3.{VERSIONS[-1][1]} on {' and '.join(MACHINES)}, with the usual options"
_TOO_EARLY: Final = ("alpha", "beta")  # where layouts still change
_OBJECT_SIZE: Final = 16  # a count of references and a type; with --with-trace-refs and without the GIL there is more


def why_unverified() -> str:
    """Return what is to be said once if this interpreter is not one of those that were verified; else nothing."""
    found = _other()
    return found and (
        f"{found} is not among the interpreters that cg-bench knows from inside, {_KNOWN}: benchmarks get no fresh heap and "
        "method cache, so that unrelated changes may move their counts by some percent"
    )


def _other() -> str:
    own: Any = sys.implementation
    version, shown = tuple(own.version[:2]), ".".join(map(str, own.version[:3]))
    if own.name != "cpython":
        return f"{own.name} {shown}"
    if platform.machine() not in MACHINES or sys.maxsize < 1 << 32:
        return f"CPython on {platform.machine()}"
    if version not in VERSIONS or own.version[3] in _TOO_EARLY:
        return f"CPython {shown}"
    if sys.abiflags or object.__basicsize__ != _OBJECT_SIZE or _has_jit():
        return f"this CPython {shown}, free-threaded, for debugging or with a JIT,"
    return ""


def _has_jit() -> bool:
    jit: Any = getattr(sys, "_jit", None)  # since 3.14
    return jit is not None and bool(jit.is_enabled())


IS_VERIFIED: Final = not why_unverified()
