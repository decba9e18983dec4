"""Everything an execution needs, set up once: Valgrind, a scratch directory, a CPU, the machine's identity."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cachegrind_bench.hermetic.scratch import scratch
from cachegrind_bench.measure.identity import environment_of
from cachegrind_bench.valgrind.runner import ValgrindRunner
from cachegrind_bench.valgrind.tool import find

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from cachegrind_bench.model.result import Environment
    from cachegrind_bench.valgrind.options import Geometry

# Not the caller's TMPDIR: its name would be part of what the program sees.
SCRATCH_BASE = Path("/tmp")  # noqa: S108 - made with mode 0700, locked, and checked for its owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A runner that is ready, the environment it measures in, and the CPU that is free for it."""

    runner: ValgrindRunner
    environment: Environment
    cpu: int | None = None


@contextlib.contextmanager
def session(
    *,
    valgrind: str | None,
    geometry: Geometry,
    environ: Mapping[str, str],
    passed: Mapping[str, str],
    echo: Callable[[bytes], None],
    keep: Path | None = None,
) -> Generator[Session]:
    """Set up, and clean up in the end. MeasurementError where Valgrind or a directory is missing."""
    found = find(valgrind, environ)
    with scratch(SCRATCH_BASE) as directory:
        runner = ValgrindRunner(valgrind=found, geometry=geometry, scratch=directory, echo=echo, keep=keep)
        environment = environment_of(found, geometry, environ, passed)
        yield Session(runner=runner, environment=environment, cpu=default_cpu(directory.slot))


def default_cpu(slot: int) -> int:
    """Return the CPU to use when none is asked for: runs at the same time take turns, from the last CPU downwards."""
    allowed = sorted(os.sched_getaffinity(0), reverse=True)
    return allowed[slot % len(allowed)]
