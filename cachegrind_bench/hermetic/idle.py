"""Says when no thread of the program is ready to run, without taking its CPU: then a thread of ours that is below them runs.

So it does where the kernel gives ordinary tasks a turn, some hundredths of each second: whoever asked has to look. Runs inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

import _thread
import os
import select
import signal


class Idle:
    """Where to wait for that, as a file; for a launcher above the program, on the same CPU."""

    def __init__(self) -> None:
        self._question, self._ask = os.pipe()
        self._told, self._answer = os.pipe()
        self._is_asked = False
        _thread.start_new_thread(self._run, ())

    def fileno(self) -> int:
        """Return the file that can be read once the program has nothing to execute."""
        return self._told

    def ask(self) -> None:
        """Have it said the next time from now on."""
        if self._is_asked and select.select([self._told], [], [], 0)[0]:
            self.take()  # that was so before
        if not self._is_asked:
            self._is_asked = True
            os.write(self._ask, b"?")

    def take(self) -> None:
        """Take the answer, which is there."""
        os.read(self._told, 1)
        self._is_asked = False

    def _run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are to interrupt the launcher
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        while os.read(self._question, 1):
            os.write(self._answer, b"!")
