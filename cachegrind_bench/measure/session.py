"""Everything an execution needs, set up once: Valgrind, a scratch directory, a CPU, the machine's identity."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.hermetic.scratch import scratch
from cachegrind_bench.measure.identity import environment_of
from cachegrind_bench.valgrind.runner import ValgrindRunner
from cachegrind_bench.valgrind.tool import find

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from cachegrind_bench.model.result import Environment
    from cachegrind_bench.valgrind.options import Geometry
    from cachegrind_bench.valgrind.tool import Valgrind

# Not the caller's TMPDIR: its name would be part of what the program sees.
SCRATCH_BASE = Path("/tmp")  # noqa: S108 - made with mode 0700, locked, and checked for its owner


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A runner that is ready, the environment it measures in, and the CPU that is free for it."""

    runner: ValgrindRunner
    environment: Environment
    cpu: int | None = None


class Laboratory(msgspec.Struct, frozen=True, kw_only=True):
    """What all executions of a run share: a Valgrind, the caches it simulates, and the machine's identity."""

    valgrind: Valgrind
    geometry: Geometry
    environment: Environment

    @contextlib.contextmanager
    def session(self, *, echo: Callable[[bytes], None], keep: Path | None = None) -> Generator[Session]:
        """Take a scratch directory and a CPU, and clean up in the end. MeasurementError where there is none."""
        with scratch(SCRATCH_BASE) as directory:
            runner = ValgrindRunner(
                valgrind=self.valgrind, geometry=self.geometry, scratch=directory, echo=echo, keep=keep
            )
            yield Session(runner=runner, environment=self.environment, cpu=default_cpu(directory.slot))


def laboratory(
    *, valgrind: str | None, geometry: Geometry, environ: Mapping[str, str], passed: Mapping[str, str]
) -> Laboratory:
    """Find Valgrind and describe the machine; `passed` has hashes of variables. MeasurementError without Valgrind."""
    found = find(valgrind, environ)
    environment = environment_of(found, geometry, environ, passed)
    return Laboratory(valgrind=found, geometry=geometry, environment=environment)


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
    """Set up for one benchmark, and clean up in the end. MeasurementError where Valgrind or a directory is missing."""
    ready = laboratory(valgrind=valgrind, geometry=geometry, environ=environ, passed=passed)
    with ready.session(echo=echo, keep=keep) as made:
        yield made


def default_cpu(slot: int) -> int:
    """Return the CPU to use when none is asked for: runs at the same time take turns, from the last CPU downwards."""
    allowed = sorted(os.sched_getaffinity(0), reverse=True)
    return allowed[slot % len(allowed)]
