"""The system calls that read or change files, and where their arguments are.

Knows calls; must not know what is noted of them. Runs inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

from cachegrind_bench.hermetic.notes import FILE, LINK, LOOK

# What is asked, and where the arguments are: folder (None: always the working directory), path, and flags if any.
READS: dict[str, tuple[str, int | None, int, int | None]] = {
    "stat": (LOOK, None, 0, None),
    "lstat": (LINK, None, 0, None),
    "newfstatat": (LOOK, 0, 1, 3),
    "statx": (LOOK, 0, 1, 2),
    "access": (LOOK, None, 0, None),
    "faccessat": (LOOK, 0, 1, None),
    "faccessat2": (LOOK, 0, 1, 3),
    "readlink": (LINK, None, 0, None),
    "readlinkat": (LINK, 0, 1, None),
    "chdir": (LOOK, None, 0, None),
    "statfs": (LOOK, None, 0, None),
    "getxattr": (LOOK, None, 0, None),
    "lgetxattr": (LINK, None, 0, None),
    "listxattr": (LOOK, None, 0, None),
    "llistxattr": (LINK, None, 0, None),
    # These change a file, or watch it, and tell by their success whether it is there.
    "utime": (LOOK, None, 0, None),
    "utimes": (LOOK, None, 0, None),
    "futimesat": (LOOK, 0, 1, None),
    "utimensat": (LOOK, 0, 1, 3),
    "chmod": (LOOK, None, 0, None),
    "fchmodat": (LOOK, 0, 1, None),
    "fchmodat2": (LOOK, 0, 1, 3),
    "chown": (LOOK, None, 0, None),
    "lchown": (LINK, None, 0, None),
    "fchownat": (LOOK, 0, 1, 4),
    "setxattr": (LOOK, None, 0, None),
    "lsetxattr": (LINK, None, 0, None),
    "removexattr": (LOOK, None, 0, None),
    "lremovexattr": (LINK, None, 0, None),
    "inotify_add_watch": (LOOK, None, 1, None),
    "name_to_handle_at": (LINK, 0, 1, None),
    "execve": (FILE, None, 0, None),
    "execveat": (FILE, 0, 1, None),
}
OPENS = {"open": (None, 0, 1), "openat": (0, 1, 2), "openat2": (0, 1, 2), "creat": (None, 0, 1)}
MAKES = {"mkdir": (None, 0), "mkdirat": (0, 1), "mknod": (None, 0), "mknodat": (0, 1)}
REMOVES = {"unlink": (None, 0), "rmdir": (None, 0), "unlinkat": (0, 1)}
LINKS = {"symlink": (None, 1), "symlinkat": (1, 2)}
MOVES = {
    "rename": (None, 0, None, 1),
    "renameat": (0, 1, 2, 3),
    "renameat2": (0, 1, 2, 3),
    "link": (None, 0, None, 1),
    "linkat": (0, 1, 2, 3),
}
UNKNOWABLE = {
    "io_uring_setup": "it reads files in a way that cannot be followed (io_uring)",
    "open_by_handle_at": "it opens files by handle",
    "pidfd_getfd": "it takes files from another process",
    "chroot": "it changes its root folder",
    "pivot_root": "it changes its root folder",
    "mount": "it mounts",
    "move_mount": "it mounts",
    "open_tree": "it mounts",
    "setns": "it enters another namespace",
    "msgget": "it uses message queues",
    "mq_open": "it uses message queues",
}
SHARED = ("clone", "clone3", "open", "openat", "execve", "execveat")  # others want to know of these, too
CALLS = tuple(
    {**READS, **OPENS, **MAKES, **REMOVES, **LINKS, **MOVES, **UNKNOWABLE}
    | dict.fromkeys(("clone", "clone3", "truncate", "socket", "connect", "bind", "shmget", "semget", "unshare"))
)
