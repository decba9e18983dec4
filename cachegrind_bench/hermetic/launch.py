"""Starts the launcher for one execution, hands it its orders, copies the program's output, and reads the report.

The other side of the pipe is `launcher`, and what goes through it is in `orders`. Knows nothing of Valgrind beyond the name
of its tool's image.
"""

from __future__ import annotations

import math
import os
import pty
import selectors
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cachegrind_bench import process
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.orders import Clock, Image, Orders, Report, packed, read_report, write_all
from cachegrind_bench.hermetic.place import NOWHERE, Restored, Translation
from cachegrind_bench.interruption import Cancel, cancellation, held

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.scratch import Scratch
    from cachegrind_bench.hermetic.trace_notes import Recording

_ROOT = str(Path(__file__).resolve().parent.parent.parent)
_CODE = f"import sys;sys.path.insert(0,{_ROOT!r});from cachegrind_bench.hermetic.launcher import main;main()"
_TAIL_BYTES = 1 << 16
_CHUNK = 1 << 16
_MOST_CHUNKS = 32  # in a full pipe, which has 1 MiB at most
# How much later than the time-out all is over: the guard begins to kill after 65 s, and does so for 30 s.
_LATEST_S = 110.0
_LONGEST_WAIT_S = 2.0  # until it looks whether the guard was stopped
_INSISTENCE_S = 0.5  # how often a clean-up looks for a second interrupt
# 2025-01-01, a millisecond for every reading: loops that wait for a deadline end after a fixed number of rounds.
PINNED_CLOCK = Clock(1_735_689_600_000_000_000, 1_000_000)
# Loops that wait for some time end after one round.
FAST_CLOCK = PINNED_CLOCK._replace(step_ns=1000 * 10**9)


class Output(StrEnum):
    """What the program's stdout is; runs always use a pipe, the noise hunter tries the others."""

    PIPE = "pipe"
    FILE = "file"
    NULL = "null"
    TERMINAL = "terminal"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How an execution ended. `unsealed` gives the reason for each part of the seal that was refused.

    `libraries` are the names of the shared libraries it found by the loader's cache, if the orders named none.
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
    wrote_beside: bool = False  # something new is next to the project
    unfit: str = ""  # why this program cannot be measured at a constant path


def launch(orders: Orders, scratch: Scratch, *, echo: Callable[[bytes], None], output: Output = Output.PIPE) -> Outcome:
    """Execute once; `echo` gets what the program writes. MeasurementError if it could not even be started.

    When this process is interrupted or killed, the launcher ends the program with all its descendants.
    """
    steady_numbers()
    if orders.places:
        echo = Restored(Translation(orders.places), echo)
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
        orders = orders._replace(stdout=_redirect(output, scratch, stack, sinks), scratch=str(scratch.path))
        with suppress(BrokenPipeError):  # it died: the missing report says so
            write_all(child.stdin, packed(orders))
        tail, data = _pump(sinks, report_in, echo, orders.timeout_ms, child.wake)
        if isinstance(echo, Restored):
            echo.finish()
            tail = echo.places.real_bytes(tail)
    report = read_report(data)
    if report is None:
        text = tail.decode("utf-8", "backslashreplace").strip().rpartition("\n")[2]
        raise MeasurementError(f"the launcher process ended without a report{': ' + text if text else ''}")
    return _outcome(report, orders, tail)


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


def _pump(
    sinks: dict[int, bool],
    report: int,
    echo: Callable[[bytes], None],
    timeout_ms: int | None,
    wake: Callable[[], object],
) -> tuple[bytes, bytes]:
    """Copy output until the report is complete and the pipes are drained; return the output's tail and the report.

    `wake` lets a stopped guard go on: nobody else does if it has no launcher yet, or both are stopped. MeasurementError if the
    report does not come in time.
    """
    latest = math.inf if timeout_ms is None else time.monotonic() + timeout_ms / 1000 + _LATEST_S
    tail, received = bytearray(), bytearray()
    waiting = cancellation()
    cancel = waiting if isinstance(waiting, Cancel) else None
    longest = _LONGEST_WAIT_S if cancel is waiting else _INSISTENCE_S
    with selectors.DefaultSelector() as selector:
        for descriptor in sinks:
            selector.register(descriptor, selectors.EVENT_READ)
        if cancel is not None:
            selector.register(cancel, selectors.EVENT_READ)
        reported, more = False, _MOST_CHUNKS
        while True:
            # After the report no descendant lives, so what is readable now is all there is, unless the launcher was killed.
            ready = selector.select(0 if reported else min(max(0, latest - time.monotonic()), longest))
            if waiting is not None:
                waiting.check()
            wake()
            more -= reported
            if reported and not (ready and more):
                return bytes(tail), bytes(received)
            if not reported and time.monotonic() > latest:
                raise MeasurementError(
                    "neither the launcher nor its guard ended the program in time: both were stopped"
                )
            for key, _events in ready:
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


def _outcome(report: Report, orders: Orders, tail: bytes) -> Outcome:
    if report.failure is not None:
        raise process.NotExecutable(f"cannot execute {orders.command.argv[0]}: {report.failure}")
    recorded: Recording | None = None
    if report.files is not None:
        from cachegrind_bench.hermetic.trace_notes import recording  # few executions are recorded

        recorded = recording(*report.files)
    status = report.status
    places = Translation(orders.places) if report.placed else NOWHERE
    return Outcome(
        exit_status=os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None,
        signal=os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None,
        timed_out=report.timed_out,
        leftover=report.leftover,
        wall_ms=report.wall_ns // 1_000_000,
        tail=tail,
        unsealed=report.unsealed,
        images=None if report.images is None else tuple(Image(**_real(image, places)) for image in report.images),
        places=places,
        wrote_beside=report.wrote_beside,
        unfit=report.unfit,
        recording=recorded,
        libraries=tuple(report.libraries),
    )


def _real(image: dict[str, Any], places: Translation) -> dict[str, Any]:
    return image | {"path": places.real(image["path"]), "argv": [places.real(word) for word in image["argv"]]}


_LEAST = 10_000  # five digits: many systems have no more than 32,768 numbers
_SPARE = (
    2_000  # numbers that a run, and what runs at the same time, may take before those with another number of digits
)
_AT_ONCE = 50  # to wait for each thread takes longer than to start it
_MOST_TRIES = 1000


def is_steady(number: int, limit: int) -> bool:
    """Return whether this and the numbers that come next have the same number of digits, and no fewer than five."""
    last = number + _SPARE
    return number >= _LEAST and last < limit and len(str(number)) == len(str(last))


def steady_numbers() -> None:
    """Use up numbers of processes until those that come next have five digits or more, and as many at the end of the run.

    A shell makes text of its own number and of its parent's, 19 instructions for each digit. On a fresh machine or in a
    new container numbers begin with one digit; where the kernel gives out few, they begin again after some thousands.
    A thread takes a number, too, and costs least: all that there are below five digits take about a second.
    KeyboardInterrupt if this thread is interrupted.
    """
    cancel = cancellation()
    with suppress(OSError, ValueError, RuntimeError):  # RuntimeError: no thread may be started
        limit = _limit()
        if not is_steady(_LEAST, limit):
            return
        count = 1
        for _ in range(_MOST_TRIES):
            if is_steady(_use_up(count), limit):
                return
            if cancel is not None:
                cancel.check()
            count = _AT_ONCE


def _limit() -> int:
    return int(Path("/proc/sys/kernel/pid_max").read_text("ascii"))


def _use_up(count: int) -> int:
    """Have this many threads take numbers, or as many as may be started, and return the last one's. RuntimeError if none may."""
    threads: list[threading.Thread] = []
    with suppress(RuntimeError):
        for _ in range(count):
            thread = threading.Thread(target=int, daemon=True)
            thread.start()
            threads.append(thread)
    for thread in threads:
        thread.join()
    if not threads:
        raise RuntimeError("no thread may be started")
    return threads[-1].native_id or 0
