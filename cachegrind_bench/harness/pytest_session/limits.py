"""Ends benchmarks that take too long, or that were stopped: a thread of the pytest that was called watches the measured processes.

Only the process of that benchmark ends, with all that it has started; the others of its file are measured all the same,
unless it has stopped the process of its file, or the one above it: then that one is ended.
No process is sent a signal that is not at work, and below this one: the system gives numbers of processes out again.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Self

from cachegrind_bench.hermetic.process_memory import children_of, descendants_of, fields_of_stat
from cachegrind_bench.startup.exchange import WAITING, Exchange, take_current

_LOOK_S = 0.1
# Starting Python, importing plugins and collecting a file may take so long in any case; so may ending.
_LEAST_FOR_FILES_S = 60.0
# Rehearsals that a measured process may wait for, and its own.
_ROUNDS = 4
# Not by the clock: after Ctrl-Z, this process did not look either.
_STOPPED_LOOKS = 100


@dataclass(slots=True)
class _Watched:
    """A folder that is being served, what was seen there last, since when, and a hold on the process that it names."""

    exchange: Exchange
    now: tuple[int, ...] | None = None
    since: float = 0.0
    process: _Process | None = None
    stopped: int = 0  # so often in a row it, or one above it, was seen stopped

    def see(self, now: tuple[int, ...] | None) -> None:
        """Take what is there now, and let go of the process that was there before."""
        if self.process is not None:
            self.process.close()
        self.now, self.since, self.stopped = now, time.monotonic(), 0
        self.process = _Process(now[0]) if now and now[0] > 0 else None


class TimeLimit:
    """How long a benchmark may take, None for ever. As a context, it watches the folders that are being served."""

    def __init__(self, limit_ms: int | None) -> None:
        self._limit_s = None if limit_ms is None else limit_ms / 1000
        self._watched: list[_Watched] = []
        self._watching = threading.Lock()
        self._released: dict[str, float] = {}  # folder, and when all orders were there
        self._ended: dict[tuple[str, int, int], str] = {}  # folder, file and benchmark or -1, and why
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="cg-bench time limit", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @contextmanager
    def watching(self, exchange: Exchange) -> Generator[None]:
        """Watch this folder meanwhile, and no longer: what is in it at the end names a process that has ended."""
        watched = _Watched(exchange)
        with self._watching:
            self._watched.append(watched)
        try:
            yield
        finally:
            with self._watching:
                self._watched.remove(watched)
                watched.see(None)

    def release(self, exchange: Exchange) -> None:
        """From now on, the process that serves this folder no longer has a reason to wait."""
        self._released[exchange.path] = time.monotonic()

    def of_all(self, benchmarks: int, files: int) -> int | None:
        """Return how long any process may take where this is all, with what it waits for, in milliseconds; None for ever.

        A test may change the file that says which one is at work, and then it is not ended by its own limit.
        """
        if self._limit_s is None:
            return None
        return int(1000 * _ROUNDS * (benchmarks + files + 2) * (self._limit_s + _LEAST_FOR_FILES_S))

    def why(self, exchange: Exchange, number: int, index: int = -1) -> str | None:
        """Return in words why a benchmark was ended here; without `index`, the process of a file, and with -1 that above it. None if it was not."""
        return self._ended.get((exchange.path, number, index))

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_S):
            with self._watching:
                for watched in self._watched:
                    with suppress(OSError):  # this thread is to look at the others, too
                        self._look(watched)

    def _look(self, watched: _Watched) -> None:
        exchange = watched.exchange
        now = take_current(exchange.current) or watched.now  # a test may have removed it
        if now is None or now != watched.now:
            watched.see(now)
            return
        pid, number, index = now
        released = self._released.get(exchange.path, 0)
        limit, waits = self._limit_s, number == WAITING
        if waits:
            if not released:
                return
            number, limit = -1, limit or 0.0
        self._look_for_stopped(watched, (pid, number, index))
        key = exchange.path, number, index
        if limit is None or watched.process is None or key in self._ended:
            return
        if index < 0:
            limit = max(limit, _LEAST_FOR_FILES_S)
        elif os.path.exists(exchange.report(number, index)):
            limit += _LEAST_FOR_FILES_S
        if time.monotonic() - max(watched.since, released) < limit:
            return
        if watched.process.is_ours() and (take_current(exchange.current) or now) == now:
            what = "what comes before or after the benchmarks " if index < 0 else ""
            hint = "raise --cg-bench-timeout, or give it less work: Valgrind makes it about a hundred times slower"
            # First: whoever reports its end asks why.
            self._ended[key] = (
                f"the measured process did not get its orders within {limit:g} s: a benchmark has replaced what it waits at"
                if waits
                else f"{what}took longer than {limit:g} s under Valgrind and was stopped: {hint}"
            )
            watched.process.end()

    def _look_for_stopped(self, watched: _Watched, now: tuple[int, ...]) -> None:
        """End the process at work, that of its file or the one above it if it was stopped and does not go on: nobody else would."""
        found = _stopped(now)
        watched.stopped = 0 if found is None else watched.stopped + 1
        if found is None or watched.stopped <= _STOPPED_LOOKS:
            return
        watched.stopped = 0
        pid, number, index = found
        with closing(_Process(pid)) as process:
            if process.is_ours() and _stopped(now) == found:
                what = "" if index >= 0 else "the process of its file " if number >= 0 else "the measured process "
                self._ended[watched.exchange.path, number, index] = (
                    f"{what}was stopped by a signal for {_STOPPED_LOOKS * _LOOK_S:g} s or more"
                )
                process.end()


def _stopped(now: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Return the outermost that is stopped, with its file and benchmark or -1: of the process at work, that of its file, and the one above.

    The process at work also counts as stopped if its copy, in which calls are counted, is.
    """
    pid, number, index = now
    found = (pid, number, index) if _has_stopped_copy(pid) else None
    for place in dict.fromkeys([(number, index), (number, -1), (-1, -1)]):
        try:
            state, parent = fields_of_stat(pid)[:2]
        except OSError:  # it has gone
            break
        if state == b"T":
            found = (pid, *place)
        pid = int(parent)
    return found


def _has_stopped_copy(pid: int) -> bool:
    """Return whether a process that this one has forked, and that has not started a program since, is stopped."""
    with suppress(OSError):
        return any(
            fields_of_stat(child)[0] == b"T" and _command_line(child) == _command_line(pid)
            for child in children_of(pid)
        )
    return False


def _command_line(pid: int) -> bytes:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


class _Process:
    """A process, held so that another one of its number is not taken for it, where this system can do so."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._hold: int | None = None
        with suppress(OSError, AttributeError):  # not every Python and kernel has it
            self._hold = os.pidfd_open(pid)

    def is_ours(self) -> bool:
        """Return whether it is alive, and below this one."""
        return self._pid in descendants_of(os.getpid())

    def end(self) -> None:
        """Kill it, then all that descends from it, which would outlive it otherwise.

        It comes first, and is stopped meanwhile: it is not to go on because one of the others has ended, or start more.
        """
        self.send(signal.SIGSTOP)
        others = [_Process(pid) for pid in descendants_of(self._pid)]
        for process in (self, *others):
            process.send(signal.SIGKILL)
        for other in others:
            other.close()

    def send(self, number: signal.Signals) -> None:
        with suppress(OSError):  # it is not there any more
            if self._hold is None:
                os.kill(self._pid, number)
            else:
                signal.pidfd_send_signal(self._hold, number)

    def close(self) -> None:
        if self._hold is not None:
            os.close(self._hold)
        self._hold = None
