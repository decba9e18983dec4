"""Which files the supervised program reads, from its system calls: each is seen while its caller waits.

Knows calls and their arguments; what to keep of a path is the matter of `trace_notes`. Runs inside the launcher: only the
standard library, and little of it.
"""

from __future__ import annotations

import errno
import os
import struct

from cachegrind_bench.hermetic.place import NOWHERE, Translation
from cachegrind_bench.hermetic.process_memory import path_of, peek, peek_string
from cachegrind_bench.hermetic.trace_notes import FILE, LINK, LOOK, Notes

# What is asked, and where the arguments are: folder (None: always the working directory), path, and flags if any. Some change
# a file, or watch it, and tell by their success whether it is there.
_ASKED: dict[tuple[str, int | None, int, int | None], str] = {
    (LOOK, None, 0, None): "stat access chdir statfs getxattr listxattr utime utimes chmod chown setxattr removexattr",
    (LINK, None, 0, None): "lstat readlink lgetxattr llistxattr lchown lsetxattr lremovexattr",
    (LOOK, 0, 1, None): "faccessat futimesat fchmodat",
    (LINK, 0, 1, None): "readlinkat name_to_handle_at",
    (LOOK, 0, 1, 2): "statx",
    (LOOK, 0, 1, 3): "newfstatat faccessat2 utimensat fchmodat2",
    (LOOK, 0, 1, 4): "fchownat",
    (LOOK, None, 1, None): "inotify_add_watch",
    (FILE, None, 0, None): "execve",
    (FILE, 0, 1, None): "execveat",
}
READS = {name: how for how, names in _ASKED.items() for name in names.split()}
OPENS = {"open": (None, 0, 1), "openat": (0, 1, 2), "openat2": (0, 1, 2), "creat": (None, 0, 1)}
MAKES = {"mkdir": (None, 0), "mkdirat": (0, 1), "mknod": (None, 0), "mknodat": (0, 1)}
REMOVES = {"unlink": (None, 0), "rmdir": (None, 0), "unlinkat": (0, 1)}
LINKS = {"symlink": (None, 1), "symlinkat": (1, 2)}
MOVES = {
    **dict.fromkeys(("rename", "link"), (None, 0, None, 1)),
    **dict.fromkeys(("renameat", "renameat2", "linkat"), (0, 1, 2, 3)),
}
UNKNOWABLE = {
    "io_uring_setup": "it reads files in a way that cannot be followed (io_uring)",
    "open_by_handle_at": "it opens files by handle",
    "pidfd_getfd": "it takes files from another process",
    "setns": "it enters another namespace",
    **dict.fromkeys(("chroot", "pivot_root"), "it changes its root folder"),
    **dict.fromkeys(("mount", "move_mount", "open_tree"), "it mounts"),
    **dict.fromkeys(("msgget", "mq_open"), "it uses message queues"),
}
SHARED = ("clone", "clone3", "open", "openat", "execve", "execveat", *MOVES)  # others want to know of these, too
CALLS = tuple(
    {**READS, **OPENS, **MAKES, **REMOVES, **LINKS, **MOVES, **UNKNOWABLE}
    | dict.fromkeys(("clone", "clone3", "truncate", "socket", "connect", "bind", "shmget", "semget", "unshare"))
)


_AT_FDCWD, _AT_SYMLINK_NOFOLLOW, _RENAME_EXCHANGE = -100, 0x100, 2
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_UNIX = 1  # AF_UNIX
_ADDRESS = 110  # bytes of struct sockaddr_un
_KIND, _DATAGRAM = 0xF, 2  # of a socket: SOCK_TYPE_MASK, SOCK_DGRAM


class Recorder:
    """Turns calls into notes."""

    def __init__(self, scratch: str, places: Translation = NOWHERE) -> None:
        """What the program sees in one of these `places` is noted by its real path."""
        self.notes = Notes(scratch, places)
        self._places = places

    def take(self, name: str, thread: int, args: list[int]) -> bool:
        """Note what this call reads or changes; return whether the call is nobody else's concern."""
        if self.notes.incomplete is None and name in CALLS:
            try:
                self._take(name, thread, args)
            except OSError as error:
                # These are the program's: no such address, or it was killed meanwhile.
                if error.errno not in (errno.EFAULT, errno.EIO, errno.ESRCH, errno.ENOENT):
                    self.notes.give_up(f"what it reads cannot be followed: {error.strerror}")
            except struct.error:  # the address is at the end of its memory, so the call will fail
                pass
        return name in CALLS and name not in SHARED

    def _take(self, name: str, thread: int, args: list[int]) -> None:
        if name in READS:
            self._read(name, thread, args)
        elif name in OPENS:
            self._open(name, thread, args)
        elif name in UNKNOWABLE:
            self.notes.give_up(UNKNOWABLE[name])
        elif name in MOVES:
            self._move(name, thread, args)
        elif name in MAKES or name in REMOVES or name in LINKS:
            path = self._path(thread, args, *{**MAKES, **REMOVES, **LINKS}[name])
            if path is not None:
                self._change_entry(path, thread, name)
        elif name == "truncate":
            path = self._path(thread, args, None, 0)
            if path is not None:
                self.notes.read(FILE, path, thread)
                self.notes.alter(path)
        else:
            self._talk(name, thread, args)

    def _read(self, name: str, thread: int, args: list[int]) -> None:
        kind, folder, place, flags = READS[name]
        path = self._path(thread, args, folder, place)
        if flags is not None and args[flags] & _AT_SYMLINK_NOFOLLOW:
            kind = LINK
        if path is None and name == "execveat":  # of a file that is open
            path = self._places.real_bytes(path_of(thread, f"fd/{_signed(args[0])}"))
        if path is not None:
            self.notes.read(kind, path, thread)

    def _open(self, name: str, thread: int, args: list[int]) -> None:
        folder, place, at = OPENS[name]
        path = self._path(thread, args, folder, place)
        if path is None:
            return
        flags = args[at]
        if name == "creat":
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        elif name == "openat2":
            flags = struct.unpack("=Q", peek(thread, flags, 8))[0]
        if flags & os.O_TMPFILE == os.O_TMPFILE:  # a file without a name
            return
        if flags & os.O_PATH:
            self.notes.read(LINK if flags & os.O_NOFOLLOW else LOOK, path, thread)
            return
        exclusive = flags & os.O_CREAT and flags & os.O_EXCL
        if exclusive or flags & os.O_NOFOLLOW:
            self.notes.read(LINK, path, thread)
        if exclusive and os.path.lexists(path):  # it will fail
            return
        if flags & os.O_TRUNC or (flags & os.O_CREAT and not os.path.exists(path)):
            self._open_anew(path, thread, flags)
        else:
            self._open_as_it_is(path, thread, flags)

    def _open_anew(self, path: bytes, thread: int, flags: int) -> None:
        if not (flags & os.O_CREAT and flags & os.O_TRUNC) or os.path.isdir(path):
            self.notes.read(LOOK, path, thread)  # it learns whether there was something
        if os.access(path if os.path.exists(path) else os.path.dirname(path), os.W_OK):
            self.notes.make(path, anew=True)
        else:
            self.notes.read(FILE, path, thread)

    def _open_as_it_is(self, path: bytes, thread: int, flags: int) -> None:
        mode = flags & os.O_ACCMODE
        if mode != os.O_WRONLY:
            self.notes.read(FILE, path, thread)
        else:  # it can learn how long the file is, as a program that appends does
            self.notes.read(LOOK, path, thread)
        if mode != os.O_RDONLY:
            self.notes.alter(path)

    def _change_entry(self, path: bytes, thread: int, name: str) -> None:
        """Note that an entry of a folder is made or removed, if that can be done."""
        self.notes.read(LINK, path, thread)
        there = os.path.lexists(path)
        if there is (name in REMOVES) and os.access(os.path.dirname(path.removesuffix(b"/.")), os.W_OK):
            if name in LINKS:  # what is read through it is not its own
                self.notes.alter(path)
            else:
                self.notes.make(path)

    def _move(self, name: str, thread: int, args: list[int]) -> None:
        places = MOVES[name]
        source, target = self._path(thread, args, *places[:2]), self._path(thread, args, *places[2:])
        if source is None or target is None:
            return
        if not self.notes.is_ours(source) and os.path.isdir(source) and not os.path.islink(source):
            self.notes.give_up(f"it moves the folder {os.fsdecode(source)}")
        elif name == "renameat2" and args[4] & _RENAME_EXCHANGE:
            self.notes.give_up(f"it exchanges {os.fsdecode(source)} for another file")
        self.notes.read(FILE, source, thread)
        self.notes.read(LINK, source, thread)
        if name.startswith("link") or (name == "renameat2" and args[4]) or os.path.isdir(target):
            self.notes.read(LINK, target, thread)  # else what is there, if anything, is replaced without a word
        if os.path.lexists(source) and os.access(os.path.dirname(target), os.W_OK):
            self.notes.make(target)
            if name.startswith("rename"):
                self.notes.make(source)

    def _talk(self, name: str, thread: int, args: list[int]) -> None:
        if name == "socket" and args[0] != _UNIX:
            self.notes.give_up("it uses the network")
        elif name == "socket" and args[1] & _KIND == _DATAGRAM:  # each message may go to another address
            self.notes.give_up("it sends messages to other processes")
        elif name in ("connect", "bind"):
            address = peek(thread, args[1], min(args[2], _ADDRESS))
            if address[:2] == struct.pack("=H", _UNIX):
                self._meet(name, address[2:], thread)
        elif name in ("shmget", "semget") and args[0]:
            self.notes.give_up("it shares memory or semaphores with other processes")
        elif name in ("clone", "clone3", "unshare"):
            flags = struct.unpack("=Q", peek(thread, args[0], 8))[0] if name == "clone3" else args[0]
            if flags & _NEW_NAMESPACES:
                self.notes.give_up("it makes namespaces of its own")

    def _meet(self, call: str, name: bytes, thread: int) -> None:
        """Give up where it connects to others, or others can connect to it."""
        path = self._places.real_bytes(name.partition(b"\0")[0])
        if not path.startswith(b"/"):
            self.notes.give_up("it talks to another process")
        elif not self.notes.is_ours(path):
            self.notes.read(LOOK, path, thread)
            if call == "bind" or os.path.exists(path):
                self.notes.give_up(f"it talks to another process through {os.fsdecode(path)}")

    def _path(self, thread: int, args: list[int], folder: int | None, place: int) -> bytes | None:
        """Return the absolute path that a call names, None if it names none.

        A slash at the end becomes `/.`, which means the same: that it must be a folder, and that a link is followed.
        """
        text = peek_string(thread, args[place])
        if not text:
            return None
        if not text.startswith(b"/"):
            start = self._places.real_bytes(start_of(thread, args, folder))
            if start.endswith(b" (deleted)") and not self.notes.is_ours(start):
                self.notes.give_up("it works in a folder that was removed")
            text = start + b"/" + text
        parts = [part for part in text.split(b"/") if part not in (b"", b".")]
        plain = self._places.real_bytes(b"/" + b"/".join(parts))
        return plain + b"/." if text.endswith((b"/", b"/.")) and parts else plain


def start_of(thread: int, args: list[int], folder: int | None) -> bytes:
    """Return where the relative paths of a call begin."""
    number = _AT_FDCWD if folder is None else _signed(args[folder])
    return path_of(thread, "cwd" if number == _AT_FDCWD else f"fd/{number}")


def _signed(value: int) -> int:
    """Read an argument as the kernel reads a descriptor: 32 bits with sign."""
    return (value & 0xFFFFFFFF ^ 0x80000000) - 0x80000000
