"""Waiting for others, such as a server or the holder of a lock: how long at most, and what is said meanwhile.

Knows seconds; must not know what is waited for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import copy_context

from cachegrind_bench.log import LOG

_FIRST_S = 2.0


class Waiting:
    """Bounds each wait to `longest` seconds, unless that is None, and says after 2 s, 4 s, 8 s and so on what is waited for."""

    def __init__(self, longest: float | None = None) -> None:
        self._longest = longest
        self._next = _FIRST_S

    def apart(self) -> Waiting:
        """Return one for a wait that consists of others."""
        return Waiting(self._longest)

    def at_most(self, usual: float) -> float:
        """Return how long to wait, in seconds, for what is usually given this long."""
        return usual if self._longest is None else min(self._longest, usual)

    def look(self, what: str, seconds: float, said: str = "") -> None:
        """Take note of how long this has been waited for; to be called over and over, from the beginning of each wait.

        The line ends with what was `said` last, if anything was.
        """
        if seconds < _FIRST_S:
            self._next = _FIRST_S
        elif seconds >= self._next:
            while self._next <= seconds:
                self._next *= 2
            LOG.info(f"waiting for {what}, {seconds:.0f} s{said and f': {said}'}")

    @contextmanager
    def watched(self, what: str, longest: float | None = None, give_up: Callable[[], object] = int) -> Generator[None]:
        """Look from a thread during a wait that lets nothing else happen, and give up when it has taken this long."""
        since = time.monotonic()

        def look() -> bool:
            past = time.monotonic() - since
            self.look(what, past)
            if longest is None or past < longest:
                return False
            give_up()
            return True

        with repeated(look):
            yield


@contextmanager
def repeated(look: Callable[[], object], pause_s: float = 0.5) -> Generator[None]:
    """Call this from a thread over and over during the block, until it returns True."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(pause_s) and look() is not True:
            pass

    thread = threading.Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
