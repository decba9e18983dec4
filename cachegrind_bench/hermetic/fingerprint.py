"""What exactly was run: build-ids of an executable, its loader, libc and libraries, and of a script's interpreter.

The only module that uses pyelftools, for the structures alone: every read is bounded here, whatever a file claims, and
only program headers are followed, as the kernel and the loader do. Any file gives an answer, never an exception.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from cachegrind_bench.hermetic.library_search import LibrarySearch, expand
from cachegrind_bench.model.result import ObjectFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Fingerprint", "fingerprint", "parse_shebang"]

_HASH_LIMIT = 1 << 30  # a second's work; what is larger has a build-id or is not what it claims
_TABLE_LIMIT = 1 << 16  # of program headers, of notes, of the dynamic section
_STRINGS_LIMIT = 1 << 24
_HEAD = 256  # what the kernel looks at (BINPRM_BUF_SIZE)
_MAX_SCRIPTS = 5  # scripts that are interpreters of scripts: the kernel gives up at the same depth
_NT_GNU_BUILD_ID = 3
_HOSTS = {"x86_64": ("EM_X86_64", "EM_386"), "aarch64": ("EM_AARCH64", "EM_ARM")}


class _UnusableError(Exception):
    """The file is no program for this machine; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """Identity of one executable file and all that is loaded with it; paths are resolved, and safe to store.

    A script has the words of its first line in `script_interpreter` and `script_argument`, and that interpreter's own
    fingerprint in `interpreter`. `missing` are needed libraries that were not found. `why` explains an unknown kind.
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
        return _sorted({*own, *loaded, *self.libraries, *further})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Elf:
    """What the program headers of one ELF file say."""

    bits: int
    machine: str
    build_id: str
    loader: str | None = None
    needed: tuple[str, ...] = ()
    rpath: str = ""
    runpath: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    """One file in memory; `rpaths` are those of the files that led here, nearest first, its own included."""

    path: str
    elf: _Elf
    rpaths: tuple[str, ...]


def fingerprint(executable: str, *, library_path: Sequence[str] = ()) -> Fingerprint:
    """Identify an executable file; `library_path` are the directories of the LD_LIBRARY_PATH it will see.

    Libraries that a program opens later, by itself (dlopen: Python's extension modules), are not seen.
    """
    return _identify(executable, tuple(library_path), depth=0)


def parse_shebang(head: bytes) -> tuple[bytes, bytes | None] | None:
    """Split a script's first line into interpreter and its one optional argument, as Linux' load_script() does.

    None if this is no script, or if the interpreter's name may have been cut off at the kernel's limit.
    """
    if not head.startswith(b"#!"):
        return None
    line, newline, _ = head[2:_HEAD].partition(b"\n")
    line = line.lstrip(b" \t")
    if not newline and len(head) >= _HEAD:
        line = line[:-1]  # the kernel keeps the last byte for itself
        if not any(mark in line for mark in b" \t\0"):
            return None
    line = line.rstrip(b" \t")
    end = next((at for at, byte in enumerate(line) if byte in b" \t\0"), len(line))
    argument = line[end:].lstrip(b" \t").split(b"\0")[0]
    return (line[:end], argument or None) if end else None


def _identify(executable: str, library_path: tuple[str, ...], depth: int) -> Fingerprint:
    try:
        path = os.path.realpath(executable)
        with _opened(executable) as file:
            head = os.pread(file, _HEAD, 0)
            if not head.startswith(b"#!"):
                elf = _read_elf(file, head)
                _check_host(elf.machine)
                return _with_libraries(path, elf, library_path)
            script = Fingerprint(kind="script", path=_text(path), build_id=_content_id(file))
    except (_UnusableError, OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return Fingerprint(kind="unknown", path=_text(executable), why=reason)
    words = parse_shebang(head)
    if words is None or depth >= _MAX_SCRIPTS:
        why = "its first line names no interpreter" if words is None else "its interpreter is a script, too many times"
        return replace(script, kind="unknown", why=why)
    inner = _identify(os.fsdecode(words[0]), library_path, depth + 1)
    argument = None if words[1] is None else _text(os.fsdecode(words[1]))
    return replace(
        script,
        loader=inner.loader,
        libc=inner.libc,
        script_interpreter=_text(os.fsdecode(words[0])),
        script_argument=argument,
        interpreter=inner,
    )


def _with_libraries(path: str, elf: _Elf, library_path: tuple[str, ...]) -> Fingerprint:
    own = Fingerprint(kind="static", path=_text(path), build_id=elf.build_id)
    if elf.loader is None:
        return own
    missing: set[str] = set()
    try:
        with _opened(elf.loader) as file:
            loader = _object(elf.loader, _read_elf(file, os.pread(file, _HEAD, 0)))
    except (_UnusableError, OSError, ValueError):
        loader = None
        missing.add(_text(elf.loader))
    search = LibrarySearch(loader=elf.loader, bits=elf.bits, machine=elf.machine, library_path=library_path)
    found: dict[str, ObjectFile] = {}
    names: set[str] = set()
    first = _Loaded(path=path, elf=elf, rpaths=_rpaths(path, elf, search))
    waiting = deque([first])
    while waiting:
        parent = waiting.popleft()
        for name in parent.elf.needed:
            if name in names or search.is_loader(name):
                continue
            names.add(name)
            library = _find(name, parent, search)
            if library is None:
                missing.add(_text(name))
            elif (real := os.path.realpath(library.path)) not in found:
                found[real] = _object(real, library.elf)
                waiting.append(library)
    libc = loader if search.is_musl else next((item for real, item in found.items() if _is_libc(real, names)), None)
    libraries = _sorted(found.values())
    return replace(
        own, kind="dynamic", loader=loader, libc=libc, libraries=libraries, missing=tuple(sorted(missing))
    )
