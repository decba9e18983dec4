"""Ends single benchmarks of pytest that take too long: a thread of the pytest that was called watches the measured processes.

Whole executions, as of `cg-bench run -- COMMAND`, are ended by `hermetic.launcher`.

Only the process of that benchmark ends, with all that it has started; the others of its file are measured all the same.
No process is sent a signal that is not at work, and below this one: the system gives numbers of processes out again.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Self

from cachegrind_bench.hermetic.process_memory import descendants_of
from cachegrind_bench.startup.exchange import NO_BENCHMARK, WAITING, Exchange, read_current

_LOOK_S = 0.1
# Starting Python, importing plugins and collecting a file may take so long in any case; so may ending.
_LEAST_FOR_FILES_S = 60.0
# Native runs that a measured process may wait for, and its own.
_ROUNDS = 4


@dataclass(slots=True)
class _Watched:
    """A folder that is being served, what was seen there last, and since when."""

    exchange: Exchange
    now: tuple[int, ...] | None = None
    since: float = 0.0


class TimeLimit:
    """How long a benchmark may take, None for ever. As a context, it watches the folders that are being served."""

    def __init__(self, limit_ms: int | None) -> None:
        self._limit_s = None if limit_ms is None else limit_ms / 1000
        self._watched: list[_Watched] = []
        self._watching = threading.Lock()
        self._ended: dict[tuple[str, int, int], str] = {}  # folder, file and benchmark, and why
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

    def of_all(self, benchmarks: int, files: int) -> int | None:
        """Return how long any process may take where this is all, with what it waits for, in milliseconds; None for ever.

        A process that hangs before its first file is ended by this limit.
        """
        if self._limit_s is None:
            return None
        return int(1000 * _ROUNDS * (benchmarks + files + 2) * (self._limit_s + _LEAST_FOR_FILES_S))

    def why(self, exchange: Exchange, number: int, index: int = NO_BENCHMARK) -> str | None:
        """Return in words why a benchmark was ended here; without `index`, the process of a file, and with NO_FILE that above it. None if it was not."""
        return self._ended.get((exchange.path, number, index))

    def _watch(self) -> None:
        while self._limit_s is not None and not self._over.wait(_LOOK_S):
            with self._watching:
                for watched in self._watched:
                    self._look(watched, self._limit_s)

    def _look(self, watched: _Watched, limit: float) -> None:
        exchange = watched.exchange
        now = read_current(exchange.current)
        if now is None or now != watched.now:
            watched.now, watched.since = now, time.monotonic()
            return
        pid, number, index = now
        key = exchange.path, number, index
        if number == WAITING or key in self._ended:
            return
        if index == NO_BENCHMARK:
            limit = max(limit, _LEAST_FOR_FILES_S)
        elif os.path.exists(exchange.report(number, index)):
            limit += _LEAST_FOR_FILES_S
        if time.monotonic() - watched.since < limit:
            return
        if pid in descendants_of(os.getpid()) and read_current(exchange.current) == now:
            what = "what comes before or after the benchmarks " if index == NO_BENCHMARK else ""
            hint = "raise --cg-bench-timeout, or give it less work: Valgrind makes it about a hundred times slower"
            # First: whoever reports its end asks why.
            self._ended[key] = f"{what}took longer than {limit:g} s under Valgrind and was stopped: {hint}"
            _end(pid)


def _end(pid: int) -> None:
    """Kill a process, then all that descends from it, which would outlive it otherwise.

    It comes first, and is stopped meanwhile: it must not go on because one of the others has ended, or start more.
    """
    _send(pid, signal.SIGSTOP)
    for process in (pid, *descendants_of(pid)):
        _send(process, signal.SIGKILL)


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(OSError):  # it is not there any more
        os.kill(pid, number)
