"""Reap and kill what descends from the launcher, which is a subreaper: orphans become its children.

Runs inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from cachegrind_bench.hermetic.process_memory import descendants_of

# How long to go on killing processes that another user's rights, or a file system that hangs, keep alive.
_LONGEST_KILL_S = 8.0


def reap(statuses: dict[int, int], *, block: bool = False) -> bool:
    """Add the wait statuses of children that have ended; return whether any child is left."""
    try:
        while True:
            pid, status = os.waitpid(-1, 0 if block else os.WNOHANG)
            if pid == 0:
                return True
            statuses[pid] = status
    except ChildProcessError:
        return False


def kill_descendants(statuses: dict[int, int]) -> int:
    """Kill every descendant, repeatedly, as the dying may still fork; return how many there were."""
    killed: set[int] = set()
    end = time.monotonic() + _LONGEST_KILL_S
    while reap(statuses) and time.monotonic() < end:
        for pid in descendants_of(os.getpid()):
            killed.add(pid)
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
    return len(killed)
