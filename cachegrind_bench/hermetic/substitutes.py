"""What a sealed program gets in place of random devices and of the machine's memory, load and uptime: always the same.

Free memory differs from run to run, and programs compute with it: GNU sort sizes its buffer by it. Knows what is told;
must not know how it gets into the program. Runs inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

import hashlib
import os
import struct

# Large enough for any seeding; beyond it the file reads as zeros (a hole), so it never ends and never blocks.
_DEVICE_BYTES, _DEVICE_SIZE = 4 << 20, 1 << 44

_GIB = 1 << 30


def sysinfo(asked: int) -> bytes:
    """Return what the system call of this name tells at the `asked`-th time: each takes a second, as some wait for it.

    linux/include/uapi/linux/sysinfo.h on 64-bit machines: uptime, loads[3], totalram, freeram, sharedram, bufferram,
    totalswap, freeswap, procs and padding, totalhigh, freehigh, mem_unit and padding.
    """
    memory = memory_bytes()
    return struct.pack("=q9QHHIQQII", asked, 0, 0, 0, memory, memory, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0)


def memory_bytes() -> int:
    """Return the machine's memory in whole GiB, as machines of one kind have some MB more or less; programs take shares of it."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return found // _GIB * _GIB or found


def _meminfo() -> bytes:
    """Return the fields of proc(5) that kernels have had since 3.14, in their order."""
    full = ("MemTotal", "MemFree", "MemAvailable", "CommitLimit")
    names = [
        "MemTotal",
        "MemFree",
        "MemAvailable",
        "Buffers",
        "Cached",
        "SwapCached",
        "Active",
        "Inactive",
        "Active(anon)",
        "Inactive(anon)",
        "Active(file)",
        "Inactive(file)",
        "Unevictable",
        "Mlocked",
        "SwapTotal",
        "SwapFree",
        "Dirty",
        "Writeback",
        "AnonPages",
        "Mapped",
        "Shmem",
        "Slab",
        "SReclaimable",
        "SUnreclaim",
        "KernelStack",
        "PageTables",
        "NFS_Unstable",
        "Bounce",
        "WritebackTmp",
        "CommitLimit",
        "Committed_AS",
        "VmallocTotal",
        "VmallocUsed",
        "VmallocChunk",
        "HardwareCorrupted",
        "AnonHugePages",
    ]
    kilobytes = memory_bytes() // 1024
    lines = [f"{name + ':':<15} {kilobytes if name in full else 0:>8} kB" for name in names]
    pages = [
        "HugePages_Total:       0",
        "HugePages_Free:        0",
        "HugePages_Rsvd:        0",
        "HugePages_Surp:        0",
    ]
    return "\n".join([*lines, *pages, "Hugepagesize:       2048 kB", ""]).encode()


_DEVICES = (b"/dev/urandom\0", b"/dev/random\0")
_FILES = {b"/proc/loadavg\0": b"0.00 0.00 0.00 1/1 1\n", b"/proc/meminfo\0": b"", b"/proc/uptime\0": b"1.00 1.00\n"}
# The files that others stand for, as C strings: a longer name is another file's.
NAMES = frozenset((*_DEVICES, *_FILES))


def part_of(name: bytes) -> str:
    """Return the part of the seal that one of NAMES belongs to."""
    return "random_devices" if name in _DEVICES else "randomness"


def substitute(name: bytes, seed: bytes) -> int:
    """Make the file that stands for one of NAMES, and return its descriptor. OSError where that is not possible."""
    descriptor = os.memfd_create("substitute", os.MFD_CLOEXEC)
    if name in _DEVICES:
        os.write(descriptor, hashlib.shake_128(seed + b"device").digest(_DEVICE_BYTES))
        os.ftruncate(descriptor, _DEVICE_SIZE)
    else:
        os.write(descriptor, _FILES[name] or _meminfo())
    return descriptor
