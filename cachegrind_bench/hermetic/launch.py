"""Starts the launcher for one execution, hands it its orders, copies the program's output, and reads the report.

The other side of the pipe is `launcher`. Knows nothing of Valgrind beyond the name of its tool's image.
"""

from __future__ import annotations

import marshal
import os
import pty
import selectors
import struct
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachegrind_bench import process
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.clock import Clock
from cachegrind_bench.hermetic.images import Image
from cachegrind_bench.hermetic.pid_digits import steady_numbers
from cachegrind_bench.hermetic.place import NOWHERE, Restored, Translation
from cachegrind_bench.hermetic.trace_inputs import Recording, recording
from cachegrind_bench.interruption import Cancel, cancellation, held

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cachegrind_bench.hermetic.scratch import Scratch

_ROOT = str(Path(__file__).resolve().parent.parent.parent)
_CODE = f"import sys;sys.path.insert(0,{_ROOT!r});from cachegrind_bench.hermetic.launcher import main;main()"
_TAIL_BYTES = 1 << 16
_CHUNK = 1 << 16
# How long orphans of the program may take to end by themselves. Long: a helper process that notices its parent's end
# does so slowly under simulation, and killing it would lose its counts.
GRACE_MS = 10_000
DEFAULT_SEED = b"cachegrind-bench"
# 2025-01-01, a millisecond for every reading: loops that wait for a deadline end after a fixed number of rounds.
PINNED_CLOCK = Clock(1_735_689_600_000_000_000, 1_000_000)


class Output(StrEnum):
    """What the program's stdout is; runs always use a pipe, the noise hunter tries the others."""

    PIPE = "pipe"
    FILE = "file"
    NULL = "null"
    TERMINAL = "terminal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Folders to be seen at constant paths, and what an execution is like where that succeeds."""

    places: Translation
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One execution, down to the last detail. `argv[0]` is an absolute path; `tool` is Valgrind's image or None."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    stdin: str | None = None
    cpu: int | None = None
    aslr_off: bool = True
    pin_randomness: bool = True
    pin_scheduling: bool = False
    seed: bytes = DEFAULT_SEED
    clock: Clock | None = None
    output: Output = Output.PIPE
    tool: str | None = None
    timeout_ms: int | None = None
    record_files: bool = False
    placed: Placed | None = None
    keep_place: str = ""  # why it is None
    forks_alike: bool = False  # the random bytes of a process do not depend on how many its parent forked before
    libraries: tuple[bytes, ...] | None = None  # the names of those it needs, as another execution has told
    elsewhere: str = ""  # what is as on another machine, see fake_proc: nothing in a run, the noise hunter tries it


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an execution ended. `unsealed` gives the reason for each part of the seal that was refused.

    `libraries` are the names of the shared libraries it found by the loader's cache, if the invocation named none.
    `images` lists every program that ran, as far as system calls were supervised (else None); `leftover` counts the
    processes that had to be killed after the program itself had ended. `recording` is there if it was asked for.
    """

    exit_status: int | None
    signal: int | None
    timed_out: bool
    leftover: int
    wall_ms: int
    tail: bytes
    unsealed: Mapping[str, str]
    images: tuple[Image, ...] | None
    recording: Recording | None = None
    libraries: tuple[bytes, ...] = ()
    places: Translation = NOWHERE  # in force: what the program says of its files has these paths


def launch(invocation: Invocation, scratch: Scratch, *, echo: Callable[[bytes], None]) -> Outcome:
    """Execute once; `echo` gets what the program writes. MeasurementError if it could not even be started.

    When this process is interrupted or killed, the launcher ends the program with all its descendants.
    """
    steady_numbers()
    if invocation.placed is not None:
        echo = Restored(invocation.placed.places, echo)
    with ExitStack() as stack:
        report_in, report_out = os.pipe()
        stack.callback(os.close, report_in)
        argv = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _CODE, str(report_out), str(scratch.lock)]
        try:
            with held():
                child = stack.enter_context(process.start(argv, env=None, pass_fds=(report_out, scratch.lock)))
        finally:
            os.close(report_out)  # the launcher has one of its own
        sinks = {child.stdout: True, child.stderr: True, report_in: False}
        redirect = _redirect(invocation.output, scratch, stack, sinks)
        _send(child.stdin, _orders(invocation, scratch, redirect))
        tail, report = _pump(sinks, report_in, echo)
        if isinstance(echo, Restored):
            echo.finish()
            tail = echo.places.real_bytes(tail)
    if len(report) < 4 or len(report) != 4 + struct.unpack("=I", report[:4])[0]:
        text = tail.decode("utf-8", "backslashreplace").strip()
        raise MeasurementError(f"the launcher process ended without a report{': ' + text if text else ''}")
    return _outcome(marshal.loads(report[4:]), invocation, tail)


def _orders(invocation: Invocation, scratch: Scratch, redirect: str | None) -> dict[str, Any]:
    clock, placed = invocation.clock, invocation.placed
    there = {} if placed is None else {"argv": list(placed.argv), "env": dict(placed.env), "cwd": placed.cwd}
    return {
        "places": [] if placed is None else list(placed.places.pairs),
        "placed": there,
        "keep_place": invocation.keep_place,
        "argv": list(invocation.argv),
        "env": dict(invocation.env),
        "cwd": invocation.cwd,
        "stdin": invocation.stdin,
        "stdout": redirect,
        "cpu": invocation.cpu,
        "aslr": invocation.aslr_off,
        "randomness": invocation.pin_randomness,
        "scheduling": invocation.pin_scheduling,
        "seed": invocation.seed.hex(),
        "clock": None if clock is None else [clock.epoch_ns, clock.step_ns],
        "tool": invocation.tool,
        "timeout_ns": None if invocation.timeout_ms is None else invocation.timeout_ms * 1_000_000,
        "grace_ns": GRACE_MS * 1_000_000,
        "record": invocation.record_files,
        "forks_alike": invocation.forks_alike,
        "libraries": invocation.libraries,
        "elsewhere": invocation.elsewhere,
        "scratch": str(scratch.path),
        "out": str(scratch.out),
    }


def _redirect(output: Output, scratch: Scratch, stack: ExitStack, sinks: dict[int, bool]) -> str | None:
    """Return the path the program's stdout is to be opened at, None for the pipe."""
    match output:
        case Output.PIPE:
            return None
        case Output.NULL:
            return os.devnull
        case Output.FILE:
            path = scratch.path / "stdout"
            path.touch()
            return str(path)
        case Output.TERMINAL:
            master, slave = pty.openpty()
            stack.callback(os.close, master)
            stack.callback(os.close, slave)  # held open: the master of a terminal nobody has open reads as an error
            sinks[master] = True
            return os.ttyname(slave)


def _send(descriptor: int, orders: dict[str, Any]) -> None:
    data = marshal.dumps(orders)
    data = struct.pack("=I", len(data)) + data
    with suppress(BrokenPipeError):  # it died: the missing report says so
        while data:
            data = data[os.write(descriptor, data) :]


def _pump(sinks: dict[int, bool], report: int, echo: Callable[[bytes], None]) -> tuple[bytes, bytes]:
    """Copy output until the report is complete and the pipes are drained; return the output's tail and the report."""
    tail, received = bytearray(), bytearray()
    waiting = cancellation()
    cancel = waiting if isinstance(waiting, Cancel) else None
    with selectors.DefaultSelector() as selector:
        for descriptor in sinks:
            selector.register(descriptor, selectors.EVENT_READ)
        if cancel is not None:
            selector.register(cancel, selectors.EVENT_READ)
        reported = False
        while True:
            # After the report no descendant lives, so what is readable now is all there is.
            ready = selector.select(0 if reported else None)
            if reported and not ready:
                return bytes(tail), bytes(received)
            for key, _events in ready:
                if cancel is not None and key.fd == cancel.fileno():
                    cancel.check()
                    continue
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fd)
                    reported = reported or key.fd == report
                elif sinks[key.fd]:
                    tail += chunk
                    del tail[: max(0, len(tail) - _TAIL_BYTES)]
                    echo(chunk)
                else:
                    received += chunk


def _outcome(report: dict[str, Any], invocation: Invocation, tail: bytes) -> Outcome:
    if report["failure"] is not None:
        program = invocation.argv[0]
        raise process.NotExecutable(f"cannot execute {program}: {report['failure'][1]}")
    status: int | None = report["status"]
    images = report["images"]
    unsealed: dict[str, str] = {**report["unanswered"], **report["seal"]}
    places = invocation.placed.places if invocation.placed is not None and report["placed"] else NOWHERE
    return Outcome(
        exit_status=os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None,
        signal=os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None,
        timed_out=report["timed_out"],
        leftover=report["leftover"],
        wall_ms=report["wall_ns"] // 1_000_000,
        tail=tail,
        unsealed=unsealed,
        images=None if images is None else tuple(Image(**_real(image, places)) for image in images),
        places=places,
        recording=None if report["files"] is None else recording(*report["files"]),
        libraries=tuple(report["libraries"]),
    )


def _real(image: dict[str, Any], places: Translation) -> dict[str, Any]:
    return image | {"path": places.real(image["path"]), "argv": [places.real(word) for word in image["argv"]]}
