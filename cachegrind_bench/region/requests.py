"""Valgrind's client requests from pure Python: a stub of machine code, called through ctypes.

A client request is a sequence of instructions that does nothing on a real CPU and that Valgrind recognises when it
translates it (valgrind/valgrind.h). Callgrind takes these requests since long before 3.16; Cachegrind only since 3.22.
Must import little: it is used by programs that are measured.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
from typing import Final

_TOOL: Final = ord("C") << 24 | ord("T") << 16  # VG_USERREQ_TOOL_BASE('C', 'T')

# Requests of callgrind.h, and one of valgrind.h that only answers.
RUNNING_ON_VALGRIND: Final = 0x1001
ZERO_STATS: Final = _TOOL + 1
TOGGLE_COLLECT: Final = _TOOL + 2
DUMP_STATS_AT: Final = _TOOL + 3
START_INSTRUMENTATION: Final = _TOOL + 4
STOP_INSTRUMENTATION: Final = _TOOL + 5

# The argument is the address of six 64-bit words: the request and five arguments. Its result is returned, 0 without
# Valgrind. Each preamble of rotations adds up to a whole turn, so it changes nothing. Behind the request a function of a
# single return is called: Callgrind counts it wherever the collection is on then, so the counts tell how often it was
# turned on (what follows a request in the same piece of code is booked nowhere). What ends a region calls it before its request, too.
_STUBS: Final = {
    # mov %rdi,%rax; xor %edx,%edx; rol $3,%rdi; rol $13,%rdi; rol $61,%rdi; rol $51,%rdi; xchg %rbx,%rbx; mov %rdx,%rax;
    # call 1f; ret; 1: ret
    "x86_64": bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 e801000000 c3 c3"),
    # mov x4,x0; mov x3,#0; ror x12,x12,#3; ror x12,x12,#13; ror x12,x12,#51; ror x12,x12,#61; orr x10,x10,x10; mov x0,x3;
    # mov x9,x30; bl 1f; ret x9; 1: ret
    "aarch64": bytes.fromhex(
        "e40300aa 030080d2 8c0dcc93 8c35cc93 8ccdcc93 8cf5cc93 4a010aaa e00303aa e9031eaa 02000094 20015fd6 c0035fd6"
    ),
}
_LAST_INSTRUCTION: Final = {"x86_64": 1, "aarch64": 4}  # bytes
# Follows a stub: what calls the function of a single return, then does what the stub does.
_COUNTING: Final = {
    # call 1b; jmp 0b
    "x86_64": bytes.fromhex("e8faffffff ebd7"),
    # mov x10,x30; bl 1b; mov x30,x10; b 0b
    "aarch64": bytes.fromhex("ea031eaa feffff97 fe030aaa f1ffff17"),
}


class UnsupportedError(RuntimeError):
    """The machine, or its security policy, does not allow a stub of machine code."""


class Request:
    """One request with its arguments, ready to be made again and again.

    Its words are in a bytes object: that ctypes passes on by its address, and allocates nothing. What it would allocate
    costs a few instructions more or less, by what was allocated before.
    """

    def __init__(self, code: int, text: bytes | None = None) -> None:
        self._text = None if text is None else ctypes.create_string_buffer(text)
        argument = 0 if self._text is None else ctypes.addressof(self._text)
        self.block: Final = struct.pack("=6Q", code, argument, 0, 0, 0, 0)


def executable(code: bytes) -> tuple[mmap.mmap, int]:
    """Return a page with this machine code, and its address. UnsupportedError if that is not allowed."""
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError as error:
        raise UnsupportedError(f"memory that is writable and executable was refused: {error.strerror}") from error
    page.write(code)
    return page, ctypes.addressof(ctypes.c_char.from_buffer(page))


class Requests:
    """The stub in memory, at `address`. `make(request.block)` makes a request; `counter` is the address of what counts them.

    `make_counted` is counted before its request, and after it.
    """

    def __init__(self) -> None:
        code = _STUBS.get(platform.machine())
        if code is None:
            raise UnsupportedError(f"client requests of Valgrind are not known for {platform.machine()}")
        self._page, self.address = executable(code + _COUNTING[platform.machine()])
        self.counter: Final = self.address + len(code) - _LAST_INSTRUCTION[platform.machine()]
        # PYFUNCTYPE keeps the interpreter's lock: nothing else may run between the request and what is measured.
        self.make: Final = ctypes.PYFUNCTYPE(None)(self.address)
        self.make_counted: Final = ctypes.PYFUNCTYPE(None)(self.address + len(code))
        self._ask: Final = ctypes.PYFUNCTYPE(ctypes.c_uint64)(self.address)

    def send(self, request: Request) -> None:
        """Make a request that is made once: `make` with its words does not keep its text alive."""
        self.make(request.block)

    def running_on_valgrind(self) -> int:
        """Return how many Valgrinds are below: 0 on a real CPU."""
        return int(self._ask(Request(RUNNING_ON_VALGRIND).block))
