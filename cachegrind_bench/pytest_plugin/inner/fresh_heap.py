"""Gives what is measured a heap without a past: all memory that earlier code freed is taken, and never given back.

What an allocation costs depends on which pieces are free, and so on everything that was allocated and freed before: a
few harmless edits of imported modules moved a benchmark by 4.6 %, all of it in glibc's `_int_malloc`. Afterwards both
allocators begin on fresh memory, at the same place within a page. Takes about as much memory as was free.
"""

# ruff: noqa: ERA001 - the source of machine code

from __future__ import annotations

import ctypes
import functools
import gc
import mmap
import operator
import platform
import struct
import sys
from itertools import repeat
from typing import Any, Final

from cachegrind_bench.region.requests import executable
from cachegrind_bench.startup.os_functions import Real

# CPython's Objects/obmalloc.c on 64-bit machines, 3.10 and later: blocks in pools of 16 KiB with a header, in arenas.
_POOL, _POOL_HEADER, _ARENA = 1 << 14, 48, 1 << 20
_STEP, _LARGEST_BLOCK = 16, 512
_SIZES: Final = range(_LARGEST_BLOCK, 0, -_STEP)
_ONE_DIGIT = 1 << 20  # of an int's digits, which have 30 bits; small ones are always there
_BYTES_HEADER: Final = sys.getsizeof(b"")
# glibc's malloc/malloc.c: a chunk has 8 bytes more than was asked for, and is a multiple of 16 and at least 32 bytes long.
# Up to 1,040 bytes it keeps them for their thread, by their size; from 128 KiB on it maps each on its own. What is left at the
# heap's end before the heap grows are 64 KiB.
_PAGE, _LINE, _LEAST_MOVED = 4096, 64, 1040
# Takes chunks of glibc's heap, and leaves its end where it always is: a call of a C function by ctypes takes some 2,500
# simulated instructions, and all of this takes a hundred of them. By GCC for x86-64, with -Os -fPIC -fno-stack-protector
# -fcf-protection=none -fomit-frame-pointer -fno-asynchronous-unwind-tables:
#
#     typedef unsigned long word;
#     struct mallinfo2 { word others[9], keepcost; };
#     struct asked {
#         word (*malloc)(word), (*free)(word), (*memset)(word, int, word), (*sbrk)(word);
#         struct mallinfo2 (*mallinfo2)(void);
#         word most, moved;
#     };
#     void take(struct asked *c)
#     {
#         word end = c->sbrk(0) - c->mallinfo2().keepcost, most = c->most, spare, rest;
#         for (word size = 65536; size >= 32; size = size <= 1040 ? size - 16 : size / 2 > 1040 ? size / 2 : 1040)
#             while (c->malloc(size - 8) - 1 < end - 1 && most)
#                 most--;
#         for (int round = 64; (spare = c->mallinfo2().keepcost - 65536) - 8192 > 65536 - 8192; round--)
#             if (!round || !c->malloc(32768 - 8))
#                 return;
#         c->malloc(spare + c->moved - 8);
#         if ((rest = c->malloc(32768)))
#             c->free(c->memset(rest, 0, 32768));
#     }
_TAKE: Final = bytes.fromhex(
    "41564155415455bd00000100534889fb31ff4881eca0000000ff53184889e74989c4ff53204c2b6424484c8b6b2849ffcc4c8d75f84c89f7"
    "ff1348ffc84c39e0730a4d85ed740549ffcdebe94881fd1004000077164883ed104883fd1f77d2bd410000004c8d642450eb254881fd2108"
    "0000760548d1edebb8bd10040000ebb1ffcd746cbff87f0000ff134885c074604c89e7ff5320488b842498000000488d9000e0feff4881fa"
    "00e0000077d2488b5330488dbc10f8fffeffff13bf00800000ff134889c74885c07425488b6b08ba0080000031f6ff53104881c4a0000000"
    "5b4889c74889e85d415c415d415effe04881c4a00000005b5d415c415d415ec3"
)
_AT_ONCE: Final = 64  # a tuple of 64 is larger than the largest block
_MOST_ROUNDS = 1000
_ALL = 1 << 20
# Of the 64 pools of an arena, this many are left, to begin at the same place of one. Beginning takes one or two.
_POOLS_LEFT = 60
_SMALL, _POOLS_OF_SMALL, _POOLS_OF_OTHERS = (
    128,
    8,
    4,
)  # how many are held; most objects are small blocks, but few have only 16 bytes
_FEW = 4
_STATISTICS_BYTES = 1 << 16
_STDERR = 2

# From one layout to the next, glibc's heap moves by this many lines: odd, so that all of the 64 lines of a page come, and the first
# ones lie far apart. CPython's moves by this part of a pool, so that many layouts begin in the pools that are held.
_STRIDE, _STEPS_OF_POOL = 27, 40

_kept: list[Any] = []


def take_free_memory() -> None:
    """Take all memory that is free in both allocators; ends early where they are not the usual ones."""
    gc.collect()
    _take_blocks()
    take_chunks(_ALL)


def move_blocks(steps: int) -> None:
    """Let CPython's heap go on this many steps further within its pools."""
    _kept.append([_blocks(size, steps * max(1, _POOL // size // _STEPS_OF_POOL)) for size in _SIZES])


def _take_blocks() -> None:
    """Take the blocks that CPython's allocator has free, and end near the beginning of an arena."""
    if not all(_take_blocks_of(size) for size in _SIZES):
        return
    _align_arenas()
    _take_pools(_unused_pools() + 1)
    for size in _SIZES:
        _hold_pools(size)
    if (unused := _unused_pools()) < _POOLS_LEFT:
        _take_pools(unused + 1)
        unused = _unused_pools()
    _take_pools(unused - _POOLS_LEFT)


def _align_arenas() -> None:
    """Let the next arenas begin at multiples of their size, where memory is mapped into the first hole, as Valgrind does.

    Of an arena that does not, all blocks up to such a multiple take four instructions more to be freed than those beyond
    (`arena_map_is_used`): a loop over 30,000 ints moved by 1.5 % with whether imported modules had been compiled before.
    """
    libc = _libc()
    for _ in range(_MOST_ROUNDS):
        place = _map(_ARENA)
        libc.munmap(place, _ARENA)
        if not place % _ARENA:
            return
        _map(-place % _ARENA)


def _map(size: int) -> int:
    return int(_libc().mmap(None, size, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0))


def _hold_pools(size: int) -> None:
    """Keep one block in each of the next pools: else a call would take pools and give them back, by where it begins in one."""
    each = (_POOL - _POOL_HEADER) // size
    blocks = _blocks(size, each * (_POOLS_OF_SMALL if _STEP < size <= _SMALL else _POOLS_OF_OTHERS))
    _kept.append(blocks[::each])  # the others are freed, the last one first, and so are taken again in their order


def _take_pools(count: int) -> None:
    _kept.append(_blocks(_LARGEST_BLOCK, count * ((_POOL - _POOL_HEADER) // _LARGEST_BLOCK)))


def _unused_pools() -> int:
    """Return how many pools the arenas have left, as CPython writes it to the standard error."""
    file, saved = Real.memfd_create("cg-bench"), Real.dup(_STDERR)
    try:
        Real.dup2(file, _STDERR)
        sys._debugmallocstats()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        Real.dup2(saved, _STDERR)
        before, found, _ = Real.pread(file, _STATISTICS_BYTES, 0).partition(b" unused pools")
        return int(before.rpartition(b"\n")[2]) if found else _POOLS_LEFT
    finally:
        Real.close(saved)
        Real.close(file)


def _take_blocks_of(size: int) -> bool:
    """Take all free blocks of one size, until a fresh pool has been used up. False where that does not come: another allocator."""
    count = (_POOL - _POOL_HEADER) // size
    for _ in range(_MOST_ROUNDS):
        taken = _blocks(size, count)
        _kept.append(taken)
        places = list(map(id, taken))
        steps = list(map(operator.sub, places[1:], places))
        # One step into another pool, and what this function itself takes meanwhile.
        if len(steps) - steps.count(size) <= _FEW:
            _kept.append(_blocks(size, (_POOL - places[-1] % _POOL) // size - 1))
            return True
    return False


def _blocks(size: int, count: int) -> list[Any]:
    """Allocate this many blocks of one size, one after the other."""
    if size == _STEP:
        return [object() for _ in repeat(None, count)]
    if size == 2 * _STEP:
        return list(range(_ONE_DIGIT, _ONE_DIGIT + count))
    # Takes 215 instructions for each block, where calls of `operator.mul` take 500, and those of `bytes` 890.
    unpack, zeros = _unpacking(size)
    taken: list[Any] = []
    for _ in repeat(None, count // _AT_ONCE):
        taken += unpack(zeros)
    taken += map(operator.mul, repeat(b"\0", count % _AT_ONCE), repeat(size - _BYTES_HEADER))
    return taken


@functools.cache
def _unpacking(size: int) -> tuple[Any, bytes]:
    """Return what makes many bytes of this size at once, and of what."""
    many = struct.Struct(f"{size - _BYTES_HEADER}s" * _AT_ONCE)
    return many.unpack, bytes(many.size)


@functools.cache
def _libc() -> Any:
    """Return the C library, once: to load it makes a type."""
    libc: Any = ctypes.PyDLL(None)
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mmap.restype, libc.munmap.argtypes = ctypes.c_size_t, [ctypes.c_void_p, ctypes.c_size_t]
    return libc


@functools.cache
def _taker() -> tuple[Any, Any, bytes] | None:
    """Return the page of the function that takes chunks, that function, and the addresses that its argument begins with."""
    libc = _libc()
    if platform.machine() != "x86_64" or not hasattr(libc, "mallinfo2"):  # glibc 2.33 and later
        return None
    page, address = executable(_TAKE)
    functions = libc.malloc, libc.free, libc.memset, libc.sbrk, libc.mallinfo2
    addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in functions]
    return page, ctypes.PYFUNCTYPE(None)(address), struct.pack("=5Q", *addresses)


def take_chunks(most: int, layout: int = 0) -> None:
    """Take this many of the chunks that glibc has free, and end at the beginning of a page, or elsewhere in another layout.

    What comes after it has always as much room before the heap's end, and is in the caches, as memory that is used again is.
    """
    if (taker := _taker()) is not None:
        _page, take, addresses = taker
        take(addresses + struct.pack("=2Q", most, layout and _LEAST_MOVED + layout * _STRIDE * _LINE % _PAGE))
