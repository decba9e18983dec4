"""Names of C++ and Rust as written in the source. A process of its own reads them, which a hostile name cannot outlast.

The libraries are cxxfilt and rust-demangler, and the program c++filt where the C++ library is missing.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING

from cachegrind_bench.model.symbols import MANGLED

if TYPE_CHECKING:
    from cachegrind_bench.process import Completed

_DEADLINE_S, _MOST_SECONDS = 2.0, 10
_TRIES = 3
_LONGEST = 20_000
_MOST_OUTPUT, _MOST_MEMORY = 1 << 26, 1 << 30
_CODE = f"import sys; sys.path[:] = {sys.path!r}; from cachegrind_bench.valgrind.demangling import serve; serve()"
_RUST_LEGACY = re.compile(r"_ZN.*17h[0-9a-f]{16}E")
_RUST_HASH = re.compile(r"::h[0-9a-f]{16}(?=$|[. ])")
_VERSION = re.compile(r"@@?[A-Za-z_][\w.]*$")

_known: dict[str, str] = {}


def demangled(name: str) -> str:
    """Return a C++ or Rust name as written in the source; any other name as it is."""
    if not name.startswith(MANGLED):
        return name
    if name not in _known:
        demangle([name])
    return _known[name]


def demangle(names: Iterable[str]) -> None:
    """Find out what `demangled` will say of these, all in one go: a process for each of them would take its time."""
    wanted = list(dict.fromkeys(name for name in names if name.startswith(MANGLED) and name not in _known))
    fit = [name for name in wanted if len(name) <= _LONGEST and name.isprintable()]
    left = fit
    for _ in range(_TRIES):
        if not left:
            break
        done = _run([sys.executable, "-I", "-c", _CODE], map(json.dumps, left))
        answers = [json.loads(line) for line in done.stdout.split(b"\n")[:-1]]
        _known.update((name, answer or name) for name, answer in zip(left, answers, strict=False))
        left = left[len(answers) + (done.status != 0) :]  # the name it failed at is left as it is
    _known.update((name, name) for name in wanted if name not in _known)
    _by_program([name for name in fit if _known[name] == name and name.startswith("_Z")])


def _by_program(names: Sequence[str]) -> None:
    """Ask c++filt, if there is one, about names that the library does not read, or that there is no library for."""
    from cachegrind_bench import process

    program = process.which("c++filt", os.defpath)
    if not names or program is None:
        return
    done = _run([program], names)
    lines = done.stdout.decode("utf-8", "backslashreplace").split("\n")
    if done.status == 0 and len(lines) == len(names) + 1:
        _known.update((name, line) for name, line in zip(names, lines, strict=False) if len(line) <= _LONGEST)


def _run(command: Sequence[str], lines: Iterable[str]) -> Completed:
    from cachegrind_bench import process

    text = "".join(f"{line}\n" for line in lines).encode()
    return process.run(command, env=None, stdin=text, timeout=_DEADLINE_S, keep_output_limit=_MOST_OUTPUT)


# --- In the process of its own: a hostile name may take it for ever, or all its memory -----------------------------------


def serve() -> None:
    """Answer names from stdin, a JSON string in each line, with the name in the source or null, until stdin ends.

    Name by name, so that those before a hostile one are answered.
    """
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS))
    for line in sys.stdin:
        sys.stdout.write(json.dumps(readable(json.loads(line))) + "\n")
        sys.stdout.flush()


def readable(name: str) -> str | None:
    """Return a C++ or Rust name as written in the source, None for any other."""
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
