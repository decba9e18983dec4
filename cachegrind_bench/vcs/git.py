"""Runs git, quietly: no prompt, no lock where none is needed, no daemon, always in English.

Knows how git fails; must not know what its commands are used for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench import process
from cachegrind_bench.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TIMEOUT_S = 10.0
NO_REPOSITORY = "not in a git repository"
_OUTPUT_LIMIT = 1 << 26  # a status with every file of a large repository; what is needed stands at its start
# No lock files, no prompt, no daemon left behind (fsmonitor), no hooks, which are made for what the user does, and the
# real parents where history was replaced.
_GIT = (
    *("git", "--no-optional-locks", "--no-replace-objects"),
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
)
_SETTINGS = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "LANGUAGE": ""}


def git(
    arguments: tuple[str, ...],
    cwd: Path,
    environ: Mapping[str, str],
    *,
    stdin: bytes | None = None,
    timeout: float | None = None,
) -> str:
    """Return what a git command wrote, or raise MeasurementError with git's own reason if it fails."""
    done = try_git(arguments, cwd, environ, stdin=stdin, timeout=timeout)
    if done.status != 0:
        raise MeasurementError(failure(done, arguments[0], cwd))
    return done.stdout.decode("utf-8", "backslashreplace")


def try_git(
    arguments: tuple[str, ...],
    cwd: Path,
    environ: Mapping[str, str],
    *,
    stdin: bytes | None = None,
    timeout: float | None = None,
    limit: int = _OUTPUT_LIMIT,
) -> process.Completed:
    """Run a git command, for callers to whom its exit status is an answer.

    MeasurementError without git, or if it takes more than `timeout` seconds (10 unless told).
    """
    timeout = TIMEOUT_S if timeout is None else timeout
    try:
        done = process.run(
            [*_GIT, *arguments],
            cwd=cwd,
            env={**environ, **_SETTINGS},
            stdin=stdin,
            timeout=timeout,
            keep_output_limit=limit,
        )
    except process.ProgramNotFound as error:
        raise MeasurementError("git is not installed") from error
    if done.timed_out:
        raise MeasurementError(f"git {arguments[0]} took more than {timeout:.0f} s")
    return done


def failure(done: process.Completed, command: str, cwd: Path) -> str:
    """Say why a git command failed, in a sentence part for the user."""
    said = done.stderr.decode("utf-8", "backslashreplace").strip()
    if "dubious ownership" in said or "unsafe repository" in said:
        # Usual in containers: the checkout belongs to the user outside.
        return f"git distrusts the owner of the repository; try: git config --global --add safe.directory '{cwd}'"
    if "not a git repository" in said:
        return NO_REPOSITORY
    how = f"was ended by signal {done.signal}" if done.status is None else f"failed with status {done.status}"
    first = next((line for line in said.splitlines() if line.startswith(("fatal:", "error:"))), "")
    return f"git {command} {how}{': ' if first else ''}{first.partition(': ')[2]}"
