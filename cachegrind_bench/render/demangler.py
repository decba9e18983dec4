"""The small process that demangles names, for `demangling`: a hostile name may take it for ever, or all its memory.

Reads names from stdin, a JSON string in each line, and writes each as the source has it, or null, in the same form.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from contextlib import redirect_stdout
from io import StringIO

_MOST_MEMORY, _MOST_SECONDS = 1 << 30, 10
_LONGEST = 20_000
_RUST_LEGACY = re.compile(r"_ZN.*17h[0-9a-f]{16}E")
_RUST_HASH = re.compile(r"::h[0-9a-f]{16}(?=$|[. ])")
_VERSION = re.compile(r"@@?[A-Za-z_][\w.]*$")


def main() -> None:
    """Serve until stdin ends, name by name, so that those before a hostile one are answered."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS))
    for line in sys.stdin:
        sys.stdout.write(json.dumps(readable(json.loads(line))) + "\n")
        sys.stdout.flush()


def readable(name: str) -> str | None:
    """Return a C++ or Rust name as written in the source, None for what is none."""
    bare = _VERSION.sub("", name)
    found = _rust(bare) if bare.startswith("_R") or _RUST_LEGACY.match(bare) else None
    found = found or _cxx(bare)
    return _RUST_HASH.sub("", found) if found and len(found) <= max(_LONGEST, len(name)) else None


def _rust(name: str) -> str | None:
    import rust_demangler  # type: ignore[import-untyped]  # ships no types

    try:
        with redirect_stdout(StringIO()):  # the library prints what it cannot read
            found = str(rust_demangler.demangle(name))
    except Exception:  # noqa: BLE001 - the library answers odd names with whatever it stumbles over
        return None
    return None if "?" in found else found  # its mark for a part it could not read


def _cxx(name: str) -> str | None:
    try:
        import cxxfilt  # type: ignore[import-untyped]  # ships no types; needs the C++ library of the system
    except OSError:
        return None
    try:
        found = str(cxxfilt.demangle(name))
    except (cxxfilt.Error, UnicodeError, MemoryError):
        return None
    return None if found == name else found
