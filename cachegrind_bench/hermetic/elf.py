"""Reads from an ELF file what the kernel and the dynamic loader read, and the build-id, and finds its libraries.

pyelftools gives the structures alone: every read is bounded here, whatever the file claims, and only program headers
are followed. Section headers may be stripped, or say anything. The search is that of ld.so(8) of glibc, and musl's
simpler one: search order, cache file, default directories. Left out: LD_PRELOAD, audit modules, DF_1_NODEFLIB.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
import zlib
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import msgspec

from cachegrind_bench.hermetic import files
from cachegrind_bench.hermetic.fake_proc import CACHE_MAGIC, cache_entries
from cachegrind_bench.model.result import ObjectFile
from cachegrind_bench.model.text import printable

HEAD = 256  # bytes the kernel looks at (BINPRM_BUF_SIZE); an ELF header needs 64
_TABLE_LIMIT = 1 << 16  # of program headers, of notes, of the dynamic section
_STRINGS_LIMIT = 1 << 24
_HASH_LIMIT = 1 << 30  # a second's work; what is larger has a build-id, or is not what it claims to be
_SECTION_LIMIT, _SHF_COMPRESSED = 1 << 28, 0x800
_NT_GNU_BUILD_ID = 3


class UnusableError(Exception):
    """The file is not a program, or cannot be read; the message says why."""


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
    with files.opened(path) as file:
        mode = os.fstat(file).st_mode
        if not stat.S_ISREG(mode):
            raise UnusableError("it is a directory" if stat.S_ISDIR(mode) else "it is not a regular file")
        yield file


def content_id(file: int) -> str:
    """Return the hash in place of the build-id of a file without one."""
    if (size := os.fstat(file).st_size) > _HASH_LIMIT:
        raise UnusableError(f"it has no build-id and, with {size >> 20} MiB, is too large to hash")
    with open(file, "rb", closefd=False) as stream:
        stream.seek(0)
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()[:40]}"


def code_at(path: str, address: int, size: int) -> bytes:
    """Return what a file has in memory at an address that is not moved yet. OSError or UnusableError if that cannot be read."""
    with opened(path) as file, _damage_reported():
        for segment in _headers(file)[-1]:
            inside = address - segment["p_vaddr"]
            if segment["p_type"] == "PT_LOAD" and 0 <= inside < segment["p_filesz"]:
                return os.pread(file, min(size, segment["p_filesz"] - inside), segment["p_offset"] + inside)
    return b""


def sections(path: str, names: Sequence[str]) -> dict[str, bytes]:
    """Return the sections of these names, uncompressed; none where headers are stripped. OSError or UnusableError if damaged."""
    with opened(path) as file, _damage_reported():
        structures, header, _segments = _headers(file)
        size, number = structures.Elf_Shdr.sizeof(), header["e_shnum"]
        table = os.pread(file, size * number, header["e_shoff"])
        found = [structures.Elf_Shdr.parse(table[at : at + size]) for at in range(0, len(table), size)]
        if not found:
            return {}
        texts = _section(file, structures, found[header["e_shstrndx"]])
        named = (
            (texts[item["sh_name"] : texts.index(b"\0", item["sh_name"])].decode("ascii", "replace"), item)
            for item in found
        )
        return {name: _section(file, structures, item) for name, item in named if name in names}


def _section(file: int, structures: Any, section: Any) -> bytes:
    """Return the content of a section; nothing where it is compressed in another way than by zlib, or much too large."""
    if section["sh_size"] > _SECTION_LIMIT:
        return b""
    data = os.pread(file, section["sh_size"], section["sh_offset"])
    if not section["sh_flags"] & _SHF_COMPRESSED:
        return data
    head = structures.Elf_Chdr.parse(data)
    is_zlib = head["ch_type"] == "ELFCOMPRESS_ZLIB" and head["ch_size"] <= _SECTION_LIMIT
    return zlib.decompress(data[structures.Elf_Chdr.sizeof() :]) if is_zlib else b""


def read_elf(file: int) -> Elf:
    """Read an executable or a library. UnusableError if it is neither, or damaged."""
    with _damage_reported():
        return _read(file)


@contextmanager
def _damage_reported() -> Generator[None]:
    # Here and below, not at the top: heavy, and not every command needs it.
    from elftools.construct import ConstructError

    try:
        yield
    except (ConstructError, struct.error, IndexError, OverflowError, zlib.error) as error:
        raise UnusableError("its ELF headers are damaged") from error


@lru_cache
def _structures(little_endian: bool, bits: int) -> Any:  # noqa: FBT001 - a cache key
    from elftools.elf.structs import ELFStructs

    structures = ELFStructs(little_endian=little_endian, elfclass=bits)
    structures.create_basic_structs()
    structures.create_advanced_structs()
    return structures


def _headers(file: int) -> tuple[Any, Any, list[Any]]:
    """Return the structures of this file, its header and its segments."""
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
    return structures, header, [structures.Elf_Phdr.parse(table[at : at + size]) for at in range(0, len(table), size)]


def _read(file: int) -> Elf:
    structures, header, segments = _headers(file)
    if not any(segment["p_type"] == "PT_LOAD" for segment in segments):
        raise UnusableError("it is an ELF file with nothing to load")
    loader = next((_segment(file, s) for s in segments if s["p_type"] == "PT_INTERP"), None)
    dynamic = _dynamic(file, structures, segments)
    return Elf(
        bits=structures.elfclass,
        machine=str(header["e_machine"]),
        build_id=_build_id(file, segments, "<" if structures.little_endian else ">") or content_id(file),
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
            return {tag: [os.fsdecode(strings[at : strings.index(b"\0", at)]) for at in values[tag]] for tag in wanted}
    raise UnusableError("its ELF headers are damaged")


# Valgrind shows programs a CPU without AVX-512, so the loader never takes the x86-64-v4 variant of a library.
_USABLE_VARIANT = re.compile(r"/glibc-hwcaps/x86-64-v[23]/")
_MUSL_ITSELF = re.compile(r"lib(?:c|pthread|rt|m|dl|util|xnet)\.")  # names musl's loader answers with itself


class LoadedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What is in memory besides the executable, sorted by path; `missing` was not found anywhere."""

    loader: ObjectFile | None
    libc: ObjectFile | None
    libraries: tuple[ObjectFile, ...]
    missing: tuple[str, ...]


class _Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """One file in memory; `rpaths` are those of the files that led here, nearest first, its own included."""

    path: str
    elf: Elf
    rpaths: tuple[str, ...]


def load(path: str, elf: Elf, loader: str, library_path: Sequence[str]) -> LoadedFiles:
    """Find the libraries of the executable at the resolved `path`, breadth first, each name once."""
    search = _Search(executable=elf, loader=loader, library_path=library_path)
    loader_elf = _readable(loader)
    loader_object = None if loader_elf is None else _object(loader, loader_elf)
    libc = loader_object if search.is_musl else None
    missing = {printable(loader)} if loader_elf is None else set[str]()
    found: dict[str, ObjectFile] = {}
    names: set[str] = set()
    waiting = deque([_Loaded(path=path, elf=elf, rpaths=search.own_rpaths(path, elf))])
    while waiting:
        parent = waiting.popleft()
        for name in parent.elf.needed:
            if name in names or search.is_loader(name):
                continue
            names.add(name)
            library = search.find(name, parent)
            if library is None:
                missing.add(printable(name))
                continue
            item = _object(library.path, library.elf)
            libc = item if name == "libc.so.6" else libc
            if item.path not in found:
                found[item.path] = item
                waiting.append(library)
    libraries = tuple(found[key] for key in sorted(found))
    return LoadedFiles(loader=loader_object, libc=libc, libraries=libraries, missing=tuple(sorted(missing)))


def expand(paths: str, *, origin: str, lib: str) -> tuple[str, ...]:
    """Split a DT_RPATH or DT_RUNPATH and replace its $ORIGIN and $LIB."""
    if not paths:
        return ()  # while an empty entry among others is the working directory
    values = {"ORIGIN": origin, "LIB": lib}
    pattern = re.compile(r"\$(?:(ORIGIN|LIB)\b|\{(ORIGIN|LIB)\})")
    return tuple(pattern.sub(lambda match: values[match[1] or match[2]], entry) for entry in paths.split(":"))


def read_cache(path: str = "/etc/ld.so.cache") -> dict[str, tuple[str, ...]]:
    """Return the paths of each library name in glibc's cache, in its order; nothing if there is no cache of a known format."""
    found: dict[str, tuple[str, ...]] = {}
    try:
        data = Path(path).read_bytes()
        # An older header of its own may come first; offsets count from the newer one.
        entries = cache_entries(data[max(0, data.find(CACHE_MAGIC)) :])
    except (OSError, ValueError):
        return found
    for raw, (_flags, raw_place, _version, capabilities) in entries:
        name, place = os.fsdecode(raw[:-1]), os.fsdecode(raw_place[:-1])
        if not capabilities or _USABLE_VARIANT.search(place):
            found[name] = (*found.get(name, ()), place)
    return found


class _Search(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The search of one process: which loader it has, and its LD_LIBRARY_PATH."""

    executable: Elf
    loader: str
    library_path: Sequence[str]

    @property
    def is_musl(self) -> bool:
        """Whether the loader is musl's, which is its libc as well."""
        return os.path.basename(self.loader).startswith("ld-musl-")

    @cached_property
    def lib(self) -> str:
        """What $LIB stands for."""
        wide = (f"lib/{self._multiarch}", "lib64") if self.executable.bits == 64 else ()
        return next((name for name in wide if Path("/", name).is_dir()), "lib")

    def is_loader(self, name: str) -> bool:
        """Return whether this needed name is the loader itself, which is there before any search."""
        return name == os.path.basename(self.loader) or bool(self.is_musl and _MUSL_ITSELF.match(name))

    def find(self, name: str, parent: _Loaded) -> _Loaded | None:
        """Return the file that this name means to this parent: the first of the right class and machine."""
        for path in self._candidates(name, parent):
            elf = _readable(path)
            if elf is not None and (elf.bits, elf.machine) == (self.executable.bits, self.executable.machine):
                return _Loaded(path=path, elf=elf, rpaths=(*self.own_rpaths(path, elf), *parent.rpaths))
        return None

    def own_rpaths(self, path: str, elf: Elf) -> tuple[str, ...]:
        """Return what a file adds to the search for itself and all it loads; a DT_RUNPATH voids its DT_RPATH."""
        return () if elf.runpath else expand(elf.rpath, origin=os.path.dirname(path), lib=self.lib)

    def _candidates(self, name: str, parent: _Loaded) -> Iterator[str]:
        if "/" in name:
            yield name
            return
        runpath = expand(parent.elf.runpath, origin=os.path.dirname(parent.path), lib=self.lib)
        for directory in (*(() if runpath else parent.rpaths), *self.library_path, *runpath):
            yield os.path.join(directory or ".", name)
        if not self.is_musl:
            yield from self._cache.get(name, ())
        for directory in self._default_directories:
            yield os.path.join(directory, name)

    @property
    def _multiarch(self) -> str:
        return {"EM_X86_64": "x86_64", "EM_386": "i386", "EM_AARCH64": "aarch64"}.get(
            self.executable.machine, ""
        ) + "-linux-gnu"

    @cached_property
    def _cache(self) -> Mapping[str, tuple[str, ...]]:
        return read_cache()

    @cached_property
    def _default_directories(self) -> tuple[str, ...]:
        if self.is_musl:
            architecture = os.path.basename(self.loader).removeprefix("ld-musl-").split(".")[0]
            try:
                text = Path(f"/etc/ld-musl-{architecture}.path").read_text("utf-8", "surrogateescape")
            except OSError:
                text = "/lib:/usr/local/lib:/usr/lib"
            return tuple(filter(None, re.split(r"[:\n]", text)))
        wide = ("/lib64", "/usr/lib64") if self.executable.bits == 64 else ()
        return (f"/lib/{self._multiarch}", f"/usr/lib/{self._multiarch}", *wide, "/lib", "/usr/lib")


def _readable(path: str) -> Elf | None:
    try:
        with opened(path) as file:
            return read_elf(file)
    except (UnusableError, OSError, ValueError):
        return None


def _object(path: str, elf: Elf) -> ObjectFile:
    return ObjectFile(path=printable(os.path.realpath(path)), build_id=elf.build_id)
