"""Progress of long runs: elapsed time and phase in one live line on a terminal, one plain line for each phase in a log."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def phase(self, text: str) -> None:
        """Show nothing."""

    def write(self, chunk: bytes) -> None:
        """Swallow what the program wrote."""


class Plain(Silent):
    """One line for each phase, and the program's output as it comes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._line_open = False

    def phase(self, text: str) -> None:
        """Say what goes on from now."""
        self._copy(b"\n" * self._line_open + f"cg-bench: {text}\n".encode())
        self._line_open = False

    def write(self, chunk: bytes) -> None:
        """Copy what the program wrote, byte by byte."""
        self._copy(chunk)
        self._line_open = not chunk.endswith(b"\n")

    def _copy(self, chunk: bytes) -> None:
        with suppress(OSError):  # nobody reads our stderr: no reason to stop measuring
            self._stream.buffer.write(chunk)
            self._stream.buffer.flush()


class Live(Silent):
    """A spinner, the phase and the time since the start on one line that clears itself in the end."""

    def __init__(self, stream: TextIO) -> None:
        # Imported here: rich costs a tenth of a second, which only terminals should pay.
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        console = Console(file=stream)
        self._progress: RichProgress = Progress(
            SpinnerColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task: TaskID = self._progress.add_task("starting", total=None)
        self._line = b""

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finish_line()
        self._progress.stop()

    def phase(self, text: str) -> None:
        """Say what goes on from now."""
        self._finish_line()
        self._progress.update(self._task, description=text)

    def write(self, chunk: bytes) -> None:
        """Print the program's output above the line, whole lines at a time: half of one would be drawn over."""
        complete, newline, rest = (self._line + chunk).rpartition(b"\n")
        self._line = rest
        if newline:
            self._print(complete + newline)

    def _finish_line(self) -> None:
        if self._line:
            self._print(self._line + b"\n")
            self._line = b""

    def _print(self, text: bytes) -> None:
        self._progress.console.out(text.decode("utf-8", "replace"), end="", highlight=False)


def progress(stream: TextIO | None, *, quiet: bool) -> Silent:
    """Return the progress display that suits this stream (None: stderr is closed)."""
    if quiet or stream is None:
        return Silent()
    return Live(stream) if stream.isatty() else Plain(stream)
