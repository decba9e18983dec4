"""A commit checked out beside the work tree, for as long as it is needed. Nothing of the user's checkout is touched."""

from __future__ import annotations

import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.interruption import uninterrupted
from cachegrind_bench.vcs.git import git, try_git
from cachegrind_bench.vcs.objects import NOBODY

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

_TIMEOUT_S = 600.0


@contextmanager
def worktree(repository: Path, sha: str, path: Path, environ: Mapping[str, str]) -> Generator[Path]:
    """Check out a commit at `path`, which must not exist, and remove it afterwards. MeasurementError if git refuses."""
    try:
        git(("worktree", "add", "--detach", "--force", str(path), sha), repository, environ, timeout=_TIMEOUT_S)
        yield path
    finally:
        with uninterrupted():
            shutil.rmtree(path, ignore_errors=True)
            with suppress(MeasurementError):  # the next `git gc` does the same
                git(("worktree", "prune"), repository, environ, timeout=_TIMEOUT_S)


def changes_as_commit(repository: Path, environ: Mapping[str, str]) -> str | None:
    """Return a commit of the tracked files as they are now, on no branch; None if they are as in HEAD."""
    done = try_git(("stash", "create"), repository, {**environ, **NOBODY}, timeout=_TIMEOUT_S)
    text = done.stdout.decode("ascii", "replace").strip()
    return text if done.status == 0 and text else None
