"""A branch that is not checked out, here and at a remote: read, moved, fetched and pushed by comparing and swapping.

Where a remote's branches count, and what of one has been there before the remote began it anew. Knows what git and its servers
say when something goes wrong; must not know what the branch holds.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.process import Completed
from cachegrind_bench.vcs.git import COMMIT_ID, OWN_REFS, Git, lines_of

_PUSH_TIMEOUT_S = 120.0
_ASK_TIMEOUT_S = 60.0
_DAY_S = 86_400
# What no further try mends: who we are, where we go, and what is missing on this machine.
_HOPELESS = re.compile(
    r"Authentication failed|could not read (Username|Password)|Permission (to \S+ )?denied|Host key verification failed"
    r"|[Rr]epository .*not found|Repository not found|does not appear to be a git repository|URL returned error: 40[0-9]"
    r"|No such remote|SSL certificate|[Uu]nable to find remote helper|is not a git command|insufficient permission"
    r"|No space left|dubious ownership|protocol '.*' is not supported|transport '.*' not allowed"
)
# What seldom mends itself, but may: a few tries.
_DOUBTFUL = re.compile(
    r"Could not resolve host|Connection refused|Network is unreachable|No route to host|Failed to connect|Couldn't connect"
    r"|timed out|hook declined|protected branch|shallow update not allowed|refusing to|prohibited|read-only|deny"
    r"|exists; cannot create"  # a branch whose name is a part of ours
)


class AgainError(MeasurementError):
    """It may work at another try: somebody was quicker, holds a lock, or the server has a bad moment."""


class LostError(AgainError):
    """Nothing was changed, which is certain."""


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
        done = self.run("for-each-ref", "--format=%(refname) %(objectname) %(objecttype)", self.ref)
        if done.status != 0:
            raise self.failed(done, "for-each-ref")
        if f"broken ref {self.ref}".encode() in done.stderr:
            raise MeasurementError(f"the branch {self.name} cannot be read: git calls it broken")
        for line in lines_of(done.stdout.decode("utf-8", "replace")):
            ref, _, rest = line.partition(" ")
            oid, _, kind = rest.partition(" ")
            if ref == self.ref:
                if kind != "commit":
                    raise MeasurementError(f"the branch {self.name} does not lead to a commit")
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
        self._check(done, "update-ref")

    def fetch(self, remote: str) -> str | None:
        """Fetch the branch, and return the commit it ends with at the remote; None if the remote has no such branch.

        Neither FETCH_HEAD nor a branch or tag of the user's is touched. AgainError for what another try may mend.
        """
        # A new ref for each fetch: none has to be forced, and two at once do not meet.
        own = f"{OWN_REFS}/fetching/{time.time():.0f}-{secrets.token_hex(8)}"
        place = self._true_place(remote)
        with _doubtful():
            done = self.fetch_from(place, f"{self.ref}:{own}", options=("--no-filter",), called=remote)
        if f"couldn't find remote ref {self.ref}".encode() in done.stderr and self.listed(remote) is None:
            return None
        self._check(done, "fetch")
        oid = self.text("rev-parse", "--verify", "--end-of-options", f"{own}^{{commit}}").strip()
        self.remember(remote, oid)
        self._forget(own)
        return oid

    def remember(self, remote: str, oid: str) -> None:
        """Note what the branch ends with at the remote, which also keeps it from being collected. Failing costs nothing."""
        # If another process just does the same, that will do.
        update = f"update {OWN_REFS}/remotes/{remote}/{self.name} {oid}\n"
        self.run("update-ref", "--stdin", stdin=update.encode())

    def push(self, remote: str, new: str, old: str | None) -> None:
        """Let the branch at the remote end with `new`. AgainError if it does not end with `old` (None: is not there) any more.

        Also where nobody knows whether it worked, as when the connection broke: ask `listed`.
        """
        lease = f"--force-with-lease={self.ref}:{old or ''}"
        plain = ("--porcelain", "--no-verify", "--no-follow-tags", "--no-signed", "--recurse-submodules=no")
        # A mirror would push everything.
        push = ("-c", f"remote.{remote}.mirror=false", "push", *plain, lease, "--end-of-options")
        with _doubtful():
            done = self.run(*push, remote, f"{new}:{self.ref}", timeout=_PUSH_TIMEOUT_S, remote=remote)
        self._check(done, "push")

    def listed(self, remote: str) -> str | None:
        """Return the commit that the branch ends with at the remote, as the remote says it; None if it has no such branch."""
        place = self._true_place(remote)
        with _doubtful():
            ask = ("ls-remote", "--quiet", "--end-of-options", place, self.ref)
            done = self.run(*ask, timeout=_ASK_TIMEOUT_S, remote=remote)
        self._check(done, "ls-remote")
        for line in lines_of(done.stdout.decode("utf-8", "replace")):
            oid, _, ref = line.partition("\t")
            if ref == self.ref and COMMIT_ID.fullmatch(oid):
                return oid
        return None

    def tidy(self) -> None:
        """Remove what fetches left that were killed a day ago or more. Failing costs nothing."""
        with suppress(MeasurementError):
            text = self.text("for-each-ref", "--format=%(refname)", f"{OWN_REFS}/fetching/")
            for ref in lines_of(text):
                at = ref.rpartition("/")[2].partition("-")[0]
                if at.isdigit() and int(at) < time.time() - _DAY_S:
                    self._forget(ref)

    def _forget(self, ref: str) -> None:
        self.run("update-ref", "--stdin", stdin=f"delete {ref}\n".encode())

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

    def _check(self, done: Completed, command: str) -> None:
        """Raise the error that says why a command failed, if it did, of the class that says whether to try again."""
        if done.status == 0:
            return
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
            raise (DoubtfulError if _DOUBTFUL.search(message) else LostError)(message)
        if _HOPELESS.search(said):
            raise failed if "dubious" in said else MeasurementError(message)
        raise (DoubtfulError if _DOUBTFUL.search(said) else AgainError)(message)


def published(branch: Branch, remote: str, here: str) -> str | None:
    """Return the newest commit of the branch, which ends with `here`, that is known to have been at the remote, or None.

    To be asked before a fetch, which replaces what is known of the remote; the answer is kept in a ref, as it would be lost.
    """
    own, last, theirs = (
        f"refs/{folder}/{remote}/{branch.name}" for folder in ("cg-bench/published", "cg-bench/remotes", "remotes")
    )
    listed = branch.text("for-each-ref", "--format=%(refname) %(objectname)", own, last, theirs)
    tips = {ref: oid for ref, _, oid in (line.partition(" ") for line in lines_of(listed))}
    if tips.get(own) == here:
        return here
    # An older answer may know more than the remote's last state, or be of a branch that was here before this one.
    known = [tips[ref] for ref in (own, last, theirs) if ref in tips]
    if theirs in tips:  # what the user's own fetches saw in former times
        known += (branch.answer("merge-base", "--fork-point", theirs, here) or "").split()
    best: str | None = None
    for tip in dict.fromkeys(known):
        common = branch.merge_base(here, tip)
        if common is not None and (best is None or branch.is_ancestor(best, common)):
            best = common
    if best is not None and best != tips.get(own):
        done = branch.run("update-ref", own, best)
        if done.status != 0:
            raise AgainError(branch.failed(done, "update-ref").message)
    return best


@contextmanager
def _doubtful() -> Generator[None]:
    """Take a server that does not answer in time for one that may do so at another try."""
    try:
        yield
    except MeasurementError as error:
        raise DoubtfulError(error.message) from error


@dataclass(slots=True)
class LockWatch:
    """Watches the lock of a branch here, which git holds for an instant, and which stays if git is killed in it.

    Only one that does not change for `patience` seconds of our own waiting is removed: the clock may have been set, and a
    machine that slept has old locks that are in use. `removed`: whether the last look did.
    """

    branch: Branch
    patience: float = 60.0
    removed: bool = False
    _seen: tuple[int, int] | None = None
    _since: float = 0.0

    def look(self) -> Path | None:
        """Return the lock if there is one, after it was removed if it was there long enough."""
        self.removed = False
        text = self.branch.text("rev-parse", "--git-path", f"{self.branch.ref}.lock")
        path = self.branch.cwd / text.removesuffix("\n")
        try:
            status = path.lstat()
        except OSError:
            self._seen = None
            return None
        now, seen = time.monotonic(), (status.st_ino, status.st_mtime_ns)
        if seen != self._seen:
            self._seen, self._since = seen, now
        elif now - self._since >= self.patience:
            with suppress(OSError):
                path.unlink()
                self.removed = True
        return path
