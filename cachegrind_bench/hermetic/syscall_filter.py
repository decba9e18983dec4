"""Choose the system calls of the sealed program that the supervisor is notified of, and install the filter that does so.

Runs inside the launcher's child: only the standard library, and little of it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Sequence
from typing import NamedTuple

from cachegrind_bench.hermetic import kernel
from cachegrind_bench.hermetic.clock import CALLS as CLOCKS
from cachegrind_bench.hermetic.file_trace import CALLS, MOVES
from cachegrind_bench.hermetic.kernel import Architecture
from cachegrind_bench.hermetic.waits import FUTEX_COMMAND, FUTEX_WAIT, FUTEX_WAIT_BITSET, TIMEOUTS, TIMERS

# Only plain reading opens can be of a file that is handed out; the mask spares the supervisor all others.
PLAIN_READING_MASK = 0o3 | 0o100 | 0o1000 | 0o200000  # access mode, O_CREAT, O_TRUNC, O_DIRECTORY

# What a program asks its CPU's number by, or tells which ones it wants.
AFFINITY = ("sched_getaffinity", "sched_setaffinity", "getcpu")

_SECCOMP_SET_MODE_FILTER = 1
_NEW_LISTENER, _WAIT_KILLABLE_RECV = 1 << 3, 1 << 5
_RET_ALLOW, _RET_USER_NOTIF = 0x7FFF0000, 0x7FC00000
_PR_SET_NO_NEW_PRIVS = 38
_LOW = 0xFFFFFFFF


class Condition(NamedTuple):
    """Whether the low half of an argument, as far as the mask goes, is among these values; or is not, unless `among`."""

    argument: int
    values: tuple[int, ...]
    mask: int = _LOW
    among: bool = True


class Trap(NamedTuple):
    """A system call to be notified of, or only where it meets all conditions."""

    number: int
    conditions: tuple[Condition, ...] = ()


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
        passed = [(give, 0, 0, _RET_USER_NOTIF)]
        if trap.conditions:  # what fails here may be what the next trap is for, for which the number is loaded again
            passed.append((load, 0, 0, 0))
        for condition in reversed(trap.conditions):
            # A jump skips 255 steps at most.
            last, failed = len(condition.values) - 1, len(passed) - 1
            compared = [
                (jump_equal, last - place + (0 if condition.among else failed), 0, value)
                for place, value in enumerate(condition.values)
            ]
            if condition.among:
                compared[-1] = (jump_equal, 0, failed, condition.values[-1])
            masked = [] if condition.mask == _LOW else [(mask_and, 0, 0, condition.mask)]
            passed = [(load, 0, 0, 16 + 8 * condition.argument), *masked, *compared, *passed]
        steps += [(jump_equal, 0, len(passed), trap.number), *passed]
    steps.append(allow)
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def traps(table: Architecture, *, clock: bool, files: bool = False, moves: bool = False) -> list[Trap]:
    """Return the system calls to be notified of; the first trap of a call counts."""
    followed = ("execve", "execveat", "clone", "clone3", "fork", "vfork", "exit_group")
    recorded = CALLS if files else tuple(MOVES) if moves else ()
    wanted = [Trap(table.calls[name]) for name in dict.fromkeys((*followed, *recorded)) if name in table.calls]
    answered = ("getrandom", "sysinfo", "getdents64", "getrlimit", "prlimit64", *AFFINITY)
    wanted += [Trap(table.calls[name]) for name in answered]
    if "open" in table.calls:
        wanted.append(Trap(table.calls["open"], (Condition(1, (os.O_RDONLY,), PLAIN_READING_MASK),)))
    wanted.append(Trap(table.calls["openat"], (Condition(2, (os.O_RDONLY,), PLAIN_READING_MASK),)))
    if clock:
        wanted += [Trap(table.calls[name]) for name in CLOCKS if name in table.calls]
        wanted += [Trap(table.calls[name]) for name in TIMERS if name in table.calls]
        waiting = {name: place for name, place in TIMEOUTS.items() if name in table.calls}
        given = {name: Condition(place, (0,), among=False) for name, place in waiting.items()}
        command = Condition(1, (FUTEX_WAIT, FUTEX_WAIT_BITSET), FUTEX_COMMAND)
        wanted += [Trap(table.calls["futex"], (command, given.pop("futex")))]
        wanted += [Trap(table.calls[name], (condition,)) for name, condition in given.items()]
    return wanted
