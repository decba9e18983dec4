"""Which system calls of the sealed program the supervisor is told of.

Runs inside the launcher's child: only the standard library, and little of it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cachegrind_bench.hermetic.clock import CALLS as TELLING
from cachegrind_bench.hermetic.file_trace import CALLS
from cachegrind_bench.hermetic.kernel import Trap
from cachegrind_bench.hermetic.waits import FUTEX_COMMAND, FUTEX_WAIT, FUTEX_WAIT_BITSET, TIMEOUTS, TIMERS

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.kernel import Architecture

# Only plain reading opens can be of a file that is handed out; the mask spares the supervisor all others.
PLAIN_READING_MASK = 0o3 | 0o100 | 0o1000 | 0o200000  # access mode, O_CREAT, O_TRUNC, O_DIRECTORY


def traps(table: Architecture, *, clock: bool, files: bool = False) -> list[Trap]:
    """Return the system calls to be notified of; the first trap of a call counts."""
    followed = ("execve", "execveat", "clone", "clone3", "fork", "vfork", "exit_group")
    recorded = CALLS if files else ()
    wanted = [Trap(table.calls[name]) for name in dict.fromkeys((*followed, *recorded)) if name in table.calls]
    wanted += [Trap(table.calls[name]) for name in ("getrandom", "sysinfo", "getdents64", "getrlimit", "prlimit64")]
    if "open" in table.calls:
        wanted.append(Trap(table.calls["open"], 1, PLAIN_READING_MASK, os.O_RDONLY))
    wanted.append(Trap(table.calls["openat"], 2, PLAIN_READING_MASK, os.O_RDONLY))
    if clock:
        wanted += [Trap(table.calls[name]) for name in TELLING if name in table.calls]
        wanted += [Trap(table.calls[name]) for name in TIMERS if name in table.calls]
        waiting = {name: place for name, place in TIMEOUTS.items() if name in table.calls}
        number, place = table.calls["futex"], waiting.pop("futex")
        wanted += [Trap(number, 1, FUTEX_COMMAND, command, place) for command in (FUTEX_WAIT, FUTEX_WAIT_BITSET)]
        wanted += [Trap(table.calls[name], present=place) for name, place in waiting.items()]
    return wanted
