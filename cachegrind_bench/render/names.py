"""Function names for the eye: demangled, stripped of what hostile names could do to a terminal or a table."""

from __future__ import annotations

import re
from functools import cache

_RUST_LEGACY = re.compile(r"_ZN.*17h[0-9a-f]{16}E")
_RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")
_VERSION = re.compile(r"@@?[A-Za-z_][\w.]*$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def plain(text: str) -> str:
    """Return text without control characters, invisible ones and direction marks, which stand escaped instead."""
    return _CONTROL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


@cache
def demangled(name: str) -> str:
    """Return a C++ or Rust name as written in the source; any other name as it is."""
    if not name.startswith(("_Z", "_R", "__Z")):
        return name
    bare = _VERSION.sub("", name)
    if bare.startswith("_R") or _RUST_LEGACY.match(bare):
        found = _rust(bare)
        if found:
            return _RUST_HASH.sub("", found)
    return _RUST_HASH.sub("", _cxx(bare) or name)


def _rust(name: str) -> str | None:
    import rust_demangler  # type: ignore[import-untyped]  # ships no types

    try:
        return str(rust_demangler.demangle(name))
    except Exception:  # noqa: BLE001 - the library answers odd names with whatever it stumbles over
        return None


def _cxx(name: str) -> str | None:
    try:
        import cxxfilt  # type: ignore[import-untyped]  # ships no types; needs the C++ library of the system
    except OSError:
        return None
    try:
        return str(cxxfilt.demangle(name))
    except (cxxfilt.Error, UnicodeError):
        return None
