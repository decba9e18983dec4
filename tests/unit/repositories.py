"""Small real git repositories, away from this machine's configuration."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from cachegrind_bench.vcs.commits import commit_info
from cachegrind_bench.vcs.git import Git

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.model.result import Commit

PATH = "/usr/local/bin:/usr/bin:/bin"


def git_environment(folder: Path) -> dict[str, str]:
    """Return an environment without any configuration of this machine, and no repository around `folder`."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return {"PATH": PATH, "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": str(folder)}


class Repository:
    def __init__(self, path: Path, environ: dict[str, str]) -> None:
        self.path = path
        self.environ = environ
        path.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str, **more: str) -> str:
        who = {f"GIT_{role}_{what}": "x@y" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        environ = {**self.environ, **who, "GIT_COMMITTER_DATE": "1700000000 +0200", **more}
        command = ["git", *arguments]
        return subprocess.run(
            command, cwd=self.path, env=environ, capture_output=True, text=True, check=True
        ).stdout.strip()

    def commit(self, message: str = "message", **more: str) -> str:
        self.git("commit", "--quiet", "--allow-empty", "-m", message, **more)
        return self.git("rev-parse", "HEAD")

    def info(self, **more: str) -> Commit:
        return commit_info(Git(self.path, {**self.environ, **more}))


def hanging_at(command: str, repository: Repository, tmp_path: Path) -> dict[str, str]:
    """Return variables under which this command of git hangs."""
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\ncase "$*" in *"{command}"*) sleep 60;; *) PATH={PATH} exec git "$@";; esac\n')
    slow.chmod(0o755)
    return {**repository.environ, "PATH": f"{slow.parent}:{PATH}"}
