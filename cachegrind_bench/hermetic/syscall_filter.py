"""Which system calls of the sealed program the supervisor is notified of or which are refused, and the filter that sees to it.

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
_RET_ALLOW, _RET_USER_NOTIF, _RET_ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_SECCOMP_MODE_FILTER = 2
_LOW = 0xFFFFFFFF
# What stops, ends, starves or changes another process, and which argument names it.
_SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_SCHEDULING = ("sched_setscheduler", "sched_setparam", "sched_setattr", "sched_setaffinity")
# These name groups as well, and all processes of a user, by this number (linux/include/uapi/linux/ioprio.h: IOPRIO_WHO_USER).
_OF_USERS = {"setpriority": os.PRIO_USER, "ioprio_set": 3}
_AIMED = (
    {"ptrace": 1}
    | dict.fromkeys(_OF_USERS, 1)
    | dict.fromkeys((*_SIGNALS, *_SCHEDULING, "process_vm_writev", "prlimit64"), 0)
)
# Those that reach a process by the number of any of its threads, also of one that begins after the filter was installed.
TO_THREADS = {name: place for name, place in _AIMED.items() if name not in {"tgkill", "rt_tgsigqueueinfo"}}
# linux/include/uapi/asm-generic/fcntl.h, ioctls.h, sockios.h: who is sent a signal when a file is ready
_F_SETOWN, _F_SETOWN_EX, _FIOSETOWN, _SIOCSPGRP = 8, 15, 0x8901, 0x8902


class Condition(NamedTuple):
    """Whether the low half of an argument, as far as the mask goes, is among these values; or is not, unless `among`."""

    argument: int
    values: tuple[int, ...]
    mask: int = _LOW
    among: bool = True


_ANY_SIGNAL = Condition(1, (0,), among=False)


class Trap(NamedTuple):
    """A system call to be notified of, or only where it meets all conditions. With an `error`, the call is refused instead."""

    number: int
    conditions: tuple[Condition, ...] = ()
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
        passed = [(give, 0, 0, _RET_ERRNO | trap.error if trap.error else _RET_USER_NOTIF)]
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
    wanted += [Trap(table.calls[name], (_ANY_SIGNAL,) if name in _SIGNALS else ()) for name in TO_THREADS]
    answered = ("getrandom", "sysinfo", "getdents64", "getrlimit", "sched_getaffinity", "getcpu")
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


def refusals(table: Architecture, processes: Sequence[int]) -> list[Trap]:
    """Return the calls that could stop these processes, which are to end the program; negative numbers are process groups, which only `kill` and `fcntl` know.

    Whether one lives may be asked (signal 0). A process that a descriptor names, or memory, cannot be compared: programs then
    do as on kernels without these calls.
    """
    calls = table.calls
    groups = tuple(pid & _LOW for pid in processes)
    pids = tuple(pid for pid in processes if pid > 0)
    unknown = [Trap(calls[name], error=errno.ENOSYS) for name in ("pidfd_send_signal", "pidfd_getfd")]
    aimed = [
        Trap(calls[name], (Condition(argument, pids),), errno.EPERM)
        for name, argument in _AIMED.items()
        if name not in {"kill", *_OF_USERS}  # which name groups, too: see below
    ]
    of_users = [
        Trap(calls[name], (condition,), errno.EPERM)
        for name, users in _OF_USERS.items()
        for condition in (Condition(1, tuple(map(abs, processes))), Condition(0, (users,)))
    ]
    return [
        *unknown,
        *aimed,
        Trap(calls["kill"], (Condition(0, groups), _ANY_SIGNAL), errno.EPERM),
        *of_users,
        Trap(calls["fcntl"], (Condition(1, (_F_SETOWN,)), Condition(2, groups)), errno.EPERM),
        Trap(calls["fcntl"], (Condition(1, (_F_SETOWN_EX,)),), errno.EINVAL),
        Trap(calls["ioctl"], (Condition(1, (_FIOSETOWN, _SIOCSPGRP)),), errno.ENOTTY),
    ]
