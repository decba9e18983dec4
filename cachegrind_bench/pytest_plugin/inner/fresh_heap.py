"""Gives what is measured a heap without a past: all memory that earlier code freed is taken, and never given back.

What an allocation costs depends on which pieces are free, and so on everything that was allocated and freed before: a
few harmless edits of imported modules moved a benchmark by 4.6 %, all of it in glibc's `_int_malloc`. Afterwards both
allocators begin on fresh memory, at the same place within a page. Takes about as much memory as was free.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import mmap
import operator
import sys
from itertools import repeat
from typing import Any, Final

from cachegrind_bench.startup.os_functions import Real

# CPython's Objects/obmalloc.c on 64-bit machines, 3.10 and later: blocks in pools of 16 KiB with a header, in arenas.
_POOL, _POOL_HEADER, _ARENA = 1 << 14, 48, 1 << 20
_STEP, _LARGEST_BLOCK = 16, 512
_SIZES: Final = range(_LARGEST_BLOCK, 0, -_STEP)
_ONE_DIGIT = 1 << 20  # of an int's digits, which have 30 bits; small ones are always there
_BYTES_HEADER: Final = sys.getsizeof(b"")
# glibc's malloc/malloc.c: a chunk has 8 bytes more than was asked for, and is a multiple of 16 and at least 32 bytes long.
_OVERHEAD, _SMALLEST, _PAGE, _LINE = 8, 32, 4096, 64
_LARGEST_CACHED = 1040  # chunks up to here are kept for their thread, by their size
_LARGEST: Final = 1 << 16  # below what glibc maps on its own
_LEFT: Final = 1 << 16  # what the heap's end has left before the heap grows
_MOST_ROUNDS = 1000
_ALL = 1 << 20
# Of the 64 pools of an arena, this many are left, to begin at the same place of one. Beginning takes one or two.
_POOLS_LEFT = 60
_SMALL, _POOLS_OF_SMALL, _POOLS_OF_OTHERS = 128, 8, 4  # how many are held; most objects are small blocks
_FEW = 4
_STATISTICS_BYTES = 1 << 16
_STDERR = 2

# From one layout to the next: odd, so that all of the 64 lines of a page come, and the first ones lie far apart.
_STRIDE = 27

_kept: list[Any] = []
_moved: list[Any] = []  # what lies before what a call allocates, in the present layout


def take_free_memory() -> None:
    """Take all memory that is free in both allocators; ends early where they are not the usual ones."""
    gc.collect()
    _take_blocks()
    take_chunks(_ALL)


def move_heaps(layout: int) -> None:
    """Let both heaps go on elsewhere within a page and within a pool; where, depends on the number alone, and 0 is here."""
    if not layout:
        return
    _moved.clear()  # the last one of each size first: they are taken again in their order
    # Near its beginning: a call that comes to the end of a pool takes another one, and gives it back, each time.
    _moved.append([_blocks(size, layout * _STRIDE % (_POOL // size // 8)) for size in _SIZES])
    _libc().malloc(_moved_bytes(layout))


def _moved_bytes(layout: int) -> int:
    return _LARGEST_CACHED + layout * _STRIDE * _LINE % _PAGE


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
    blocks = _blocks(size, each * (_POOLS_OF_SMALL if size <= _SMALL else _POOLS_OF_OTHERS))
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
    return list(map(bytes, repeat(size - _BYTES_HEADER, count)))


class _Mallinfo2(ctypes.Structure):
    _fields_ = (("others", ctypes.c_size_t * 9), ("keepcost", ctypes.c_size_t))


@functools.cache
def _libc() -> Any:
    """Return the C library, once: to load it makes a type."""
    libc: Any = ctypes.PyDLL(None)
    # No argtypes: with them it takes half as long again, and sizes fit into an int.
    libc.malloc.restype = ctypes.c_size_t
    libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mmap.restype, libc.munmap.argtypes = ctypes.c_size_t, [ctypes.c_void_p, ctypes.c_size_t]
    libc.sbrk.argtypes, libc.sbrk.restype = [ctypes.c_ssize_t], ctypes.c_size_t
    if hasattr(libc, "mallinfo2"):
        libc.mallinfo2.argtypes, libc.mallinfo2.restype = [], _Mallinfo2
    return libc


def take_chunks(most: int, layout: int = 0) -> None:
    """Take this many of the chunks that glibc has free, and end at the beginning of a page, or elsewhere in another layout.

    What comes after it has always as much room before the heap's end, and is in the caches, as memory that is used again is.
    """
    libc = _libc()
    if not hasattr(libc, "mallinfo2"):  # glibc 2.33 and later
        return
    malloc, sbrk, mallinfo2 = libc.malloc, libc.sbrk, libc.mallinfo2

    def end_bytes() -> int:
        return int(mallinfo2().keepcost)

    end, size = sbrk(0) - end_bytes(), _LARGEST
    while size >= _SMALLEST:
        while malloc(size - _OVERHEAD) < end and most:
            most -= 1
        size = size - _STEP if size <= _LARGEST_CACHED else max(size // 2, _LARGEST_CACHED)
    while end_bytes() < _LEFT + 2 * _PAGE:
        malloc(_LARGEST - _OVERHEAD)
    spare = end_bytes() - _LEFT
    while spare > _LARGEST:
        malloc(_LARGEST // 2 - _OVERHEAD)
        spare = end_bytes() - _LEFT
    malloc(spare - _OVERHEAD)
    if layout:
        malloc(_moved_bytes(layout))
    rest = malloc(_LEFT // 2)
    libc.memset(rest, 0, _LEFT // 2)
    libc.free(rest)
