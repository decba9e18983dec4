"""Finds the libraries of an executable as the dynamic loader does: its search order, cache file, default directories.

Knows ld.so(8) of glibc, and musl's simpler rules. Left out: LD_PRELOAD, audit modules, DF_1_NODEFLIB.
"""

from __future__ import annotations

import os
import re
import struct
from collections import deque
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.hermetic.fingerprint.elf import UnusableError, opened, read_elf, storable
from cachegrind_bench.model.result import ObjectFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cachegrind_bench.hermetic.fingerprint.elf import Elf

__all__ = ["LoadedFiles", "expand", "load", "read_cache"]

_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_CACHE_HEADER = struct.Struct("=20sII20x")  # magic, number of entries, length of the strings; flags and spare words
_CACHE_ENTRY = struct.Struct("=iIIIQ")  # flags, name, path, (unused) OS version, hardware capabilities
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
    missing = {storable(loader)} if loader_elf is None else set[str]()
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
                missing.add(storable(name))
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
    """Return the paths of each library name in glibc's cache, in its order; nothing if there is none to understand."""
    try:
        data = Path(path).read_bytes()
        # An older header of its own may come first; offsets count from the newer one.
        data = data[max(0, data.find(_CACHE_MAGIC)) :]
        magic, count, _length = _CACHE_HEADER.unpack_from(data)
        entries = data[_CACHE_HEADER.size : _CACHE_HEADER.size + count * _CACHE_ENTRY.size]
        rows = list(_CACHE_ENTRY.iter_unpack(entries))
    except (OSError, struct.error):
        return {}
    found: dict[str, tuple[str, ...]] = {}
    if magic != _CACHE_MAGIC:
        return found
    for _flags, name_at, path_at, _version, capabilities in rows:
        name, place = (os.fsdecode(data[at : max(at, data.find(b"\0", at))]) for at in (name_at, path_at))
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
        """Tell whether this needed name is the loader itself, which is there before any search."""
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
    return ObjectFile(path=storable(os.path.realpath(path)), build_id=elf.build_id)
