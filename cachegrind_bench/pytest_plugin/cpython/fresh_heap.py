"""Gives what is measured a heap without a past: all memory that earlier code freed is taken, and never given back.

What an allocation costs depends on which pieces are free, and so on everything that was allocated and freed before: a
few harmless edits of imported modules moved a benchmark by 4.6 %, all of it in glibc's `_int_malloc`. Afterwards both
allocators begin on fresh memory, at the same place within a page. Takes about as much memory as was free.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import struct
from collections.abc import Callable
from typing import Any, Final

from cachegrind_bench.pytest_plugin.cpython.direct_calls import direct
from cachegrind_bench.pytest_plugin.cpython.verified import IS_VERIFIED
from cachegrind_bench.region.requests import executable

# What fresh_heap.c, next to this file, is compiled to.
_TAKE: Final = bytes.fromhex(
    "4155415455534889fb5148837f48007405e894000000bd0002000041bd004000004c89e831d24c8b6350b90100000048f7f54883f828760d"
    "b92800000031d248f7f14889c14c0fafe14d85e4740a4889ef49ffccff13ebf14883ed1075c348837b5800740f5a4889df5b5d415c415de9"
    "44020000585b5d415c415dc3415441bc1e000000554889fdbf0002000053ff55004889c3bf00020000ff550041ffcc75f3488d43d05b5d41"
    "5cc3415741564155415441bc00020000554889fd534883ec58b8d03f000031d24531ed4531ff49f7f44869d8e80300004989c64c89e7ff55"
    "004889c181e1ff3f00004883f93074464d85ff75134885c00f84ab01000048ffcb7552e9a10100004b8d5425004839c274174885c00f848e"
    "01000048ffcb0f84850100004531ffeb2c49ffc74885d27516e97301000048ffcb0f846a01000041bf01000000eb0e48ffcb0f8459010000"
    "4d39f773054989c5eb814983ec100f855dffffff41bce803000031ff4531c94183c8ff31d2be00001000b922000000ff5510be0000100048"
    "89c34889c7ff5518f7c3ffff0f0074244889de4531c94183c8ff31d248f7de31ffb92200000081e6ffff0f00ff551049ffcc75ae41bc0200"
    "01004889efe8b2feffff4839d8740a49ffcc75eee9d0000000bb0002000031d2b8d03f00004c8d7c241048f7f348890424488d43ef4883f8"
    "704d19ed4531f64183e5044983c5044889df41bc01000000ff55004b8904f7488d0c1848894c24084889dfff5500488b4c24084839c87579"
    "49ffc44801d94c39242475df49ffc64d39f575c34c8b242449ffcc4c89e0480fafc3488904244c8b2c244c89e24b8b7cf7f848895424084c"
    "01ef4929ddff5508488b54240848ffca75e349ffce75d74883eb100f8555ffffff4889efe8ebfdffff25ffff0f00483d00c00000740b4883"
    "fb41740548ffc3ebe04883c4585b5d415c415d415e415fc341564155415455bd00000100534889fb31ff4881eca0000000ff53384889e749"
    "89c4ff53404c2b6424484c8b6b5849ffcc4c8d75f84c89f7ff532048ffc84c39e0730a4d85ed740549ffcdebe84881fd1004000077164883"
    "ed104883fd1f77d1bd410000004c8d642450eb264881fd21080000760548d1edebb7bd10040000ebb0ffcd746fbff87f0000ff53204885c0"
    "74624c89e7ff5340488b842498000000488d9000e0feff4881fa00e0000077d1488b5360488dbc10f8fffeffff5320bf00800000ff532048"
    "89c74885c07425488b6b28ba0080000031f6ff53304881c4a00000005b4889c74889e85d415c415d415effe04881c4a00000005b5d415c41"
    "5d415ec3"
)
# Those that it calls, in the order of its argument. Older versions of glibc than 2.33, and other libraries, lack the last one: there,
# only CPython's heap is fresh.
_OF_PYTHON: Final = "PyObject_Malloc", "PyObject_Free"
_OF_LIBC: Final = "mmap", "munmap", "malloc", "free", "memset", "sbrk", "mallinfo2"
_PAGE, _LINE, _LEAST_MOVED = 4096, 64, 1040
_ALL = 1 << 20

# From one layout to the next, glibc's heap moves by this many lines: odd, so that all of the 64 lines of a page come, and the first
# ones lie far apart. CPython's moves by a part of a pool.
_STRIDE = 27

_kept: list[Callable[[], object]] = []


def take_free_memory() -> None:
    """Take all memory that is free in both allocators; ends early where they are not the usual ones."""
    gc.collect()
    _taker(all_blocks=1, most=_ALL)()


def move_blocks(steps: int) -> None:
    """Let CPython's heap go on this many steps further within its pools."""
    _taker(steps=steps)()


def chunk_taker(most: int, layout: int = 0) -> Callable[[], object]:
    """Return what takes this many of the chunks that glibc has free, and ends at the beginning of a page, or elsewhere in another layout.

    What comes after it has always as much room before the heap's end, and is in the caches, as memory that is used again is. It is
    made once: what is touched between calls lies wherever it was made, and takes lines of the caches from these.
    """
    return _taker(most=most, moved=layout and _LEAST_MOVED + layout * _STRIDE * _LINE % _PAGE)


def _taker(*, all_blocks: int = 0, steps: int = 0, most: int = 0, moved: int = 0) -> Callable[[], object]:
    """Return what calls the machine code with this argument. It is kept: freed, it would be a hole in what follows."""
    loaded = _loaded()
    if loaded is None:
        return _nothing
    _page, take, addresses, knows_chunks = loaded
    argument = addresses + struct.pack("=4Q", all_blocks, steps, most * knows_chunks, moved)
    _kept.append(functools.partial(take, argument))
    return _kept[-1]


def _nothing() -> None:
    return None


@functools.cache
def _loaded() -> tuple[Any, Any, bytes, bool] | None:
    """Return the page of the machine code, its function, the addresses that its argument begins with, and whether it has all of them.

    None where CPython's heap is not known.
    """
    if not IS_VERIFIED:
        return None
    libc: Any = ctypes.PyDLL(None)  # once: to load it makes a type
    page, address = executable(_TAKE)
    functions = [getattr(ctypes.pythonapi, name) for name in _OF_PYTHON]
    functions += [getattr(libc, name, None) for name in _OF_LIBC]
    addresses = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]
    return page, direct(address), struct.pack("=9Q", *addresses), all(addresses)
