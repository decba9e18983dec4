"""Many real processes on one store: started together, heard through a file each, ended or killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_READY_S = 120


class Writers:
    """Processes of Python code that say "ready", wait for a line, and then tell the names of what they have stored."""

    def __init__(self, out: Path, stack: ExitStack) -> None:
        self.out, self._stack = out, stack

    def start(
        self, code: str, *arguments: object, out: str, environ: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start one, whose output goes to the file of this name."""
        file = self._stack.enter_context((self.out / out).open("wb"))
        errors = self._stack.enter_context((self.out / out).with_suffix(".err").open("wb"))
        process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            env={**(environ or {}), "PYTHONPATH": os.getcwd(), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=errors,
        )
        self._stack.callback(self.end, process)
        return process

    def _wait_until(self, reached: Callable[[], bool]) -> None:
        """Wait, however slow the machine is; fail with what the processes complained of if it is never reached."""
        until = time.monotonic() + _READY_S
        while not reached():
            assert time.monotonic() < until, self.complaints()
            time.sleep(0.02)

    def let_go(self, processes: list[subprocess.Popen[bytes]]) -> None:
        """Let all begin at once, when all are ready."""
        outs = [path for path in self.out.iterdir() if path.suffix != ".err"]
        self._wait_until(lambda: all(path.read_bytes().startswith(b"ready\n") for path in outs))
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()

    def end(self, process: subprocess.Popen[bytes], *, children: bool = False) -> None:
        """Kill a process, and on demand all that it has started."""
        for pid in family(process.pid) if children else [process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(10)
        if process.stdin is not None:
            process.stdin.close()

    def complaints(self) -> list[str]:
        """Return the end of what each wrote to stderr."""
        return [path.read_text()[-500:] for path in sorted(self.out.glob("*.err"))]

    def wait_for(self, count: int) -> None:
        """Wait until so many runs are stored."""
        self._wait_until(lambda: len(self.acknowledged()) >= count)

    def acknowledged(self) -> set[str]:
        """Return the names that writers have said to be stored; a killed one's last line may be half there."""
        lines = [line for out in self.out.glob("*.out") for line in out.read_text().splitlines(keepends=True)]
        return {line.rstrip("\n") for line in lines if line.endswith("\n")} - {"ready"}


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[Writers]:
    """Return what starts processes; all are ended after the test."""
    out = tmp_path / "out"
    out.mkdir()
    with ExitStack() as stack:
        yield Writers(out, stack)


def family(pid: int) -> list[int]:
    """Return a process and all that it has started, down to the last: git runs in sessions of its own."""
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return [pid, *(each for child in children for each in family(child))]
