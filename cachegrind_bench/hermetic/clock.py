"""The pinned clocks: the time as a program reads it, all of it derived from one count of its readings.

The machine booted a second before the run began, and a process has used as much of the CPU as its own readings took.
Knows clocks; must not know how an answer reaches the program. Runs inside the launcher: only the standard library, and
little of it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.execution import Clock
    from cachegrind_bench.hermetic.images import Process

# Answered when the clock is pinned. clock_getres and adjtimex stay the kernel's: they describe it, and give no time.
CALLS = ("clock_gettime", "gettimeofday", "time", "times", "getrusage")
SINCE_BOOT_NS = 1_000_000_000  # where the clocks that count from the machine's start begin
_SECOND_NS = 1_000_000_000
HERTZ = 100  # USER_HZ, sysconf(_SC_CLK_TCK)

# linux/include/uapi/linux/time.h; the two alarms, 8 and 9, are read as their clocks.
_WALL, _SINCE_BOOT, _CPU = frozenset((0, 5, 8, 11)), frozenset((1, 4, 6, 7, 9)), frozenset((2, 3))
REALTIME, MONOTONIC = 0, 1
_CLOCK_FD = 3  # the low bits of an id that stands for a device such as /dev/ptp0
_PEAK_STEP_KB = 64 << 10
_RUSAGE_CHILDREN = (1 << 32) - 1


class Answer(NamedTuple):
    """The answer to a call: its value, and what it leaves at an address (0 for nowhere)."""

    value: int
    address: int = 0
    data: bytes = b""


class PinnedTime:
    """The clocks of all processes of one run. `waited_ns` is what they have waited for, in place of the real time.

    Valgrind's files are in the folder `out`. A hook (see Clock) is a class derived from this one.
    """

    ignores_cpu_timers = False

    def __init__(self, clock: Clock, out: str = "") -> None:
        self.clock = clock
        self.waited_ns = 0
        self.out = out

    def forked(self, process: Process) -> None:
        """Note that this process forks."""

    def boot_s(self) -> int:
        """Return when the machine booted, in seconds of the wall clock."""
        return (self.clock.epoch_ns - SINCE_BOOT_NS) // _SECOND_NS

    def now(self, process: Process, clock_id: int) -> int | None:
        """Return what a clock shows a process, in nanoseconds; None for a clock that is the kernel's matter."""
        if clock_id in _CPU or (clock_id & 1 << 31 and clock_id & 7 != _CLOCK_FD):
            return self.clock.passed_ns(process.ticks - process.born)
        passed = self.passed(process)
        if clock_id in _WALL:
            return self.clock.epoch_ns + passed
        return SINCE_BOOT_NS + passed if clock_id in _SINCE_BOOT else None

    def passed(self, process: Process) -> int:
        """Return how long the run has lasted, as this process sees it."""
        return self.clock.passed_ns(process.ticks) + self.waited_ns + process.jumped_ns

    def read(self, process: Process, clock_id: int) -> int | None:
        """Return what a clock shows at one more reading."""
        process.ticks += 1
        return self.now(process, clock_id)

    def uptime_ns(self, process: Process) -> int:
        """Return the time since the machine's start at one more reading."""
        return self.read(process, MONOTONIC) or 0

    def answer(self, name: str, args: list[int], process: Process, peak_kb: int) -> Answer | None:
        """Answer one of CALLS; `peak_kb` is the most memory that the process had. None for what is the kernel's matter."""
        found = self.read(process, args[0] & 0xFFFFFFFF if name == "clock_gettime" else REALTIME)
        if found is None:
            return None
        seconds, rest = divmod(found, _SECOND_NS)
        match name:
            case "clock_gettime":
                return Answer(0, args[1], struct.pack("=qq", seconds, rest))
            case "gettimeofday":
                return Answer(0, args[0], struct.pack("=qq", seconds, rest // 1000))
            case "time":
                return Answer(seconds, args[0], struct.pack("=q", seconds))
            case "times":
                used, up = self.now(process, 2) or 0, self.now(process, MONOTONIC) or 0
                ticks = _SECOND_NS // HERTZ
                return Answer(up // ticks, args[0], struct.pack("=4q", used // ticks, 0, 0, 0))
            case _:
                return self._usage(args, process, peak_kb)

    def _usage(self, args: list[int], process: Process, peak_kb: int) -> Answer:
        """Report the CPU time and the memory, but not faults and switches, which vary from run to run."""
        children = args[0] & 0xFFFFFFFF == _RUSAGE_CHILDREN
        seconds, rest = (0, 0) if children else divmod(self.now(process, 2) or 0, _SECOND_NS)
        # Most of the memory is Valgrind's, and some pages more or less in each run.
        peak = 0 if children else -(-peak_kb // _PEAK_STEP_KB) * _PEAK_STEP_KB
        return Answer(0, args[1], struct.pack("=18q", seconds, rest // 1000, 0, 0, peak, *[0] * 13))


def pinned_time(clock: Clock, out: str) -> PinnedTime:
    """Return the clocks of a run whose files are in `out`, by the hook of `clock` if it has one."""
    if not clock.hook:
        return PinnedTime(clock, out)
    from importlib import import_module  # few clocks have one

    module, _, name = clock.hook.partition(":")
    found: type[PinnedTime] = getattr(import_module(module), name)
    return found(clock, out)
