"""Starts the launcher, hands it an execution, copies the program's output, and reads the report.

The other side of the pipe is `launcher`, and what goes through it is in `execution`. Knows nothing of Valgrind beyond the name
of its tool's image.
"""

from __future__ import annotations

import os
import pty
import selectors
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cachegrind_bench import process
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.execution import Clock, Execution, Image, Output, Report, packed, read_report, write_all
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
# After an interrupt, the launcher kills all that the program has started, for up to 8 s.
_FAREWELL_S = 10.0
_LONGEST_WAIT_S = 2.0  # a signal that comes just before a wait is seen after it
_INSISTENCE_S = 0.5  # how often a clean-up looks for a second interrupt
# 2025-01-01, a millisecond for every reading: loops that wait for a deadline end after a fixed number of rounds.
PINNED_CLOCK = Clock(1_735_689_600_000_000_000, 1_000_000)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How an execution ended. `unsealed` gives the reason for each part of the seal that was refused.

    `libraries` are the names of the shared libraries it found by the loader's cache, if the execution named none.
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


def launch(execution: Execution, scratch: Scratch, *, echo: Callable[[bytes], None]) -> Outcome:
    """Execute once; `echo` gets what the program writes. MeasurementError if it could not even be started.

    When this process is interrupted or killed, the launcher ends the program with all its descendants.
    """
    if execution.places:
        echo = Restored(Translation(execution.places), echo)
    with ExitStack() as stack:
        report_in, report_out = os.pipe()
        stack.callback(os.close, report_in)
        argv = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _CODE, str(report_out), str(scratch.lock)]
        try:
            with held():
                child = stack.enter_context(
                    process.start(argv, env=None, pass_fds=(report_out, scratch.lock), farewell_s=_FAREWELL_S)
                )
        finally:
            os.close(report_out)  # the launcher has one of its own
        sinks = {child.stdout: True, child.stderr: True, report_in: False}
        stdout = _redirect(execution.output, scratch, stack, sinks)
        execution = execution._replace(stdout=stdout, scratch=str(scratch.path))
        with suppress(BrokenPipeError):  # it died: the missing report says so
            write_all(child.stdin, packed(execution))
        tail, data = _pump(sinks, report_in, echo)
        if isinstance(echo, Restored):
            echo.finish()
            tail = echo.places.real_bytes(tail)
    report = read_report(data)
    if report is None:
        text = tail.decode("utf-8", "backslashreplace").strip().rpartition("\n")[2]
        raise MeasurementError(f"the launcher process ended without a report{': ' + text if text else ''}")
    return _outcome(report, execution, tail)


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


def _pump(sinks: dict[int, bool], report: int, echo: Callable[[bytes], None]) -> tuple[bytes, bytes]:
    """Copy output until the report is complete and the pipes are drained; return the output's tail and the report."""
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
            ready = selector.select(0 if reported else longest)
            if waiting is not None:
                waiting.check()
            more -= reported
            if reported and not (ready and more):
                return bytes(tail), bytes(received)
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


def _outcome(report: Report, execution: Execution, tail: bytes) -> Outcome:
    if report.failure is not None:
        raise process.NotExecutable(f"cannot execute {execution.argv[0]}: {report.failure}")
    recorded: Recording | None = None
    if report.files is not None:
        from cachegrind_bench.hermetic.trace_notes import recording  # few executions are recorded

        recorded = recording(*report.files)
    status = report.status
    places = Translation(execution.places) if report.placed else NOWHERE
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
