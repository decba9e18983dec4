"""Commits as git describes them: the one that is measured, the line of those before a revision, and the releases on it.

Knows git's formats and the branch variables of CI services; must not know what a commit is used for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.log import LOG
from cachegrind_bench.model.result import Commit, CommitNote, Release
from cachegrind_bench.vcs.git import COMMIT_ID, Git, NoCommitError, lines_of

# A git that hangs is given up sooner than one that looks at each file of a large checkout, whose state no cache has.
_ANSWERS_S, _STATUS_S = 10.0, 60.0


def commit_of(git: Git) -> Commit | None:
    """Return what `commit_info` does, or None if there is no commit; what else went wrong is noted."""
    try:
        return commit_info(git)
    except NoCommitError:
        pass
    except MeasurementError as error:
        LOG.info(f"the commit is not known: {error.message}")
    return None


def commit_info(git: Git) -> Commit:
    """Return the commit checked out in the repository, and whether tracked files differ from it.

    MeasurementError, most of all NoCommitError.
    """
    git.text("rev-parse", "--git-dir", timeout=_ANSWERS_S)
    # Untracked files do not make a checkout dirty: build results lie about everywhere.
    status = git.text("status", "--porcelain=v2", "--branch", "--untracked-files=no", "-z", timeout=_STATUS_S)
    records = status.split("\0")
    # Headers come first; later, a record may be a bare path, which may look like one.
    lines = list(takewhile(lambda record: record.startswith("# "), records))
    changes = any(record.startswith(("1 ", "2 ", "u ")) for record in records[len(lines) :])
    headers = {name: value for name, _, value in (line.removeprefix("# ").partition(" ") for line in lines)}
    sha = headers.get("branch.oid", "")
    if COMMIT_ID.fullmatch(sha) is None:
        raise NoCommitError("the branch has no commit yet")
    # The raw commit, as `git log` hides the parents of a shallow clone's last commit, which is CI's usual case.
    parent, committed_at = parse_commit(git.text("cat-file", "commit", sha))
    branch: str | None = headers.get("branch.head", "(detached)")
    if branch == "(detached)":
        branch = _branch_of_service(sha, git.environ)
    return Commit(sha=sha, parent=parent, branch=branch, dirty=changes, committed_at=committed_at)


def parse_commit(text: str) -> tuple[str | None, str]:
    """Return the first parent and the time of a raw commit, whose headers end with an empty line."""
    headers = text.partition("\n\n")[0]
    parent = re.search(rf"^parent ({COMMIT_ID.pattern})$", headers, re.MULTILINE)
    seconds = re.search(r"^committer .*> (-?[0-9]{1,18}) [-+]?[0-9]+$", headers, re.MULTILINE)
    return parent[1] if parent else None, utc(int(seconds[1]) if seconds else 0)


def utc(seconds: int) -> str:
    """Return seconds since 1970 as 2026-01-31T12:00:00Z; a made-up time, beyond the year 9999, as that of 1970."""
    try:
        time = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        time = datetime.fromtimestamp(0, UTC)
    return time.isoformat().replace("+00:00", "Z")


def _branch_of_service(sha: str, environ: Mapping[str, str]) -> str | None:
    """Return the branch of a CI job, as services check out a commit and not a branch.

    Only if this is the job's own commit: a job may have other checkouts as well, as of the base.
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


# Fields end with NUL, which neither names nor subjects can have; %s is the subject in one line.
_FORMAT = "--format=%H%x00%P%x00%ct%x00%an%x00%s%x00"
_FIELDS = 5
_RELEASE = re.compile(r"(?:.*[^A-Za-z0-9])?(?:v[0-9]+|v?[0-9]+(?:\.[0-9]+)+)(?:[.+_-][0-9A-Za-z]+)*", re.DOTALL)
# Of the whole history of a large repository; and of a list of commits.
_LINE_TIMEOUT_S, _NOTES_TIMEOUT_S = 60.0, 20.0


def line(git: Git, head: str, *, most: int | None = None) -> tuple[CommitNote, ...]:
    """Return the first-parent line that ends with `head`, oldest first: `most` commits, or all that are here.

    In a shallow clone it begins where the clone does. MeasurementError if git fails or does not know `head`.
    """
    count = () if most is None else (f"--max-count={most}",)
    options = ("--first-parent", "--encoding=UTF-8", "--no-show-signature", _FORMAT, *count)
    text = git.text("log", *options, "--end-of-options", head, "--", timeout=_LINE_TIMEOUT_S)
    return tuple(reversed(_notes(text)))


def notes(git: Git, shas: Collection[str]) -> dict[str, CommitNote]:
    """Return what git knows of those of these commits that are here."""
    options = ("--no-walk=unsorted", "--ignore-missing", "--encoding=UTF-8", "--no-show-signature", _FORMAT, "--stdin")
    given = "".join(f"{sha}\n" for sha in sorted(shas)).encode()
    text = git.text("log", *options, stdin=given, timeout=_NOTES_TIMEOUT_S)
    return {note.sha: note for note in _notes(text) if note.sha in shas}


def releases(git: Git, commits: Sequence[CommitNote]) -> tuple[Release, ...]:
    """Return the tags of these commits that look like a version, in the commits' order, then by name."""
    place = {note.sha: number for number, note in enumerate(commits)}
    found = [item for item in tags(git) if item.sha in place and _RELEASE.fullmatch(item.name)]
    return tuple(sorted(found, key=lambda item: (place[item.sha], item.name)))


def tags(git: Git) -> list[Release]:
    """Return all tags, with the commits that annotated ones lead to."""
    text = git.text("for-each-ref", "--format=%(objectname)%00%(*objectname)%00%(refname)", "refs/tags")
    rows = (row.split("\0") for row in lines_of(text))
    return [Release(name=name.removeprefix("refs/tags/"), sha=commit or tag) for tag, commit, name in rows]


def _notes(text: str) -> list[CommitNote]:
    fields = text.split("\0")
    rows = [fields[start : start + _FIELDS] for start in range(0, len(fields) - 1, _FIELDS)]
    return [
        CommitNote(
            sha=sha.lstrip("\n"),
            parents=tuple(parents.split()),
            committed_at=utc(int(seconds or 0)),  # empty where git cannot read the date
            author=author,
            subject=subject,
        )
        for sha, parents, seconds, author, subject in rows
    ]
