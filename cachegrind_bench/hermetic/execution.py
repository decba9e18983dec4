"""The messages between cg-bench and the launcher: an execution, and the report on it.

By marshal, as both ends are the same Python: it needs no import, unlike json, and carries odd file names too. Used inside the
launcher: only the standard library, and little of it.
"""

# No `from __future__ import annotations`: as texts, all annotations would be compiled at each start of the launcher.

import marshal
import os
import struct
import sys
from enum import StrEnum
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


class Output(StrEnum):
    """The kind of the program's stdout. Runs always use a pipe; the noise hunter tries the others."""

    PIPE = "pipe"
    FILE = "file"
    NULL = "null"
    TERMINAL = "terminal"


class Placed(NamedTuple):
    """A command whose files are at their constant paths."""

    argv: tuple[str, ...]
    variables: dict[str, str]
    cwd: str


class Clock(NamedTuple):
    """A clock that starts at `epoch_ns` and moves by `step_ns` with every reading; by `later_ns` more after `turn` readings.

    `hook` is the importable name, as MODULE:CLASS, of a class of clocks that takes the place of `clock.PinnedTime`; `data` is for it.
    """

    epoch_ns: int
    step_ns: int
    turn: int = 0
    later_ns: int = 0
    hook: str = ""
    data: tuple[Any, ...] = ()

    def passed_ns(self, readings: int) -> int:
        """Return the time that this number of readings takes."""
        return readings * self.step_ns + max(0, readings - self.turn) * self.later_ns


class Execution(NamedTuple):
    """One execution: what is executed, how it is sealed, and its limits. The launcher receives exactly this.

    What Valgrind counts in it is a `Collect`. A runner puts Valgrind in front of `argv`, pads `variables` and sets the fields at
    the end. Times are in milliseconds.
    """

    argv: tuple[str, ...]  # the first is an absolute path
    variables: dict[str, str]
    cwd: str
    executable: str = ""
    begin: int = 1  # where in argv the words after the program's name, or after that of its script, begin
    stdin: str | None = None
    output: Output = Output.PIPE
    quiet: bool = False  # its output is not shown
    sealed: bool = True  # False: executed as it is, and only ended with all that it starts
    cpu: int | None = None
    layout: int = 0  # see hermetic.environment
    plugin: str | None = None  # the folder of our package, where it is imported
    keep_place: str = ""  # why the program is to see its files where they are; else see hermetic.place
    checkout: Checkout | None = None  # where a worktree of it is measured
    aslr_off: bool = True
    pin_scheduling: bool = False
    seed: bytes = SEED
    clock: Clock | None = None
    timeout_ms: int | None = None
    grace_ms: int = GRACE_MS
    ignore_status: bool = False
    held_back: tuple[str, ...] = ()  # variables of the caller that the program does not see
    record_files: bool = False  # note what a measured execution reads
    forks_alike: bool = False  # the random bytes of a process do not depend on how many its parent forked before
    libraries: tuple[bytes, ...] | None = None  # the names of those it needs, as another execution has found them
    elsewhere: str = ""  # what is as on another machine, see fake_proc: nothing in a run, the noise hunter tries it
    placed: Placed | None = None  # executed instead where all of `places` can be seen there
    places: tuple[Pair, ...] = ()
    tool: str | None = None  # Valgrind's image
    perf_maps: bool = False  # Python is to write them, outside of the scratch directory
    stdout: str | None = None  # None: the launcher's
    scratch: str = ""

    @property
    def out(self) -> str:
        """Where out files go, see Scratch."""
        return f"{self.scratch}/out"


class Image:
    """One program run by one process, from its start or exec on; `argv` as text with surrogate escapes.

    `jump` is which one of its jumps its clock has made, by its hook.
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


def packed(message: Execution | Report) -> bytes:
    """Return a message as it is sent, behind its length."""
    data = marshal.dumps(_plain(message))
    return _LENGTH.pack(len(data)) + data


def _plain(value: object) -> Any:
    """Return values as marshal knows them: tuples without names, and texts."""
    if isinstance(value, Output):
        return value.value
    return tuple(map(_plain, cast("tuple[object, ...]", value))) if isinstance(value, tuple) else value


def read_execution(descriptor: int) -> Execution:
    """Read an execution. If the pipe closes before it is complete, the parent is gone: end this process."""
    (length,) = _LENGTH.unpack(_read_exactly(descriptor, _LENGTH.size))
    execution = Execution(*marshal.loads(_read_exactly(descriptor, length)))
    placed = None if execution.placed is None else Placed(*execution.placed)
    clock = None if execution.clock is None else Clock(*execution.clock)
    checkout = None if execution.checkout is None else Checkout(*execution.checkout)
    return execution._replace(placed=placed, clock=clock, checkout=checkout)


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
