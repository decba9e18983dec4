"""Clones of a real bare repository for stores in branches, and a look at what a store must not touch."""

from __future__ import annotations

import hashlib
import subprocess
from typing import TYPE_CHECKING

from cachegrind_bench.store.git_store import GitStore
from cachegrind_bench.vcs.objects import NOBODY
from tests.unit.repositories import Repository, git_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

BRANCH = "cg-bench-data"


class Place:
    """A repository with a commit, a staged and an unstaged change and a file git does not know; maybe with a remote."""

    def __init__(self, folder: Path, how: str) -> None:
        self.folder = folder
        self.environ = git_environment(folder)
        self.how = how
        self.bare = folder / "remote.git"
        source = Repository(folder / "source", self.environ)
        for number in range(3):
            (source.path / "file").write_text(f"{number}\n")
            source.git("add", "file")
            source.commit(f"commit {number}")
        self.run("clone", "--quiet", "--bare", str(source.path), str(self.bare))
        self.path = source.path if how == "local" else self.clone("mine")
        (self.path / "file").write_text("staged\n")
        self.git("add", "file")
        (self.path / "file").write_text("changed\n")
        (self.path / "other").write_text("unknown\n")

    def run(self, *arguments: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=cwd or self.folder, env=self.environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def git(self, *arguments: str) -> str:
        return self.run(*arguments, cwd=self.path)

    def write(
        self,
        changes: Mapping[str, bytes | str | None],
        base: str | None = BRANCH,
        parents: Sequence[str] = (BRANCH,),
        mode: str = "100644",
    ) -> str:
        """Commit what is in `base`, changed as somebody may do by hand, and let the branch end with it; a text is an id."""
        environ = {**self.environ, **NOBODY, "GIT_INDEX_FILE": str(self.folder / "index")}

        def git(*arguments: str, stdin: bytes = b"") -> str:
            done = subprocess.run(
                ["git", *arguments], cwd=self.home, env=environ, input=stdin, capture_output=True, check=True
            )
            return done.stdout.decode().strip()

        git("read-tree", base or "--empty")
        for path, data in changes.items():
            oid = git("hash-object", "-w", "--stdin", stdin=data) if isinstance(data, bytes) else data or "0" * 40
            line = f"{'0' if data is None else mode} {oid}\t{path}\0"
            git("update-index", "--replace", "-z", "--index-info", stdin=line.encode("utf-8", "surrogateescape"))
        before = [word for parent in parents for word in ("-p", parent)]
        commit = git("commit-tree", *before, "-m", "by hand", git("write-tree", "--missing-ok"))
        git("update-ref", f"refs/heads/{BRANCH}", commit)
        return commit

    def clone(self, name: str) -> Path:
        """Make another clone as CI does, or a whole one."""
        depth = ("--depth", "1", "--single-branch") if self.how == "shallow" else ()
        self.run("clone", "--quiet", *depth, f"file://{self.bare}", name)
        return self.folder / name

    def store(self, path: Path | None = None, *, patience: float = 60.0) -> GitStore:
        return GitStore(path or self.path, BRANCH, None, self.environ, patience=patience)

    @property
    def home(self) -> Path:
        """The repository whose branch counts."""
        return self.path if self.how == "local" else self.bare

    def files(self) -> list[str]:
        return self.run("ls-tree", "-r", "--name-only", BRANCH, cwd=self.home).splitlines()

    def commits(self) -> int:
        return int(self.run("rev-list", "--count", BRANCH, cwd=self.home))

    def untouchable(self) -> dict[str, str]:
        """Return what no store may change: work tree, index, HEAD, configuration, tags, other branches, FETCH_HEAD."""
        found = {
            str(path.relative_to(self.path)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in [*self.path.glob("*"), *self.path.glob(".git/*")]
            if path.is_file()
        }
        refs = self.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        found |= {ref: "" for ref in refs if BRANCH not in ref}
        return {**found, "status": self.git("status", "--porcelain=v2", "--branch")}
