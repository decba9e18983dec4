"""/etc/ld.so.cache in a form whose size and look-ups do not depend on what else is installed.

Where the loader maps it, its size moves all that is mapped later; and each look-up is a binary search among all libraries
of the machine. Runs inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

CACHE = "/etc/ld.so.cache"

# sysdeps/generic/dl-cache.h of glibc: struct cache_file_new, file_entry_new, cache_extension and its sections.
_HEADER, _ENTRY, _SECTION = struct.Struct("=20sIIB3xI12x"), struct.Struct("=IIIIQ"), struct.Struct("=IIII")
_MAGIC, _EXTENSION_MAGIC = b"glibc-ld.so.cache1.1", 0xEAA42174
_GENERATOR, _HWCAPS = 0, 1
# A cache for up to 63 libraries of the program's and thousands of others has 7 MiB, most of them a hole.
_LEVELS, _GAP_BITS, _STEP = 6, 12, 1 << 20


class LibraryCache:
    """What such a file says. ValueError if it is of another format."""

    def __init__(self, data: bytes) -> None:
        try:
            self._parse(data)
        except (struct.error, IndexError) as error:
            raise ValueError("it ends early") from error

    def _parse(self, data: bytes) -> None:
        magic, count, _length, self._byte_order, extension = _HEADER.unpack_from(data)
        if magic != _MAGIC:
            raise ValueError("its format is not known")

        def text(offset: int) -> bytes:
            return data[offset : data.index(b"\0", offset) + 1]

        # Names in the file's order, which is the loader's, descending; one may have several files, for kinds of CPUs.
        self._entries: dict[bytes, list[tuple[int, bytes, int, int]]] = {}
        for flags, key, value, version, hwcap in _ENTRY.iter_unpack(
            data[_HEADER.size : _HEADER.size + count * _ENTRY.size]
        ):
            self._entries.setdefault(text(key), []).append((flags, text(value), version, hwcap))
        if any(name[:1] <= _MAGIC[:1] and not name[:1].isdigit() for name in self._entries):
            raise ValueError("it has names that are before lib")
        self._generator, self._hwcaps = b"", list[bytes]()
        if not extension:
            return
        magic, sections = struct.unpack_from("=II", data, extension)
        if magic != _EXTENSION_MAGIC:
            raise ValueError("its extension is not known")
        for number in range(sections):
            tag, _flags, offset, size = _SECTION.unpack_from(data, extension + 8 + number * _SECTION.size)
            if tag == _GENERATOR:
                self._generator = data[offset : offset + size]
            elif tag == _HWCAPS:
                self._hwcaps = [text(at) for (at,) in struct.iter_unpack("=I", data[offset : offset + size])]
            else:
                raise ValueError("its extension is not known")

    def names_by_path(self) -> dict[bytes, bytes]:
        """Return the name that each file is found by, both as C strings."""
        return {value: name for name, entries in self._entries.items() for _flags, value, *_ in entries}

    def write(self, descriptor: int, needed: Collection[bytes], *, spare: int = 0) -> None:
        """Write a cache with the same entries to an empty file, `spare` bytes longer than it would be.

        The binary search meets only the `needed` names on its first levels, at places that these alone decide. Between
        each two of them is room for all others. What is empty reads as zeros, an entry whose name is the file's first
        bytes: it is less than all names.
        """
        blocks: list[list[bytes]] = [[]]
        for name in self._entries:
            if name in needed:
                blocks.append([])
            blocks[-1].append(name)
        levels = max(_LEVELS, (len(blocks) - 1).bit_length())
        longest = max(sum(len(self._entries[name]) for name in block) for block in blocks) + 3
        bits = max(_GAP_BITS, longest.bit_length())
        count = (1 << levels + bits) - 1
        start = _HEADER.size + count * _ENTRY.size
        strings = _Strings(start)
        first = {name: self._pack(name, strings) for name in self._entries if name in needed}
        extension = self._write_extension(strings)
        for number, block in enumerate(blocks):
            cells = b""
            if number:
                cells = first[block[0]]
                # The search looks at both neighbours of what it finds. The one behind is empty, too, and it is a leaf
                # of the search: there it misleads nobody.
                if len(cells) // _ENTRY.size % 2 == 0:
                    cells += cells[-_ENTRY.size :]
                cells += bytes(_ENTRY.size)
            cells += b"".join(self._pack(name, strings) for name in block[bool(number) :])
            os.pwrite(descriptor, cells, _HEADER.size + max(0, (number << bits) - 1) * _ENTRY.size)
        os.pwrite(descriptor, strings.data, start)
        size = -(-(start + len(strings.data)) // _STEP) * _STEP
        os.ftruncate(descriptor, size + spare)
        os.pwrite(descriptor, _HEADER.pack(_MAGIC, count, size + spare - start, self._byte_order, extension), 0)

    def _pack(self, name: bytes, strings: _Strings) -> bytes:
        key = strings.add(name)
        return b"".join(
            _ENTRY.pack(flags, key, strings.add(value), version, hwcap)
            for flags, value, version, hwcap in self._entries[name]
        )

    def _write_extension(self, strings: _Strings) -> int:
        if not (self._generator or self._hwcaps):
            return 0
        generator = strings.add(self._generator)
        names = [strings.add(name) for name in self._hwcaps]
        table = strings.add(struct.pack(f"={len(names)}I", *names), aligned=True)
        sections = [(_GENERATOR, generator, len(self._generator)), (_HWCAPS, table, 4 * len(names))]
        found = [_SECTION.pack(tag, 0, offset, size) for tag, offset, size in sections if size]
        return strings.add(struct.pack("=II", _EXTENSION_MAGIC, len(found)) + b"".join(found), aligned=True)


class _Strings:
    """The part of the file behind the entries."""

    def __init__(self, start: int) -> None:
        self._start = start
        self.data = bytearray()

    def add(self, data: bytes, *, aligned: bool = False) -> int:
        """Append this and return where it is in the file."""
        if aligned:
            self.data += bytes(-(self._start + len(self.data)) % 8)
        at = self._start + len(self.data)
        self.data += data
        return at
