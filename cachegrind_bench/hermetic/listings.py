"""What a sealed program sees in a directory: its entries in the order of their names, without cg-bench's own files.

File systems give entries in an order of their own: that of hashes, or of creation. Knows directories; must not know how
the answer gets into the program. Runs inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

import os
import struct

from cachegrind_bench.hermetic import files, kernel
from cachegrind_bench.hermetic.kernel import Architecture
from cachegrind_bench.hermetic.process_memory import group_of, path_of

# linux/include/linux/dirent.h, struct linux_dirent64: d_ino, d_off, d_reclen, d_type, d_name
_RECORD = struct.Struct("=QqHB")
_DIRECTORY, _FILE = 4, 8  # d_type
_DOTS = (b".", b"..")
# A position is a listing's number and that of an entry: small enough for the file systems that keep 31 bits.
_ENTRY_BITS, _LISTINGS, _MOST_TAKEN = 20, 1 << 11, 64
_OWN_FOLDER, _HEAD = b".cg-bench", 1 << 16
_MARKS = (b'"counts":{"D1mr":', b'"schema":"cg-bench.run/')

Entry = tuple[int, int, bytes]  # inode, type, name


class Listings:
    """The directories that programs are reading: each listing is taken when reading begins.

    The position of an open directory, which is the kernel's, says how far it was read: so it is shared by whoever shares the
    open directory, and rewinding and seeking work as ever.
    """

    def __init__(self, table: Architecture, scratch: str, *, backwards: bool = False) -> None:
        self._table = table
        self._scratch = scratch
        self._backwards = backwards
        self._taken: dict[int, list[Entry]] = {}
        self._count = 0

    def read(self, thread: int, number: int, length: int) -> bytes | None:
        """Return what getdents64 answers for this descriptor, which goes to its next position.

        None where the kernel has to answer. OSError where nothing can be read, BufferError if there is no room for an entry.
        """
        try:
            shared = kernel.descriptor_of(thread, number)
        except OSError:
            shared = kernel.descriptor_of(group_of(thread), number)  # only a process' first thread can be asked
        try:
            if path_of(thread, f"fd/{number}").startswith(b"/proc"):  # what is there depends on who asks
                return None
            answer = self._read(f"/proc/{thread}/fd/{number}", os.lseek(shared, 0, os.SEEK_CUR), length)
            if answer is None:
                return None
            data, position = answer
            os.lseek(shared, position, os.SEEK_SET)
            return data
        finally:
            os.close(shared)

    def _read(self, path: str, position: int, length: int) -> tuple[bytes, int] | None:
        listing, start = divmod(position, 1 << _ENTRY_BITS)
        if position == 0 or listing not in self._taken:
            entries = self._entries(path)
            if len(entries) >> _ENTRY_BITS:
                return None
            self._count = self._count % (_LISTINGS - 1) + 1
            listing = self._count
            self._taken[listing] = entries
            if len(self._taken) > _MOST_TAKEN:  # one that is read on is taken again
                del self._taken[next(iter(self._taken))]
        entries = self._taken[listing]
        base, data = listing << _ENTRY_BITS, b""
        for index in range(start, len(entries)):
            inode, kind, name = entries[index]
            size = (_RECORD.size + len(name) + 8) & ~7
            if len(data) + size > length:
                break
            record = _RECORD.pack(inode, base + index + 1, size, kind) + name
            data += record.ljust(size, b"\0")
            start = index + 1
        if not data and start < len(entries):
            raise BufferError
        if start >= len(entries) and not data:
            self._taken.pop(listing, None)
        return data, base + start

    def _entries(self, path: str) -> list[Entry]:
        found: list[Entry] = []
        with files.opened(path, os.O_DIRECTORY) as folder:
            while block := kernel.directory_entries(self._table, folder):
                at = 0
                while at < len(block):
                    inode, _offset, size, kind = _RECORD.unpack_from(block, at)
                    name = block[at + _RECORD.size : at + size].partition(b"\0")[0]
                    found.append((inode, kind, name))
                    at += size
            found.sort(key=lambda entry: (entry[2] not in _DOTS, entry[2]), reverse=self._backwards)
            if os.readlink(path).startswith(self._scratch):
                return found
            return [entry for entry in found if not _is_own(folder, entry)]


def _is_own(folder: int, entry: Entry) -> bool:
    """Return whether cg-bench has made this: its folder, or a result file. What is in its folder does not matter."""
    _inode, kind, name = entry
    if name == _OWN_FOLDER:
        return kind in (0, _DIRECTORY)
    return kind in (0, _FILE) and name.endswith(b".json") and _is_result(folder, name)


def _is_result(folder: int, name: bytes) -> bool:
    try:
        with open(os.open(name, os.O_RDONLY | os.O_NOATIME, dir_fd=folder), "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    return head.startswith(b'{"benchmarks":[') and any(mark in head for mark in _MARKS)
