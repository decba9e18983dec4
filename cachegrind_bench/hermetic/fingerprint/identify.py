"""The fingerprint of one executable file: its own identity and that of everything the kernel and the loader add.

Libraries that a program opens later by itself (dlopen, as with Python's extension modules) are not seen.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from cachegrind_bench.hermetic.fingerprint.elf import HEAD, UnusableError, content_id, opened, read_elf, storable
from cachegrind_bench.hermetic.fingerprint.search import load
from cachegrind_bench.model.result import ObjectFile

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Fingerprint", "fingerprint", "parse_shebang"]

_MAX_SCRIPTS = 5  # scripts that are interpreters of scripts: the kernel gives up at the same depth
# Machine types this host can run, with Valgrind's support; on other hosts nothing is ruled out.
_HOSTS = {"x86_64": ("EM_X86_64", "EM_386"), "aarch64": ("EM_AARCH64", "EM_ARM")}


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """Identity of one executable file and all that is loaded with it; paths are resolved, and safe to store.

    A script has the words of its first line in `script_interpreter` and `script_argument`, that interpreter's own
    fingerprint in `interpreter`, and its loader and libc as well. `missing` are needed libraries that were not found.
    `why` explains an unknown kind.
    """

    kind: Literal["static", "dynamic", "script", "unknown"]
    path: str
    build_id: str | None = None
    why: str | None = None
    loader: ObjectFile | None = None
    libc: ObjectFile | None = None
    libraries: tuple[ObjectFile, ...] = ()
    missing: tuple[str, ...] = ()
    script_interpreter: str | None = None
    script_argument: str | None = None
    interpreter: Fingerprint | None = None

    @property
    def objects(self) -> tuple[ObjectFile, ...]:
        """All files of this fingerprint, sorted by path."""
        own = () if self.build_id is None else (ObjectFile(path=self.path, build_id=self.build_id),)
        loaded = () if self.loader is None else (self.loader,)
        further = () if self.interpreter is None else self.interpreter.objects
        return tuple(sorted({*own, *loaded, *self.libraries, *further}, key=lambda item: (item.path, item.build_id)))


def fingerprint(executable: str, *, library_path: Sequence[str] = ()) -> Fingerprint:
    """Identify an executable file; `library_path` are the directories of the LD_LIBRARY_PATH it will see."""
    return _identify(executable, tuple(library_path), depth=0)


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
        with opened(executable) as file:
            path = os.path.realpath(executable)
            head = os.pread(file, HEAD, 0)
            if head.startswith(b"#!"):
                script = Fingerprint(kind="script", path=storable(path), build_id=content_id(file))
                return _with_interpreter(script, head, library_path, depth)
            elf = read_elf(file)
            _check_machine(elf.machine)
    except (UnusableError, OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return Fingerprint(kind="unknown", path=storable(executable), why=reason)
    own = Fingerprint(kind="static", path=storable(path), build_id=elf.build_id)
    if elf.loader is None:
        return own
    files = load(path, elf, elf.loader, library_path)
    return replace(
        own,
        kind="dynamic",
        loader=files.loader,
        libc=files.libc,
        libraries=files.libraries,
        missing=files.missing,
    )


def _check_machine(machine: str) -> None:
    host = os.uname().machine
    if machine not in _HOSTS.get(host, (machine,)):
        raise UnusableError(f"it is built for {machine.removeprefix('EM_')}, and this machine is {host}")


def _with_interpreter(script: Fingerprint, head: bytes, library_path: tuple[str, ...], depth: int) -> Fingerprint:
    words = parse_shebang(head)
    if words is None:
        return replace(script, kind="unknown", why="its first line names no interpreter the kernel would accept")
    if depth >= _MAX_SCRIPTS:
        return replace(script, kind="unknown", why="too many scripts that are interpreters of scripts")
    interpreter, argument = words
    inner = _identify(os.fsdecode(interpreter), library_path, depth + 1)
    return replace(
        script,
        loader=inner.loader,
        libc=inner.libc,
        script_interpreter=storable(interpreter),
        script_argument=None if argument is None else storable(argument),
        interpreter=inner,
    )
