"""What is kept up to date on GitHub and GitLab: the one comment under a pull or merge request, and an issue for each finding of the trend report.

Knows what is ours; must not know how findings were found, or what the texts say. Ours is what carries our mark and our token's
name: anyone can write the mark. A person's own words in an issue, its comments, are left alone; one that a person
closed stays closed, as that is an answer too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar

import msgspec

from cachegrind_bench.ci.github import LONGEST_BODY, ApiError, Client, Comment, Issue, Thread

Post = TypeVar("Post", Comment, Issue)

_GONE = 404
LABEL = "cg-bench"
# A first report, or a bad night, may find hundreds; what is left out is opened by a later one.
MOST_NEW = 10
_MARK = re.compile(r"<!-- cg-bench:finding:([0-9a-f]{12})(:over)? -->")


class Outcome(StrEnum):
    """What became of a comment."""

    WRITTEN = "written"
    UPDATED = "updated"
    SAME = "already there"
    NOT_NEEDED = "not needed"


def marker(*names: str) -> str:
    """Return the mark, invisible on the page, by which a comment is found again: one for each of these `names`."""
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "backslashreplace")).hexdigest()[:16]
    return f"<!-- cg-bench:{digest} -->"


def post(thread: Thread, text: str, mark: str, *, wanted: bool) -> Outcome:
    """Write the comment, or update the one there is; without one, nothing is written unless it is `wanted`. ApiError."""
    body = f"{text.rstrip()}\n\n{mark}\n"
    try:
        return _post(thread, body, mark, wanted=wanted)
    except ApiError as error:
        if error.status:
            raise
        return _post(thread, body, mark, wanted=wanted)  # the answer was lost: what came of it is looked up


def _post(thread: Thread, body: str, mark: str, *, wanted: bool) -> Outcome:
    ours = _ours(thread, mark)
    if not ours:
        if not wanted:
            return Outcome.NOT_NEEDED
        thread.add(body)
        # Of a second job, or of a first try whose answer was lost, there may be another.
        ours = _ours(thread, mark)
        outcome = Outcome.WRITTEN
    elif ours[0].body.replace("\r\n", "\n").strip() == body.strip():
        outcome = Outcome.SAME
    else:
        try:
            thread.edit(ours[0].id, body)
            outcome = Outcome.UPDATED
        except ApiError as error:
            if error.status != _GONE:
                raise
            thread.add(body)
            outcome = Outcome.WRITTEN
    for other in ours[1:]:
        try:
            thread.delete(other.id)
        except ApiError as error:
            if error.status != _GONE:  # the other job removes it as well
                raise
    return outcome


def is_by(name: str, login: str) -> bool:
    """Return whether this is the name of `login`; an app's has `[bot]` in one place and without in another."""
    return name in (login, f"{login}[bot]")


def _ours(thread: Thread, mark: str) -> list[Comment]:
    # At its end: what is before it may come from anybody, another mark included.
    return _own(thread, [comment for comment in thread.comments() if comment.body.rstrip().endswith(mark)])


def _own(wrote: Client | Thread, marked: list[Post]) -> list[Post]:
    """Return those that this token wrote."""
    login = wrote.login() if marked else ""
    return [item for item in marked if is_by(item.author, login)]


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """The issue of a finding, whose id is `finding`: open while that is `alive`, and opened only if it is `worth` one."""

    finding: str
    title: str
    text: str
    alive: bool
    worth: bool

    def body(self, page: str) -> str:
        """Return the text with the address of the report, and our mark."""
        mark = f"<!-- cg-bench:finding:{self.finding}{'' if self.alive else ':over'} -->"
        return f"{self.text}\n\n[The last report]({page})\n\n{mark}"[:LONGEST_BODY]


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """How many issues were opened, updated and closed, and how many findings wait for the next report."""

    opened: int = 0
    updated: int = 0
    closed: int = 0
    waiting: int = 0

    def __str__(self) -> str:
        """Return it in words."""
        more = f", {self.waiting} more wait for the next report" if self.waiting else ""
        return f"{self.opened} opened, {self.updated} updated, {self.closed} closed{more}"


def update(client: Client, topics: Sequence[Topic], *, page: str, complete: bool = True) -> Update:
    """Bring the issues up to date with these topics; `page` is the address of the report. ApiError.

    Issues of findings that are gone, as of a benchmark that was removed, are closed, unless the report is not `complete`.
    """
    known, doubles = _known(client)
    opened = updated = waiting = 0
    for double in doubles:
        client.edit_issue(
            double.number,
            title=double.title,
            body=_over("There is an older issue of this.", double.body),
            is_open=False,
        )
    closed = len(doubles)
    for topic in topics:
        issue, body = known.get(topic.finding), topic.body(page)
        if issue is None:
            if not topic.worth:
                continue
            if opened == MOST_NEW:
                waiting += 1
                continue
            client.add_issue(topic.title, body, LABEL)
            opened += 1
        elif not topic.alive and issue.open:
            client.edit_issue(issue.number, title=topic.title, body=body, is_open=False)
            closed += 1
        elif topic.alive and (_told(issue.body) != _told(body) if issue.open else _is_over(issue)):
            # Where it is closed, we closed it, and it is back.
            client.edit_issue(issue.number, title=topic.title, body=body, is_open=True)
            updated += 1
    names = {topic.finding for topic in topics}
    gone = [issue for name, issue in known.items() if complete and name not in names and issue.open]
    why = f"No longer in [the report]({page}): what it was about is not measured any more."
    for issue in gone:
        client.edit_issue(issue.number, title=issue.title, body=_over(why, issue.body), is_open=False)
    return Update(opened=opened, updated=updated, closed=closed + len(gone), waiting=waiting)


def _over(why: str, body: str) -> str:
    """Return the text of an issue that is closed, and why, though its finding is not over."""
    text = _MARK.sub(r"<!-- cg-bench:finding:\1:over -->", body.replace("\r\n", "\n"))
    return f"{why}\n\n{text}"[:LONGEST_BODY]


def _known(client: Client) -> tuple[dict[str, Issue], list[Issue]]:
    """Return our own issues by finding, the oldest where there are several, and the open ones among the others."""
    issues = _own(client, [issue for issue in client.issues(LABEL) if _MARK.search(issue.body)])
    newest_first = sorted(issues, key=lambda issue: -issue.number)
    known = {match[1]: issue for issue in newest_first if (match := _MARK.search(issue.body))}
    oldest = {issue.number for issue in known.values()}
    # Of a second job, or of a try whose answer was lost.
    return known, [issue for issue in issues if issue.open and issue.number not in oldest]


def _is_over(issue: Issue) -> bool:
    match = _MARK.search(issue.body)
    return match is not None and match[2] is not None


def _told(body: str) -> str:
    """Return what an issue says, without the report it last said it of."""
    return re.sub(r"\[The last report\]\([^)]*\)", "", body.replace("\r\n", "\n")).strip()
