"""The few kernel interfaces Python has no name for: personality, prctl, namespaces, seccomp with user notification.

Knows numbers and structures; must not know what they are used for. Runs inside the launcher: only
the standard library, and little of it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.hermetic.calls import Architecture

_libc = ctypes.CDLL(None, use_errno=True)

ADDR_NO_RANDOMIZE = 0x0040000
_QUERY_PERSONALITY = 0xFFFFFFFF
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_SECCOMP_SET_MODE_FILTER = 1
_NEW_LISTENER, _WAIT_KILLABLE_RECV = 1 << 3, 1 << 5
_RET_ALLOW, _RET_USER_NOTIF = 0x7FFF0000, 0x7FC00000
CLONE_THREAD = 0x00010000
NEW_MOUNTS, NEW_USERS = 0x00020000, 0x10000000  # CLONE_NEWNS, CLONE_NEWUSER
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_PIDFD_GETFD = 438  # on every machine
_entries = ctypes.create_string_buffer(1 << 16)


def _check(value: int, name: str) -> int:
    if value < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {errno.errorcode.get(number, number)}, {os.strerror(number)}")
    return value


def disable_aslr() -> None:
    """Turn address randomisation off for this process and what it executes, as `setarch -R` does."""
    persona = _check(_libc.personality(ctypes.c_ulong(_QUERY_PERSONALITY)), "personality")
    _check(_libc.personality(ctypes.c_ulong(persona | ADDR_NO_RANDOMIZE)), "personality")


def _prctl(option: int, value: int, name: str) -> None:
    zero = ctypes.c_ulong(0)
    _check(_libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero), name)


def die_with_parent(signal_number: int) -> None:
    """Have this signal sent to us when the parent ends."""
    _prctl(_PR_SET_PDEATHSIG, signal_number, "prctl(PR_SET_PDEATHSIG)")


def become_subreaper() -> None:
    """Have orphaned descendants become our children."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1, "prctl(PR_SET_CHILD_SUBREAPER)")


def unshare(namespaces: int) -> None:
    """Move to new namespaces of these kinds."""
    _check(_libc.unshare(ctypes.c_int(namespaces)), "unshare")


def mount(source: str, target: str, flags: int, *, kind: str | None = None, data: str | None = None) -> None:
    """Mount, or change a mount."""
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _check(_libc.mount(*texts[:3], ctypes.c_ulong(flags), texts[3]), f"mount({target})")


def descriptor_of(pid: int, number: int) -> int:
    """Return a duplicate of another process' descriptor, which shares its position."""
    process = os.pidfd_open(pid)
    try:
        arguments = ctypes.c_long(process), ctypes.c_long(number), ctypes.c_long(0)
        return _check(_libc.syscall(ctypes.c_long(_PIDFD_GETFD), *arguments), "pidfd_getfd")
    finally:
        os.close(process)


def directory_entries(table: Architecture, descriptor: int) -> bytes:
    """Return the next entries of a directory as the kernel packs them, nothing at its end."""
    number, size = ctypes.c_long(table.calls["getdents64"]), ctypes.c_long(len(_entries))
    found = _check(_libc.syscall(number, ctypes.c_long(descriptor), _entries, size), "getdents64")
    return _entries.raw[:found]


class Trap(NamedTuple):
    """A system call to be notified of; if a mask is given, only where (argument number `argument`) & mask == `value`.

    If `present` is given, only where the low half of that argument is not 0.
    """

    number: int
    argument: int = 0
    mask: int = 0
    value: int = 0
    present: int | None = None


def install_filter(table: Architecture, traps: Sequence[Trap]) -> int:
    """Install a filter that notifies on these calls, and return the listener's descriptor. OSError where refused.

    Cannot be undone: for a process about to exec. Sets no_new_privs, without which only root may filter.
    """
    code = _program(table.audit, traps)
    buffer = ctypes.create_string_buffer(code, len(code))

    class SockFprog(ctypes.Structure):
        _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    program = SockFprog(len(code) // 8, ctypes.addressof(buffer))
    _prctl(_PR_SET_NO_NEW_PRIVS, 1, "prctl(PR_SET_NO_NEW_PRIVS)")
    descriptor = -1
    # Kernels from 5.19 can keep a call that we are answering from being interrupted by the program's own signals.
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE_RECV, _NEW_LISTENER):
        descriptor = _libc.syscall(
            ctypes.c_long(table.calls["seccomp"]),
            ctypes.c_ulong(_SECCOMP_SET_MODE_FILTER),
            ctypes.c_ulong(flags),
            ctypes.byref(program),
        )
        if descriptor >= 0 or ctypes.get_errno() != errno.EINVAL:
            break
    return _check(descriptor, "seccomp")


def _program(audit: int, traps: Sequence[Trap]) -> bytes:
    """Classic BPF over struct seccomp_data: nr at 0, arch at 4, arguments from 16 (low word first)."""
    load, jump_equal, mask_and, give = 0x20, 0x15, 0x54, 0x06
    notify, allow = (give, 0, 0, _RET_USER_NOTIF), (give, 0, 0, _RET_ALLOW)
    steps = [(load, 0, 0, 4), (jump_equal, 1, 0, audit), allow, (load, 0, 0, 0)]
    for trap in traps:
        tests: list[tuple[int, int, int, int]] = []
        if trap.present is not None:
            tests = [(load, 0, 0, 16 + 8 * trap.present), (jump_equal, 1, 0, 0)]
        if trap.mask:
            test = (jump_equal, 0, len(tests) + 1, trap.value)
            tests = [(load, 0, 0, 16 + 8 * trap.argument), (mask_and, 0, 0, trap.mask), test, *tests]
        if tests:
            # What fails a test may pass that of the next trap, for which the number is loaded again.
            steps += [(jump_equal, 0, len(tests) + 2, trap.number), *tests, notify, (load, 0, 0, 0)]
        else:
            steps += [(jump_equal, 0, 1, trap.number), notify]
    steps.append(allow)
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
