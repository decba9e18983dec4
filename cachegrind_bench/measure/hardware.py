"""What the CPU's own counters and the clock say of a command that is executed natively, to hold against what Valgrind counts.

None of it is exact, and none of it gets into a result.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
from collections.abc import Collection, Mapping
from contextlib import ExitStack, suppress

import msgspec

from cachegrind_bench import process
from cachegrind_bench.errors import CommandFailedError
from cachegrind_bench.hermetic.kernel import become_subreaper, check, libc
from cachegrind_bench.hermetic.process_memory import children_of
from cachegrind_bench.measure.plan import Plan, Progress
from cachegrind_bench.measure.run import surrounded

EXECUTIONS = 5
# perf_event_open(2): numbers of the system call, generic events of the hardware, bits of the attributes.
_CALLS = {"x86_64": 298, "aarch64": 241}
_HARDWARE = 0
_EVENTS = {"instructions": 1, "mispredicted branches": 5, "LL misses": 3}
_DISABLED, _INHERIT, _NO_KERNEL, _NO_HYPERVISOR, _FROM_EXEC = 1 << 0, 1 << 1, 1 << 5, 1 << 6, 1 << 12
_FLAGS = _DISABLED | _INHERIT | _NO_KERNEL | _NO_HYPERVISOR | _FROM_EXEC
_TIMES = 1 | 2  # how long a counter was wanted, and how long it had one of the CPU's
_SIZE = 64  # of the first version of the attributes, which every kernel knows
_CLOSE_ON_EXEC = 8
# Waits until its counters are there; what it executes is what they count.
_START = 'read -r _ || exit; exec "$@" <"$0" >/dev/null 2>&1'


class Native(msgspec.Struct, frozen=True, kw_only=True):
    """The least of several executions: CPU time of all its processes, and events, or why they cannot be counted."""

    picoseconds: int
    events: Mapping[str, int]
    why_none: str | None


def executed(plan: Plan, progress: Progress) -> Native:
    """Execute natively, several times. MeasurementError if the command fails."""
    found: list[Native] = []
    become_subreaper()
    others = children_of(os.getpid())
    try:
        for number in range(1, EXECUTIONS + 1):
            progress(f"execution {number} of {EXECUTIONS}, without Valgrind")
            with surrounded(plan):
                try:
                    found.append(_once(plan))
                finally:
                    _end_orphans(others)
    finally:
        become_subreaper(wanted=False)
    every = all(item.events for item in found)
    events = {name: min(item.events[name] for item in found) for name in found[0].events} if every else {}
    why = next((item.why_none for item in found if item.why_none), None)
    return Native(picoseconds=min(item.picoseconds for item in found), events=events, why_none=why)


def _end_orphans(others: Collection[int]) -> None:
    """End what the command has left running, and whose parent we have become; not the `others`."""
    met = {*others}
    while orphans := {*children_of(os.getpid())} - met:
        met |= orphans  # one of another user cannot be ended
        for pid in orphans:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _once(plan: Plan) -> Native:
    before = _cpu_time()
    command = ["/bin/sh", "-c", _START, str(plan.stdin or os.devnull), plan.command.executable, *plan.command.argv[1:]]
    with ExitStack() as stack:
        child = stack.enter_context(process.start(command, env=plan.variables, cwd=plan.cwd))
        if plan.cpu is not None:
            os.sched_setaffinity(child.pid, {plan.cpu})
        counters, why = dict[str, int](), None
        try:
            for name, config in _EVENTS.items():
                counters[name] = _opened(child.pid, config)
                stack.callback(os.close, counters[name])
        except OSError as error:
            counters, why = {}, str(error.strerror)
        os.write(child.stdin, b"\n")
        status = child.wait(None if plan.timeout_ms is None else plan.timeout_ms / 1000)
        if status != 0 and not (plan.ignore_exit_status and status is not None):
            end = (
                "did not end in time"
                if status is None
                else f"failed: {process.end_of(status if status > 0 else None, -status)}"
            )
            raise CommandFailedError(f"without Valgrind, {plan.command.shown} {end}")
        events = {name: _read(counter) for name, counter in counters.items()}
    return Native(picoseconds=_cpu_time() - before, events=events, why_none=why)


def _opened(pid: int, config: int) -> int:
    """Return a counter of this event of the hardware, in a process and its children. OSError where the CPU or the kernel has no such counter."""
    attributes = struct.pack("=IIQQQQQ", _HARDWARE, _SIZE, config, 0, 0, _TIMES, _FLAGS).ljust(_SIZE, b"\0")
    words = ctypes.c_int(pid), ctypes.c_int(-1), ctypes.c_int(-1), ctypes.c_ulong(_CLOSE_ON_EXEC)
    number = _CALLS.get(os.uname().machine, -1)  # the kernel refuses -1
    return check(libc.syscall(ctypes.c_long(number), attributes, *words), "perf_event_open")


def _read(counter: int) -> int:
    """Return a count, scaled up where other counters had their turn meanwhile."""
    value, wanted, had = struct.unpack("=QQQ", os.read(counter, 24))
    return int(value) * int(wanted) // int(had) if had else 0


def _cpu_time() -> int:
    """Return the picoseconds that all children took which have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((usage.ru_utime + usage.ru_stime) * 1e6) * 10**6
