"""Writing to our stdout, where a report may meet a full disk, a closed descriptor or an encoding that lacks its signs."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from typing import TextIO


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


def terminal_width() -> int | None:
    """Return how many columns the terminal has that stdout is; None if it is none."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (OSError, ValueError, AttributeError):  # a file or pipe, captured, or closed
        return None


def write(content: str | bytes) -> None:
    """Write to stdout and flush. UsageError if it cannot take it; BrokenPipeError passes, as its reader just left."""
    if sys.stdout is None:  # started with a closed descriptor
        raise UsageError("cannot write to stdout: it is closed", hint="redirect it to a file, or to /dev/null")
    if isinstance(content, str):
        content = content.encode(sys.stdout.encoding or "utf-8", "backslashreplace")
    flush()
    try:
        sys.stdout.buffer.write(content)
    except OSError as error:
        raise _cannot_write(error) from error
    flush()


def flush() -> None:
    """Flush stdout, with the same errors."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        raise _cannot_write(error) from error


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


def _cannot_write(error: OSError) -> Exception:
    if isinstance(error, BrokenPipeError):
        return error
    forget(sys.stdout)
    return UsageError(f"cannot write to stdout: {error.strerror}", hint="free some space, or choose another place")
