"""Reads from an ELF file what the kernel and the dynamic loader read, and the build-id.

pyelftools gives the structures alone: every read is bounded here, whatever the file claims, and only program headers
are followed. Section headers may be stripped, or say anything.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from cachegrind_bench.hermetic import files

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["HEAD", "Elf", "UnusableError", "content_id", "opened", "read_elf", "storable"]

HEAD = 256  # bytes the kernel looks at (BINPRM_BUF_SIZE); an ELF header needs 64
_TABLE_LIMIT = 1 << 16  # of program headers, of notes, of the dynamic section
_STRINGS_LIMIT = 1 << 24
_HASH_LIMIT = 1 << 30  # a second's work; what is larger has a build-id, or is not what it claims to be
_NT_GNU_BUILD_ID = 3


class UnusableError(Exception):
    """The file is no program, or none this can read; the message says why."""


class Elf(msgspec.Struct, frozen=True, kw_only=True):
    """What the program headers of one file say; `build_id` is `sha256:…` of its content if it has none."""

    bits: int
    machine: str
    build_id: str
    loader: str | None
    needed: tuple[str, ...]
    rpath: str
    runpath: str


@contextmanager
def opened(path: str) -> Generator[int]:
    """Open a regular file for reading. OSError or UnusableError if that cannot be."""
    if "\0" in path:
        raise UnusableError("its path has a NUL byte")
    file = files.opened(path)
    try:
        mode = os.fstat(file).st_mode
        if not stat.S_ISREG(mode):
            raise UnusableError("it is a directory" if stat.S_ISDIR(mode) else "it is not a regular file")
        yield file
    finally:
        os.close(file)


def storable(text: str | bytes) -> str:
    """Return a path as text that can be stored: bytes that are not UTF-8 stand as `\\xNN`."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def content_id(file: int) -> str:
    """Return what stands for the build-id of a file without one."""
    if (size := os.fstat(file).st_size) > _HASH_LIMIT:
        raise UnusableError(f"it has no build-id and, with {size >> 20} MiB, is too large to hash")
    with open(file, "rb", closefd=False) as stream:
        stream.seek(0)
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()[:40]}"


def read_elf(file: int) -> Elf:
    """Read an executable or a library. UnusableError if it is neither, or damaged."""
    # Here and below, not at the top: heavy, and not every command needs it.
    from elftools.construct import ConstructError

    try:
        return _read(file)
    except (ConstructError, struct.error, IndexError, OverflowError) as error:
        raise UnusableError("its ELF headers are damaged") from error


@lru_cache
def _structures(little_endian: bool, bits: int) -> Any:  # noqa: FBT001 - a cache key
    from elftools.elf.structs import ELFStructs

    structures = ELFStructs(little_endian=little_endian, elfclass=bits)
    structures.create_basic_structs()
    structures.create_advanced_structs()
    return structures


def _read(file: int) -> Elf:
    head = os.pread(file, HEAD, 0)
    if not head.startswith(b"\x7fELF"):
        raise UnusableError("it is neither an ELF file nor a script with a `#!` line" if head else "it is empty")
    bits, little = {1: 32, 2: 64}.get(head[4]), {1: True, 2: False}.get(head[5])
    if bits is None or little is None:
        raise UnusableError("its ELF headers are damaged")
    structures = _structures(little, bits)
    header = structures.Elf_Ehdr.parse(head)
    if header["e_type"] not in {"ET_EXEC", "ET_DYN"}:
        raise UnusableError("it is an ELF file, but not an executable or library")
    size = structures.Elf_Phdr.sizeof()
    if header["e_phentsize"] != size:
        raise UnusableError("it is an ELF file without program headers")
    table = os.pread(file, min(size * header["e_phnum"], _TABLE_LIMIT), header["e_phoff"])
    segments = [structures.Elf_Phdr.parse(table[at : at + size]) for at in range(0, len(table), size)]
    if not any(segment["p_type"] == "PT_LOAD" for segment in segments):
        raise UnusableError("it is an ELF file with nothing to load")
    loader = next((_segment(file, s) for s in segments if s["p_type"] == "PT_INTERP"), None)
    dynamic = _dynamic(file, structures, segments)
    return Elf(
        bits=bits,
        machine=str(header["e_machine"]),
        build_id=_build_id(file, segments, "<" if little else ">") or content_id(file),
        loader=None if loader is None else os.fsdecode(loader.split(b"\0")[0]),
        needed=tuple(dynamic.get("DT_NEEDED", ())),
        rpath=":".join(dynamic.get("DT_RPATH", ())),
        runpath=":".join(dynamic.get("DT_RUNPATH", ())),
    )


def _segment(file: int, segment: Any) -> bytes:
    return os.pread(file, min(segment["p_filesz"], _TABLE_LIMIT), segment["p_offset"])


def _build_id(file: int, segments: list[Any], order: str) -> str | None:
    for segment in segments:
        if segment["p_type"] != "PT_NOTE":
            continue
        notes = _segment(file, segment)
        step = 8 if segment["p_align"] == 8 else 4
        at = 0
        while at + 12 <= len(notes):
            name_size, size, kind = struct.unpack_from(f"{order}III", notes, at)
            start = -(-(at + 12 + name_size) // step) * step
            if kind == _NT_GNU_BUILD_ID and notes[at + 12 : at + 12 + name_size] == b"GNU\0" and size:
                return notes[start : start + size].hex()
            at = -(-(start + size) // step) * step
    return None


def _dynamic(file: int, structures: Any, segments: list[Any]) -> dict[str, list[str]]:
    """Return the texts of the dynamic section by tag."""
    data = next((_segment(file, segment) for segment in segments if segment["p_type"] == "PT_DYNAMIC"), b"")
    size = structures.Elf_Dyn.sizeof()
    values: dict[str, list[int]] = {}
    for at in range(0, len(data) - size + 1, size):
        entry = structures.Elf_Dyn.parse(data[at : at + size])
        if entry["d_tag"] == "DT_NULL":
            break
        values.setdefault(str(entry["d_tag"]), []).append(entry["d_val"])
    wanted = [tag for tag in ("DT_NEEDED", "DT_RPATH", "DT_RUNPATH") if tag in values]
    if not wanted:
        return {}
    # The table is given by its address in memory.
    address, length = values.get("DT_STRTAB", [0])[0], values.get("DT_STRSZ", [0])[0]
    for segment in segments:
        inside = address - segment["p_vaddr"]
        if segment["p_type"] == "PT_LOAD" and 0 <= inside < segment["p_filesz"]:
            strings = os.pread(file, min(length, _STRINGS_LIMIT), segment["p_offset"] + inside)
            return {tag: [_string(strings, at) for at in values[tag]] for tag in wanted}
    raise UnusableError("its ELF headers are damaged")


def _string(strings: bytes, at: int) -> str:
    return os.fsdecode(strings[at : strings.index(b"\0", at)])
