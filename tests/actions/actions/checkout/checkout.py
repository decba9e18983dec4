"""Fills the workspace from the repository that CG_BENCH_TEST_ORIGIN names, as the real actions/checkout does:

the same refs, the same depth, the same remote, the same credentials in the same place.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping

# What the stand-in does nothing about, with the values that mean so.
IGNORED = {
    "ssh-key": ("",),
    "filter": ("",),
    "sparse-checkout": ("",),
    "lfs": ("", "false"),
    "submodules": ("", "false"),
}


def fail(reason: str) -> NoReturn:
    print(f"::error::checkout (stand-in): {reason}")
    sys.exit(1)


def refspec(ref: str, sha: str) -> tuple[list[str], list[str]]:
    """Return what to fetch, and the words after `git checkout --force`."""
    if re.fullmatch("[0-9a-f]{40}", ref):
        return [ref], ["--detach", ref]
    if ref.startswith("refs/heads/"):
        branch = ref.removeprefix("refs/heads/")
        there = f"refs/remotes/origin/{branch}"
        return [f"+{sha or ref}:{there}"], ["-B", branch, there]
    if ref.startswith("refs/pull/"):
        there = f"refs/remotes/pull/{ref.removeprefix('refs/pull/')}"
        return [f"+{sha or ref}:{there}"], [there]
    if ref.startswith("refs/"):
        return [f"+{sha or ref}:{ref}"], [ref]
    return [f"+refs/heads/{ref}*:refs/remotes/origin/{ref}*", f"+refs/tags/{ref}*:refs/tags/{ref}*"], [ref]


def emptied(given: Mapping[str, str]) -> Path:
    """Return the folder to fill. It stays itself where it exists: it is the working directory of the steps."""
    workspace = Path(os.environ["GITHUB_WORKSPACE"]).resolve()
    folder = (workspace / given["path"]).resolve()
    if not folder.is_relative_to(workspace):
        fail(f"the path {given['path']!r} leads out of the workspace")
    folder.mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    return folder


class Git:
    """Git in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self._folder, capture_output=True, text=True, check=False)
        if done.returncode:
            fail(f"git {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def has(self, ref: str) -> bool:
        command = ["git", "rev-parse", "--verify", "--quiet", ref]
        return subprocess.run(command, cwd=self._folder, capture_output=True, check=False).returncode == 0


def initialize(git: Git, given: Mapping[str, str]) -> None:
    origin = os.environ["CG_BENCH_TEST_ORIGIN"]
    git("-c", "init.defaultBranch=main", "init", "--quiet")
    git("remote", "add", "origin", origin if "://" in origin else f"file://{origin}")
    git("config", "--local", "gc.auto", "0")
    if given["persist-credentials"] == "true":
        basic = base64.b64encode(f"x-access-token:{given['token']}".encode()).decode()
        server = given["github-server-url"] or os.environ["GITHUB_SERVER_URL"]
        git("config", "--local", f"http.{server}/.extraheader", f"AUTHORIZATION: basic {basic}")


def fetch(git: Git, given: Mapping[str, str], specs: list[str]) -> None:
    command = ["fetch", "--quiet", "--prune", "--no-recurse-submodules"]
    if given["fetch-depth"] == "0":
        git(*command, "origin", "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
        git(*command, "--no-tags", "origin", *specs)  # a pull request's is not among them
    else:
        tags = [] if given["fetch-tags"] == "true" else ["--no-tags"]
        git(*command, *tags, f"--depth={given['fetch-depth']}", "origin", *specs)


def main() -> None:
    given: dict[str, str] = {name: str(value or "") for name, value in json.loads(os.environ["INPUTS"]).items()}
    for name, harmless in IGNORED.items():
        if given[name] not in harmless:
            fail(f"does not know `{name}: {given[name]}`")
    if given["repository"] != os.environ["GITHUB_REPOSITORY"]:
        fail(f"knows {os.environ['GITHUB_REPOSITORY']} only, not {given['repository']}")

    ref, sha = given["ref"], ""
    if not ref:
        ref, sha = os.environ["GITHUB_REF"], os.environ["GITHUB_SHA"]
    specs, target = refspec(ref, sha)
    git = Git(emptied(given))
    initialize(git, given)
    fetch(git, given, specs)
    if target == [ref] and not ref.startswith("refs/"):
        if git.has(f"refs/remotes/origin/{ref}"):
            target = ["-B", ref, f"refs/remotes/origin/{ref}"]
        elif git.has(f"refs/tags/{ref}"):
            target = [f"refs/tags/{ref}"]
        else:
            fail(f"a branch or tag with the name '{ref}' could not be found")
    git("checkout", "--quiet", "--force", *target)
    commit = git("rev-parse", "HEAD")
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as out:
        out.write(f"ref={ref}\ncommit={commit}\n")
    print(f"{commit} of {ref}")


main()
