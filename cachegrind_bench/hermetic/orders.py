"""What cg-bench and the launcher send each other: the orders for one execution, and the report on it.

By marshal, as both ends are the same Python: it needs no import, unlike json, and carries odd file names too. Used inside the
launcher: only the standard library, and little of it.
"""

# No `from __future__ import annotations`: as texts, all annotations would be compiled at each start of the launcher.

import marshal
import os
import struct
import sys
from typing import Any, NamedTuple, cast

from cachegrind_bench.hermetic.place import Checkout, Pair

_LENGTH = struct.Struct("=I")

SEED = b"cachegrind-bench"  # of all random bytes
# How long orphans of the program may take to end by themselves. Long: a helper process that notices its parent's end
# does so slowly under simulation, and killing it would lose its counts. Short where the warm-up had to kill one.
GRACE_MS, SHORT_GRACE_MS = 10_000, 2_000
# Why a program is scheduled as any other: by choice, or as it must be.
NOT_ASKED = "the usual scheduling, as no warm-up showed that it is one process with threads"
SHARED = "another run of cg-bench is on this CPU"
STARVED = "a thread or process waited for a minute while others ran, perhaps for it"


class Command(NamedTuple):
    """What to execute; `argv[0]` is an absolute path."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str


class Clock(NamedTuple):
    """A clock that starts at `epoch_ns` and moves by `step_ns` with every reading; by `later_ns` more after `turn` readings.

    With `jumps`, it jumps once: in the second of the calls that begin with a part of Callgrind's for one of the triggers `calls`, where
    the first section ends, by what that section cost. Each jump has the most instructions that it is for, and nanoseconds. `kinds`
    are the triggers that begin and end a section; of several, the first that ends one in the first call. It does not jump
    where more than `most_ns` have passed since the first call began.
    """

    epoch_ns: int
    step_ns: int
    turn: int = 0
    later_ns: int = 0
    jumps: tuple[tuple[int, int], ...] = ()
    calls: tuple[str, ...] = ()
    kinds: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    most_ns: int = 0

    def passed_ns(self, readings: int) -> int:
        """Return the time that this number of readings takes."""
        return readings * self.step_ns + max(0, readings - self.turn) * self.later_ns


class Orders(NamedTuple):
    """One execution, down to the last detail."""

    command: Command
    placed: Command | None = None  # in its stead where all of `places` can be seen there
    places: tuple[Pair, ...] = ()
    keep_place: str = ""  # why `places` is empty
    checkout: Checkout | None = None  # where a worktree of it is measured
    sealed: bool = True  # False: executed as it is, and only ended with all that it starts
    stdin: str | None = None
    stdout: str | None = None  # None: the launcher's
    cpu: int | None = None
    aslr_off: bool = True
    pin_scheduling: bool = False
    seed: bytes = SEED
    clock: Clock | None = None
    tool: str | None = None  # Valgrind's image
    timeout_ms: int | None = None
    grace_ms: int = GRACE_MS
    record_files: bool = False
    forks_alike: bool = False  # the random bytes of a process do not depend on how many its parent forked before
    libraries: tuple[bytes, ...] | None = None  # the names of those it needs, as another execution has found them
    perf_maps: bool = False  # Python is to write them, outside of the scratch directory
    elsewhere: str = ""  # what is as on another machine, see fake_proc: nothing in a run, the noise hunter tries it
    scratch: str = ""

    @property
    def out(self) -> str:
        """Where out files go, see Scratch."""
        return f"{self.scratch}/out"


class Image:
    """One program run by one process, from its start or exec on; `argv` as text with surrogate escapes.

    `jump` is which one of its jumps its clock has made.
    """

    def __init__(
        self,
        pid: int,
        path: str,
        argv: list[str],
        parent: int,
        *,
        forked: bool,
        forks: int = 0,
        threads: int = 0,
        replaced: bool = False,
        foreign: bool = False,
        jump: int | None = None,
    ) -> None:
        self.pid, self.path, self.argv, self.parent = pid, path, argv, parent
        self.forked, self.forks, self.threads = forked, forks, threads
        self.replaced, self.foreign, self.jump = replaced, foreign, jump


class Report(NamedTuple):
    """What became of it. `unsealed` gives the reason for each part of the seal that was refused.

    `failure` says why the program could not be executed. `images` has the attributes of each, None where system calls
    were not supervised; `placed`: whether files were at their constant paths; `wrote_beside`: whether something was made next to
    the project; `unfit`: why the program cannot be measured at a constant path; `files` are those that were read.
    """

    failure: str | None
    status: int | None
    timed_out: bool
    leftover: int
    wall_ns: int
    unsealed: dict[str, str]
    images: list[dict[str, Any]] | None
    placed: bool
    wrote_beside: bool
    unfit: str
    files: tuple[str | None, list[Any]] | None
    libraries: list[bytes]


def packed(message: Orders | Report) -> bytes:
    """Return a message as it is sent, behind its length."""
    data = marshal.dumps(_plain(message))
    return _LENGTH.pack(len(data)) + data


def _plain(value: object) -> Any:
    """Return values as marshal knows them: tuples without names."""
    return tuple(map(_plain, cast("tuple[object, ...]", value))) if isinstance(value, tuple) else value


def read_orders(descriptor: int) -> Orders:
    """Read the orders. If the pipe closes before they are complete, the parent is gone: end this process."""
    (length,) = _LENGTH.unpack(_read_exactly(descriptor, _LENGTH.size))
    orders = Orders(*marshal.loads(_read_exactly(descriptor, length)))
    placed = None if orders.placed is None else Command(*orders.placed)
    clock = None if orders.clock is None else Clock(*orders.clock)
    checkout = None if orders.checkout is None else Checkout(*orders.checkout)
    return orders._replace(command=Command(*orders.command), placed=placed, clock=clock, checkout=checkout)


def _read_exactly(descriptor: int, length: int) -> bytes:
    data = b""
    while len(data) < length:
        part = os.read(descriptor, length - len(data))
        if not part:
            sys.exit(1)
        data += part
    return data


def read_report(data: bytes) -> Report | None:
    """Read a report, None if it is not complete."""
    if len(data) < _LENGTH.size or len(data) != _LENGTH.size + _LENGTH.unpack(data[: _LENGTH.size])[0]:
        return None
    return Report(*marshal.loads(data[_LENGTH.size :]))


def write_all(descriptor: int, data: bytes) -> None:
    """Write to a pipe. OSError if nobody reads it any more."""
    while data:
        data = data[os.write(descriptor, data) :]
