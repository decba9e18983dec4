"""Reads the supervised program's memory, and in /proc what its processes are and its threads do.

Whether one works, all wait for each other, or one waits for the world outside. Knows Linux; must not know what follows from
it. Runs inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from contextlib import suppress

from cachegrind_bench.hermetic.kernel import descriptor_of

_THREADS, _STARTED = 17, 19  # places of num_threads and starttime (fields 20 and 22) behind the name in /proc/PID/stat


def executing(thread: int) -> str:
    """Return the base name of the file that a process executes."""
    return os.path.basename(os.readlink(f"/proc/{thread}/exe"))


def path_of(thread: int, link: str) -> bytes:
    """Return where a link in /proc/PID leads, as this process sees it.

    If we are in a chroot and it is in a mount namespace of its own, the kernel tells us the path from outside of the chroot.
    """
    root, path = (os.readlink(f"/proc/{thread}/{name}".encode()) for name in ("root", link))
    return path.removeprefix(root) if path.startswith(root.rstrip(b"/") + b"/") and root != b"/" else path


def peek(thread: int, address: int, length: int) -> bytes:
    """Read up to `length` bytes of a process' memory; fewer where its mapping ends. OSError where nothing is."""
    if address >= 1 << 63:  # not the program's half, and more than an offset holds
        raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
    memory = os.open(f"/proc/{thread}/mem", os.O_RDONLY)
    try:
        return os.pread(memory, length, address)
    finally:
        os.close(memory)


def peek_string(thread: int, address: int) -> bytes:
    """Read a string, page by page as its end may be that of the mapping."""
    text = b""
    while len(text) < 1 << 16:
        length = 4096 - (address + len(text)) % 4096
        part, nul, _ = peek(thread, address + len(text), length).partition(b"\0")
        text += part
        if nul or not part:
            break
    return text


def strings(thread: int, address: int) -> list[str]:
    """Read a list of strings, such as the arguments of an exec."""
    found: list[str] = []
    while (pointer := struct.unpack("=Q", peek(thread, address, 8))[0]) != 0:
        found.append(os.fsdecode(peek_string(thread, pointer)))
        address += 8
    return found


def program_of(arguments: list[str]) -> list[str]:
    """Return the program and its arguments in the argument list of Valgrind: from the first that is not an option."""
    for index, argument in enumerate(arguments):
        if index and not argument.startswith("-"):
            return arguments[index:]
    return []


def text_of(command: list[str]) -> str:
    """Return the program of a command as text."""
    return os.fsencode(command[0]).decode("utf-8", "backslashreplace") if command else ""


def _status_field(pid: int, name: bytes) -> int:
    with open(f"/proc/{pid}/status", "rb") as file:
        return next((int(line.split()[1]) for line in file if line.startswith(name)), 0)


def fields_of_stat(thread: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat behind the name. OSError if it has gone."""
    with open(f"/proc/{thread}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def group_of(thread: int) -> int:
    """Return the process that a thread belongs to."""
    return _status_field(thread, b"Tgid:")


def parent_of(pid: int) -> int:
    """Return the parent's id, 0 if the process has gone."""
    try:
        return _status_field(pid, b"PPid:")
    except OSError:
        return 0


def peak_memory_kb(pid: int) -> int:
    """Return the most memory that a process has had in use."""
    return _status_field(pid, b"VmHWM:")


def started(pid: int) -> str:
    """Return when a process started, in the kernel's words; empty if it has gone."""
    try:
        return fields_of_stat(pid)[_STARTED].decode()
    except (OSError, IndexError):
        return ""


def children_of(pid: int) -> list[int]:
    """Return the living children in the order of their birth (empty on kernels that do not list them)."""
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def descendants_of(pid: int) -> list[int]:
    """Return all living descendants, by one walk over /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = fields_of_stat(int(name))
                state, parent, threads = fields[0], fields[1], int(fields[_THREADS])
            except (OSError, ValueError, IndexError):
                continue
            # A process is a zombie, too, while threads outlive its first one (`pthread_exit` in `main`).
            if state != b"Z" or threads > 1:
                children.setdefault(int(parent), []).append(int(name))
    found: list[int] = []
    level = children.get(pid, [])
    while level:
        found += level
        level = [grandchild for child in level for grandchild in children.get(child, [])]
    return found


# Files that only processes of the run change: the other end of a pipe is in it, but for stdin's and stdout's.
_INSIDE = ("pipe:", "anon_inode:[eventfd]", "anon_inode:[pidfd]")
_OF_OTHERS = ("futex", "wait4", "waitid")  # what these wait for is done by a process of the run
_READS = ("read", "recvfrom", "recvmsg", "accept", "accept4")
_DEEPEST = 3
_SCHED = 2  # linux/include/linux/posix-timers.h: the clock of a process in nanoseconds


class Threads:
    """Looks at all threads of the processes that descend from this one. `numbers` are those of system calls."""

    BUSY, ASLEEP, OUTSIDE = "busy", "asleep", "outside"

    def __init__(self, numbers: dict[int, str]) -> None:
        self._numbers = numbers

    def state(self, held: set[int]) -> str:
        """Return what all threads but those that are `held` are doing."""
        before = self._sleeping(held)
        if before is None:
            return self.BUSY
        outside = False
        for thread, _switches in before:
            waiting = self._waits_outside(thread)
            if waiting is None:
                return self.BUSY
            outside = outside or waiting
        # None ran in between: so they all slept at one time.
        if self._sleeping(held) != before:
            return self.BUSY
        return self.OUTSIDE if outside else self.ASLEEP

    def _sleeping(self, held: set[int]) -> list[tuple[int, bytes]] | None:
        """Return every thread, and how often it was given the CPU; None if one is not asleep."""
        found: list[tuple[int, bytes]] = []
        for pid in _processes():
            try:
                tasks = sorted(map(int, os.listdir(f"/proc/{pid}/task")))
            except OSError:
                return None  # it ends just now
            for task in tasks:
                if task in held:
                    continue
                fields = _status(task)
                state = fields.get(b"State", b"Z")[:1]
                if state not in b"SZX":
                    return None
                if state == b"S":
                    found.append((task, fields[b"voluntary_ctxt_switches"] + fields[b"nonvoluntary_ctxt_switches"]))
        return found

    def _waits_outside(self, thread: int) -> bool | None:
        """Return whether a sleeping thread may wait for something outside of the run; None if it does not sleep."""
        try:
            with open(f"/proc/{thread}/syscall", "rb") as file:
                words = file.read().split()
            number, *args = (int(word, 0) for word in words[:7])
            name = self._numbers.get(number, "")
            if name in _OF_OTHERS:
                return False
            if name in _READS or name.startswith("epoll"):
                return self.is_outside(thread, args[0])
            if name == "poll" and args[1] < 1 << 10:
                entries = struct.iter_unpack("=ihh", peek(thread, args[0], 8 * args[1]))
                return any(self.is_outside(thread, file) for file, _, _ in entries if file >= 0)
        except (OSError, ValueError, struct.error):
            return None
        return True

    def is_outside(self, thread: int, number: int, depth: int = 0) -> bool:
        """Return whether others than processes of the run may have to do with this open file."""
        link = os.readlink(f"/proc/{thread}/fd/{number}")
        if link.startswith(_INSIDE):
            return False
        if link == "anon_inode:[eventpoll]" and depth < _DEEPEST:
            with open(f"/proc/{thread}/fdinfo/{number}", "rb") as file:
                watched = [int(line.split()[1]) for line in file if line.startswith(b"tfd:")]
            return any(self.is_outside(thread, other, depth + 1) for other in watched)
        return not (link.startswith("socket:") and self._is_pair(thread, number))

    def _is_pair(self, thread: int, number: int) -> bool:
        with socket.socket(fileno=self.copy_file(thread, number)) as ours:
            return ours.family == socket.AF_UNIX and not ours.getsockname() and not ours.getpeername()

    def copy_file(self, thread: int, number: int) -> int:
        """Return a descriptor of ours for a file that a process has open."""
        return descriptor_of(group_of(thread), number)

    def cpu_s(self) -> float:
        """Return the CPU time of all living processes."""
        found = 0.0
        for pid in _processes():
            with suppress(OSError):  # it has ended just now
                found += time.clock_gettime(~pid << 3 | _SCHED)
        return found

    def has_signal(self, thread: int, mask: int | None) -> bool:
        """Return whether a signal waits for a thread, but those in `mask` (by default those that it blocks)."""
        fields = _status(thread)
        pending = int(fields.get(b"SigPnd", b"0"), 16) | int(fields.get(b"ShdPnd", b"0"), 16)
        return bool(pending and pending & ~(int(fields[b"SigBlk"], 16) if mask is None else mask))


def _status(thread: int) -> dict[bytes, bytes]:
    """Return the fields of /proc/PID/status; none if it has gone."""
    try:
        with open(f"/proc/{thread}/status", "rb") as file:
            return {name: value.strip() for name, _, value in (line.partition(b":") for line in file)}
    except OSError:
        return {}


def _processes() -> list[int]:
    found: list[int] = []
    level = children_of(os.getpid())
    if not level:  # a kernel that does not list children
        return descendants_of(os.getpid())
    while level:
        found += level
        level = [child for pid in level for child in children_of(pid)]
    return found
