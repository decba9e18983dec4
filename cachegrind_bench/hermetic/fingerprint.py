"""What exactly was run: build-ids of an executable, its loader, libc and libraries, and of the interpreter it needs.

Any file gives an answer, never an exception. Libraries that a program opens later by itself (dlopen, as with Python's
extension modules) are not seen.
"""

from __future__ import annotations

import mmap
import os
import re
import shlex
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import structs
from msgspec.structs import replace

from cachegrind_bench import process
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic import files
from cachegrind_bench.hermetic.elf import HEAD, UnusableError, content_id, load, read_elf
from cachegrind_bench.hermetic.producers import producers
from cachegrind_bench.model.result import ObjectFile
from cachegrind_bench.model.text import printable

_MAX_SCRIPTS = 5  # scripts that are interpreters of scripts: the kernel gives up at the same depth
# Machine types this host can run, with Valgrind's support; on other hosts nothing is ruled out.
_HOSTS = {"x86_64": ("EM_X86_64", "EM_386"), "aarch64": ("EM_AARCH64", "EM_ARM")}


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """Identity of one executable file and all that is loaded with it; paths are resolved, and safe to store.

    A script has the words of its first line in `script_interpreter` and `script_argument`, that interpreter's own
    fingerprint in `interpreter`, and its loader and libc as well. `why` explains an unknown kind.
    """

    kind: Literal["static", "dynamic", "script", "unknown"]
    path: str
    build_id: str | None = None
    why: str | None = None
    loader: ObjectFile | None = None
    libc: ObjectFile | None = None
    libraries: tuple[ObjectFile, ...] = ()
    script_interpreter: str | None = None
    script_argument: str | None = None
    interpreter: Fingerprint | None = None

    @property
    def objects(self) -> tuple[ObjectFile, ...]:
        """All files of this fingerprint with their compilers, sorted by path."""
        own = () if self.build_id is None else (ObjectFile(path=self.path, build_id=self.build_id),)
        loaded = () if self.loader is None else (self.loader,)
        further = () if self.interpreter is None else self.interpreter.objects
        made = {replace(item, compilers=producers(item.path)) for item in (*own, *loaded, *self.libraries, *further)}
        return tuple(sorted(made, key=lambda item: (item.path, item.build_id)))


def fingerprint(executable: str, *, library_path: Sequence[str] = ()) -> Fingerprint:
    """Identify an executable file; `library_path` are the directories of the LD_LIBRARY_PATH it will see."""
    return _identify(executable, tuple(library_path), depth=0)


def knows_tunables(found: Fingerprint, names: Sequence[str]) -> bool:
    """Return whether the glibc of this program can be set in these ways: its loader, or a static program, has the names."""
    path = found.path if found.loader is None else found.loader.path
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return all(content.find(name.encode()) >= 0 for name in names)
    except (OSError, ValueError):  # not readable, or empty
        return False


def parse_shebang(head: bytes) -> tuple[bytes, bytes | None] | None:
    """Split a script's first line into interpreter and its one optional argument, as Linux' load_script() does.

    None if there is no interpreter, or if its name may have been cut off at the kernel's limit.
    """
    line, newline, _ = head[2:HEAD].partition(b"\n")
    if not newline and len(head) >= HEAD:
        line = line[:-1]  # the kernel keeps the last byte of its buffer for itself
        if not any(mark in line.lstrip(b" \t") for mark in (b" ", b"\t", b"\0")):
            return None
    line = line.strip(b" \t")
    end = next((at for at, byte in enumerate(line) if byte in b" \t\0"), len(line))
    argument = line[end:].lstrip(b" \t").split(b"\0")[0]
    return (line[:end], argument or None) if end else None


def _identify(executable: str, library_path: tuple[str, ...], depth: int) -> Fingerprint:
    try:
        with files.opened(executable) as file:
            path = os.path.realpath(executable)
            head = os.pread(file, HEAD, 0)
            if head.startswith(b"#!"):
                script = Fingerprint(kind="script", path=printable(path), build_id=content_id(file))
                return _with_interpreter(script, head, library_path, depth)
            elf = read_elf(file)
            _check_machine(elf.machine)
    except (UnusableError, OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return Fingerprint(kind="unknown", path=printable(executable), why=reason)
    own = Fingerprint(kind="static", path=printable(path), build_id=elf.build_id)
    if elf.loader is None:
        return own
    try:
        loaded = load(path, elf.loader, library_path)
    except MeasurementError:  # a loader that this kernel does not run
        return replace(own, kind="dynamic")
    return replace(own, kind="dynamic", **structs.asdict(loaded))


def _check_machine(machine: str) -> None:
    host = os.uname().machine
    if machine not in _HOSTS.get(host, (machine,)):
        raise UnusableError(f"it is built for {machine.removeprefix('EM_')}, and this machine is {host}")


def _with_interpreter(script: Fingerprint, head: bytes, library_path: tuple[str, ...], depth: int) -> Fingerprint:
    words = parse_shebang(head)
    if words is None:
        return replace(
            script, kind="unknown", why="its first line does not name an interpreter the kernel would accept"
        )
    if depth >= _MAX_SCRIPTS:
        return replace(script, kind="unknown", why="too many scripts that are interpreters of scripts")
    interpreter, argument = words
    inner = _identify(os.fsdecode(interpreter), library_path, depth + 1)
    return replace(
        script,
        loader=inner.loader,
        libc=inner.libc,
        script_interpreter=printable(interpreter),
        script_argument=None if argument is None else printable(argument),
        interpreter=inner,
    )


_LANGUAGES = re.compile(
    r"(?:python|pypy|perl|ruby|node|nodejs|deno|bun|java|php|lua|luajit|tclsh|wish|guile|julia|R|Rscript|octave|mono"
    r"|dotnet|beam\.smp|[gmn]?awk|sh|bash|dash|ash|ksh|mksh|zsh|fish|busybox)(?:[-._]?\d+(?:\.\d+)*[a-z]?)?(?:-(?:dbg|static|cgi|beta\d))?"
)
# The interpreter proper may be a library next to a small main program.
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
        """The build-ids that identify it, joined by `+`; `unknown` if its file could not be read."""
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
    if project is not None and found.path.startswith(printable(os.path.realpath(project)).rstrip("/") + "/"):
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
