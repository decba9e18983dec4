"""Disturbances the noise hunter sets up beside a measurement: busy CPUs, and the working directory at another depth."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from cachegrind_bench import process
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.scratch import scratch
from cachegrind_bench.measure.session import SCRATCH_BASE

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import ExitStack
    from pathlib import Path

_MOST_LOOPS = 256
_MOST_ENTRIES = 5000
# Ends itself when it gets another parent, so that killing us with -9 leaves no load behind.
_BUSY = """
import os, sys
parent = int(sys.argv[1])
try:
    os.sched_setaffinity(0, {int(sys.argv[2])})
except OSError:
    pass
while os.getppid() == parent:
    sum(range(10000))
"""


@contextlib.contextmanager
def busy_cpus() -> Generator[None]:
    """Keep every CPU we may use busy."""
    with contextlib.ExitStack() as stack:
        for cpu in sorted(os.sched_getaffinity(0))[:_MOST_LOOPS]:
            argv = [sys.executable, "-I", "-S", "-c", _BUSY, str(os.getpid()), str(cpu)]
            stack.enter_context(process.start(argv, env=None, stdin_pipe=False))
        yield


def deep_directory(cwd: Path, stack: ExitStack) -> tuple[Path, Path] | str:
    """Return two directories of links to all that is in `cwd`, one two levels deeper than the other; or why there are none.

    Relative paths downwards work in them, those upwards (`../data`) do not. They go when `stack` is left, and should we
    be killed, with the next scratch directory of that number.
    """
    try:
        with os.scandir(cwd) as entries:
            names = sorted(entry.name for entry in entries)
    except OSError as error:
        return f"the working directory cannot be listed: {error.strerror}"
    if len(names) > _MOST_ENTRIES:
        return f"the working directory has {len(names)} entries, too many to mirror"
    try:
        mine = stack.enter_context(scratch(SCRATCH_BASE))
        mine.renew()
        base = mine.path
        shallow, deep = base / "cwd", base / "two" / "levels" / "cwd"
        for folder in (shallow, deep):
            folder.mkdir(parents=True)
            for name in names:
                (folder / name).symlink_to(cwd / name)
    except (OSError, MeasurementError) as error:
        return f"no mirror of the working directory can be made: {error}"
    return shallow, deep
