"""The small processes between cg-bench and the program: seal, execute, supervise, and end the whole process tree.

Started by `launch` as a Python of its own, without site packages. Reads its orders from stdin, which cg-bench holds open:
when that pipe closes, cg-bench is gone, and every descendant is killed and the scratch directory removed. It forks into a
guard and the launcher proper, each of which ends the tree if the other one cannot. Both are single-threaded while they fork, which is
safe. Only the standard library, and little of it.
"""

from __future__ import annotations

import marshal
import math
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from cachegrind_bench.hermetic import kernel
from cachegrind_bench.hermetic.file_trace import Recorder
from cachegrind_bench.hermetic.neighbours import Level, levels_of, settle
from cachegrind_bench.hermetic.orders import Orders, Report, packed, read_orders, write_all
from cachegrind_bench.hermetic.place import Translation
from cachegrind_bench.hermetic.process_memory import descendants_of
from cachegrind_bench.hermetic.program import become
from cachegrind_bench.hermetic.scheduling import Scheduling
from cachegrind_bench.hermetic.supervisor import Supervisor
from cachegrind_bench.hermetic.trace_notes import FILE
from cachegrind_bench.hermetic.waits import Waits

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.idle import Idle

_LONGEST_WAIT_MS = 3_600_000  # poll takes 31 bits
# How much later than the launcher the guard acts: it waits for the CPU (see Scheduling) before its time begins.
_LATE_S = 65.0
_LONGEST_LOOK_S = 5.0  # after that, waits of others are looked after although a thread works on
# How long to go on killing what another user's rights, or a file system that hangs, may keep alive.
_LONGEST_KILL_S = 30.0
_LONGEST_DEATH_S = 0.1


def main() -> None:
    """Run one program by the orders on stdin and report on the descriptor named by the first argument."""
    report_fd = int(sys.argv[1])
    os.set_inheritable(report_fd, False)
    lock = int(sys.argv[2])  # held for as long as we live: so long the scratch directory is ours
    os.set_inheritable(lock, False)
    orders = read_orders(0)
    kernel.become_subreaper()
    kernel.signal_at_parents_end(signal.SIGCONT)  # the program may have stopped us, and nobody else would end it then
    launcher = os.fork()
    if launcher:
        _guard(launcher, orders, lock, report_fd)
    kernel.signal_at_parents_end(signal.SIGCONT)
    os.setsid()  # cg-bench may have to kill the guard's group
    launch = _Launch(orders, lock)
    try:
        report = launch.run()
    except BaseException:
        launch.end_tree()
        raise
    with suppress(ProcessLookupError):
        os.kill(os.getppid(), signal.SIGCONT)  # the program may have stopped the guard, whose end cg-bench waits for
    write_all(report_fd, packed(report))
    os._exit(0)  # not by Python's end, which resets signals: the next alarm would kill us


def _guard(launcher: int, orders: Orders, lock: int, report_fd: int) -> NoReturn:
    """Wait for the launcher. End the tree, and the launcher with it, if it was stopped or killed, is late, or cg-bench is gone.

    A program whose system calls are not filtered can do that to it, and so can whoever runs out of memory.
    """
    wakeup, cg_bench = _wakeups(), os.getppid()
    late = math.inf if orders.timeout_ms is None else time.monotonic() + orders.timeout_ms / 1000 + _LATE_S
    why, gone = "", False
    while not (why or gone):
        pid, status = os.waitpid(launcher, os.WNOHANG | os.WUNTRACED)
        if pid and os.WIFEXITED(status):
            break
        if pid:
            why = f"was {'stopped' if os.WIFSTOPPED(status) else 'killed'}"
        elif (left := late - time.monotonic()) <= 0:
            why = "did not end the program in time"
        else:
            ready, _, _ = select.select([0, wakeup], [], [], min(left, _LONGEST_WAIT_MS / 1000))
            gone = 0 in ready and not os.read(0, 1)
            if wakeup in ready:
                os.read(wakeup, 4096)
    _kill_descendants({})
    if why:
        with suppress(BrokenPipeError):
            write_all(2, f"the launcher {why}, so the guard has ended the program and all that it started\n".encode())
        for descriptor in (1, 2, report_fd):  # cg-bench waits for their end
            os.close(descriptor)
        os.read(0, 1)
        end = time.monotonic() + _LONGEST_DEATH_S  # of cg-bench, if it was killed: its descriptors go first
        while os.getppid() == cg_bench and time.monotonic() < end:
            _pause(0.001)
        gone = os.getppid() != cg_bench
    if gone:
        _remove_scratch(orders, lock)
    os._exit(0)


def _wakeups() -> int:
    """Have SIGCHLD interrupt, and an alarm each second, and return the descriptor that is readable then.

    The alarm ends what would be late, or never: the program can write to our /proc/PID/timerslack_ns, and receiving a
    notification blocks for good if its sender was killed meanwhile (kernels up to 6.10).
    """
    wakeup, notify = os.pipe()
    os.set_blocking(notify, False)
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(notify, warn_on_full_buffer=False)
    for number in signal.SIGCHLD, signal.SIGALRM:
        signal.signal(number, _wake_up)
    signal.pthread_sigmask(
        signal.SIG_UNBLOCK, {signal.SIGCHLD, signal.SIGALRM}
    )  # whoever started cg-bench may block them
    signal.setitimer(signal.ITIMER_REAL, 1, 1)
    return wakeup


def _pause(seconds: float) -> None:
    """Wait. Not by time.sleep, which an alarm does not end, even when it is late."""
    select.select([], [], [], seconds)


def _wake_up(number: int, frame: object) -> None:
    """Do nothing but interrupt: a signal that is ignored would not."""


def _reap(statuses: dict[int, int], *, block: bool = False) -> bool:
    """Note how children have ended; return whether any is left."""
    try:
        while True:
            pid, status = os.waitpid(-1, 0 if block else os.WNOHANG)
            if pid == 0:
                return True
            statuses[pid] = status
    except ChildProcessError:
        return False


def _kill_descendants(statuses: dict[int, int]) -> int:
    """Kill every descendant, repeatedly, as the dying may still fork; return how many there were."""
    killed: set[int] = set()
    end = time.monotonic() + _LONGEST_KILL_S
    while _reap(statuses) and time.monotonic() < end:
        for pid in descendants_of(os.getpid()):
            killed.add(pid)
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        _pause(0.002)
    return len(killed)


def _remove_scratch(orders: Orders, lock: int) -> None:
    """Remove the scratch directory, unless cg-bench has removed it itself, and another run has made one of the same name.

    And the perf maps of the processes that have a log there.
    """
    from cachegrind_bench.startup.removal import remove, remove_own_file  # here, as it is seldom needed

    with suppress(OSError):
        if os.path.samestat(os.fstat(lock), os.lstat(orders.scratch)):
            with suppress(OSError):
                names = os.listdir(orders.out) if orders.perf_maps else []
                for pid in filter(str.isdecimal, [name.partition(".")[2] for name in names]):
                    remove_own_file(f"/tmp/perf-{pid}.map")  # noqa: S108 - where CPython writes them
            remove(orders.scratch)


class _Launch:
    """One run: the child, its descendants and what is known of them."""

    def __init__(self, orders: Orders, lock: int) -> None:
        self.orders = orders
        self.lock = lock
        self.child = 0
        self.statuses: dict[int, int] = {}
        self.ended_ns = 0
        self.unplaced = orders.keep_place  # why files are seen at their real paths alone
        self.levels: tuple[Level, ...] = ()
        self.base: int | None = None  # what covers /mnt, while files are at their constant paths
        self.supervisor: Supervisor | None = None
        self.recorder = Recorder(orders.scratch, Translation(orders.places)) if orders.record_files else None
        self.idle: Idle | None = None
        self.poll = select.poll()
        natively = orders.tool is None  # a probe, which asks whether it may, and does not wait
        self.scheduling = Scheduling(
            orders.cpu, wanted=orders.pin_scheduling, patient=not (natively and orders.pin_scheduling)
        )
        self.orders = orders._replace(cpu=self.scheduling.cpu)

    @property
    def status(self) -> int | None:
        """How the program has ended, None while it runs."""
        return self.statuses.get(self.child)

    def run(self) -> Report:
        kernel.become_subreaper()
        wakeup = _wakeups()
        if self.recorder is not None and self.orders.stdin:
            self.recorder.notes.read(FILE, os.path.abspath(os.fsencode(self.orders.stdin)), os.getpid())
        started_ns = time.monotonic_ns()
        ours, message, descriptors = self._start()
        seal, failure = self._attach(ours, message, descriptors)
        timed_out, leftover = False, 0
        if failure is None:
            self.poll.register(0, select.POLLIN)
            self.poll.register(wakeup, select.POLLIN)
            if self.scheduling.claim is not None:
                self.poll.register(self.scheduling.claim, select.POLLIN)
            timed_out, leftover = self._wait(started_ns, wakeup)
        else:
            self.end_tree()
        if self.scheduling.why is not None:
            seal["scheduling"] = self.scheduling.why
        supervisor, recorder = self.supervisor, self.recorder
        if recorder is not None and supervisor is None:
            recorder.notes.give_up("its system calls cannot be followed here")
        wrote_beside, unfit = (
            (False, "") if self.base is None else settle(self.levels, self.base, Translation(self.orders.places))
        )
        images = None if supervisor is None else [vars(image) for image in supervisor.finish()]
        return Report(
            failure=failure,
            status=self.status,
            timed_out=timed_out,
            leftover=leftover,
            wall_ns=(self.ended_ns or time.monotonic_ns()) - started_ns,
            unsealed=seal if supervisor is None else {**supervisor.failures, **seal},
            images=images,
            placed=bool(self.orders.places),
            wrote_beside=wrote_beside,
            unfit=unfit or ("" if supervisor is None else supervisor.unfit),
            files=None if recorder is None else (recorder.notes.incomplete, recorder.notes.as_list()),
            libraries=[] if supervisor is None else sorted(supervisor.libraries),
        )

    def _start(self) -> tuple[socket.socket, Any, list[int]]:
        """Fork the child that seals itself; return our end of the link to it, what it said first, and the listener.

        Where it cannot have a mount namespace of its own, another one does without.
        """
        while True:
            ours, theirs = socket.socketpair()
            try:
                self.levels = levels_of(self.orders.places) if self.orders.places else ()
            except OSError as error:
                self._stay(f"{error.filename or ''}: {error.strerror}".removeprefix(": "))
            self.child = os.fork()
            if self.child == 0:
                ours.close()
                become(self.orders, theirs, self.levels, pinned=self.scheduling.pinned)
            theirs.close()
            data, descriptors, _, _ = socket.recv_fds(ours, 1 << 16, 2)
            message = marshal.loads(data) if data else None
            if not isinstance(message, str):
                if descriptors and self.orders.places:
                    self.base = descriptors.pop(0)
                return ours, message, descriptors
            self._reap(block=True)
            self._stay(message)
            ours.close()

    def _stay(self, why: str) -> None:
        self.unplaced = why
        self.orders = self.orders._replace(placed=None, places=())

    def _attach(self, ours: socket.socket, message: Any, descriptors: list[int]) -> tuple[dict[str, str], str | None]:
        """Serve until the exec has succeeded or failed.

        Returns the reasons of the parts that could not be pinned, and the error of a failed exec.
        """
        if message is None:
            self._reap(block=True)
            return {}, "the launcher's child ended before it could start the program"
        seal: dict[str, str] | list[str] = message
        if isinstance(seal, list):  # it failed before it was sealed: no such input file or working directory
            return {}, seal[0]
        if not self.orders.places:
            seal["place"] = self.unplaced
        if descriptors:
            table = kernel.architecture()
            assert table is not None  # noqa: S101 - the child could not have made a listener without one
            self.supervisor = Supervisor(
                descriptors[0], table, self.orders, root=self.child, recorder=self.recorder, scheduling=self.scheduling
            )
            self.poll.register(descriptors[0], select.POLLIN)
            if self.orders.cpu is not None:
                # Move to the program's CPU: it waits while we answer, and waking another CPU takes three times as long.
                with suppress(OSError):  # the seal reports it for the program
                    os.sched_setaffinity(0, {self.orders.cpu})
        self.poll.register(ours, select.POLLIN)
        data: bytes | None = None
        while data is None:
            for descriptor, _event in self.poll.poll():
                if self.supervisor is not None and descriptor == self.supervisor.listener:
                    self.supervisor.serve_one()
                else:
                    data = ours.recv(1 << 12)
        self.poll.unregister(ours)
        ours.close()
        return seal, marshal.loads(data)[0] if data else None

    def _wait(self, started_ns: int, wakeup: int) -> tuple[bool, int]:
        """Serve until all descendants have ended; return (timed out, how many outlived the grace and were killed)."""
        timeout = self.orders.timeout_ms
        deadline = None if timeout is None else started_ns + timeout * 1_000_000
        running = True
        while True:
            left_ms = None if deadline is None else (deadline - time.monotonic_ns()) // 1_000_000 + 1
            wait = None if left_ms is None else min(max(0, left_ms), _LONGEST_WAIT_MS)
            if self.supervisor is not None and self.supervisor.waits:
                self._settle(self.supervisor, self.supervisor.waits, wakeup, left_ms)
                wait = 0
            for descriptor, event in self.poll.poll(wait):
                if self.supervisor is not None and descriptor == self.supervisor.listener:
                    if not self._serve(self.supervisor, event):
                        running = self._reap()
                elif descriptor == wakeup:
                    running = running and (signal.SIGCHLD not in os.read(wakeup, 4096) or self._reap())
                elif self.scheduling.claim is not None and descriptor == self.scheduling.claim.fileno():
                    self.scheduling.meet()
                elif not os.read(0, 1):  # cg-bench is gone
                    self.end_tree()
                    _remove_scratch(self.orders, self.lock)
                    os._exit(1)
            self.scheduling.look()
            if not running:
                return False, 0
            now = time.monotonic_ns()
            if self.status is not None and not self.ended_ns:
                self.ended_ns = now
                end = now + self.orders.grace_ms * 1_000_000
                deadline = end if deadline is None else min(deadline, end)
            if deadline is not None and now >= deadline:
                return self.status is None, self.end_tree()

    def _settle(self, supervisor: Supervisor, waits: Waits, wakeup: int, left_ms: int | None) -> None:
        """End the waits that are to end, and wait for a call for as long as there is nothing to do."""
        longest = _LONGEST_LOOK_S if left_ms is None else min(max(0, left_ms) / 1000, _LONGEST_LOOK_S)
        if self.scheduling.pinned and self._is_called(supervisor, wakeup, longest):
            return
        with self.scheduling.lowered():  # it looks for threads in /proc, some of which may be gone
            pause = waits.settle()
        if pause:
            select.select([supervisor.listener, 0, wakeup], [], [], pause)

    def _is_called(self, supervisor: Supervisor, wakeup: int, longest: float) -> bool:
        """Wait until the program has nothing to execute, for `longest` seconds at most; return whether there is something else to do before.

        Until then, each call is answered at once. To look after the waits by the clock would leave it to chance whether we had
        given our priority up when a call comes, and so what others execute before it is answered.
        """
        if self.idle is None:
            from cachegrind_bench.hermetic.idle import Idle

            self.idle = Idle()
        self.idle.ask()
        others = [item for item in (supervisor.listener, 0, wakeup, self.scheduling.claim) if item is not None]
        ready = select.select([*others, self.idle], [], [], longest)[0]
        if self.idle in ready:
            self.idle.take()
        return any(item in ready for item in others)

    def _serve(self, supervisor: Supervisor, event: int) -> bool:
        """Answer a notification; return whether any process may still send one."""
        if event & select.POLLIN:
            supervisor.serve_one()
        if closed := event & (select.POLLHUP | select.POLLERR | select.POLLNVAL):
            self.poll.unregister(supervisor.listener)
        return not closed

    def _reap(self, *, block: bool = False) -> bool:
        with self.scheduling.lowered():
            return _reap(self.statuses, block=block)

    def end_tree(self) -> int:
        """Kill every descendant; return how many there were."""
        self.scheduling.end()
        return _kill_descendants(self.statuses)
