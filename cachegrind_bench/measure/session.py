"""What decides whether results may be compared, and what an execution needs, set up once: Valgrind, a scratch directory, a CPU.

The machine's share of the key is read here, and the benchmark's: which files it loads, what was pinned, and what counted.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.environment import COPIES
from cachegrind_bench.hermetic.machine import machine_fields, machine_info
from cachegrind_bench.hermetic.scratch import scratch
from cachegrind_bench.log import LOG
from cachegrind_bench.model.metrics import CostModel, Profile
from cachegrind_bench.model.result import (
    Benchmark,
    Environment,
    ObjectFile,
    Score,
    SealPart,
    SealState,
    comparability_key,
)
from cachegrind_bench.valgrind.options import WHOLE, Collect, Geometry, Scope, Tool
from cachegrind_bench.valgrind.runner import ValgrindRunner
from cachegrind_bench.valgrind.tool import Valgrind, find

if TYPE_CHECKING:
    from cachegrind_bench.measure.plan import Plan

# The parts of the seal that change what is counted; the others only make it noisy or quick.
_COUNTED_PARTS = ("environment", "randomness", "cpu", "clock", "copies")
# The second meaning: /proc/stat, CPU times and waits go with the clock, too.
_PINNED_CLOCK = "pinned/2"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What a command consists of: the files it loads, and its share of the key (ids of libc and interpreter).

    `tunable`: whether its C library takes from the environment how to copy.
    """

    objects: tuple[ObjectFile, ...]
    key_fields: Mapping[str, str]
    tunable: bool = True


def identify(executable: str, variables: Mapping[str, str]) -> Identity:
    """Read the build-ids of an executable and all it loads, as its environment leads the loader."""
    # Imported here: pyelftools is slow to import, and this can run during the measurement.
    from cachegrind_bench.hermetic.fingerprint import fingerprint, interpreter_identity, key_fields, knows_tunables

    library_path = [folder for folder in variables.get("LD_LIBRARY_PATH", "").split(":") if folder]
    found = fingerprint(executable, library_path=library_path)
    interpreter = interpreter_identity(found, path=variables.get("PATH", ""), library_path=library_path)
    return Identity(
        objects=found.objects, key_fields=key_fields(found, interpreter), tunable=knows_tunables(found, COPIES)
    )


def benchmark_key_fields(
    identity: Identity, seal: Mapping[str, SealPart], tool: Tool, collect: Collect = WHOLE, measured: str = ""
) -> dict[str, str]:
    """Return the benchmark's own share of its key: what interprets it, what was pinned, what counted, and which part.

    That is called `measured`, or else after its scope.
    """
    states = {f"seal.{part}": seal[part].state.value for part in _COUNTED_PARTS}
    if seal["clock"].state is SealState.PINNED:
        states["seal.clock"] = _PINNED_CLOCK
    measured = measured or " ".join((collect.scope.value, *map(quote, sorted(set(collect.toggles)))))
    part = {} if collect.scope is Scope.PROCESS else {"measured": measured}
    return {**identity.key_fields, **states, "tool": tool.value, **part}


def with_counts(
    benchmark: Benchmark,
    profile: Profile,
    model: CostModel,
    *,
    env: Environment,
    identity: Identity,
    seal: Mapping[str, SealPart],
    key_fields: Mapping[str, str],
) -> Benchmark:
    """Return this benchmark with what was counted of it, and the key that says what its counts may be compared with."""
    counts = profile.counts()
    return replace(
        benchmark,
        key=comparability_key({**env.fields, **key_fields}),
        key_fields=key_fields,
        counts=counts,
        score=Score(model=model.name, value=model.score(counts)),
        objects=identity.objects,
        seal=seal,
        profile=profile,
        branches=profile.branches(),
    )


# Not the caller's TMPDIR: its name would be part of what the program sees.
SCRATCH_BASE = Path("/tmp")  # noqa: S108 - made with mode 0700, locked, and checked for its owner


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A runner that is ready, the environment it measures in, and the CPU that is free for it."""

    runner: ValgrindRunner
    environment: Environment
    cpu: int | None = None

    def on_cpu(self, plan: Plan) -> Plan:
        """Return the plan with the CPU that is free, unless it names one."""
        return replace(plan, cpu=self.cpu) if plan.cpu is None else plan


class ValgrindSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What all executions of a run share: a Valgrind, the caches it simulates, and the machine's identity."""

    valgrind: Valgrind
    geometry: Geometry
    environment: Environment

    @contextlib.contextmanager
    def session(self, *, echo: Callable[[bytes], None], keep: Path | None = None, first: int = 0) -> Generator[Session]:
        """Take a CPU and a scratch directory numbered `first` or higher, which is removed in the end. MeasurementError if no directory can be made."""
        with scratch(SCRATCH_BASE, first=first) as directory:
            runner = ValgrindRunner(
                valgrind=self.valgrind, geometry=self.geometry, scratch=directory, echo=echo, keep=keep
            )
            yield Session(runner=runner, environment=self.environment, cpu=default_cpu(directory.slot))


def valgrind_setup(
    *, valgrind: str | None, geometry: Geometry, environ: Mapping[str, str], passed: Mapping[str, str]
) -> ValgrindSetup:
    """Find Valgrind and describe the machine; `passed` has hashes of variables passed on by request. MeasurementError without Valgrind."""
    found = find(valgrind, environ)
    if os.path.lexists("/proc/self") and os.path.realpath("/proc/self") != f"/proc/{os.getpid()}":
        hint = "mount this one's own there, as 'unshare --pid --fork --mount-proc' does"
        raise MeasurementError("/proc is that of another PID namespace: no process can be followed", hint=hint)
    LOG.debug(f"uses Valgrind {found.version}: {found.launcher}")
    fields = {
        **machine_fields(),
        "valgrind": found.version,
        "guest_chase": "off" if found.guest_chase_off else "on",
        "geometry": str(geometry),
    }
    info = {**machine_info(environ), **{f"env.{name}": value for name, value in passed.items()}}
    environment = Environment(key=comparability_key(fields), fields=fields, info=info)
    return ValgrindSetup(valgrind=found, geometry=geometry, environment=environment)


def default_cpu(slot: int) -> int:
    """Return the CPU to use when none is asked for: runs at the same time take turns, from the last CPU downwards."""
    allowed = sorted(os.sched_getaffinity(0), reverse=True)
    return allowed[slot % len(allowed)]
