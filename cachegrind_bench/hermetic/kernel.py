"""The few kernel interfaces Python has no name for: personality, prctl, seccomp with user notification.

Knows numbers and structures per architecture; must not know what they are used for. Runs inside the launcher: only
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

_libc = ctypes.CDLL(None, use_errno=True)

ADDR_NO_RANDOMIZE = 0x0040000
_QUERY_PERSONALITY = 0xFFFFFFFF
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_SECCOMP_SET_MODE_FILTER = 1
_NEW_LISTENER, _WAIT_KILLABLE_RECV = 1 << 3, 1 << 5
_RET_ALLOW, _RET_USER_NOTIF = 0x7FFF0000, 0x7FC00000
CLONE_THREAD = 0x00010000


class Architecture(NamedTuple):
    """Audit number and system call numbers of one machine type; a call that it lacks is absent."""

    audit: int
    calls: dict[str, int]


# Numbers: linux/include/uapi/asm-generic/unistd.h and arch/x86/entry/syscalls/syscall_64.tbl.
ARCHITECTURES = {
    "x86_64": Architecture(
        0xC000003E,
        {
            "open": 2,
            "stat": 4,
            "lstat": 6,
            "access": 21,
            "shmget": 29,
            "socket": 41,
            "connect": 42,
            "clone": 56,
            "fork": 57,
            "vfork": 58,
            "execve": 59,
            "msgget": 68,
            "truncate": 76,
            "chdir": 80,
            "rename": 82,
            "mkdir": 83,
            "rmdir": 84,
            "creat": 85,
            "link": 86,
            "unlink": 87,
            "symlink": 88,
            "readlink": 89,
            "gettimeofday": 96,
            "getrlimit": 97,
            "mknod": 133,
            "statfs": 137,
            "pivot_root": 155,
            "chroot": 161,
            "mount": 165,
            "getxattr": 191,
            "lgetxattr": 192,
            "listxattr": 194,
            "llistxattr": 195,
            "time": 201,
            "clock_gettime": 228,
            "exit_group": 231,
            "mq_open": 240,
            "openat": 257,
            "mkdirat": 258,
            "mknodat": 259,
            "newfstatat": 262,
            "unlinkat": 263,
            "renameat": 264,
            "linkat": 265,
            "symlinkat": 266,
            "readlinkat": 267,
            "faccessat": 269,
            "unshare": 272,
            "prlimit64": 302,
            "open_by_handle_at": 304,
            "setns": 308,
            "renameat2": 316,
            "seccomp": 317,
            "getrandom": 318,
            "execveat": 322,
            "statx": 332,
            "io_uring_setup": 425,
            "open_tree": 428,
            "move_mount": 429,
            "clone3": 435,
            "openat2": 437,
            "pidfd_getfd": 438,
            "faccessat2": 439,
        },
    ),
    "aarch64": Architecture(
        0xC00000B7,
        {
            "getxattr": 8,
            "lgetxattr": 9,
            "listxattr": 11,
            "llistxattr": 12,
            "mknodat": 33,
            "mkdirat": 34,
            "unlinkat": 35,
            "symlinkat": 36,
            "linkat": 37,
            "renameat": 38,
            "mount": 40,
            "pivot_root": 41,
            "statfs": 43,
            "truncate": 45,
            "faccessat": 48,
            "chdir": 49,
            "chroot": 51,
            "openat": 56,
            "readlinkat": 78,
            "newfstatat": 79,
            "exit_group": 94,
            "unshare": 97,
            "clock_gettime": 113,
            "getrlimit": 163,
            "gettimeofday": 169,
            "mq_open": 180,
            "msgget": 186,
            "shmget": 194,
            "socket": 198,
            "connect": 203,
            "clone": 220,
            "execve": 221,
            "prlimit64": 261,
            "open_by_handle_at": 265,
            "setns": 268,
            "renameat2": 276,
            "seccomp": 277,
            "getrandom": 278,
            "execveat": 281,
            "statx": 291,
            "io_uring_setup": 425,
            "open_tree": 428,
            "move_mount": 429,
            "clone3": 435,
            "openat2": 437,
            "pidfd_getfd": 438,
            "faccessat2": 439,
        },
    ),
}


def architecture() -> Architecture | None:
    """Return the table of this machine, None where there is none."""
    return ARCHITECTURES.get(os.uname().machine)


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


class Trap(NamedTuple):
    """A system call to be notified of; if a mask is given, only where (argument number `argument`) & mask == `value`."""

    number: int
    argument: int = 0
    mask: int = 0
    value: int = 0


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
        if trap.mask:
            steps += [
                (jump_equal, 0, 5, trap.number),
                (load, 0, 0, 16 + 8 * trap.argument),
                (mask_and, 0, 0, trap.mask),
                (jump_equal, 0, 1, trap.value),
                notify,
                allow,
            ]
        else:
            steps += [(jump_equal, 0, 1, trap.number), notify]
    steps.append(allow)
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
