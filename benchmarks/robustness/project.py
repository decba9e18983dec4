"""What the runner needs of a project, whatever its language, and how it runs a command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from benchmarks.robustness.edit import Edit, Rule, Source

LONGEST = 900


class CannotRunError(Exception):
    """A command of the project's failed."""


class Project(Protocol):
    """A project that can be edited, checked and measured, always at the same path."""

    name: str
    source: Source

    @property
    def rules(self) -> Mapping[str, tuple[Rule, int]]:
        """The rules that apply to its language, and how often each is applied."""
        ...

    def prepare(self) -> None:
        """Install what is needed, and probe it; after this `source` is known."""
        ...

    def apply(self, edit: Edit | None, plants: Mapping[str, int]) -> None:
        """Make the project what it was, then edited, with loops of so many rounds in the functions of these benchmarks."""
        ...

    def innocent(self) -> bool:
        """Tell whether the project as it is gives the results of the original."""
        ...

    def measure(self, output: Path) -> dict[str, int]:
        """Measure it as it is; return Ir of each benchmark."""
        ...

    def compare(self, base: Path, candidate: Path) -> list[dict[str, Any]]:
        """Say what changed, per benchmark."""
        ...

    def rounds(self, counts: Mapping[str, int], percent: int) -> dict[str, int]:
        """Return the rounds that add this percentage to each benchmark."""
        ...


def run(command: Sequence[str | Path], *, cwd: Path, environ: Mapping[str, str], codes: tuple[int, ...] = (0,)) -> str:
    """Run a command to its end and return its output."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=LONGEST,
        )
    except subprocess.TimeoutExpired as expired:
        raise CannotRunError(f"{' '.join(map(str, command))}: not done within {LONGEST} s") from expired
    if done.returncode not in codes:
        raise CannotRunError(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout


def make_environment(folder: Path, *requirements: str) -> None:
    """Make a virtual environment that has these."""
    environ = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    run([sys.executable, "-m", "venv", folder], cwd=folder.parent, environ=environ)
    run([folder / "bin/python", "-m", "pip", "-q", "install", *requirements], cwd=folder.parent, environ=environ)
