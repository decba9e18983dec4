"""Calls machine code as CPython calls its own functions in C: by ctypes, a call takes some 2,500 simulated instructions.

They are not counted, but all that is executed between simulated calls takes lines of the caches, and is translated anew in the
process of each benchmark.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from collections.abc import Callable
from typing import Any, Final

from cachegrind_bench.region.requests import executable

# What comes before and after the address of what is called, with the address of the argument's contents. Returns a new reference to
# what the function is bound to.
_ADAPTERS: Final = {
    # incq (%rdi); push %rdi; lea 32(%rsi),%rdi; movabs $address,%rax; call *%rax; pop %rax; ret
    "x86_64": (bytes.fromhex("48ff07 57 488d7e20 48b8"), bytes.fromhex("ffd0 58 c3")),
    # ldr x9,[x0]; add x9,x9,#1; str x9,[x0]; stp x0,x30,[sp,#-16]!; add x0,x1,#32; ldr x9,1f; blr x9; ldp x0,x30,[sp],#16; ret;
    # nop; 1: address
    "aarch64": (
        bytes.fromhex("090040f9 29050091 090000f9 e07bbfa9 20800091 a9000058 20013fd6 e07bc1a8 c0035fd6 1f2003d5"),
        b"",
    ),
}
# Objects of CPython as it is usually built, on 64-bit machines: a count of references, a type, a size, a hash, and the bytes.
_BYTES_SIZE: Final = 33
_METH_O: Final = 0x0008
_ALIGNMENT: Final = 16

_pages: list[object] = []


def direct(address: int) -> Callable[[bytes], object]:
    """Return what calls the function at this address with that of the contents of its argument; by ctypes where it cannot be direct.

    What it returns has no meaning. The interpreter's lock is kept.
    """
    parts = _ADAPTERS.get(platform.machine())
    if parts is None or sys.implementation.name != "cpython" or bytes.__basicsize__ != _BYTES_SIZE:
        return ctypes.PYFUNCTYPE(None)(address)
    before, after = parts
    code = before + struct.pack("=Q", address) + after
    code += bytes(-len(code) % _ALIGNMENT)
    page, place = executable(code)
    # PyMethodDef: name, function, flags, documentation. Its name is the zero at its end.
    definition = place + len(code)
    page.write(struct.pack("=QQQQ", definition + 24, place, _METH_O, 0))
    _pages.append(page)
    new: Any = ctypes.pythonapi.PyCFunction_New
    new.argtypes, new.restype = [ctypes.c_void_p, ctypes.py_object], ctypes.py_object
    made: Callable[[bytes], object] = new(definition, object())
    return made
