"""A branch that is not checked out, here and at a remote: read, moved, fetched and pushed, if nobody was quicker.

Knows what git and its servers say when something goes wrong; must not know what the branch holds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.process import Completed
from cachegrind_bench.vcs.git import OWN_REFS, Git, lines_of

_PUSH_TIMEOUT_S = 120.0
_ASK_TIMEOUT_S = 60.0
_OLD_LOCK_S = 10.0
# What no further try helps: who we are, where we go, and what is missing on this machine.
_HOPELESS = re.compile(
    r"Authentication failed|could not read (Username|Password)|Permission (to \S+ )?denied|Host key verification failed"
    r"|[Rr]epository .*not found|Repository not found|does not appear to be a git repository|URL returned error: 40[0-9]"
    r"|No such remote|SSL certificate|[Uu]nable to find remote helper|is not a git command|insufficient permission"
    r"|No space left|dubious ownership|protocol '.*' is not supported|transport '.*' not allowed"
)
# What another try seldom helps: a few.
_DOUBTFUL = re.compile(
    r"Could not resolve host|Connection refused|Network is unreachable|No route to host|Failed to connect|Couldn't connect"
    r"|timed out|hook declined|protected branch|shallow update not allowed|refusing to|prohibited|read-only|deny"
    r"|exists; cannot create"  # a branch whose name is a part of ours
)


class AgainError(MeasurementError):
    """It may work at another try: somebody was quicker, holds a lock, or the server has a bad moment."""


class DoubtfulError(AgainError):
    """It may work at another try, but most often it does not."""


class Branch(Git, frozen=True, kw_only=True):
    """A branch by its name, in the repository around a directory. MeasurementError where git fails."""

    name: str

    @property
    def ref(self) -> str:
        """The whole name of the ref."""
        return f"refs/heads/{self.name}"

    def remotes(self) -> list[str]:
        """Return the names of the remotes of the repository, sorted."""
        return sorted(lines_of(self.text("remote")))

    def tip(self) -> str | None:
        """Return the commit that the branch here ends with; None if there is no branch. Broken ones are an error."""
        done = self.run("for-each-ref", "--format=%(objectname) %(refname)", self.ref)
        if done.status != 0:
            raise self.failed(done, "for-each-ref")
        if f"broken ref {self.ref}".encode() in done.stderr:
            raise MeasurementError(f"the branch {self.name} cannot be read: git calls it broken")
        for line in lines_of(done.stdout.decode("utf-8", "replace")):
            oid, _, ref = line.partition(" ")
            if ref == self.ref:
                return oid
        return None

    def checked_out(self) -> str | None:
        """Return the work tree that the branch is checked out in; None if there is none."""
        listed = self.text("worktree", "list", "--porcelain")
        found = re.search(rf"^worktree (.*)\n(?:(?!worktree ).+\n)*branch {re.escape(self.ref)}$", listed, re.MULTILINE)
        return None if found is None else found[1]

    def move(self, new: str, old: str | None) -> None:
        """Let the branch here end with `new`. AgainError if it does not end with `old` (None: is not there) any more."""
        before = old or "0" * len(new)
        done = self.run("update-ref", "-m", "cg-bench", self.ref, new, before, timeout=_ASK_TIMEOUT_S)
        self._check(done, "update-ref", self.ref)

    def fetch(self, remote: str) -> str | None:
        """Fetch the branch, and return the commit it ends with at the remote; None if the remote has no such branch.

        Neither FETCH_HEAD nor a branch or tag of the user's is touched. AgainError for what another try may help.
        """
        own = f"{OWN_REFS}/remotes/{remote}/{self.name}"  # keeps it from being collected
        place = self._true_place(remote)
        with _doubtful():
            done = self.fetch_from(place, f"+{self.ref}:{own}", options=("--no-filter",), called=remote)
        if f"couldn't find remote ref {self.ref}".encode() in done.stderr:
            return None
        self._check(done, "fetch", own)
        return self.text("rev-parse", "--verify", "--end-of-options", f"{own}^{{commit}}").strip()

    def push(self, remote: str, new: str) -> None:
        """Let the branch at the remote end with `new`. AgainError if it ends with something that is not before `new`.

        Also where nobody knows whether it worked, as when the connection broke.
        """
        plain = ("--porcelain", "--no-verify", "--no-follow-tags", "--no-signed", "--recurse-submodules=no")
        # A mirror would push everything.
        push = ("-c", f"remote.{remote}.mirror=false", "push", *plain, "--end-of-options")
        with _doubtful():
            done = self.run(*push, remote, f"{new}:{self.ref}", timeout=_PUSH_TIMEOUT_S, remote=remote)
        self._check(done, "push")

    def _true_place(self, remote: str) -> str:
        """Return what to read from: the remote, or the URL it is pushed to where git would read from another one."""
        pull, push = (
            self.run("remote", "get-url", *how, "--end-of-options", remote).stdout for how in ((), ("--push",))
        )
        if pull == push or not push:
            return remote
        # As it was written, where it was: git replaces parts of it (insteadOf) once more.
        written = self.run("config", "--get-all", f"remote.{remote}.pushurl").stdout
        return lines_of((written or push).decode("utf-8", "surrogateescape"))[0]

    def _check(self, done: Completed, command: str, locked: str | None = None) -> None:
        """Raise the error that says why a command failed, if it did, of the class that says whether to try again.

        `locked` is the ref that it moved here.
        """
        if done.status == 0:
            return
        if locked is not None:
            self._remove_old_lock(locked)
        said = done.stderr.decode("utf-8", "backslashreplace")
        # What git push says of a ref: flag, refs and summary.
        refused = [
            line.split("\t")[-1]
            for line in lines_of(done.stdout.decode("utf-8", "backslashreplace"))
            if line.startswith("!\t")
        ]
        told = r"(remote: +\S|fatal: |error: (?!failed to push))" if refused else r"(remote: )?(fatal|error): "
        lines = [line.strip() for line in said.splitlines() if re.match(told, line)]
        what = "; ".join(line[:300] for line in [*refused, *lines][:4])
        failed = self.failed(done, command)
        message = f"git {command}: {what}" if what else failed.message
        if refused:
            raise (DoubtfulError if _DOUBTFUL.search(message) else AgainError)(message)
        if _HOPELESS.search(said):
            raise failed if "dubious" in said else MeasurementError(message)
        raise (DoubtfulError if _DOUBTFUL.search(said) else AgainError)(message)

    def _remove_old_lock(self, ref: str) -> None:
        """Remove the lock of a ref here, which git holds for an instant, and which stays if git is killed in it."""
        path = self.cwd / self.text("rev-parse", "--git-path", f"{ref}.lock").removesuffix("\n")
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime > _OLD_LOCK_S:
                path.unlink()


@contextmanager
def _doubtful() -> Generator[None]:
    """Take a server that does not answer in time for one that may do so at another try."""
    try:
        yield
    except MeasurementError as error:
        raise DoubtfulError(error.message) from error
