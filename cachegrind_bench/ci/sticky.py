"""The one comment under a pull request that is kept up to date; knows whose comment it is, not what it says.

A comment is ours if it carries our marker and our token's name: anyone can write the marker.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import TYPE_CHECKING

from cachegrind_bench.ci.github import JOB_BOT, ApiError

if TYPE_CHECKING:
    from cachegrind_bench.ci.github import Client, Comment

_FORBIDDEN, _GONE = 403, 404


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


def post(client: Client, number: int, text: str, mark: str, *, wanted: bool) -> Outcome:
    """Write the comment, or update the one there is; without one, nothing is written unless it is `wanted`. ApiError."""
    body = f"{text.rstrip()}\n\n{mark}\n"
    try:
        return _post(client, number, body, mark, wanted=wanted)
    except ApiError as error:
        if error.status:
            raise
        return _post(client, number, body, mark, wanted=wanted)  # the answer was lost: what came of it is looked up


def _post(client: Client, number: int, body: str, mark: str, *, wanted: bool) -> Outcome:
    ours = _ours(client, number, mark)
    if not ours:
        if not wanted:
            return Outcome.NOT_NEEDED
        client.add_comment(number, body)
        # Of a second job, or of a first try whose answer was lost, there may be another.
        ours = _ours(client, number, mark)
        outcome = Outcome.WRITTEN
    elif ours[0].body.replace("\r\n", "\n").strip() == body.strip():
        outcome = Outcome.SAME
    else:
        outcome = _replaced(client, number, ours[0], body)
    for other in ours[1:]:
        _remove(client, other)
    return outcome


def _replaced(client: Client, number: int, comment: Comment, body: str) -> Outcome:
    try:
        client.edit_comment(comment.id, body)
    except ApiError as error:
        if error.status != _GONE:
            raise
        client.add_comment(number, body)
        return Outcome.WRITTEN
    return Outcome.UPDATED


def _remove(client: Client, comment: Comment) -> None:
    try:
        client.delete_comment(comment.id)
    except ApiError as error:
        if error.status != _GONE:  # the other job removes it as well
            raise


def author(client: Client) -> str:
    """Return the name under which this token writes. ApiError."""
    try:
        return client.login()
    except ApiError as error:
        if error.status != _FORBIDDEN:
            raise
        return JOB_BOT


def is_by(name: str, login: str) -> bool:
    """Tell whether this is the name of `login`; an app's is told with `[bot]` in one place and without in another."""
    return name in (login, f"{login}[bot]")


def _ours(client: Client, number: int, mark: str) -> list[Comment]:
    # At its end: what stands before may come from anybody, another mark included.
    marked = [comment for comment in client.comments(number) if comment.body.rstrip().endswith(mark)]
    login = author(client) if marked else ""
    return [comment for comment in marked if is_by(comment.author, login)]
