"""Names of C++ and Rust as written in the source. A process of its own reads them, which a hostile name cannot outlast.

The libraries are cxxfilt and rust-demangler, and the program c++filt where the C++ library is missing.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from cachegrind_bench import process
from cachegrind_bench.model.symbols import MANGLED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_DEADLINE_S = 2.0
_TRIES = 3
_LONGEST = 20_000
_MOST_OUTPUT = 1 << 26
_CODE = f"import sys; sys.path[:] = {sys.path!r}; from cachegrind_bench.render.demangler import main; main()"

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
        answers, in_time = _ask(left)
        _known.update((name, answer or name) for name, answer in zip(left, answers, strict=False))
        left = left[len(answers) :] if in_time else left[len(answers) + 1 :]  # the one it was at is left as it is
    _known.update((name, name) for name in wanted if name not in _known)
    _by_program([name for name in fit if _known[name] == name and name.startswith("_Z")])


def _ask(names: Sequence[str]) -> tuple[list[str | None], bool]:
    """Return the answers there were before the deadline, and whether that was no problem."""
    text = "".join(f"{json.dumps(name)}\n" for name in names).encode()
    done = process.run(
        [sys.executable, "-I", "-c", _CODE],
        env=None,
        stdin=text,
        timeout=_DEADLINE_S,
        keep_output_limit=_MOST_OUTPUT,
    )
    answers = [json.loads(line) for line in done.stdout.split(b"\n")[:-1]]
    return answers, done.status == 0


def _by_program(names: Sequence[str]) -> None:
    """Ask c++filt, if there is one, about names that the library does not read, or that there is no library for."""
    program = process.which("c++filt", os.defpath)
    if not names or program is None:
        return
    text = "".join(f"{name}\n" for name in names).encode()
    done = process.run([program], env=None, stdin=text, timeout=_DEADLINE_S, keep_output_limit=_MOST_OUTPUT)
    lines = done.stdout.decode("utf-8", "backslashreplace").split("\n")
    if done.status == 0 and len(lines) == len(names) + 1:
        _known.update((name, line) for name, line in zip(names, lines, strict=False) if len(line) <= _LONGEST)
