"""What a sealed program gets in place of random devices and of the machine's memory, load and uptime: always the same.

Free memory differs from run to run, and programs compute with it: GNU sort sizes its buffer by it. The cache of libraries
has a form whose size and look-ups do not depend on what else is installed: where the loader maps it, its size moves all that
is mapped later, and each look-up is a binary search among all libraries of the machine. Knows what a program reads; must
not know how it gets there. Runs inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Collection

from cachegrind_bench.hermetic.clock import HERTZ

# Large enough for any seeding; beyond it the file reads as zeros (a hole), so it never ends and never blocks.
_DEVICE_BYTES, _DEVICE_SIZE = 4 << 20, 1 << 44

_GIB = 1 << 30

# What another machine may have otherwise, and the seal keeps the same. The noise hunter tries one of these at a time.
LIBRARIES, LOCALES, USERS, DIRECTORIES = "libraries", "locales", "users", "directories"
PAGE = 4096  # that a list or an archive is longer there
_STRANGERS = [b"user%d:x:%d:%d::/:/bin/sh\n" % (number, number, number) for number in range(1 << 20, (1 << 20) + 40)]


def sysinfo(uptime_s: int) -> bytes:
    """Return what the system call of this name reports.

    linux/include/uapi/linux/sysinfo.h on 64-bit machines: uptime, loads[3], totalram, freeram, sharedram, bufferram,
    totalswap, freeswap, procs and padding, totalhigh, freehigh, mem_unit and padding.
    """
    memory = memory_bytes()
    return struct.pack("=q9QHHIQQII", uptime_s, 0, 0, 0, memory, memory, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0)


def memory_bytes() -> int:
    """Return the machine's memory in whole GiB, as machines of one kind have some MB more or less; programs take shares of it."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return found // _GIB * _GIB or found


_MEMORY = (
    "MemTotal MemFree MemAvailable Buffers Cached SwapCached Active Inactive Active(anon) Inactive(anon) "
    "Active(file) Inactive(file) Unevictable Mlocked SwapTotal SwapFree Dirty Writeback AnonPages Mapped Shmem "
    "Slab SReclaimable SUnreclaim KernelStack PageTables NFS_Unstable Bounce WritebackTmp CommitLimit "
    "Committed_AS VmallocTotal VmallocUsed VmallocChunk HardwareCorrupted AnonHugePages"
)


def _meminfo() -> bytes:
    """Return the fields of proc(5) that kernels have had since 3.14, in their order."""
    full = ("MemTotal", "MemFree", "MemAvailable", "CommitLimit")
    kilobytes = memory_bytes() // 1024
    lines = [f"{name + ':':<15} {kilobytes if name in full else 0:>8} kB" for name in _MEMORY.split()]
    pages = [f"HugePages_{name + ':':<12} 0" for name in ("Total", "Free", "Rsvd", "Surp")]
    return "\n".join([*lines, *pages, "Hugepagesize:       2048 kB", ""]).encode()


def statistics(boot_s: int) -> bytes:
    """Return /proc/stat as that of an idle machine with the CPUs of this one, one second after its start."""
    with open("/proc/stat", "rb") as file:
        cpus = [line.split(None, 1)[0] for line in file if line.startswith(b"cpu")][1:]
    idle = b"%-4s 0 0 0 %d 0 0 0 0 0 0\n"
    lines = [idle % (b"cpu", len(cpus) * HERTZ), *(idle % (cpu, HERTZ) for cpu in cpus)]
    rest = b"intr 0\nctxt 0\nbtime %d\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq 0%s\n"
    return b"".join(lines) + rest % (boot_s, b" 0" * 10)


def real_boot_s() -> int:
    """Return when this machine booted."""
    with open("/proc/stat", "rb") as file:
        return next((int(line.split()[1]) for line in file if line.startswith(b"btime")), 0)


def uptime(nanoseconds: int) -> bytes:
    """Return /proc/uptime; all of the time was idle."""
    seconds, hundredths = divmod(nanoseconds // 10_000_000, 100)
    return b"%d.%02d %d.%02d\n" % (seconds, hundredths, seconds, hundredths)


_DEVICES = (b"/dev/urandom\0", b"/dev/random\0")
UPTIME, _STAT = b"/proc/uptime\0", b"/proc/stat\0"
_FILES = {b"/proc/loadavg\0": b"0.00 0.00 0.00 1/1 1\n", b"/proc/meminfo\0": b"", UPTIME: b"1.00 1.00\n", _STAT: b""}
# Which modules are loaded and how fast a CPU goes at this moment differ from run to run. The archive of locales is mapped,
# so that its size moves what is mapped later, and users are looked for line by line.
_CPUS, _KINDS, _ARCHIVE = b"/proc/cpuinfo\0", b"/proc/filesystems\0", b"/usr/lib/locale/locale-archive\0"
_PASSWD, _GROUPS = b"/etc/passwd\0", b"/etc/group\0"
_VIRTUAL = (
    "sysfs tmpfs bdev proc cgroup cgroup2 devtmpfs debugfs tracefs securityfs sockfs bpf pipefs ramfs hugetlbfs devpts"
)
_LONGEST_ARCHIVE, _ARCHIVE_STEP = 32 << 20, 64 << 20
_SYSTEM_FILES = (_CPUS, _KINDS, _ARCHIVE, _PASSWD, _GROUPS)
# The files that are replaced, as C strings: a longer name is another file's.
NAMES = frozenset((*_DEVICES, *_FILES, *_SYSTEM_FILES))


MAPS = b"/proc/self/maps\0"
# Valgrind's half of the address space on 64-bit Linux, but for the program's stack at its end (aspacemgr-linux.c).
_TOOLS_HALF = range(1 << 36, 31 << 32)


def maps_without_tool(maps: bytes, tool: bytes, asking: int) -> bytes | None:
    """Return such a file without the memory of Valgrind itself, whose executable is `tool`.

    How many pieces that has differs from tool to tool, and with what it read; a program that looks for its stack reads them
    all. None where the tool itself asks, for it needs them: the name of the file, at the address `asking`, is in its executable.
    """
    left, end = list[bytes](), 0
    for line in maps.splitlines(keepends=True):
        span, rights, _offset, _device, inode, *path = line.split(None, 5)
        first, last = (int(address, 16) for address in span.split(b"-"))
        image = path == [tool + b"\n"]
        if image and first <= asking < last:
            return None
        zeroed = inode == b"0" and first == end  # behind the image, and a part of it
        heap = inode == b"0" and rights in {b"rwxp", b"---p"} and first in _TOOLS_HALF
        end = last if image else 0
        if not (image or zeroed or heap):
            left.append(line)
    return b"".join(left)


def mapped_or_searched(name: bytes) -> bool:
    """Return whether this file is one of a root of its own, and only what its C library makes of it matters."""
    return name in (_ARCHIVE, _PASSWD, _GROUPS)


def part_of(name: bytes) -> str:
    """Return the part of the seal that one of NAMES belongs to, or the only other file that is handed out."""
    return "random_devices" if name in _DEVICES else "randomness" if name in _FILES else "files"


def substitute(name: bytes, seed: bytes, boot_s: int | None = None, *, elsewhere: str = "") -> int:
    """Make the file that replaces one of NAMES, and return its descriptor. OSError where that is not possible.

    `boot_s` is when the machine is said to have booted: by default when it did. `elsewhere` is what is as on another one.
    """
    descriptor = os.memfd_create("substitute", os.MFD_CLOEXEC)
    if name in _DEVICES:
        os.write(descriptor, hashlib.shake_128(seed + b"device").digest(_DEVICE_BYTES))
        os.ftruncate(descriptor, _DEVICE_SIZE)
    elif name == _STAT:
        os.write(descriptor, statistics(real_boot_s() if boot_s is None else boot_s))
    elif name in _SYSTEM_FILES:
        _write_system_file(descriptor, name, elsewhere)
    else:
        os.write(descriptor, _FILES[name] or _meminfo())
    return descriptor


def _write_system_file(descriptor: int, name: bytes, elsewhere: str) -> None:
    if name == _KINDS:
        kinds = "".join(f"nodev\t{kind}\n" for kind in _VIRTUAL.split())
        os.write(descriptor, f"{kinds}\text3\n\text2\n\text4\nnodev\tautofs\nnodev\tmqueue\nnodev\toverlay\n".encode())
        return
    with open(name[:-1], "rb") as file:
        if name == _ARCHIVE:
            # One with all languages is the same on every machine with its package, and long: it stays as it is.
            size = os.fstat(file.fileno()).st_size
            while os.sendfile(descriptor, file.fileno(), None, _ARCHIVE_STEP):
                pass
            longer = PAGE if elsewhere == LOCALES else 0
            os.ftruncate(descriptor, (_ARCHIVE_STEP if size <= _LONGEST_ARCHIVE else size) + longer)
            return
        lines = [line.rstrip(b"\n") + b"\n" for line in file]
    if name == _CPUS:
        lines = [b"cpu MHz\t\t: 1000.000\n" if line.startswith(b"cpu MHz") else line for line in lines]
    else:  # who runs the program, and root, come first: other users do not matter to programs that look for these
        own = os.getuid() if name == _PASSWD else os.getgid()
        first = [b"%d" % number for number in dict.fromkeys((0, own))]
        found = [line for number in first for line in lines if line.split(b":")[2:3] == [number]]
        lines = found + [line for line in lines if line not in found]
        if elsewhere == USERS:
            lines = _STRANGERS + lines
    os.write(descriptor, b"".join(lines))


CACHE = "/etc/ld.so.cache"

# sysdeps/generic/dl-cache.h of glibc: struct cache_file_new, file_entry_new, cache_extension and its sections.
_HEADER, _ENTRY, _SECTION = struct.Struct("=20sIIB3xI12x"), struct.Struct("=IIIIQ"), struct.Struct("=IIII")
_CACHE_MAGIC, _EXTENSION_MAGIC = b"glibc-ld.so.cache1.1", 0xEAA42174
_GENERATOR, _HWCAPS = 0, 1
# A cache for up to 63 libraries of the program's and thousands of others has 7 MiB, most of them a hole.
_LEVELS, _GAP_BITS, _STEP = 6, 12, 1 << 20


def _text(data: bytes, offset: int) -> bytes:
    return data[offset : data.index(b"\0", offset) + 1]


def _cache_entries(data: bytes) -> list[tuple[bytes, tuple[int, bytes, int, int]]]:
    """Return name and flags, path, OS version, hardware capabilities of each entry. ValueError for another format."""
    try:
        magic, count, *_ = _HEADER.unpack_from(data)
        table = list(_ENTRY.iter_unpack(data[_HEADER.size : _HEADER.size + count * _ENTRY.size]))
    except struct.error as error:
        raise ValueError("it ends early") from error
    if magic != _CACHE_MAGIC:
        raise ValueError("its format is not known")
    return [(_text(data, key), (flags, _text(data, value), *rest)) for flags, key, value, *rest in table]


class LibraryCache:
    """What such a file says. ValueError if it is of another format."""

    def __init__(self, data: bytes) -> None:
        # Names in the file's order, which is the loader's, descending; one may have several files, for kinds of CPUs.
        self._entries: dict[bytes, list[tuple[int, bytes, int, int]]] = {}
        for name, entry in _cache_entries(data):
            self._entries.setdefault(name, []).append(entry)
        if any(name[:1] <= _CACHE_MAGIC[:1] and not name[:1].isdigit() for name in self._entries):
            raise ValueError("it has names that are before lib")
        self._generator, self._hwcaps = b"", list[bytes]()
        try:
            self._read_extension(data)
        except struct.error as error:
            raise ValueError("it ends early") from error

    def _read_extension(self, data: bytes) -> None:
        *_, self._byte_order, extension = _HEADER.unpack_from(data)
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
                self._hwcaps = [_text(data, at) for (at,) in struct.iter_unpack("=I", data[offset : offset + size])]
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
                # of the search: there it does no harm.
                if len(cells) // _ENTRY.size % 2 == 0:
                    cells += cells[-_ENTRY.size :]
                cells += bytes(_ENTRY.size)
            cells += b"".join(self._pack(name, strings) for name in block[bool(number) :])
            os.pwrite(descriptor, cells, _HEADER.size + max(0, (number << bits) - 1) * _ENTRY.size)
        os.pwrite(descriptor, strings.data, start)
        size = -(-(start + len(strings.data)) // _STEP) * _STEP
        os.ftruncate(descriptor, size + spare)
        os.pwrite(descriptor, _HEADER.pack(_CACHE_MAGIC, count, size + spare - start, self._byte_order, extension), 0)

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
