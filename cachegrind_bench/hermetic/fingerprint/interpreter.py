"""Which language interpreter stands behind a command, and so belongs to what two results must share to be compared.

The measured native executable does not: it is what changes between base and candidate.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench import process
from cachegrind_bench.hermetic.fingerprint.elf import storable
from cachegrind_bench.hermetic.fingerprint.identify import Fingerprint, fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.model.result import ObjectFile

__all__ = ["InterpreterIdentity", "interpreter_identity", "key_fields"]

_LANGUAGES = re.compile(
    r"(?:python|pypy|perl|ruby|node|nodejs|deno|bun|java|php|lua|luajit|tclsh|wish|guile|julia|R|Rscript|octave|mono"
    r"|dotnet|beam\.smp|[gmn]?awk|sh|bash|dash|ash|ksh|mksh|zsh|fish|busybox)(?:[-._]?\d+(?:\.\d+)*[a-z]?)?(?:-(?:dbg|static|cgi|beta\d))?"
)
# The interpreter proper may be a library beside a small main program.
_LANGUAGE_LIBRARY = re.compile(r"lib(?:python|pypy|perl|ruby|node|jvm|jli|php|lua|tcl|guile|julia|R|octave|mono)[-\d.]")
_OPENED_LATER = {"java": ("../lib/server/libjvm.so",)}
_MAX_STEPS = 10  # from script to interpreter; more is a script that finds itself through env


class InterpreterIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """An interpreter: the base name and fingerprint of its executable, and its libraries (libpython, libjvm, …)."""

    name: str
    fingerprint: Fingerprint
    libraries: tuple[ObjectFile, ...]

    @property
    def id(self) -> str:
        """The build-ids that stand for it, joined by `+`; `unknown` if its file could not be read."""
        return "+".join((self.fingerprint.build_id or "unknown", *sorted({item.build_id for item in self.libraries})))


def interpreter_identity(
    found: Fingerprint, *, path: str, library_path: Sequence[str] = (), project: str | None = None
) -> InterpreterIdentity | None:
    """Return the interpreter that runs this executable, or that it is; None for native programs.

    `path` is the PATH the program will see, for `#!/usr/bin/env NAME`. An interpreter built inside the directory
    `project` is what is measured, like any native program, and so no identity.
    """
    is_script = found.kind == "script"
    for _ in range(_MAX_STEPS):
        if found.interpreter is None:
            break
        argument, found = found.script_argument, found.interpreter
        if os.path.basename(found.path) in {"env", "coreutils"} and argument is not None:
            target = process.which(_env_target(argument), path)
            found = found if target is None else fingerprint(target, library_path=library_path)
    name = os.path.basename(found.path)
    if not is_script and (found.kind == "unknown" or not _LANGUAGES.fullmatch(name)):
        return None
    if project is not None and found.path.startswith(storable(os.path.realpath(project)).rstrip("/") + "/"):
        return None
    beside = [os.path.join(os.path.dirname(found.path), place) for place in _OPENED_LATER.get(name, ())]
    objects = (*found.libraries, *(item for place in beside for item in fingerprint(place).objects[:1]))
    libraries = tuple(item for item in objects if _LANGUAGE_LIBRARY.match(os.path.basename(item.path)))
    return InterpreterIdentity(name=name, fingerprint=found, libraries=libraries)


def key_fields(found: Fingerprint, identity: InterpreterIdentity | None) -> dict[str, str]:
    """Return this command's part of the comparability key: the ids of libc and interpreter, or what is there instead."""
    program = found if identity is None else identity.fingerprint
    without = "none" if program.kind == "dynamic" else program.kind
    return {
        "interpreter": "none" if identity is None else identity.id,
        "libc": without if program.libc is None else program.libc.build_id,
    }


def _env_target(argument: str) -> str:
    """Return the program name in the one argument a `#!` line gives to env: `python3`, `-S VAR=1 python3 -X utf8`."""
    try:
        words = shlex.split(re.sub(r"^(?:-S|--split-string[= ]?)\s*", "", argument))
    except ValueError:
        return ""
    return next((word for word in words if not word.startswith("-") and "=" not in word), "")
