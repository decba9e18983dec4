"""Names of C++ and Rust as written in the source, read by cxxfilt and rust-demangler."""

from __future__ import annotations

import re
import sys
from functools import cache

from cachegrind_bench.model.symbols import MANGLED

_LONGEST = 20_000  # characters
_RUST_LEGACY = re.compile(r"_ZN.*17h[0-9a-f]{16}E")
_RUST_HASH = re.compile(r"::h[0-9a-f]{16}(?=$|[. ])")
_VERSION = re.compile(r"@@?[A-Za-z_][\w.]*$")


@cache
def demangled(name: str) -> str:
    """Return a C++ or Rust name as written in the source; any other name as it is."""
    if not name.startswith(MANGLED) or len(name) > _LONGEST:
        return name
    bare = _VERSION.sub("", name)
    found = _rust(bare) if bare.startswith("_R") or _RUST_LEGACY.match(bare) else None
    found = found or _cxx(bare)
    return _RUST_HASH.sub("", found) if found and len(found) <= _LONGEST else name


def _rust(name: str) -> str | None:
    import rust_demangler  # type: ignore[import-untyped]  # ships no types

    vars(sys.modules["rust_demangler.rust_v0"])["print"] = _discard  # the library prints what it cannot read
    try:
        found = str(rust_demangler.demangle(name))
    except Exception:  # noqa: BLE001 - the library answers odd names with whatever it stumbles over
        return None
    return None if "?" in found else found  # its mark for a part it could not read


def _discard(*_: object) -> None:
    """Print nothing."""


def _cxx(name: str) -> str | None:
    try:
        import cxxfilt  # type: ignore[import-untyped]  # ships no types; needs the C++ library of the system
    except OSError:
        return None
    try:
        found = str(cxxfilt.demangle(name))
    except (cxxfilt.Error, UnicodeError):
        return None
    return None if found == name else found
