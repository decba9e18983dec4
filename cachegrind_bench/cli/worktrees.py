"""Measuring other commits: each is checked out beside the work tree, and a cg-bench of its own measures it there."""

from __future__ import annotations

import codecs
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
import msgspec
from click.core import ParameterSource

from cachegrind_bench.cli import output
from cachegrind_bench.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping, Sequence

    from cachegrind_bench.process import Completed
    from cachegrind_bench.vcs.revisions import Repository

# What these say is meant for a measurement of the user's own, whose result is stored, named or cut into shards.
_NOT_FOR_RUN = frozenset(
    f"CG_BENCH_{name}"
    for name in (
        *("SAVE", "STORE", "WITH_PROFILE", "SAVE_BASELINE"),
        *("OUTPUT", "FORMAT", "SHARD", "ID", "KEEP_OUT_FILES", "CACHED"),
    )
)


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """A place to measure commits of a repository, one after the other.

    All are checked out at the same path: a path of another length would be another cost. `within` is the folder below the
    top of the work tree in which commands are executed.
    """

    repository: Repository
    folder: Path
    within: str

    def measure(self, sha: str, words: Sequence[str], target: Path) -> None:
        """Let `cg-bench run` with these words measure this commit, and write the result file `target`.

        What fails there is told on stderr as it happens. MeasurementError if no result came of it.
        """
        from cachegrind_bench import process
        from cachegrind_bench.config.source import find
        from cachegrind_bench.vcs.worktree import worktree

        with worktree(self.repository.cwd, sha, self.folder / "tree", self.repository.environ) as tree:
            place = tree / self.within
            if not place.is_dir():
                raise MeasurementError(f"{sha[:12]} has no folder {self.within}", hint="start in one that all have")
            if "--" not in words and find(place) is None:
                raise MeasurementError(
                    f"{sha[:12]} has no configuration of a suite",
                    hint="commit yours, or give the command to measure after --",
                )
            # -P: the commit that is measured may hold this package.
            command = [sys.executable, "-P", "-m", "cachegrind_bench", "run", "-o", str(target), *words]
            decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
            done = process.run(
                command,
                cwd=place,
                env=_environment(self.repository.environ),
                echo=lambda chunk: output.write_error(decoder.decode(chunk)),
            )
        if done.status not in (0, MeasurementError.exit_code) or not target.exists():
            raise MeasurementError(
                f"{sha[:12]} could not be measured: cg-bench run ended with {_end(done)}",
                hint="what it said is above; benchmarks and configuration are those of that commit",
            )


@contextmanager
def bench(repository: Repository) -> Generator[Bench]:
    """Return a place to measure commits, which is gone afterwards."""
    from cachegrind_bench.vcs.git import git
    from cachegrind_bench.vcs.worktree import PREFIX

    top = Path(git(("rev-parse", "--show-toplevel"), repository.cwd, repository.environ).rstrip("\n"))
    within = os.path.relpath(repository.cwd.resolve(), top.resolve())
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        yield Bench(repository=repository, folder=Path(folder), within=within)


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return our variables without those that would lead to another repository, or send the result elsewhere as well."""
    from cachegrind_bench.vcs.git import without_repository

    return {name: value for name, value in without_repository(environ).items() if name not in _NOT_FOR_RUN}


def words_for_run(names: Collection[str]) -> list[str]:
    """Return those of these options that were typed, as words for `cg-bench run`; the environment hands on its own."""
    context, words = click.get_current_context(), list[str]()
    for option in context.command.params:
        name = option.name or ""
        if name not in names or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value, flag = context.params[name], max(option.opts, key=len)
        if isinstance(option, click.Option) and option.is_flag:
            words += [flag] * bool(value)
        else:
            texts = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
            words += [word for text in texts for word in (flag, _word(name, text))]
    return words


def _word(name: str, value: object) -> str:
    return f"{value}ms" if name == "timeout" else str(value)


def _end(done: Completed) -> str:
    return f"signal {done.signal}" if done.status is None else f"exit status {done.status}"
