"""What the threads of a run are doing: whether one works, all wait for each other, or one waits for the world outside.

Knows /proc; must not know what follows from it. Runs inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from contextlib import suppress

from cachegrind_bench.hermetic.kernel import descriptor_of
from cachegrind_bench.hermetic.process_memory import children_of, descendants_of, group_of, peek

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
        """Tell whether a sleeping thread may wait for something outside of the run; None if it does not sleep."""
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
        """Tell whether others than processes of the run may have to do with this open file."""
        link = os.readlink(f"/proc/{thread}/fd/{number}")
        if link.startswith(_INSIDE):
            return False
        if link == "anon_inode:[eventpoll]" and depth < _DEEPEST:
            with open(f"/proc/{thread}/fdinfo/{number}", "rb") as file:
                watched = [int(line.split()[1]) for line in file if line.startswith(b"tfd:")]
            return any(self.is_outside(thread, other, depth + 1) for other in watched)
        return not (link.startswith("socket:") and self._is_pair(thread, number))

    def _is_pair(self, thread: int, number: int) -> bool:
        """Tell whether this is one of a pair of sockets without a name."""
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
        """Tell whether a signal waits for a thread, but those in `mask` (by default those that it blocks)."""
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
    """Return all processes of the run."""
    found: list[int] = []
    level = children_of(os.getpid())
    if not level:  # a kernel that does not list children
        return descendants_of(os.getpid())
    while level:
        found += level
        level = [child for pid in level for child in children_of(pid)]
    return found
