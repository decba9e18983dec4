"""Which system calls of the sealed program the supervisor is notified of or which are refused, and the filter that sees to it.

Runs inside the launcher's child: only the standard library, and little of it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cachegrind_bench.hermetic import kernel
from cachegrind_bench.hermetic.clock import CALLS as CLOCKS
from cachegrind_bench.hermetic.file_trace import CALLS
from cachegrind_bench.hermetic.kernel import Architecture
from cachegrind_bench.hermetic.waits import FUTEX_COMMAND, FUTEX_WAIT, FUTEX_WAIT_BITSET, TIMEOUTS, TIMERS

# Only plain reading opens can be of a file that is handed out; the mask spares the supervisor all others.
PLAIN_READING_MASK = 0o3 | 0o100 | 0o1000 | 0o200000  # access mode, O_CREAT, O_TRUNC, O_DIRECTORY

# What a program asks its CPU's number by, or tells which ones it wants.
AFFINITY = ("sched_getaffinity", "sched_setaffinity", "getcpu")

_SECCOMP_SET_MODE_FILTER = 1
_NEW_LISTENER, _WAIT_KILLABLE_RECV = 1 << 3, 1 << 5
_RET_ALLOW, _RET_USER_NOTIF, _RET_ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_SECCOMP_MODE_FILTER = 2
_LOW = 0xFFFFFFFF
# What stops, ends or changes another process, and which argument names it.
_AIMED = {"ptrace": 1} | dict.fromkeys(
    ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "process_vm_writev", "prlimit64"), 0
)


class Trap(NamedTuple):
    """A system call to be notified of; if a mask is given, only where (argument number `argument`) & mask == `value`.

    If `present` is given, only where the low half of that argument is not 0. With an `error`, the call is refused instead.
    """

    number: int
    argument: int = 0
    mask: int = 0
    value: int = 0
    present: int | None = None
    error: int = 0


def install_filter(table: Architecture, traps: Sequence[Trap]) -> int:
    """Install a filter that notifies on these calls, and return the listener's descriptor. OSError where refused.

    Cannot be undone: for a process about to exec.
    """
    program = _loadable(table, traps)
    descriptor = -1
    # Kernels from 5.19 can keep a call that we are answering from being interrupted by the program's own signals.
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE_RECV, _NEW_LISTENER):
        descriptor = kernel.libc.syscall(
            ctypes.c_long(table.calls["seccomp"]),
            ctypes.c_ulong(_SECCOMP_SET_MODE_FILTER),
            ctypes.c_ulong(flags),
            ctypes.byref(program),
        )
        if descriptor >= 0 or ctypes.get_errno() != errno.EINVAL:
            break
    return kernel.check(descriptor, "seccomp")


def install_refusals(table: Architecture, traps: Sequence[Trap]) -> None:
    """Install a filter without a listener, as far more kernels and containers allow it. OSError where refused."""
    program = _loadable(table, traps)
    mode, address = ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(program)
    kernel.check(kernel.libc.prctl(_PR_SET_SECCOMP, mode, address, ctypes.c_ulong(0), ctypes.c_ulong(0)), "prctl")


class _SockFprog(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _loadable(table: Architecture, traps: Sequence[Trap]) -> _SockFprog:
    """Return the filter, and set no_new_privs, without which only root may install it."""
    kernel.prctl(_PR_SET_NO_NEW_PRIVS, 1, "prctl(PR_SET_NO_NEW_PRIVS)")
    code = _program(table.audit, traps)
    return _SockFprog(len(code) // 8, code)


def _program(audit: int, traps: Sequence[Trap]) -> bytes:
    """Classic BPF over struct seccomp_data: nr at 0, arch at 4, arguments from 16 (low word first)."""
    load, jump_equal, mask_and, give = 0x20, 0x15, 0x54, 0x06
    allow = (give, 0, 0, _RET_ALLOW)
    steps = [(load, 0, 0, 4), (jump_equal, 1, 0, audit), allow, (load, 0, 0, 0)]
    for trap in traps:
        answer = (give, 0, 0, _RET_ERRNO | trap.error if trap.error else _RET_USER_NOTIF)
        tests: list[tuple[int, int, int, int]] = []
        if trap.present is not None:
            tests = [(load, 0, 0, 16 + 8 * trap.present), (jump_equal, 1, 0, 0)]
        if trap.mask:
            test = (jump_equal, 0, len(tests) + 1, trap.value)
            tests = [(load, 0, 0, 16 + 8 * trap.argument), (mask_and, 0, 0, trap.mask), test, *tests]
        if tests:
            # What fails a test may pass that of the next trap, for which the number is loaded again.
            steps += [(jump_equal, 0, len(tests) + 2, trap.number), *tests, answer, (load, 0, 0, 0)]
        else:
            steps += [(jump_equal, 0, 1, trap.number), answer]
    steps.append(allow)
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def traps(table: Architecture, *, clock: bool, files: bool = False) -> list[Trap]:
    """Return the system calls to be notified of; the first trap of a call counts."""
    followed = ("execve", "execveat", "clone", "clone3", "fork", "vfork", "exit_group")
    recorded = CALLS if files else ()
    wanted = [Trap(table.calls[name]) for name in dict.fromkeys((*followed, *recorded)) if name in table.calls]
    answered = ("getrandom", "sysinfo", "getdents64", "getrlimit", "prlimit64", *AFFINITY)
    wanted += [Trap(table.calls[name]) for name in answered]
    if "open" in table.calls:
        wanted.append(Trap(table.calls["open"], 1, PLAIN_READING_MASK, os.O_RDONLY))
    wanted.append(Trap(table.calls["openat"], 2, PLAIN_READING_MASK, os.O_RDONLY))
    if clock:
        wanted += [Trap(table.calls[name]) for name in CLOCKS if name in table.calls]
        wanted += [Trap(table.calls[name]) for name in TIMERS if name in table.calls]
        waiting = {name: place for name, place in TIMEOUTS.items() if name in table.calls}
        number, place = table.calls["futex"], waiting.pop("futex")
        wanted += [Trap(number, 1, FUTEX_COMMAND, command, place) for command in (FUTEX_WAIT, FUTEX_WAIT_BITSET)]
        wanted += [Trap(table.calls[name], present=place) for name, place in waiting.items()]
    return wanted


def refusals(table: Architecture, processes: Iterable[int]) -> list[Trap]:
    """Return the calls that could stop these processes, which are to end the program; negative numbers are process groups, which only `kill` knows.

    Whether one lives may be asked (signal 0). A process that a descriptor names cannot be compared: programs then do as on
    kernels before 5.1.
    """
    aimed = [
        Trap(table.calls[name], argument, _LOW, pid & _LOW, present=1 if name == "kill" else None, error=errno.EPERM)
        for name, argument in _AIMED.items()
        for pid in processes
        if pid > 0 or name == "kill"
    ]
    return [Trap(table.calls["pidfd_send_signal"], error=errno.ENOSYS), *aimed]
