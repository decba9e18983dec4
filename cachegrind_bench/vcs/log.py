"""The line of commits before a revision, and the releases on it, as git tells them.

Knows git's formats of log and refs; must not know what is measured at a commit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.model.history import CommitNote, Release
from cachegrind_bench.vcs.commit import utc
from cachegrind_bench.vcs.git import failure, git, try_git

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

# Fields end with NUL, which neither names nor subjects can have; %s is the subject in one line.
_FORMAT = "--format=%H%x00%P%x00%ct%x00%an%x00%s%x00"
_FIELDS = 5
_RELEASE = re.compile(r"(?:.*[^A-Za-z0-9])?(?:v[0-9]+|v?[0-9]+(?:\.[0-9]+)+)(?:[.+_-][0-9A-Za-z]+)*", re.DOTALL)
_LOG_TIMEOUT_S = 60.0


def line(cwd: Path, environ: Mapping[str, str], head: str, *, most: int | None = None) -> tuple[CommitNote, ...]:
    """Return the first-parent line that ends with `head`, oldest first: `most` commits, or all that are here.

    In a shallow clone it begins where the clone does. MeasurementError if git fails or does not know `head`.
    """
    count = () if most is None else (f"--max-count={most}",)
    arguments = ("log", "--first-parent", "--encoding=UTF-8", "--no-show-signature", _FORMAT, *count)
    text = git((*arguments, "--end-of-options", head, "--"), cwd, environ, timeout=_LOG_TIMEOUT_S)
    return tuple(reversed(_notes(text)))


def notes(cwd: Path, environ: Mapping[str, str], shas: Collection[str]) -> dict[str, CommitNote]:
    """Return what git knows of those of these commits that are here."""
    given = "".join(f"{sha}\n" for sha in sorted(shas)).encode()
    checked = try_git(("cat-file", "--batch-check=%(objecttype) %(objectname)"), cwd, environ, stdin=given)
    if checked.status != 0:
        raise MeasurementError(failure(checked, "cat-file", cwd))
    here = [text.removeprefix("commit ") for text in checked.stdout.decode().splitlines() if text.startswith("commit ")]
    if not here:
        return {}
    arguments = ("log", "--no-walk=unsorted", "--encoding=UTF-8", "--no-show-signature", _FORMAT, "--stdin")
    text = git(arguments, cwd, environ, stdin="".join(f"{sha}\n" for sha in here).encode(), timeout=_LOG_TIMEOUT_S)
    return {note.sha: note for note in _notes(text)}


def releases(cwd: Path, environ: Mapping[str, str], commits: Sequence[CommitNote]) -> tuple[Release, ...]:
    """Return the tags of these commits that look like a version, in the commits' order, then by name."""
    text = git(("for-each-ref", "--format=%(objectname)%00%(*objectname)%00%(refname)", "refs/tags"), cwd, environ)
    place = {note.sha: number for number, note in enumerate(commits)}
    found: list[Release] = []
    for row in text.splitlines():
        tag, commit, name = row.split("\0")
        release = Release(name=name.removeprefix("refs/tags/"), sha=commit or tag)
        if release.sha in place and _RELEASE.fullmatch(release.name):
            found.append(release)
    return tuple(sorted(found, key=lambda item: (place[item.sha], item.name)))


def _notes(text: str) -> list[CommitNote]:
    fields = text.split("\0")
    rows = [fields[start : start + _FIELDS] for start in range(0, len(fields) - 1, _FIELDS)]
    return [
        CommitNote(
            sha=sha.lstrip("\n"),
            parents=tuple(parents.split()),
            committed_at=utc(int(seconds)),
            author=author,
            subject=subject,
        )
        for sha, parents, seconds, author, subject in rows
    ]
