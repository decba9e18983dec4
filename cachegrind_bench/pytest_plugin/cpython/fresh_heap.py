"""Gives what is measured a heap without a past: all memory that earlier code freed is taken, and never given back.

What an allocation costs depends on which pieces are free, and so on everything that was allocated and freed before: a
few harmless edits of imported modules moved a benchmark by 4.6 %, all of it in glibc's `_int_malloc`. Afterwards both
allocators begin on fresh memory, at the same place within a page. Takes about as much memory as was free.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import platform
import struct
from collections.abc import Callable
from typing import Any, Final

from cachegrind_bench.pytest_plugin.cpython.direct_calls import direct
from cachegrind_bench.region.requests import executable

# What fresh_heap.c, next to this file, is compiled to.
_TAKE: Final = {
    "x86_64": bytes.fromhex(
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
    ),
    "aarch64": bytes.fromhex(
        "f353bda9f30300aa012440f9f55b01a9f77b02a9410000b430000094144080d2160088d2170580d2c00ad49a752a40f91fa000f1a9010054"
        "0008d79ab57e009b950100b5944200f101ffff54602e40f9a00100b4f55b41a9e00313aaf77b42a9f353c3a8b0000014200080d2f4ffff17"
        "610240f9e00314aab50600d120003fd6f0ffff17f55b41a9f77b42a9f353c3a8c0035fd6f353bea9f30300aa004080d2f57b01a9d5038052"
        "610240f920003fd6f40300aa610240f9004080d220003fd6b506007181ffff54f57b41a980c200d1f353c2a8c0035fd6f353b5a9f40300aa"
        "f55b01a9154080d2f76302a9f96b03a919fa87d21a7d80d2fb7304a9fe2b00f9380bd59a170080d2160080d2137f1a9b810240f9e00315aa"
        "20003fd6013440923fc000f1800d0054760100b5600000b4730600f1e1010054f55b41a9f76342a9f96b43a9fb7344a9fe2b40f9f353cba8"
        "c0035fd6f702158bff0200ebe0000054c0feffb4730600f180feff54160080d2f70300aae7ffff17d6060091f7fdffb4730600f1a0fdff54"
        "1f0316eb28ffff54b54200f161fbff54157d80d2860a40f9020080520102a0d2050080d20400801243048052000080d2c0003fd6820e40f9"
        "f30300aa0102a0d240003fd67f4e40f280010054860a40f9e10313cb214c4092050080d2040080124304805202008052000080d2c0003fd6"
        "b50600f101fdff54550080d23500a0f2e00314aaa2ffff971f0013eb81060054f7c30191134080d218fa87d2190180d29a0080d2604600d1"
        "1c0080d2160bd39a1fbc01f13b939a9a810240f9e00313aa20003fd67502008b210080d2e07a3cf8820240f9e00313aae13700f940003fd6"
        "1f0015eb61f6ff54e13740f9b502138b21040091df0201ebc1feff54800700917f0300eb21030054d60600d1c17e139bfb0301aaf50316aa"
        "820640f9e13700f9e07a7cf86003008b40003fd6e13740f97b0313cbb50600f101ffff54800700d19c0100b4fc0300aaf2ffff17730600f1"
        "00f3ff54360080d2a4ffff17b50600f101f9ff5493ffff17fc0300aad3ffff17734200f181f9ff54530880d2e00314aa63ffff97004c4092"
        "1f3040f120f1ff54730600f141ffff5486ffff17f353b2a9f30300aa3400a0d2011c40f9f55b01a9000080d2f76302a9188280d2fe1b00f9"
        "20003fd6f50300aa602240f9e803019100003fd6e04740f9762e40f9b50200cbb50600d1972200d102000014d60600d1611240f9e00317aa"
        "20003fd6000400d11f0015eb4200005436ffffb59f4210f128040054944200d19f7e00f148feff54f543029134088052602240f9e80315aa"
        "00003fd6e06f40f9014840d13f3840f128030054611240f9004040d1623240f9002000d10000028b20003fd6611240f9000090d220003fd6"
        "a00200b4748e42a9020090d20100805260003fd6f55b41a9f00314aaf76342a9fe1b40f9f353cea800021fd680fe41d39f8620f11480989a"
        "d1ffff1794060071a0000054611240f900ff8fd220003fd680fbffb5f55b41a9f76342a9fe1b40f9f353cea8c0035fd6"
    ),
}
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
    """Return the page of the machine code, its function, the addresses that its argument begins with, and whether it has all of them."""
    code = _TAKE.get(platform.machine())
    if code is None:
        return None
    libc: Any = ctypes.PyDLL(None)  # once: to load it makes a type
    page, address = executable(code)
    functions = [getattr(ctypes.pythonapi, name) for name in _OF_PYTHON]
    functions += [getattr(libc, name, None) for name in _OF_LIBC]
    addresses = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]
    return page, direct(address), struct.pack("=9Q", *addresses), all(addresses)
