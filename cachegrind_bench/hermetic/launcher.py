"""The small process between cg-bench and the program: it seals, executes and supervises the program, and ends its process tree.

`launch` starts it as a Python of its own, without site packages. It reads an execution from stdin, which cg-bench holds open.
It ends every descendant some seconds after the program has ended, when the time-out is over, and when that pipe closes: then
cg-bench was interrupted or is gone, so the launcher also removes the scratch directory. It is single-threaded while it forks, which
is safe. Only the standard library, and little of it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from cachegrind_bench.hermetic import kernel
from cachegrind_bench.hermetic.child import Child, start_child
from cachegrind_bench.hermetic.descendants import kill_descendants, reap
from cachegrind_bench.hermetic.execution import Execution, Report, packed, read_execution, write_all
from cachegrind_bench.hermetic.file_trace import Recorder
from cachegrind_bench.hermetic.neighbours import settle
from cachegrind_bench.hermetic.place import Translation
from cachegrind_bench.hermetic.scheduling import Scheduling
from cachegrind_bench.hermetic.supervisor import Supervisor
from cachegrind_bench.hermetic.trace_notes import FILE
from cachegrind_bench.hermetic.waits import Waits

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.idle import Idle

_LONGEST_WAIT_MS = 3_600_000  # poll takes 31 bits
_LONGEST_LOOK_S = 5.0  # after that, waits of others are looked after although a thread works on


def main() -> None:
    """Run the execution on stdin and report on the descriptor named by the first argument."""
    report_fd = int(sys.argv[1])
    os.set_inheritable(report_fd, False)
    lock = int(sys.argv[2])  # held for as long as we live: so long the scratch directory is ours
    os.set_inheritable(lock, False)
    launch = _Launch(read_execution(0), lock)
    try:
        write_all(report_fd, packed(launch.run()))
    except BrokenPipeError:  # cg-bench is gone, and the program ended by SIGPIPE before stdin was seen to close
        launch.leave()
    except BaseException:
        launch.end_tree()
        raise
    os._exit(0)  # not by Python's end, which resets signals: the next alarm would kill us


def _wakeups() -> int:
    """Have SIGCHLD interrupt, and an alarm each second, and return the descriptor that is readable then.

    The alarm is for kernels up to 6.10: there, receiving a notification blocks for good if its sender was killed meanwhile.
    """
    wakeup, notify = os.pipe()
    os.set_blocking(notify, False)
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(notify, warn_on_full_buffer=False)
    for number in signal.SIGCHLD, signal.SIGALRM:
        signal.signal(number, _interrupt)
    # The process that started cg-bench may block them.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD, signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, 1, 1)
    return wakeup


def _interrupt(number: int, frame: object) -> None:
    """Do nothing but interrupt: a signal that is ignored would not."""


def _remove_scratch(execution: Execution, lock: int) -> None:
    """Remove the scratch directory, and the perf maps of the processes that have a log there.

    Not if cg-bench has removed the directory itself, and another run has made one of the same name.
    """
    from cachegrind_bench.startup.removal import remove, remove_own_file  # here, as it is seldom needed

    with suppress(OSError):
        if os.path.samestat(os.fstat(lock), os.lstat(execution.scratch)):
            with suppress(OSError):
                names = os.listdir(execution.out) if execution.perf_maps else []
                for pid in filter(str.isdecimal, [name.partition(".")[2] for name in names]):
                    remove_own_file(f"/tmp/perf-{pid}.map")  # noqa: S108 - where CPython writes them
            remove(execution.scratch)


class _Launch:
    """One run: the child, its descendants and what is known of them."""

    def __init__(self, execution: Execution, lock: int) -> None:
        self.lock = lock
        self.program = self.ended_ns = 0
        self.statuses: dict[int, int] = {}
        self.supervisor: Supervisor | None = None
        self.recorder = Recorder(execution.scratch, Translation(execution.places)) if execution.record_files else None
        self.idle: Idle | None = None
        self.poll = select.poll()
        patient = execution.tool is not None or not execution.pin_scheduling  # a probe only asks whether it may
        self.scheduling = Scheduling(execution.cpu, wanted=execution.pin_scheduling, patient=patient)
        self.execution = execution._replace(cpu=self.scheduling.cpu)

    @property
    def status(self) -> int | None:
        """How the program has ended, None while it runs."""
        return self.statuses.get(self.program)

    def run(self) -> Report:
        kernel.become_subreaper()
        wakeup = _wakeups()
        if self.recorder is not None and self.execution.stdin:
            self.recorder.notes.read(FILE, os.path.abspath(os.fsencode(self.execution.stdin)), os.getpid())
        started_ns = time.monotonic_ns()
        child = start_child(self.execution, pinned=self.scheduling.pinned, reap=lambda: self._reap(block=True))
        self.program, self.execution, unsealed = child.pid, child.execution, child.unsealed
        failure = child.failure or self._attach(child)
        timed_out, leftover = False, 0
        if failure is None:
            self.poll.register(wakeup, select.POLLIN)
            if self.scheduling.claim is not None:
                self.poll.register(self.scheduling.claim, select.POLLIN)
            timed_out, leftover = self._wait(started_ns, wakeup)
        else:
            self.end_tree()
        if self.scheduling.why is not None:
            unsealed["scheduling"] = self.scheduling.why
        supervisor, recorder = self.supervisor, self.recorder
        if recorder is not None and supervisor is None:
            recorder.notes.give_up("its system calls cannot be followed here")
        places = Translation(self.execution.places)
        wrote_beside, unfit = (False, "") if child.base is None else settle(child.levels, child.base, places)
        images = None if supervisor is None else [vars(image) for image in supervisor.finish()]
        return Report(
            failure=failure,
            status=self.status,
            timed_out=timed_out,
            leftover=leftover,
            wall_ns=(self.ended_ns or time.monotonic_ns()) - started_ns,
            unsealed=unsealed if supervisor is None else {**supervisor.failures, **unsealed},
            images=images,
            placed=bool(self.execution.places),
            wrote_beside=wrote_beside,
            unfit=unfit or ("" if supervisor is None else supervisor.unfit),
            files=None if recorder is None else (recorder.notes.incomplete, recorder.notes.as_list()),
            libraries=[] if supervisor is None else sorted(supervisor.libraries),
        )

    def _attach(self, child: Child) -> str | None:
        """Serve the child until its exec has succeeded or failed; return the error of a failed exec."""
        if child.listener is not None:
            table = kernel.architecture()
            assert table is not None  # noqa: S101 - the child could not have made a listener without one
            launched, scheduling = self.execution, self.scheduling
            self.supervisor = Supervisor(
                child.listener, table, launched, root=child.pid, recorder=self.recorder, scheduling=scheduling
            )
            self.poll.register(child.listener, select.POLLIN)
            if self.execution.cpu is not None:
                # Move to the program's CPU: it waits while we answer, and waking another CPU takes three times as long.
                with suppress(OSError):  # the seal reports it for the program
                    os.sched_setaffinity(0, {self.execution.cpu})
        self.poll.register(child.link, select.POLLIN)
        self.poll.register(0, select.POLLIN)
        while True:
            for descriptor, _event in self.poll.poll():
                if self.supervisor is not None and descriptor == self.supervisor.listener:
                    self.supervisor.serve_one()
                elif descriptor == 0:
                    self.leave()
                else:
                    self.poll.unregister(child.link)
                    return child.exec_failure()

    def _wait(self, started_ns: int, wakeup: int) -> tuple[bool, int]:
        """Serve until all descendants have ended, or are killed: after the time-out, or when the program has ended and the grace is over.

        Return whether the program timed out, and how many descendants were killed.
        """
        timeout = self.execution.timeout_ms
        deadline = None if timeout is None else started_ns + timeout * 1_000_000
        running = True
        while True:
            left_ms = None if deadline is None else (deadline - time.monotonic_ns()) // 1_000_000 + 1
            wait = None if left_ms is None else min(max(0, left_ms), _LONGEST_WAIT_MS)
            if self.supervisor is not None and self.supervisor.waits:
                self._end_waits(self.supervisor, self.supervisor.waits, wakeup, left_ms)
                wait = 0
            for descriptor, event in self.poll.poll(wait):
                if self.supervisor is not None and descriptor == self.supervisor.listener:
                    if not self._serve(self.supervisor, event):
                        running = self._reap()
                elif descriptor == wakeup:
                    running = running and (signal.SIGCHLD not in os.read(wakeup, 4096) or self._reap())
                elif self.scheduling.claim is not None and descriptor == self.scheduling.claim.fileno():
                    self.scheduling.meet()
                elif descriptor == 0:
                    self.leave()
            self.scheduling.look()
            if not running:
                return False, 0
            now = time.monotonic_ns()
            if self.status is not None and not self.ended_ns:
                self.ended_ns = now
                end = now + self.execution.grace_ms * 1_000_000
                deadline = end if deadline is None else min(deadline, end)
            if deadline is not None and now >= deadline:
                return self.status is None, self.end_tree()

    def _end_waits(self, supervisor: Supervisor, waits: Waits, wakeup: int, left_ms: int | None) -> None:
        """End the waits that are to end, and wait for a call for as long as there is nothing to do."""
        longest = _LONGEST_LOOK_S if left_ms is None else min(max(0, left_ms) / 1000, _LONGEST_LOOK_S)
        if self.scheduling.pinned:
            if self.idle is None:
                from cachegrind_bench.hermetic.idle import Idle

                self.idle = Idle()
            others = [item for item in (supervisor.listener, 0, wakeup, self.scheduling.claim) if item is not None]
            if self.idle.is_called(others, longest):
                return
        with self.scheduling.lowered():  # it looks for threads in /proc, some of which may be gone
            pause = waits.settle()
        if pause:
            select.select([supervisor.listener, 0, wakeup], [], [], pause)

    def _serve(self, supervisor: Supervisor, event: int) -> bool:
        """Answer a notification; return whether any process may still send one."""
        if event & select.POLLIN:
            supervisor.serve_one()
        if closed := event & (select.POLLHUP | select.POLLERR | select.POLLNVAL):
            self.poll.unregister(supervisor.listener)
        return not closed

    def _reap(self, *, block: bool = False) -> bool:
        with self.scheduling.lowered():
            return reap(self.statuses, block=block)

    def leave(self) -> NoReturn:
        """End: stdin has closed, as cg-bench was interrupted or is gone."""
        self.end_tree()
        _remove_scratch(self.execution, self.lock)
        os._exit(1)

    def end_tree(self) -> int:
        """Kill every descendant; return how many there were."""
        self.scheduling.end()
        return kill_descendants(self.statuses)
