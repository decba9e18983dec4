"""Reads what cg-bench wants to know of ELF files, with pyelftools, and asks the loader for a program's libraries."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench import process
from cachegrind_bench.hermetic import files
from cachegrind_bench.model.result import ObjectFile
from cachegrind_bench.model.text import printable

if TYPE_CHECKING:
    from elftools.construct.lib.container import Container
    from elftools.elf.elffile import ELFFile

HEAD = 256  # bytes the kernel looks at (BINPRM_BUF_SIZE)
_LOADER_S = 60.0
# Lines of `ld.so --list`; the kernel's own library has no path.
_FOUND = re.compile(rb"\t(?:(.*) => )?(.*/.*) \(0x[0-9a-f]+\)")


class UnusableError(Exception):
    """The file is not a program, or cannot be read; the message says why."""


class Elf(msgspec.Struct, frozen=True, kw_only=True):
    """An executable or library; `build_id` is `sha256:…` of its content if it has none."""

    machine: str
    build_id: str
    loader: str | None


class LoadedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files in memory besides the executable, sorted by path."""

    loader: ObjectFile | None
    libc: ObjectFile | None = None
    libraries: tuple[ObjectFile, ...] = ()


def content_id(file: int) -> str:
    """Return the hash in place of the build-id of a file without one."""
    with open(file, "rb", closefd=False) as stream:
        stream.seek(0)
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()[:40]}"


def code_at(path: str, address: int, size: int) -> bytes:
    """Return what a file has in memory at an address that is not moved yet. OSError or UnusableError if that cannot be read."""
    with files.opened(path) as file, _parsed(file) as elf:
        for segment in _segments(elf, "PT_LOAD"):
            inside = address - segment["p_vaddr"]
            if 0 <= inside < segment["p_filesz"]:
                return os.pread(file, min(size, segment["p_filesz"] - inside), segment["p_offset"] + inside)
    return b""


def sections(path: str, names: Sequence[str]) -> dict[str, bytes]:
    """Return the sections of these names, uncompressed. OSError or UnusableError if the file is damaged."""
    from elftools.common.exceptions import ELFError

    contents: dict[str, bytes] = {}
    with files.opened(path) as file, _parsed(file) as elf:
        for section in elf.iter_sections():
            if section.name in names:
                with suppress(ELFError):  # compressed in another way than by zlib
                    contents[section.name] = section.data()
    return contents


def read_elf(file: int) -> Elf:
    """Read an executable or a library. UnusableError if it is neither, or damaged."""
    with _parsed(file) as elf:
        if elf["e_type"] not in {"ET_EXEC", "ET_DYN"}:
            raise UnusableError("it is an ELF file, but not an executable or library")
        names = (os.pread(file, segment["p_filesz"], segment["p_offset"]) for segment in _segments(elf, "PT_INTERP"))
        loader = next((os.fsdecode(name.rstrip(b"\0")) for name in names), None)
        return Elf(machine=str(elf["e_machine"]), build_id=_build_id(elf) or content_id(file), loader=loader)


def load(path: str, loader: str, library_path: Sequence[str]) -> LoadedFiles:
    """Ask the loader which libraries it would load with this executable, which does not run; without one of them, none."""
    own = _object(loader)
    if own is None:
        return LoadedFiles(loader=None)
    environ = {"LD_LIBRARY_PATH": ":".join(library_path)} if library_path else {}
    done = process.run([loader, "--list", path], env=environ, timeout=_LOADER_S)
    libc = own if os.path.basename(loader).startswith("ld-musl-") else None
    libraries: dict[str, ObjectFile] = {}
    for found in filter(None, map(_FOUND.fullmatch, done.stdout.splitlines())):
        item = _object(os.fsdecode(found[2]))
        if item is not None and item != own:
            libraries[item.path] = item
            libc = item if found[1] == b"libc.so.6" else libc
    return LoadedFiles(loader=own, libc=libc, libraries=tuple(libraries[key] for key in sorted(libraries)))


@contextmanager
def _parsed(file: int) -> Generator[ELFFile]:
    """Open an ELF file with pyelftools, whose errors become UnusableError."""
    # Here, not at the top: heavy, and not every command needs it.
    import zlib

    from elftools.common.exceptions import ELFError
    from elftools.construct import ConstructError
    from elftools.elf.elffile import ELFFile

    head = os.pread(file, HEAD, 0)
    if not head.startswith(b"\x7fELF"):
        raise UnusableError("it is neither an ELF file nor a script with a `#!` line" if head else "it is empty")
    try:
        with open(file, "rb", closefd=False) as stream:
            yield ELFFile(stream)
    except (ELFError, ConstructError, zlib.error, ValueError, LookupError, OverflowError, MemoryError) as error:
        raise UnusableError("its ELF headers are damaged") from error


def _segments(elf: ELFFile, kind: str) -> Iterator[Container]:
    """Yield the program headers of a kind; pyelftools' own segments read the sections as well, which takes ten times as long."""
    from elftools.common.utils import struct_parse

    for number in range(elf.num_segments()):
        at = elf["e_phoff"] + number * elf["e_phentsize"]
        header: Container = struct_parse(elf.structs.Elf_Phdr, elf.stream, at)
        if header["p_type"] == kind:
            yield header


def _build_id(elf: ELFFile) -> str | None:
    from elftools.elf.notes import iter_notes

    found = (iter_notes(elf, segment["p_offset"], segment["p_filesz"]) for segment in _segments(elf, "PT_NOTE"))
    return next((note["n_desc"] for notes in found for note in notes if note["n_type"] == "NT_GNU_BUILD_ID"), None)


def _object(path: str) -> ObjectFile | None:
    with suppress(UnusableError, OSError, ValueError), files.opened(path) as file:
        return ObjectFile(path=printable(os.path.realpath(path)), build_id=read_elf(file).build_id)
    return None
