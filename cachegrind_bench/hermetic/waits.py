"""Waits of a program whose clock is pinned: they end when nothing else can happen, and its time moves on by what they took.

A wait with a time-out is held here, at its system call. When all threads of the run wait, the one that ends first comes
next, as in a simulation of events; what has happened meanwhile (a futex that changed, a pipe with data in it) comes
before any time-out. Three things keep that safe: a thread that works on for long does not keep another from its
time-out for ever; where a thread waits for the world outside of the run, waits last as long as they say; and whatever
is not understood is left to the kernel. Runs inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from cachegrind_bench.hermetic.clock import MONOTONIC, REALTIME, PinnedTime
from cachegrind_bench.hermetic.process_memory import Threads, peek

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.images import Process

# Where the time-out is: the number of its argument.
_PLACES = {
    0: "nanosleep",
    2: "clock_nanosleep poll ppoll",
    3: "futex epoll_wait epoll_pwait epoll_pwait2",
    4: "select pselect6",
}
TIMEOUTS = {name: place for place, names in _PLACES.items() for name in names.split()}
# These send signals by the real time: a program that uses them waits in real time.
TIMERS = ("alarm", "setitimer", "timer_settime")
FUTEX_COMMAND, FUTEX_WAIT, FUTEX_WAIT_BITSET = 0x7F, 0, 9
_FUTEX_CLOCK_REALTIME, _TIMER_ABSTIME = 256, 1
_IN_MILLISECONDS = ("poll", "epoll_wait", "epoll_pwait")
_MASKS = {"ppoll": 3, "epoll_pwait": 4, "epoll_pwait2": 4}  # where the signals are that may interrupt it
_SECOND_NS = 1_000_000_000
_ID_VALID = 0x40082102
_MOST_FILES = 64
# While others work: how long an event is held back for the sake of order, and how much longer than it says a wait may
# last. In CPU time of the run, so that the machine's load makes no difference. Under the seal's scheduling a thread that
# is ready has to wait for the one that works, too; so most patience is due until a thread has been found that works
# without end, as it may spin for another one.
_PATIENCE_S = 60.0
_LONGEST_HELD_BACK_S, _LONGEST_BUSY_S, _BUSY_TIMES = 1.0, 2.0, 20
_REAL_TIMES = 10  # and if hardly any of this time is theirs
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.0003, 0.004


class _Wait:
    """One call that is held. `due` is in the time of its process; `word` is a futex's address and what it is to hold."""

    def __init__(self, ident: int, thread: int, name: str, args: list[int], process: Process) -> None:
        self.ident, self.thread, self.name, self.args, self.process = ident, thread, name, args, process
        self.due, self.left_s = 0, 0.0
        self.since, self.since_cpu = time.monotonic(), 0.0
        self.happened: float | None = None
        self.word: tuple[int, bytes] | None = None
        self.files: list[tuple[int, int]] = []  # descriptors of ours, and what is awaited of them
        self.outside = False
        self.mask: int | None = None


class Waits:
    """All waits of one run that are held."""

    def __init__(
        self,
        listener: int,
        pinned: PinnedTime,
        *,
        numbers: dict[int, str],
        poke: Callable[[int, int, int, bytes], None],
        send: Callable[..., None],
    ) -> None:
        self._listener, self._pinned, self._poke, self._send = listener, pinned, poke, send
        self._held: list[_Wait] = []
        self._threads = Threads(numbers)
        self._alarmed: set[Process] = set()
        self._pause_s = _SHORTEST_PAUSE_S
        self._patience_s = _PATIENCE_S

    def __bool__(self) -> bool:
        return bool(self._held)

    # Taking a wait

    def hold(self, ident: int, thread: int, name: str, args: list[int], process: Process) -> bool:
        """Hold this wait; False if it is the kernel's matter. OSError, too."""
        left = self._left(thread, name, args, process)
        if left is None:
            return False
        wait = _Wait(ident, thread, name, args, process)
        if name == "futex":
            wait.word = (args[0], struct.pack("=I", args[2] & 0xFFFFFFFF))
        elif name not in ("nanosleep", "clock_nanosleep") and not self._watch(wait):
            return False
        wait.left_s, wait.since_cpu = left / _SECOND_NS, self._threads.cpu_s()
        wait.due = self._passed(process) + left
        self._held.append(wait)
        self._pause_s = _SHORTEST_PAUSE_S
        return True

    def note_timer(self, name: str, thread: int, args: list[int], process: Process) -> None:
        """Note that a process sets a timer, or stops its only one."""
        if name == "setitimer" and args[0] & 0xFFFFFFFF:
            return  # it goes by CPU time
        if name == "timer_settime":
            stopped = False  # it may have others
        else:
            stopped = not args[0] if name == "alarm" else not any(peek(thread, args[1] + 16, 16))
        (self._alarmed.discard if stopped else self._alarmed.add)(process)

    def _passed(self, process: Process) -> int:
        return self._pinned.passed(process)

    def _left(self, thread: int, name: str, args: list[int], process: Process) -> int | None:
        """Return how long a wait is to last, None if it does not wait or is of no kind that is known."""
        value = args[TIMEOUTS[name]]
        if name in _IN_MILLISECONDS:
            value &= 0xFFFFFFFF
            return value * 1_000_000 if 0 < value < 1 << 31 else None
        if not value:
            return None
        seconds, fraction = struct.unpack("=qq", peek(thread, value, 16))
        found: int = seconds * _SECOND_NS + (fraction * 1000 if name == "select" else fraction)
        if seconds < 0 or not 0 <= fraction < _SECOND_NS:
            return None
        command = args[1] & FUTEX_COMMAND
        if name == "futex" and command == FUTEX_WAIT_BITSET:
            clock = REALTIME if args[1] & _FUTEX_CLOCK_REALTIME else MONOTONIC
        elif name == "clock_nanosleep" and args[1] & _TIMER_ABSTIME:
            clock = args[0] & 0xFFFFFFFF
        else:
            # A thread that only lets others run, until one of them has done something, sees the time go on.
            process.ticks += not found
            return found or None
        now = self._pinned.now(process, clock)
        return None if now is None or clock in (2, 3) else max(0, found - now)

    def _watch(self, wait: _Wait) -> bool:
        """Note the files that a wait is for; False where they cannot be watched from here."""
        args, thread = wait.args, wait.thread
        place = _MASKS.get(wait.name)
        if place is not None and args[place]:
            (wait.mask,) = struct.unpack("=Q", peek(thread, args[place], 8))
        if wait.name == "pselect6" and args[5]:
            (address,) = struct.unpack("=Q", peek(thread, args[5], 8))
            if address:
                (wait.mask,) = struct.unpack("=Q", peek(thread, address, 8))
        awaited = _awaited(wait)
        if len(awaited) > _MOST_FILES:
            return False
        try:
            for number, events in awaited:
                wait.files.append((self._threads.copy_file(thread, number), events))
                wait.outside = wait.outside or self._threads.is_outside(thread, number)
        except OSError:
            self._close(wait)
            return False
        return True

    # Ending it

    def end_due(self) -> None:
        """End the waits whose time has passed by the readings of their own process.

        For when a call of the program has come in: its caller stands still, so nothing depends on how far it has got.
        """
        for wait in [wait for wait in self._held if wait.due <= self._passed(wait.process)]:
            if self._is_valid(wait):
                self._time_out(wait)
            else:
                self._drop(wait)

    def settle(self) -> float:
        """End what is to end now, and return after how many seconds to look again (unless there is a call before)."""
        for wait in tuple(self._held):
            if not self._is_valid(wait):
                self._drop(wait)
        if not self._held:
            return 0.0
        ended = self._end_next()
        self._pause_s = _SHORTEST_PAUSE_S if ended else min(self._pause_s * 1.5, _LONGEST_PAUSE_S)
        return 0.0 if ended else self._pause_s

    def _end_next(self) -> bool:
        """End one wait, if nothing else is going on or it has lasted for too long."""
        now, cpu = time.monotonic(), self._threads.cpu_s()
        happened = [wait for wait in self._held if self._has_happened(wait, cpu)]
        interrupted = [wait for wait in self._held if self._threads.has_signal(wait.thread, wait.mask)]
        if interrupted:
            self._interrupt(interrupted[0])
            return True
        state = self._threads.state({wait.thread for wait in self._held})
        if select.select([self._listener], [], [], 0)[0]:
            return False  # a thread that seems to sleep waits for an answer of ours
        if happened:
            patience = max(_LONGEST_HELD_BACK_S, self._patience_s)
            late = cpu - min(wait.happened or 0.0 for wait in happened) > patience
            if late:
                self._patience_s = 0.0
            if late or state != Threads.BUSY:
                self._wake(happened[0])
                return True
            return False
        first = min(self._held, key=lambda wait: wait.due - self._passed(wait.process))
        timed = any(wait.outside for wait in self._held) or any(not process.ended for process in self._alarmed)
        if state == Threads.ASLEEP and not timed:
            self._pinned.waited_ns += max(0, first.due - self._passed(first.process))
            self._time_out(first)
            return True
        for wait in self._held:
            if self._lasts_too_long(wait, cpu, now) if state == Threads.BUSY else now - wait.since >= wait.left_s:
                self._pinned.waited_ns += max(0, wait.due - self._passed(wait.process))
                self._time_out(wait)
                return True
        return False

    def _lasts_too_long(self, wait: _Wait, cpu: float, now: float) -> bool:
        """Return whether a wait is to end although others work: they have worked for long, or none comes to the CPU."""
        worked, longest = cpu - wait.since_cpu, max(_LONGEST_BUSY_S, wait.left_s * _BUSY_TIMES)
        if worked >= max(longest, self._patience_s):
            self._patience_s = 0.0
            return True
        return worked < longest and now - wait.since >= longest * _REAL_TIMES

    def _has_happened(self, wait: _Wait, cpu: float) -> bool:
        """Return whether there is what a wait is for, and note since when that is known."""
        if wait.happened is None:
            if wait.word is not None:
                address, value = wait.word
                try:
                    there = peek(wait.thread, address, 4) != value
                except OSError:
                    there = True  # the kernel would say so
            else:
                poller = select.poll()
                for descriptor, events in wait.files:
                    poller.register(descriptor, events)
                there = bool(wait.files) and bool(poller.poll(0))
            wait.happened = cpu if there else None
        return wait.happened is not None

    def _time_out(self, wait: _Wait) -> None:
        self._drop(wait)
        if wait.name == "futex":
            happened = self._has_happened(wait, 0.0)
            self._send(wait.ident, error=errno.EAGAIN if happened else errno.ETIMEDOUT)
            return
        with suppress(OSError, struct.error):
            for address, data in _emptied(wait):
                self._poke(wait.ident, wait.thread, address, data)
        self._send(wait.ident)

    def _wake(self, wait: _Wait) -> None:
        """Have a wait end since there is what it is for: a futex by saying that it changed, any other by the kernel's looking."""
        self._drop(wait)
        if wait.word is not None:
            self._send(wait.ident, error=errno.EAGAIN)
        else:
            self._send(wait.ident, go_on=True)

    def _interrupt(self, wait: _Wait) -> None:
        """Let a signal in: calls with a time to wait until would end in the kernel, whose clocks are ahead of ours."""
        self._drop(wait)
        until = wait.word is not None or (wait.name == "clock_nanosleep" and bool(wait.args[1] & _TIMER_ABSTIME))
        self._send(wait.ident, error=errno.EINTR if until else 0, go_on=not until)

    def _is_valid(self, wait: _Wait) -> bool:
        try:
            fcntl.ioctl(self._listener, _ID_VALID, struct.pack("=Q", wait.ident))
        except OSError as error:
            return error.errno != errno.ENOENT  # not if this call was interrupted
        return True

    def _drop(self, wait: _Wait) -> None:
        self._held.remove(wait)
        self._close(wait)

    def _close(self, wait: _Wait) -> None:
        for descriptor, _events in wait.files:
            os.close(descriptor)
        wait.files.clear()


def _awaited(wait: _Wait) -> list[tuple[int, int]]:
    args, thread = wait.args, wait.thread
    if wait.name.startswith("epoll"):
        return [(args[0] & 0xFFFFFFFF, select.POLLIN)]
    if wait.name in ("poll", "ppoll"):
        count = args[1] & 0xFFFFFFFF
        if count > _MOST_FILES:
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
        entries = struct.iter_unpack("=ihh", peek(thread, args[0], 8 * count)) if count else ()
        return [(number, events) for number, events, _ in entries if number >= 0]
    found: list[tuple[int, int]] = []
    for address, events in zip(args[1:4], (select.POLLIN, select.POLLOUT, select.POLLPRI), strict=True):
        bits = int.from_bytes(peek(thread, address, _set_bytes(args[0])), "little") if address else 0
        found += [(number, events) for number in range(args[0] & 0xFFFFFFFF) if bits >> number & 1]
    return found


def _set_bytes(count: int) -> int:
    return min((count & 0xFFFFFFFF) + 63, 1 << 16) // 64 * 8


def _emptied(wait: _Wait) -> list[tuple[int, bytes]]:
    """Return what the kernel leaves behind when a wait has timed out: nothing is ready, and no time is left."""
    args = wait.args
    if wait.name in ("select", "pselect6"):
        sets = [(address, bytes(_set_bytes(args[0]))) for address in args[1:4] if address]
        return [*sets, (args[4], bytes(16))]
    if wait.name in ("poll", "ppoll"):
        entries = [(args[0] + 8 * index + 6, bytes(2)) for index in range(args[1] & 0xFFFFFFFF)]
        return [*entries, (args[2], bytes(16))] if wait.name == "ppoll" else entries
    return []
