"""Measuring other commits: each is checked out beside the work tree, and a cg-bench of its own measures it there."""

from __future__ import annotations

import codecs
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench import process
from cachegrind_bench.config.source import find
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.vcs.git import without_repository
from cachegrind_bench.vcs.worktree import PREFIX, worktree

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from cachegrind_bench.usecases import Notices
    from cachegrind_bench.vcs.revisions import Repository

# What these say is meant for a measurement of the user's own, whose result is stored, named or cut into shards.
_NOT_FOR_RUN = frozenset(
    f"CG_BENCH_{name}"
    for name in (
        *("SAVE", "STORE", "WITH_PROFILE", "SAVE_BASELINE"),
        *("OUTPUT", "FORMAT", "SHARD", "ID", "KEEP_OUT_FILES", "CACHED"),
    )
)


class Worktree(msgspec.Struct, frozen=True, kw_only=True):
    """A place to measure commits of a repository, one after the other.

    All are checked out at the same path: a path of another length would be another cost. `within` is the folder below the
    top of the work tree in which commands are executed.
    """

    repository: Repository
    folder: Path
    within: str
    notices: Notices

    def measure(self, sha: str, words: Sequence[str], target: Path) -> None:
        """Let `cg-bench run` with these words measure this commit, and write the result file `target`.

        What it writes is passed on as it comes. MeasurementError if no result came of it.
        """
        repository = self.repository
        with worktree(repository.cwd, sha, self.folder / "tree", repository.environ) as tree:
            place = tree / self.within
            if not place.is_dir():
                raise MeasurementError(f"{sha[:12]} has no folder {self.within}", hint="start in one that all have")
            if "--" not in words and find(place) is None:
                raise MeasurementError(
                    f"{sha[:12]} has no configuration of a suite",
                    hint="commit yours, or give the command to measure after --",
                )
            environ = without_repository(repository.environ)
            decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
            done = process.run(
                # -P: the commit that is measured may hold this package.
                [sys.executable, "-P", "-m", "cachegrind_bench", "run", "-o", str(target), *words],
                cwd=place,
                env={name: value for name, value in environ.items() if name not in _NOT_FOR_RUN},
                echo=lambda chunk: self.notices.write(decoder.decode(chunk)),
            )
        if done.status not in (0, MeasurementError.exit_code) or not target.exists():
            end = f"signal {done.signal}" if done.status is None else f"exit status {done.status}"
            raise MeasurementError(
                f"{sha[:12]} could not be measured: cg-bench run ended with {end}",
                hint="what it said is above; benchmarks and configuration are those of that commit",
            )


@contextmanager
def opened_worktree(repository: Repository, notices: Notices) -> Generator[Worktree]:
    """Return a place to measure commits, which is removed afterwards."""
    top = Path(repository.text("rev-parse", "--show-toplevel").rstrip("\n"))
    within = os.path.relpath(repository.cwd.resolve(), top.resolve())
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        yield Worktree(repository=repository, folder=Path(folder), within=within, notices=notices)
