"""Calls machine code as CPython calls its own functions in C: by ctypes, a call takes some 2,500 simulated instructions.

They are not counted, but all that is executed between simulated calls takes lines of the caches, and is translated anew in the
process of each benchmark.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any, Final

from cachegrind_bench.pytest_plugin.cpython.verified import IS_VERIFIED
from cachegrind_bench.region.requests import executable

# What comes before and after the address of what is called, with the address of the argument's contents. Returns a new reference to
# what the function is bound to:
# incq (%rdi); push %rdi; lea 32(%rsi),%rdi; movabs $address,%rax; call *%rax; pop %rax; ret
_BEFORE: Final = bytes.fromhex("48ff07 57 488d7e20 48b8")
_AFTER: Final = bytes.fromhex("ffd0 58 c3")
_METH_O: Final = 0x0008
_ALIGNMENT: Final = 16


def direct(address: int) -> Callable[[bytes], object]:
    """Return what calls the function at this address with that of the contents of its argument; by ctypes where it cannot be direct.

    What it returns has no meaning. The interpreter's lock is kept.
    """
    if not IS_VERIFIED:
        return ctypes.PYFUNCTYPE(None)(address)
    code = _BEFORE + struct.pack("=Q", address) + _AFTER
    code += bytes(-len(code) % _ALIGNMENT)
    page, place = executable(code)
    # PyMethodDef: name, function, flags, documentation. Its name is the zero at its end.
    definition = place + len(code)
    page.write(struct.pack("=QQQQ", definition + 24, place, _METH_O, 0))
    new: Any = ctypes.pythonapi.PyCFunction_New
    new.argtypes, new.restype = [ctypes.c_void_p, ctypes.py_object], ctypes.py_object
    made: Callable[[bytes], object] = new(definition, page)  # which owns what defines it, and so is freed after it
    return made
