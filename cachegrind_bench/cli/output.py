"""Writing reports and results: to stdout, where a disk may be full, a descriptor closed or an encoding lack our signs, or to files."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.text import plain_json
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    from cachegrind_bench.compare.growth import Growth
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.render.table import Report


def occupy_standard_descriptors() -> None:
    """Open /dev/null where descriptor 0, 1 or 2 is closed.

    Else the next file opened (a lock, a pipe to the launcher) would take its number, and the measured program, whose
    own three are put at these numbers, would start with one of them closed.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one


def watched(what: str) -> AbstractContextManager[None]:
    """Say in a line that this is waited for, where it takes long. Nothing may be written to stdout meanwhile, which a pager may hold back."""
    return Waiting().watched(what)


def terminal_width() -> int | None:
    """Return how many columns the terminal has that stdout is; None if it is not a terminal."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (OSError, ValueError, AttributeError):  # a file or pipe, captured, or closed
        return None


def wants_colour(choice: str) -> bool:
    """Return whether reports shall be coloured: `auto` is on a terminal that has colours (https://no-color.org)."""
    if choice != "auto":
        return choice == "always"
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return terminal_width() is not None and not plain


def write(content: str | bytes) -> None:
    """Write to stdout and flush. UsageError if it cannot take it; BrokenPipeError passes, as its reader just left."""
    if sys.stdout is None:  # started with a closed descriptor
        raise UsageError("cannot write to stdout: it is closed", hint="redirect it to a file, or to /dev/null")
    if isinstance(content, str):  # JSON may be meant for another program, or for a terminal, or the log of a job
        text = plain_json(content) if content.startswith(("{", "[")) else content
        content = text.encode(sys.stdout.encoding or "utf-8", "backslashreplace")
    elif content.startswith((b"{", b"[")):
        content = plain_json(content.decode()).encode()
    flush()
    try:
        sys.stdout.buffer.write(content)
    except OSError as error:
        raise cannot_write(error) from error
    flush()


def flush() -> None:
    """Flush stdout, with the same errors."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        raise cannot_write(error) from error


def forget(stream: TextIO | None) -> None:
    """Let what could not be written go, so that Python does not try again at its exit, which changes the exit code."""
    with suppress(OSError, ValueError, AttributeError):  # captured, closed, or (None) never open
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, stream.fileno())  # type: ignore[union-attr]  # None is among what is suppressed
        finally:
            os.close(null)


def write_error(text: str) -> None:
    """Write to stderr; that nobody listens there must not change the exit code."""
    try:
        sys.stderr.write(text.encode("utf-8", "backslashreplace").decode())
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        forget(sys.stderr)


def cannot_write(error: OSError) -> Exception:
    """Return what to raise where stdout could not take something."""
    if isinstance(error, BrokenPipeError):
        return error
    forget(sys.stdout)
    return UsageError(f"cannot write to stdout: {error.strerror}", hint="free some space, or choose another place")


def check_result_file(name: str | None) -> None:
    """Find out before the work whether a result can be written to this file, `-` being stdout. UsageError if not."""
    from cachegrind_bench.store.durable import check_replaceable, check_writable

    if name not in (None, "-"):
        check_replaceable(Path(name))
        check_writable(Path(name))


def write_file(name: str | None, data: bytes) -> None:
    """Write to this file, `-` being stdout; None is nowhere."""
    from cachegrind_bench.store.durable import write_atomic

    if name == "-":
        write(data)
    elif name is not None:
        write_atomic(Path(name), data, in_place=True)


def write_result(name: str | None, result: Result, cwd: Path) -> None:
    """Write a result as `write_file` does. If it cannot be written, keep it in the project of `cwd`, as the error says."""
    from cachegrind_bench.model.codec import encode
    from cachegrind_bench.usecases.saving import left_if_unwritten

    with left_if_unwritten(cwd, result):
        write_file(name, encode(result))


def write_beside(name: str | None, text: str) -> None:
    """Write a report to stdout, or to stderr where a result went to stdout (as `name` says)."""
    (write_error if name == "-" else write)(text)


def report_text(
    result: Result,
    form: str,
    reports: Iterable[Report],
    color: str = "never",
    *,
    growth: Collection[Growth] = (),
    root: str = "",
) -> str:
    """Return these reports of a result, for the terminal that there is, `color` being --color; JSON has a form of its own.

    After them comes how benchmarks with sizes grow; files of functions below `root` are shown relative to it.
    """
    if form == "json":
        from cachegrind_bench.render.documents.summaries import summary

        return summary(result, growth)
    from cachegrind_bench.render import table

    if growth:
        from cachegrind_bench.render.growth import report

        reports = [*reports, *(report(item, root) for item in growth)]
    width, colour = terminal_width(), wants_colour(color)
    return "\n".join(table.render(report, form, width=width, colour=colour) for report in reports)
