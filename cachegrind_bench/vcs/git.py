"""Runs git, quietly: no prompt, no lock where none is needed, no daemon, always in English.

Knows how git fails, and the mark that it leaves where a checkout begins; must not know what its commands are used for.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path

import msgspec

from cachegrind_bench import process
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.log import LOG
from cachegrind_bench.model.text import without_password
from cachegrind_bench.waiting import Waiting

# Refs of our own: nobody's branches or remote-tracking refs are moved.
OWN_REFS = "refs/cg-bench"
COMMIT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)

_TIMEOUT_S = 10.0
_HISTORY_TIMEOUT_S = 60.0
_FETCH_TIMEOUT_S = 300.0
# No branch or tag of the user's is moved, made or pruned, whatever is configured, nor is FETCH_HEAD.
_FETCH = (
    *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=", "--no-prune"),
    *("--no-recurse-submodules", "--no-auto-gc", "--no-write-commit-graph"),
)
# What git sets for hooks, and people for other repositories: it would lead us away from the repository we are in, or make us
# write into the index of a commit that is being made. Configuration that is handed on so (GIT_CONFIG_...) is meant for all.
_OF_ONE_COMMAND = frozenset(f"GIT_{name}" for name in ("INDEX_FILE", "PREFIX", "GRAFT_FILE", "SHALLOW_FILE"))
_OF_ANOTHER_REPOSITORY = _OF_ONE_COMMAND | {
    f"GIT_{name}"
    for name in (
        *("DIR", "WORK_TREE", "IMPLICIT_WORK_TREE", "COMMON_DIR"),
        *("OBJECT_DIRECTORY", "ALTERNATE_OBJECT_DIRECTORIES", "QUARANTINE_PATH"),
    )
}
_OF_CACHES = frozenset((b"__pycache__", b".cg-bench"))
_LONGEST_FOLDERS = 20_000  # bytes of their names: all are in one variable, which takes 128 KiB
_OUTPUT_LIMIT = 1 << 26  # a status with every file of a large repository; what is needed is at its start
# No lock files, no prompt, no daemon left behind (fsmonitor), no hooks, which are made for what the user does, no refusal of
# line ends, which are the user's business, the real parents where history was replaced, and no file that says in which order
# changes are shown: one that a worktree does not have is an error.
_GIT = (
    *("git", "--no-optional-locks", "--no-replace-objects"),
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.safecrlf=false"),
    *("-c", "diff.orderFile=/dev/null"),
)
_NOT_FOUND = 127  # says the shell that guards git
_SETTINGS = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "LANGUAGE": ""}


class GitTimeoutError(MeasurementError):
    """git did not end in time."""


class NoCommitError(MeasurementError):
    """There is no git, or no work tree of it here, or no commit has been made in that yet."""


def lines_of(text: str) -> list[str]:
    """Return the lines of what git wrote. Names may have the further characters at which str.splitlines ends one."""
    return text.removesuffix("\n").split("\n") if text else []


# Who asks, as a URL has it, with a password or a token.
_OF_USER = re.compile(rb"(?<=://)(?:[^/:\s]{0,300}:\S{1,1000}|[^/?#\s]+)@")


class Git(msgspec.Struct, frozen=True):
    """git in the repository around a directory, with these variables. MeasurementError without git, or where it takes long.

    What asks a remote ends with us, even if we are killed; `waiting` may bound it to less than is usual.
    """

    cwd: Path
    environ: Mapping[str, str]
    waiting: Waiting = msgspec.field(default_factory=Waiting)

    def run(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        timeout: float = _TIMEOUT_S,
        limit: int = _OUTPUT_LIMIT,
        index: Path | None = None,
        environ: Mapping[str, str] | None = None,
        remote: str | None = None,
    ) -> process.Completed:
        """Run a command, for callers to whom its exit status is an answer; on demand with an `index` of its own.

        `remote` is whom it asks, by a name or an address.
        """
        given = self.environ if environ is None else environ
        # Where no repository is around the directory, a variable may name one.
        foreign = _OF_ONE_COMMAND if top_folder(self.cwd) is None else _OF_ANOTHER_REPOSITORY
        variables = {name: value for name, value in given.items() if name not in foreign}
        command = _command(arguments)
        what = f"git {command}" if remote is None else without_password(remote)
        timeout = timeout if remote is None else self.waiting.at_most(timeout)
        try:
            done = process.run(
                [*_GIT, *arguments],
                cwd=self.cwd,
                env={**variables, **_SETTINGS, **({} if index is None else {"GIT_INDEX_FILE": str(index)})},
                stdin=stdin,
                timeout=timeout,
                waiting=partial(self.waiting.look, what),
                keep_output_limit=limit,
                guarded=True,
            )
        except process.ProgramNotFound as error:
            raise NoCommitError("git is not installed") from error
        if done.status == _NOT_FOUND and process.which("git", variables.get("PATH", os.defpath)) is None:
            raise NoCommitError("git is not installed")
        if done.timed_out:
            raise GitTimeoutError(f"git {command} took more than {timeout:g} s")
        # git names the URL without them in most messages, but not in those of files that are served as they are.
        return msgspec.structs.replace(done, stderr=_OF_USER.sub(b"", done.stderr))

    def text(
        self, *arguments: str, stdin: bytes | None = None, timeout: float = _TIMEOUT_S, index: Path | None = None
    ) -> str:
        """Return what a command wrote, or raise MeasurementError with git's own reason if it fails."""
        done = self.run(*arguments, stdin=stdin, timeout=timeout, index=index)
        if done.status != 0:
            raise self.failed(done, arguments[0])
        return done.stdout.decode("utf-8", "backslashreplace")

    def lines(self, *arguments: str, timeout: float = _TIMEOUT_S) -> list[str]:
        """Return the lines that a command wrote; none where it failed."""
        done = self.run(*arguments, timeout=timeout)
        return lines_of(done.stdout.decode("utf-8", "replace")) if done.status == 0 else []

    def answer(self, *arguments: str, timeout: float = _TIMEOUT_S) -> str | None:
        """Return what git answers to a question, None if that is no. MeasurementError if it fails."""
        done = self.run(*arguments, timeout=timeout)
        if done.status not in (0, 1):
            raise self.failed(done, arguments[0])
        return done.stdout.decode("utf-8", "surrogateescape") if done.status == 0 else None

    def failed(self, done: process.Completed, command: str) -> MeasurementError:
        """Return the error for a command that failed, with git's own reason."""
        said = done.stderr.decode("utf-8", "backslashreplace").strip()
        if "dubious ownership" in said or "unsafe repository" in said:
            # Usual in containers: the checkout belongs to the user outside.
            named = re.search(r"repository at '([^']+)'", said)
            place = named[1] if named else self.cwd
            trust = f"git config --global --add safe.directory {shlex.quote(str(place))}"
            return MeasurementError(f"git distrusts the owner of the repository; try: {trust}")
        if "not a git repository" in said:
            return NoCommitError("not in a git repository")
        if "must be run in a work tree" in said:
            return NoCommitError("not in a work tree of git")
        how = f"was ended by signal {done.signal}" if done.status is None else f"failed with status {done.status}"
        first = next((line for line in said.splitlines() if line.startswith(("fatal:", "error:"))), "")
        return MeasurementError(f"git {command} {how}{': ' if first else ''}{first.partition(': ')[2]}")

    def gave_up(self, error: MeasurementError, what: str) -> None:
        """Note what is not known now as git did not end in time; whoever has no git, or no repository, knows why."""
        if isinstance(error, GitTimeoutError):
            LOG.info(f"{what}: {error.message}")

    def is_ancestor(self, old: str, new: str) -> bool:
        """Return whether a commit is in the history of another one, or is that."""
        return self.answer("merge-base", "--is-ancestor", old, new, timeout=_HISTORY_TIMEOUT_S) is not None

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the newest commit in both histories; None if they have nothing in common."""
        return (self.answer("merge-base", one, other, timeout=_HISTORY_TIMEOUT_S) or "").strip() or None

    def fetch_from(
        self,
        remote: str,
        *wanted: str,
        options: tuple[str, ...] = (),
        settings: tuple[str, ...] = (),
        stdin: bytes | None = None,
        called: str | None = None,
    ) -> process.Completed:
        """Fetch these branches or objects from a remote, by its name or address; `settings` are git's, as in -c NAME=VALUE.

        `called` is the name of an address.
        """
        arguments = (*settings, *_FETCH, *options, "--end-of-options", remote, *wanted)
        return self.run(*arguments, stdin=stdin, timeout=_FETCH_TIMEOUT_S, remote=called or remote)


def _command(arguments: Sequence[str]) -> str:
    """Return the name of the command, before which there may be settings."""
    return _command(arguments[2:]) if arguments[0] == "-c" else arguments[0]


def top_folder(cwd: Path) -> Path | None:
    """Return the top of the git work tree around a folder, None outside of one. Does not ask git, which may be missing."""
    return next((folder for folder in (cwd, *cwd.parents) if os.path.lexists(folder / ".git")), None)


def untracked_folders(git: Git) -> tuple[str, ...]:
    """Return the folders of this checkout in which git tracks nothing, ignored ones and other repositories, too, the uppermost first.

    Of very many, only some. MeasurementError as `text`.
    """
    done = git.run("ls-files", "--others", "--directory", "-z", timeout=_HISTORY_TIMEOUT_S)
    if done.status != 0:
        raise git.failed(done, "ls-files")
    names = done.stdout.split(b"\0")
    folders = sorted((name.rstrip(b"/") for name in names if name.endswith(b"/")), key=lambda name: name.count(b"/"))
    folders = [name for name in folders if os.path.basename(name) not in _OF_CACHES]
    lengths = accumulate(len(str(git.cwd)) + len(name) for name in folders)
    return tuple(
        os.path.join(git.cwd, os.fsdecode(name))
        for name, length in zip(folders, lengths, strict=True)
        if length < _LONGEST_FOLDERS
    )


def folders_up(cwd: Path) -> list[Path]:
    """Return `cwd` and the folders above it up to the top of its git work tree, else up to the root, nearest first."""
    places = [cwd, *cwd.parents]
    top = top_folder(cwd)
    return places if top is None else places[: places.index(top) + 1]


def without_repository(environ: Mapping[str, str]) -> dict[str, str]:
    """Return these variables without those that name a repository, for code that looks for it from the working directory."""
    return {name: value for name, value in environ.items() if name not in _OF_ANOTHER_REPOSITORY}
