"""Decides who runs next: the program under SCHED_FIFO on its one CPU, and the launcher above it.

Then a thread or process of the program runs until it waits, whatever else the machine does. Because others could starve
next to it, such a run has a CPU to itself, and others wait for it or use another CPU. After ten minutes they share; a run that
meets another one on its CPU gives its priority up, and so does one that starves itself. Runs inside the launcher: only the
standard library, and little of it.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

from cachegrind_bench.hermetic.execution import NOT_ASKED, SHARED, STARVED
from cachegrind_bench.hermetic.process_memory import descendants_of, fields_of_stat, parent_of

# The lowest there are: above every ordinary process, and below whatever else on the machine is real-time.
_PROGRAM_PRIORITY, _LAUNCHER_PRIORITY = 1, 2
_REAL_TIME = (os.SCHED_FIFO, os.SCHED_RR)
_THROTTLE = "/proc/sys/kernel/sched_rt_runtime_us"
_NAME = "\0cg-bench/{cpu}/{number}"
_ALONE = 0  # the number of a run that has a CPU to itself
_RUNS = 64  # launchers on one CPU that can know of each other
_WAIT_S = 600.0  # waiting costs nothing in all, as the CPU is busy meanwhile, and who shares one has counts that vary
_LOOK_S, _LOOKS = 5.0, 12
_ROUNDS = 100
_NO_RIGHT = "no right to real-time scheduling"


class Scheduling:
    """The launcher's own priority, and its claim on a `cpu`. `why` says why the program is scheduled as any other."""

    def __init__(self, cpu: int | None, *, wanted: bool, patient: bool = True) -> None:
        """Take our own priority, and claim this CPU or another one. What we fork has that priority, too, until it lowers it."""
        self.claim: socket.socket | None = None
        self.cpu = cpu
        refusal = "the program may use any CPU" if cpu is None else _refusal() if wanted else NOT_ASKED
        shared = cpu is not None and not self._claim(cpu, alone=refusal is None, patient=patient)
        self.why: str | None = refusal or (SHARED if shared else None)
        self._waiting: dict[int, tuple[object, int]] = {}
        self._next_look = 0.0
        self.pinned = self.why is None
        self._raised = refusal is None
        if not self.pinned:
            self.lower()

    def _claim(self, cpu: int, *, alone: bool, patient: bool) -> bool:
        """Be known as a run on this CPU, or another one if that is free; return False if a run that wants to be alone has none of its own.

        Names of sockets need neither files nor rights, and end with us. To wait costs none of the program's time.
        """
        cpus = [cpu, *sorted(os.sched_getaffinity(0) - {cpu}, reverse=True)]
        end = time.monotonic() + _WAIT_S
        take = self._take_alone if alone else self._share
        while not any(map(take, cpus)):
            if not patient or _inside_another_run():  # that one has claimed the CPU for us, too
                return False
            if time.monotonic() >= end or select.select([0], [], [], 0.02)[0]:
                self.claim = self.claim or _bound(_names(cpu))
                if self.claim is not None:
                    own = self.claim.getsockname().decode()
                    for name in _names(self.cpu or 0):
                        if name != own:
                            _tell(self.claim, name)
                return False
        return True

    def _share(self, cpu: int) -> bool:
        """Claim this CPU together with others, unless a run has it to itself, or waits for that."""
        claim = _bound(_names_of_others(cpu))
        if claim is None or not _is_free(_name(cpu, _ALONE)):
            return False
        self.claim, self.cpu = claim, cpu
        return True

    def _take_alone(self, cpu: int) -> bool:
        """Claim this CPU for this run alone. Where others are, keep further ones away, and wait."""
        claim = self.claim if self.claim is not None and self.cpu == cpu else _bound([_name(cpu, _ALONE)])
        if claim is None:
            return False
        met = any(_tell(claim, name) for name in _names_of_others(cpu))
        if self.claim is None or not met:
            self.claim, self.cpu = claim, cpu
        return not met

    def lower(self) -> None:
        """Give our priority up, for what may have to wait in the kernel for a process of the program.

        To reap a process, or to look up one that is gone, the kernel takes its directory out of /proc, and tries again and again
        while another thread is at that. If we had preempted that thread, for ever: it is the program's, and below us.
        """
        if self._raised:
            self._raised = False
            _set(0, os.SCHED_OTHER, 0)

    def rise(self) -> None:
        """Take our priority again, so that the program is answered at once and can always be stopped."""
        if self.pinned and not self._raised:
            self._raised = True
            _set(0, os.SCHED_FIFO, _LAUNCHER_PRIORITY)

    @contextmanager
    def lowered(self) -> Generator[None]:
        """Give our priority up for this block."""
        self.lower()
        try:
            yield
        finally:
            self.rise()

    def end(self) -> None:
        """Give our priority up for good: the program is about to be killed."""
        self.lower()
        self.pinned = False

    def meet(self) -> None:
        """Share the CPU: another run has come to it."""
        if self.claim is not None:
            with suppress(OSError):
                self.claim.recv(16)
            if self.pinned:
                self._give_up(SHARED, os.SCHED_OTHER)

    def look(self) -> None:
        """Let all take turns where one has been ready to run for a long time, and has not run: others may spin for it.

        Valgrind's threads do hand over to each other, but only to those that have asked for it; none of them yields.
        """
        now = time.monotonic()
        if not self.pinned or self.why is not None or now < self._next_look:
            return
        self._next_look = now + _LOOK_S
        self.lower()
        waiting: dict[int, tuple[object, int]] = {}
        for thread in _threads():
            mark = _standing(thread)
            if mark is not None:
                before, looks = self._waiting.get(thread, (None, 0))
                waiting[thread] = mark, looks + 1 if mark == before else 0
        self._waiting = waiting
        if any(looks >= _LOOKS for _mark, looks in waiting.values()):
            self._give_up(STARVED, os.SCHED_RR)
        self.rise()

    def _give_up(self, why: str, policy: int) -> None:
        self.why = self.why or why
        self.lower()
        self.pinned = policy == os.SCHED_RR
        for _round in range(_ROUNDS):  # until none is left that was started meanwhile
            found = False
            for thread in _threads():
                with suppress(OSError):  # it has ended
                    if _policy(thread) not in (os.SCHED_OTHER, policy):
                        _set(thread, policy, _PROGRAM_PRIORITY if self.pinned else 0)
                        found = True
            if not found:
                break
        self.rise()


def become_program(*, pinned: bool) -> None:
    """Lower this process, which the launcher has forked, to what the program is to have. OSError where refused."""
    if pinned:
        _set(0, os.SCHED_FIFO, _PROGRAM_PRIORITY)
    elif _policy(0) in _REAL_TIME:
        _set(0, os.SCHED_OTHER, 0)


def _refusal() -> str | None:
    if _policy(0) in _REAL_TIME:
        return "cg-bench itself was started under real-time scheduling"
    try:
        with open(_THROTTLE, "rb") as file:
            if int(file.read()) < 0:
                return "kernel.sched_rt_runtime_us is -1: a program that never waits would stop the whole CPU"
        _set(0, os.SCHED_FIFO, _LAUNCHER_PRIORITY)
    except PermissionError:
        return _NO_RIGHT
    except (OSError, ValueError) as error:
        return str(error)
    return None


def _set(thread: int, policy: int, priority: int) -> None:
    os.sched_setscheduler(thread, policy, os.sched_param(priority))


def _policy(thread: int) -> int:
    return os.sched_getscheduler(thread) & ~os.SCHED_RESET_ON_FORK


def _name(cpu: int, number: int) -> str:
    return _NAME.format(cpu=cpu, number=number)


def _names(cpu: int) -> list[str]:
    return [_name(cpu, number) for number in range(_RUNS)]


def _names_of_others(cpu: int) -> list[str]:
    """Return the names of those who share this CPU."""
    return [_name(cpu, number) for number in range(_RUNS) if number != _ALONE]


def _bound(names: Sequence[str]) -> socket.socket | None:
    """Return a socket of the first of these names that is free."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    for name in names:
        with suppress(OSError):
            claim.bind(name)
            return claim
    claim.close()
    return None


def _is_free(name: str) -> bool:
    claim = _bound([name])
    if claim is not None:
        claim.close()
    return claim is not None


def _tell(claim: socket.socket, name: str) -> bool:
    """Announce ourselves to the run of this name; return whether there is one."""
    try:
        claim.sendto(b".", name)
    except OSError as error:
        return isinstance(error, BlockingIOError)  # it knows already
    return True


def _inside_another_run() -> bool:
    pid = os.getppid()
    with suppress(OSError):
        while (pid := parent_of(pid)) > 1:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"cachegrind_bench.hermetic.launcher" in file.read():
                    return True
    return False


def _threads() -> list[int]:
    found: list[int] = []
    for pid in descendants_of(os.getpid()):
        with suppress(OSError):
            found += map(int, os.listdir(f"/proc/{pid}/task"))
    return found


def _standing(thread: int) -> object:
    """Return how long this thread has run so far, if it is ready to; None if it waits for something."""
    try:
        fields = fields_of_stat(thread)
        with open(f"/proc/{thread}/schedstat", "rb") as file:
            ran, _waited, turns = file.read().split()
    except (OSError, ValueError):
        return None
    return (ran, turns) if fields[0] == b"R" else None
