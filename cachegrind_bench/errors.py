"""Every error a user can meet, one class per exit code; the command line alone turns them into codes.

A message says what happened, to which file, and what to try. What it quotes of a hostile file may have megabytes.
"""


class CgBenchError(Exception):
    """Base of all expected failures; `hint` is the advice printed under the message.

    `repeated` are those lines of it that the terminal shows already.
    """

    exit_code = 70

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        message = _cut(message, 2_000)
        super().__init__(message)
        self.message = message
        self.hint = None if hint is None else _cut(hint, 10_000)  # it may have the last lines of a program
        self.repeated: frozenset[str] = frozenset()


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


class UsageError(CgBenchError):
    """A bad option, or an input that cannot be read."""

    exit_code = 2


class FileFormatError(UsageError):
    """A file that is not what it should be; the place is `file:line` where a line is known."""

    def __init__(self, message: str, *, path: str, line: int | None = None, hint: str | None = None) -> None:
        place = path if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {message}", hint=hint)
        self.what = message
        self.path = path
        self.line = line


class StoreError(UsageError):
    """A history that cannot be reached, read or written; what was in it is untouched."""


class NotComparableError(CgBenchError):
    """Two results that must not be compared."""

    exit_code = 3


class MeasurementError(CgBenchError):
    """The command failed, timed out, or could not be measured."""

    exit_code = 4


class NoValgrindError(MeasurementError):
    """There is no Valgrind here that can be used: nothing can be measured, whatever the command."""


class PlaceError(MeasurementError):
    """The command does something that it can do only where the project is, not at a constant path; the message says what."""

    def __init__(self, message: str, *, hint: str | None = "--keep-place measures it there") -> None:
        super().__init__(message, hint=hint)


class CommandFailedError(MeasurementError):
    """The measured command itself failed: with an exit status, or by a signal.

    `elsewhere` if it saw its files at constant paths, which it may not be able to bear.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, exit_status: int | None = None, signal: int | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.exit_status = exit_status
        self.signal = signal
        self.elsewhere = False


class CommandTimeoutError(MeasurementError):
    """The measured command ran longer than it was given."""
