"""The commit that is measured, as git tells it. Two short git commands that change nothing.

Knows git's porcelain formats and the branch variables of CI services; must not know what the commit is used for.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from cachegrind_bench import process
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.model.result import Commit

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NoCommit", "commit_info"]

_TIMEOUT_S = 10.0
_OUTPUT_LIMIT = 1 << 26  # a status with every file of a large repository; what is needed stands at its start
# No lock files, no prompt, no daemon left behind (fsmonitor), and the real parents where history was replaced.
_GIT = ("git", "--no-optional-locks", "--no-replace-objects", "-c", "core.fsmonitor=false")
_SETTINGS = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "LANGUAGE": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoCommit:
    """There is no commit to name; `why` is a sentence part for the user."""

    why: str


def commit_info(cwd: Path, environ: Mapping[str, str]) -> Commit | NoCommit:
    """Return the commit checked out in the repository around `cwd`, and whether tracked files differ from it."""
    environ = {**environ, **_SETTINGS}
    try:
        # Untracked files do not make a checkout dirty: build results lie about everywhere.
        status = _git(("status", "--porcelain=v2", "--branch", "--untracked-files=no", "-z"), cwd, environ)
        headers, changes = _parse_status(status)
        sha = headers.get("branch.oid", "")
        if not re.fullmatch(r"[0-9a-f]{40,64}", sha):
            return NoCommit(why="the branch has no commit yet")
        # The raw commit, as `git log` hides the parents of a shallow clone's last commit, which is CI's usual case.
        parent, committed_at = _parse_commit(_git(("cat-file", "commit", sha), cwd, environ))
    except MeasurementError as error:
        return NoCommit(why=error.message)
    branch: str | None = headers.get("branch.head", "(detached)")
    if branch == "(detached)":
        branch = _branch_of_service(sha, environ)
    return Commit(sha=sha, parent=parent, branch=branch, dirty=changes, committed_at=committed_at)


def _git(arguments: tuple[str, ...], cwd: Path, environ: Mapping[str, str]) -> str:
    try:
        done = process.run(
            [*_GIT, *arguments], cwd=cwd, env=environ, timeout=_TIMEOUT_S, keep_output_limit=_OUTPUT_LIMIT
        )
    except process.ProgramNotFound as error:
        raise MeasurementError("git is not installed") from error
    if done.timed_out:
        raise MeasurementError(f"git {arguments[0]} took more than {_TIMEOUT_S:.0f} s")
    if done.status != 0:
        raise MeasurementError(_why(done, arguments[0], cwd))
    return done.stdout.decode("utf-8", "backslashreplace")


def _why(done: process.Completed, command: str, cwd: Path) -> str:
    said = done.stderr.decode("utf-8", "backslashreplace").strip()
    if "dubious ownership" in said or "unsafe repository" in said:
        # Usual in containers: the checkout belongs to the user outside.
        return f"git distrusts the owner of the repository; try: git config --global --add safe.directory '{cwd}'"
    if "not a git repository" in said:
        return "not in a git repository"
    how = f"was ended by signal {done.signal}" if done.status is None else f"failed with status {done.status}"
    first = next((line for line in said.splitlines() if line.startswith(("fatal:", "error:"))), "")
    return f"git {command} {how}{': ' if first else ''}{first.partition(': ')[2]}"


def _parse_status(text: str) -> tuple[dict[str, str], bool]:
    """Return the headers of `status --porcelain=v2 -z`, and whether any change follows them."""
    records = text.split("\0")
    # Headers come first; later, a record may be a bare path, which may look like one.
    headers = list(takewhile(lambda record: record.startswith("# "), records))
    changes = any(record.startswith(("1 ", "2 ", "u ")) for record in records[len(headers) :])
    values: dict[str, str] = {}
    for header in headers:
        name, _, value = header.removeprefix("# ").partition(" ")
        values[name] = value
    return values, changes


def _parse_commit(text: str) -> tuple[str | None, str]:
    """Return the first parent and the time of a raw commit, whose headers end with an empty line."""
    headers = text.partition("\n\n")[0]
    parent = re.search(r"^parent ([0-9a-f]{40,64})$", headers, re.MULTILINE)
    seconds = re.search(r"^committer .*> (-?[0-9]{1,18}) [-+]?[0-9]+$", headers, re.MULTILINE)
    try:
        time = datetime.fromtimestamp(int(seconds[1]) if seconds else 0, UTC)
    except (OverflowError, OSError, ValueError):  # a made-up time, beyond year 9999
        time = datetime.fromtimestamp(0, UTC)
    return parent[1] if parent else None, time.isoformat().replace("+00:00", "Z")


def _branch_of_service(sha: str, environ: Mapping[str, str]) -> str | None:
    """Return the branch of a CI job, as services check out a commit and not a branch.

    Only if this is the job's own commit: a job may have other checkouts beside it, as of the base.
    """
    if sha in {environ.get("GITHUB_SHA"), _pull_request_head(environ)} and environ.get("GITHUB_REF_TYPE") != "tag":
        return environ.get("GITHUB_HEAD_REF") or environ.get("GITHUB_REF_NAME") or None
    if sha == environ.get("CI_COMMIT_SHA"):
        return environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME") or environ.get("CI_COMMIT_BRANCH") or None
    return None


def _pull_request_head(environ: Mapping[str, str]) -> str | None:
    """Return the last commit of GitHub's pull request, while GITHUB_SHA is its merge with the base."""
    try:
        event = json.loads(Path(environ["GITHUB_EVENT_PATH"]).read_bytes())
        return str(event["pull_request"]["head"]["sha"])
    except (KeyError, OSError, TypeError, ValueError):
        return None
