"""Lets what ends pytest end what it measures as well: no process and no folder stays."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from cachegrind_bench.interruption import interrupt, is_postponed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import FrameType

# Handlers that are pytest's own doing, or nobody's: those of a plugin stay.
_REPLACED = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}


@contextmanager
def tidied_up() -> Generator[Callable[[], None]]:
    """Let SIGTERM and SIGHUP interrupt this as Ctrl-C does, and end the process in their way when all is tidied up.

    What is yielded raises KeyboardInterrupt again: hooks of others may have caught the first one, and gone on.
    """
    received: list[int] = []

    def handler(number: int, frame: FrameType | None) -> None:
        if not is_postponed(number, frame):
            received.append(number)
            interrupt()

    def check() -> None:
        if received:
            raise KeyboardInterrupt

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: was for number, was in _REPLACED.items() if signal.getsignal(number) is was}
    for number in before:
        signal.signal(number, handler)
    try:
        yield check
    finally:
        for number, was in before.items():
            signal.signal(number, was)
        if received and received[0] != signal.SIGINT:
            with suppress(Exception):
                sys.stdout.flush()
            os.kill(os.getpid(), received[0])
