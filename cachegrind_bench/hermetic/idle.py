"""Say when no thread of the program is ready to run, without taking its CPU: a thread of ours below the program's runs then.

That thread also runs where the kernel gives ordinary tasks a turn, some hundredths of each second: the caller has to look.
Runs inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

import _thread
import os
import select
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from socket import socket


class Idle:
    """Waits until no thread of the program is ready to run; for a launcher above the program, on the same CPU."""

    def __init__(self) -> None:
        self._question, self._ask = os.pipe()
        self._told, self._answer = os.pipe()
        self._is_asked = False
        _thread.start_new_thread(self._run, ())

    def is_called(self, others: Sequence[int | socket], longest: float) -> bool:
        """Wait until the program has nothing to execute, for `longest` seconds at most; return whether one of the others can be read.

        Until then, each call is answered at once. To look after the waits by the clock would leave it to chance whether the
        launcher had given its priority up when a call comes, and so what others execute before it is answered.
        """
        if self._is_asked and select.select([self._told], [], [], 0)[0]:
            self._take()  # that was so before
        if not self._is_asked:
            self._is_asked = True
            os.write(self._ask, b"?")
        ready = select.select([*others, self._told], [], [], longest)[0]
        if self._told in ready:
            self._take()
        return any(item in ready for item in others)

    def _take(self) -> None:
        os.read(self._told, 1)
        self._is_asked = False

    def _run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are to interrupt the launcher
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        while os.read(self._question, 1):
            os.write(self._answer, b"!")
