"""Which commit a revision means, and which commits come before it; shallow clones are deepened as far as needed.

Knows git's revisions and remotes; must not know why a commit is looked for.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.vcs.commits import parse_commit
from cachegrind_bench.vcs.git import COMMIT_ID, OWN_REFS, Git

Found = TypeVar("Found")

DEEPEN = "git fetch --unshallow (for actions/checkout: fetch-depth: 0)"
_PULL_MERGE = re.compile(r"refs/pull/[0-9]+/merge")
# Each step fetches this many more commits; most branches are younger than the first.
_STEPS = (50, 500, 5000)
_LIST_TIMEOUT_S = 300.0


class Repository(Git, frozen=True):
    """The repository around a directory, and the environment git runs in."""

    def commit(self, revision: str) -> str | None:
        """Return the commit that a revision means; None if it means none here."""
        if not revision or "\0" in revision or "\n" in revision:
            return None
        done = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        text = done.stdout.decode("ascii", "replace").strip()
        return text if done.status == 0 and COMMIT_ID.fullmatch(text) else None

    def named(self, name: str) -> str | None:
        """Return the commit of the branch of this name, else the one that it means as a revision; None if neither."""
        return self.branch(name) or self.commit(name)

    def required(self, name: str) -> str:
        """Return what `named` does. UsageError where it finds nothing."""
        sha = self.named(name)
        if sha is None:
            raise UsageError(f"git knows no commit {name!r}", hint=self.advice(name))
        return sha

    def advice(self, name: str) -> str:
        """Say what may help where `named` finds nothing. MeasurementError outside of a repository, which is why then."""
        shallow, remotes = self.is_shallow(), self.remotes()
        if shallow:
            return f"this clone is shallow: {DEEPEN}"
        if remotes:
            wanted = shlex.join([remotes[0], f"{name}:refs/remotes/{remotes[0]}/{name}"])
            return f"a branch, a tag, or a commit's id; try: git fetch {wanted}"
        return "a branch, a tag, or a commit's id"

    def branch(self, name: str) -> str | None:
        """Return the commit of the branch of this name, else of the one of this name at a remote; None if there is none."""
        if name == "HEAD":  # each remote has one, which is another
            return None
        refs = (f"refs/heads/{name}", f"refs/remotes/{name}", *(f"refs/remotes/{at}/{name}" for at in self.remotes()))
        return next(filter(None, map(self.commit, refs)), None)

    def remotes(self) -> list[str]:
        """Return the names of the remotes, `origin` first."""
        return sorted(self.lines("remote"), key=lambda name: (name != "origin", name))

    def is_shallow(self) -> bool:
        """Return whether commits are missing because the clone is shallow."""
        return self.text("rev-parse", "--is-shallow-repository").strip() == "true"

    def is_cut(self, shas: Collection[str]) -> bool:
        """Return whether a shallow clone lacks the parents of one of these commits."""
        return self.is_shallow() and not self._cut().isdisjoint(shas)

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the newest commit that both come from; None if they have nothing in common."""
        return self._deepened(lambda: Git.merge_base(self, one, other), lambda found: found is not None)

    def ancestors(self, sha: str, most: int) -> list[str]:
        """Return this commit and up to `most` first-parent ancestors of it, nearest first."""

        def ask() -> list[str]:
            if self.commit(sha) is None:  # only its id is known, from a shallow clone's last commit
                return []
            return self.text("rev-list", "--first-parent", f"--max-count={most + 1}", sha, "--").split()

        def enough(found: list[str]) -> bool:
            return len(found) > most or (bool(found) and found[-1] not in self._cut())

        found = self._deepened(ask, enough)
        if not found:
            raise MeasurementError(f"the commit {sha[:12]} is not here, and could not be fetched")
        return found

    def deepen_since(self, sha: str, time: str) -> None:
        """Fetch what a shallow clone lacks of the first parents of this commit, as far back as this time. MeasurementError."""

        def ask() -> str:
            return self.text("rev-list", "--first-parent", sha, "--").split()[-1]

        def enough(oldest: str) -> bool:
            commit = self.text("cat-file", "commit", oldest)
            return oldest not in self._cut() or parse_commit(commit)[1] <= time

        if self.is_shallow():
            self._deepened(ask, enough)

    def bisects(self, file: Path) -> bool:
        """Return whether `git bisect` is at work here, and this file is part of the commits that it checks out."""
        start = "".join(self.lines("rev-parse", "--git-path", "BISECT_START"))
        return bool(start) and os.path.exists(self.cwd / start) and bool(self.lines("ls-files", "--", str(file)))

    def address(self, remote: str) -> str:
        """Return where a remote is; empty if it is nowhere."""
        return "".join(self.lines("remote", "get-url", remote)[:1])

    def fetch_branch(self, name: str, place: str | None = None) -> str | None:
        """Return the commit of the branch of this name as the first remote has it now; None if it could not be fetched.

        `place` is an address to ask instead of the remote. What is known of it here may be old, and a local branch of this
        name another one. Without a remote, the local one is taken. A shallow clone gets only the last commit.
        """
        remotes = self.remotes()
        if not remotes and place is None:
            return self.branch(name)
        own = f"{OWN_REFS}/base/{name}"
        done = self._get(place or remotes[0], f"+refs/heads/{name}:{own}")
        return self.commit(own) if done else None

    def fetch_commit(self, sha: str) -> str | None:
        """Return this commit, which is fetched by its id if it is not here; None if no remote gives it."""
        for remote in self.remotes():
            if self.commit(sha) is not None:
                break
            self._get(remote, sha)
        return self.commit(sha)

    def _get(self, remote: str, wanted: str) -> bool:
        """Fetch one branch or commit, of a shallow clone without its past, and return whether that went well."""
        depth = ("--depth=1",) if self.is_shallow() else ()
        return self.fetch_from(remote, wanted, options=depth).status == 0

    def first_parent(self, sha: str) -> str | None:
        """Return the first parent of a commit, even where a shallow clone hides it."""
        return parse_commit(self.text("cat-file", "commit", sha))[0]

    def pull_request_base(self, sha: str) -> str | None:
        """Return what GitHub merged a pull request with, if `sha` is that merge; else None.

        It is the first parent: the merge-base would blame the default branch's own changes since then on the author.
        """
        if sha == self.environ.get("GITHUB_SHA") and _PULL_MERGE.fullmatch(self.environ.get("GITHUB_REF", "")):
            return self.first_parent(sha)
        return None

    def _cut(self) -> set[str]:
        """Return the commits whose parents a shallow clone does not have."""
        path = self.text("rev-parse", "--git-path", "shallow").strip()
        try:
            return set(Path(os.path.join(self.cwd, path)).read_text("ascii").split())
        except FileNotFoundError:
            return set()
        except (OSError, ValueError) as error:
            raise MeasurementError(f"cannot read {path}: {error}") from error

    def _deepened(self, ask: Callable[[], Found], enough: Callable[[Found], bool]) -> Found:
        """Return the first answer that is enough, after fetching more and more of a shallow clone's past."""
        answer = ask()
        for step in (*_STEPS, None):
            if enough(answer) or not self.is_shallow():
                break
            self._fetch("--unshallow" if step is None else f"--deepen={step}")
            answer = ask()
        return answer

    def _fetch(self, how: str) -> None:
        """Deepen the clone by this option. No branch is moved, made or pruned, whatever is configured."""
        remotes = self.remotes()
        if not remotes:
            raise MeasurementError("the clone is shallow and has no remote to fetch the commits before from")
        said = ""
        for remote in remotes:
            # Most servers give commits by their ids, those at which this clone ends; from others branches are asked for.
            ask = ("ls-remote", "--heads", "--refs", "--end-of-options", remote)
            branches = [line.partition("\t")[2] for line in self.lines(*ask, timeout=_LIST_TIMEOUT_S)]
            for wanted in (sorted(self._cut()), branches):
                if wanted:
                    done = self.fetch_from(remote, *wanted, options=(how,))
                    if done.status == 0:
                        return
                    said = said or self.failed(done, "fetch").message
        raise MeasurementError(
            f"the clone is shallow and could not be deepened: {said}",
            hint=f"fetch more yourself, as in: {DEEPEN}",
        )
