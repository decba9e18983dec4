"""Progress of long runs and of suites: live lines on a terminal, plain lines in a log.

Only this module knows rich; it is imported where a terminal is there to draw on, since it costs a tenth of a second.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Self, TextIO

from cachegrind_bench.errors import CgBenchError
from cachegrind_bench.log import heard_by
from cachegrind_bench.model.result import Benchmark, Status
from cachegrind_bench.model.text import duration, grouped, plain, rough_duration, shortened
from cachegrind_bench.valgrind.failures import quotation

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


_LONGEST_ID, _SHORTEST_ID = 60, 12
_BESIDE_ID = 38  # columns for spinner, time and phase, which a terminal without room would cut instead
_QUOTED = "  | "  # a line of what a program wrote
_BINARY = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")  # control characters that no text has, as `file` sees it


def _live(stream: TextIO | None) -> Progress | None:
    """Return lines that clear themselves in the end, with a spinner and the time since their start; None but on a terminal."""
    if stream is None or not stream.isatty():
        return None
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(file=stream)
    console.show_cursor = lambda show=True: show  # type: ignore[method-assign]  # whoever quits (SIGQUIT) would be left without one
    return Progress(
        SpinnerColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


# --- One run -------------------------------------------------------------------------------------------------------------


class Display(ExitStack):
    """One line for each phase, and the program's output as it comes; nothing where there is no stream.

    On a terminal it is one line with the phase and the time since the start, below the output, of which binary parts are
    left out.
    """

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self._stream = stream
        self._live = _live(stream)
        self._line = b""  # what the program has written of a line, or its last part
        self._has_output = False
        self._left_out = False

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.add_task("starting", total=None)
            self._live.start()
            self.callback(self._live.stop)
            self.callback(self._end_line)
        if self._stream is not None:
            self.enter_context(heard_by(self.note))
        self.push(self._note_repetition)
        return self

    def _note_repetition(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Note what an error need not repeat: the program's last lines, which are just above it."""
        if self._has_output and not self._left_out and isinstance(error, CgBenchError):
            error.repeated = quotation((error.hint or "").splitlines())

    def phase(self, text: str) -> None:
        """Say what goes on from now."""
        self._end_line()
        self._left_out = False
        if self._live is not None:
            self._live.update(self._live.task_ids[0], description=text)
        else:
            self.note(text)

    def note(self, text: str) -> None:
        """Write a line that stays, also on a terminal."""
        self._end_line()
        self._print(f"cg-bench: {text}\n".encode())

    def write(self, chunk: bytes) -> None:
        """Copy what the program wrote, byte by byte; to a terminal whole lines: half of one would be drawn over."""
        self._has_output = self._stream is not None
        if self._live is None:
            self._print(chunk)
            self._line = chunk.rpartition(b"\n")[2]  # is there one? All of it would be copied with each chunk
            return
        if _BINARY.search(chunk):
            if not self._left_out:
                self._end_line()
                self._print(b"(the program writes binary data, which is not shown)\n")
            self._left_out = True
            return
        complete, newline, self._line = (self._line + chunk).rpartition(b"\n")
        if newline:
            self._print(complete + newline)

    def _end_line(self) -> None:
        if self._line:
            self._print(b"\n" if self._live is None else self._line + b"\n")
            self._line = b""

    def _print(self, text: bytes) -> None:
        if self._live is not None:
            self._live.console.out(text.decode("utf-8", "replace"), end="", highlight=False)
        elif self._stream is not None:
            with suppress(OSError):  # nobody reads our stderr: no reason to stop measuring
                self._stream.buffer.write(text)
                self._stream.buffer.flush()


# --- A suite -------------------------------------------------------------------------------------------------------------


class SuiteDisplay(ExitStack):
    """One plain line for each benchmark that has ended, without control characters; the output of those that failed.

    On a terminal there are live lines as well: for each benchmark under way, and for the whole, with the estimated rest.
    Without a stream (stderr is closed, or nothing is wanted) it only keeps the times.
    """

    def __init__(self, stream: TextIO | None, total: int, expected_ms: Mapping[str, int], jobs: int) -> None:
        super().__init__()
        self._stream = stream
        self._live = _live(stream)
        self._tasks: dict[str, TaskID] = {}  # by benchmark; that of the whole is ""
        self._total = total
        self._done = 0
        self._jobs = jobs
        self._expected_ms = expected_ms
        self._started: dict[str, float] = {}
        self._running: set[str] = set()
        self._lock = threading.Lock()
        self._remarks: dict[str, list[str]] = {}
        self._advised: set[str] = set()
        self.wall_ms: dict[str, int] = {}
        self.reused_ids: set[str] = set()  # of the benchmarks that were not measured again

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
            self.callback(self._live.stop)
            self._show("")
        if self._stream is not None:
            self.enter_context(heard_by(self.note))
        return self

    def note(self, text: str) -> None:
        """Write a line about the whole."""
        with self._lock:
            self._line(text)

    def setting_up(self, command: str) -> None:
        """Say which set-up command begins."""
        self.note(f"setup: {command}")

    def started(self, job_id: str) -> None:
        """Note when a benchmark began."""
        with self._lock:
            self._started[job_id] = time.monotonic()
            self._running.add(job_id)
            self._show(job_id)

    def phase(self, job_id: str, text: str) -> None:
        """Show on a terminal what a benchmark does from now on."""
        with self._lock:
            if job_id in self._running:
                self._show(job_id, f"  {plain(text)}")

    def shared(self, job_id: str) -> None:
        """Have a benchmark end with the time that it says it took."""
        with self._lock:
            self._started.pop(job_id, None)

    def finished(self, benchmark: Benchmark, said: bytes) -> None:
        """Write the line of a benchmark that has ended, and what a failed one said last."""
        with self._lock:
            started = self._started.get(benchmark.id)
            elapsed = benchmark.wall_ms if started is None else round(1000 * (time.monotonic() - started))
            if benchmark.status is Status.OK:
                self.wall_ms[benchmark.id] = elapsed
            remarks = "".join(f"; {text}" for text in self._remarks.get(benchmark.id, ()))
            self._ended(benchmark, f"{duration(elapsed)}{remarks}")
            if benchmark.status is not Status.OK:
                self._failure((benchmark.error or "").splitlines(), said)

    def reused(self, benchmark: Benchmark, created_at: str) -> None:
        """Write the line of a benchmark that did not have to be measured again."""
        with self._lock:
            self.reused_ids.add(benchmark.id)
            self._ended(benchmark, f"re-used, of {created_at}")

    def skipped(self, job_id: str, why: str) -> None:
        """Write the line of a benchmark that its own code skips."""
        with self._lock:
            self._end(job_id, f"skipped  ({shortened(plain(why), _LONGEST_ID)})")

    def remark(self, job_id: str, text: str) -> None:
        """Add to the line of a benchmark that will end."""
        with self._lock:
            self._remarks.setdefault(job_id, []).append(text)

    def _ended(self, benchmark: Benchmark, how: str) -> None:
        score = benchmark.score
        result = benchmark.status.value.upper() if score is None else f"score {grouped(score.value)}"
        self._end(benchmark.id, f"{result}  ({how})")

    def _end(self, job_id: str, result: str) -> None:
        self._done += 1
        self._running.discard(job_id)
        if self._live is not None and job_id in self._tasks:
            self._live.remove_task(self._tasks.pop(job_id))
        self._show("")
        place = f"[{self._done:>{len(str(self._total))}}/{self._total}]"
        self._line(f"{place} {shortened(plain(job_id), _LONGEST_ID)}  {result}")

    def _failure(self, error: list[str], said: bytes) -> None:
        """Write what happened, what the program said (the error may quote the end of it), and advice not yet given."""
        said = b"" if _BINARY.search(said) else said  # the error quotes its last lines, without control characters
        quoted = quotation(error) if said else frozenset[str]()
        what, *advice = [line for line in error if line not in quoted] or [""]
        self._write(f"  {plain(what)}\n")
        for line in said.decode("utf-8", "backslashreplace").splitlines():
            self._write(f"{_QUOTED}{plain(line)}\n")
        for line in advice:
            if line.startswith(_QUOTED) or line not in self._advised:
                self._write(f"  {plain(line)}\n")
        self._advised.update(advice)

    def _line(self, text: str) -> None:
        self._write(f"cg-bench: {plain(text)}\n")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # nobody reads our stderr: no reason to stop measuring
            if self._live is not None:
                self._live.console.out(text, end="", highlight=False)
            elif self._stream is not None:
                self._stream.write(text.encode("utf-8", "backslashreplace").decode())
                self._stream.flush()

    def _show(self, job_id: str, doing: str = "") -> None:
        """Show on a terminal what a benchmark does, if one is named, and how far the whole is."""
        if self._live is None:
            return
        rest = self.remaining_ms()
        eta = "" if rest is None else f", about {rough_duration(rest)} left"
        room = self._live.console.width - _BESIDE_ID
        name = shortened(plain(job_id), max(_SHORTEST_ID, min(room, _LONGEST_ID)))
        for line, text in {job_id: name + doing, "": f"{self._done} of {self._total} done{eta}"}.items():
            if line not in self._tasks:
                self._tasks[line] = self._live.add_task(text, total=None)
            self._live.update(self._tasks[line], description=text)

    def remaining_ms(self) -> int | None:
        """Estimate the rest from the last run: the time of all that is not done, spread over the jobs."""
        known = sorted([*self._expected_ms.values(), *self.wall_ms.values()])
        if not known:
            return None
        usual, now = known[len(known) // 2], time.monotonic()
        running = [
            max(0, self._expected_ms.get(name, usual) - round(1000 * (now - self._started[name])))
            for name in self._running
        ]
        waiting = self._total - self._done - len(running)
        unstarted = [ms for name, ms in self._expected_ms.items() if name not in self._started]
        ahead = sum(unstarted) + usual * max(0, waiting - len(unstarted))
        return max([(sum(running) + ahead) // max(1, self._jobs), *running], default=0)
