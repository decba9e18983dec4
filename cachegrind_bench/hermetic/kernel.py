"""The few kernel interfaces Python has no name for: personality, prctl, namespaces, seccomp with user notification.

Knows numbers and structures, those of system calls too; must not know what they are used for. Runs inside the launcher:
only the standard library, and little of it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from typing import NamedTuple

libc = ctypes.CDLL(None, use_errno=True)

ADDR_NO_RANDOMIZE = 0x0040000
_QUERY_PERSONALITY = 0xFFFFFFFF
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
CLONE_THREAD = 0x00010000
NEW_MOUNTS, NEW_USERS = 0x00020000, 0x10000000  # CLONE_NEWNS, CLONE_NEWUSER
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
_PIDFD_GETFD = 438  # on every machine
_entries = ctypes.create_string_buffer(1 << 16)


def check(value: int, name: str) -> int:
    """Return what a call of the C library has returned. OSError if that says that it failed."""
    if value < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {errno.errorcode.get(number, number)}, {os.strerror(number)}")
    return value


def disable_aslr() -> None:
    """Turn address randomisation off for this process and what it executes, as `setarch -R` does."""
    persona = check(libc.personality(ctypes.c_ulong(_QUERY_PERSONALITY)), "personality")
    check(libc.personality(ctypes.c_ulong(persona | ADDR_NO_RANDOMIZE)), "personality")


def prctl(option: int, value: int, name: str) -> None:
    """Set something of this process."""
    zero = ctypes.c_ulong(0)
    check(libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero), name)


def end_with_parent() -> None:
    """Have the kernel kill us when the parent, or its thread that started us, ends."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, "prctl(PR_SET_PDEATHSIG)")


def become_subreaper(*, wanted: bool = True) -> None:
    """Have orphaned descendants become our children, or no longer."""
    prctl(_PR_SET_CHILD_SUBREAPER, int(wanted), "prctl(PR_SET_CHILD_SUBREAPER)")


def unshare(namespaces: int) -> None:
    """Move to new namespaces of these kinds."""
    check(libc.unshare(ctypes.c_int(namespaces)), "unshare")


def mount(source: str, target: str, flags: int, *, kind: str | None = None, data: str | None = None) -> None:
    """Mount, or change a mount."""
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    check(libc.mount(*texts[:3], ctypes.c_ulong(flags), texts[3]), f"mount({target})")


def descriptor_of(pid: int, number: int) -> int:
    """Return a duplicate of another process' descriptor, which shares its position."""
    process = os.pidfd_open(pid)
    try:
        arguments = ctypes.c_long(process), ctypes.c_long(number), ctypes.c_long(0)
        return check(libc.syscall(ctypes.c_long(_PIDFD_GETFD), *arguments), "pidfd_getfd")
    finally:
        os.close(process)


def directory_entries(table: Architecture, descriptor: int) -> bytes:
    """Return the next entries of a directory as the kernel packs them, nothing at its end."""
    number, size = ctypes.c_long(table.calls["getdents64"]), ctypes.c_long(len(_entries))
    found = check(libc.syscall(number, ctypes.c_long(descriptor), _entries, size), "getdents64")
    return _entries.raw[:found]


class Architecture(NamedTuple):
    """Audit number and system call numbers of one machine type; a call that it lacks is absent."""

    audit: int
    calls: dict[str, int]


# Numbers: linux/include/uapi/asm-generic/unistd.h and arch/x86/entry/syscalls/syscall_64.tbl.
# fmt: off
ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, {
        "read": 0, "open": 2, "stat": 4, "lstat": 6, "poll": 7, "access": 21, "select": 23, "shmget": 29,
        "nanosleep": 35, "alarm": 37, "setitimer": 38, "socket": 41, "connect": 42, "accept": 43, "recvfrom": 45,
        "recvmsg": 47, "bind": 49, "clone": 56, "fork": 57, "vfork": 58, "execve": 59, "wait4": 61, "semget": 64,
        "msgget": 68, "truncate": 76, "chdir": 80, "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86,
        "unlink": 87, "symlink": 88, "readlink": 89, "chmod": 90, "chown": 92, "lchown": 94, "gettimeofday": 96,
        "getrlimit": 97, "getrusage": 98, "sysinfo": 99, "times": 100, "utime": 132, "mknod": 133, "statfs": 137,
        "pivot_root": 155, "chroot": 161, "mount": 165, "setxattr": 188, "lsetxattr": 189, "getxattr": 191,
        "lgetxattr": 192, "listxattr": 194, "llistxattr": 195, "removexattr": 197, "lremovexattr": 198, "time": 201,
        "getdents64": 217, "futex": 202, "sched_setaffinity": 203, "sched_getaffinity": 204, "timer_settime": 223,
        "clock_gettime": 228, "clock_nanosleep": 230, "exit_group": 231, "epoll_wait": 232, "utimes": 235,
        "mq_open": 240, "waitid": 247, "inotify_add_watch": 254, "openat": 257, "mkdirat": 258, "mknodat": 259,
        "fchownat": 260, "futimesat": 261, "newfstatat": 262, "unlinkat": 263, "renameat": 264, "linkat": 265,
        "symlinkat": 266, "readlinkat": 267, "fchmodat": 268, "faccessat": 269, "pselect6": 270, "ppoll": 271,
        "unshare": 272, "utimensat": 280, "epoll_pwait": 281, "accept4": 288, "prlimit64": 302,
        "name_to_handle_at": 303, "open_by_handle_at": 304, "setns": 308, "getcpu": 309, "renameat2": 316,
        "seccomp": 317, "getrandom": 318, "execveat": 322, "statx": 332, "io_uring_setup": 425, "open_tree": 428,
        "move_mount": 429, "clone3": 435, "openat2": 437, "pidfd_getfd": 438, "faccessat2": 439, "epoll_pwait2": 441,
        "fchmodat2": 452,
    }),
    "aarch64": Architecture(0xC00000B7, {
        "setxattr": 5, "lsetxattr": 6, "getxattr": 8, "lgetxattr": 9, "listxattr": 11, "llistxattr": 12,
        "removexattr": 14, "lremovexattr": 15, "epoll_pwait": 22, "inotify_add_watch": 27, "mknodat": 33, "mkdirat": 34,
        "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38, "mount": 40, "pivot_root": 41, "statfs": 43,
        "truncate": 45, "faccessat": 48, "chdir": 49, "chroot": 51, "fchmodat": 53, "fchownat": 54, "openat": 56,
        "getdents64": 61, "read": 63, "pselect6": 72, "ppoll": 73, "readlinkat": 78, "newfstatat": 79, "utimensat": 88,
        "exit_group": 94, "waitid": 95, "unshare": 97, "futex": 98, "nanosleep": 101, "setitimer": 103,
        "timer_settime": 110, "clock_gettime": 113, "clock_nanosleep": 115, "sched_setaffinity": 122,
        "sched_getaffinity": 123, "times": 153, "getrlimit": 163, "getrusage": 165, "getcpu": 168, "gettimeofday": 169,
        "sysinfo": 179, "mq_open": 180, "msgget": 186, "semget": 190, "shmget": 194, "socket": 198, "bind": 200,
        "accept": 202, "connect": 203, "recvfrom": 207, "recvmsg": 212, "clone": 220, "execve": 221, "accept4": 242,
        "wait4": 260, "prlimit64": 261, "name_to_handle_at": 264, "open_by_handle_at": 265, "setns": 268,
        "renameat2": 276, "seccomp": 277, "getrandom": 278, "execveat": 281, "statx": 291, "io_uring_setup": 425,
        "open_tree": 428, "move_mount": 429, "clone3": 435, "openat2": 437, "pidfd_getfd": 438, "faccessat2": 439,
        "epoll_pwait2": 441, "fchmodat2": 452,
    }),
}
# fmt: on


def architecture() -> Architecture | None:
    """Return the table of this machine; None if its architecture has no table."""
    return ARCHITECTURES.get(os.uname().machine)
