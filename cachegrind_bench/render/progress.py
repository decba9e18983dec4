"""Progress of long runs: elapsed time and phase, on a terminal only. Logs get nothing they would have to scroll past."""

from __future__ import annotations

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
        """Nothing to write around."""


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

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def phase(self, text: str) -> None:
        """Say what goes on from now."""
        self._progress.update(self._task, description=text)

    def write(self, chunk: bytes) -> None:
        """Print the program's output above the line."""
        self._progress.console.out(chunk.decode("utf-8", "replace"), end="", highlight=False)


def progress(stream: TextIO, *, quiet: bool) -> Silent:
    """Return the progress display that suits this stream."""
    return Live(stream) if stream.isatty() and not quiet else Silent()
