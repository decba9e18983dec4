"""A stand-in for GitLab's API on loopback, as far as the comments on one merge request need it.

Servers, faults on demand and the list of violations are those of GitHub's stand-in. The second server is somewhere else: whatever
is asked there is a violation, as it would have come with the token.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from tests.github_stub import Json, Stub, Token, _Event, _RefusedError, _Reply, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message

PROJECT, NUMBER, HEAD = 42, 7, "a" * 40
LOGIN = "project_42_bot_1f3a"
LONGEST_NOTE = 1_000_000
_PLACE = f"/api/v4/projects/{PROJECT}/merge_requests/{NUMBER}"
_LIST = {"sort": {"asc", "desc"}, "order_by": {"created_at", "updated_at"}}
_ACTION = re.compile(r"^\s*/[a-z]", re.MULTILINE | re.IGNORECASE)


@dataclass(slots=True)
class Note:
    id: int
    author: str
    body: str
    updates: int = 0


class GitLab(Stub):
    """One merge request and its notes. The permission that matters of a token is that for pull requests."""

    def clear(self) -> None:
        super().clear()
        self.notes = dict[int, Note]()
        self.state, self.sha = "opened", HEAD

    @property
    def api_url(self) -> str:
        return f"{self.url}/api/v4"

    def variables(self, **changes: str) -> dict[str, str]:
        """Return what a job of a merge request's pipeline has in its environment."""
        found = {"CI": "true", "GITLAB_CI": "true", "CI_SERVER_URL": self.url, "CI_API_V4_URL": self.api_url}
        found |= {"CI_MERGE_REQUEST_PROJECT_ID": str(PROJECT), "CI_MERGE_REQUEST_IID": str(NUMBER)}
        found |= {"CI_COMMIT_SHA": HEAD, "CI_JOB_NAME": "comment-benchmarks"}
        return found | {"CI_PIPELINE_URL": "https://gitlab.com/base/prog/-/pipelines/99"} | changes

    def add_note(self, body: str, author: str = "someone") -> Note:
        note = Note(next(self._ids), author, body)
        self.notes[note.id] = note
        return note

    def bodies(self) -> list[str]:
        return [note.body for note in self.notes.values()]

    def redirect_next(self, times: int = 1, kind: str = "") -> None:
        """Answer that it is found at the other server."""
        reply = _Reply(status=307, headers={"Location": f"{self.blob_url}/api/v4/user"})
        self._events.append(_Event(times=times, kind=kind, reply=reply, works=False))

    def answer_next(self, content: bytes, times: int = 1, kind: str = "") -> None:
        """Answer with these bytes."""
        reply = _Reply(status=200, content=content)
        self._events.append(_Event(times=times, kind=kind, reply=reply, works=False))

    def _reply(self, method: str, target: str, headers: Message, content: bytes, *, blobs: bool) -> _Reply:
        try:
            return self._answered(method, target, self._token(headers, target, elsewhere=blobs), content)
        except _RefusedError as refused:
            if refused.note:
                self.violations.append(f"{method} {target}: {refused.note}")
            return refused.reply

    def _token(self, headers: Message, target: str, *, elsewhere: bool) -> Token:
        if elsewhere:
            raise _RefusedError(403, "403 Forbidden", "somebody else was asked")
        token = headers.get("PRIVATE-TOKEN", "")
        if "Authorization" in headers or "Cookie" in headers or (token and token in target):
            raise _RefusedError(401, "401 Unauthorized", "more than the token was sent, or elsewhere")
        if "cachegrind-bench" not in headers.get("User-Agent", ""):
            raise _RefusedError(403, "403 Forbidden", "no User-Agent of ours")
        if token not in self.tokens:
            raise _RefusedError(401, "401 Unauthorized")
        return self.tokens[token]

    def _answered(self, method: str, target: str, token: Token, content: bytes) -> _Reply:
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        note = re.fullmatch(rf"{_PLACE}/notes/([0-9]+)", parts.path)
        match method, parts.path:
            case "GET", "/api/v4/user":
                return _Reply(status=200, payload={"id": 1, "username": token.login, "name": "A bot"})
            case "GET", path if path == _PLACE:
                return _Reply(status=200, payload={"id": 1001, "iid": NUMBER, "state": self.state, "sha": self.sha})
            case "GET", path if path == f"{_PLACE}/notes":
                return self._listed(query)
            case (("POST" | "PUT" | "DELETE"), path) if path == f"{_PLACE}/notes" or note:
                return self._written(method, int(note[1]) if note else 0, token, content)
            case _:
                raise _RefusedError(404, "404 Not Found", "no such method and path")

    def _listed(self, query: dict[str, str]) -> _Reply:
        if any(value not in _LIST.get(name, {value}) for name, value in query.items()):
            raise _RefusedError(400, "400 Bad Request", f"a value that is not known: {query}")
        size, page = int(query.get("per_page", "20")), int(query.get("page", "1"))
        if size > 100:
            raise _RefusedError(400, "400 Bad Request", "more than a hundred notes on a page")
        notes = sorted(self.notes.values(), key=lambda note: note.id, reverse=query.get("sort", "desc") == "desc")
        more = len(notes) > page * size
        headers = {"X-Page": str(page), "X-Next-Page": str(page + 1) if more else ""}
        headers |= {"Link": f'<{self.blob_url}{_PLACE}/notes?page={page + 1}>; rel="next"'} if more else {}
        shown = [_json(note) for note in notes[(page - 1) * size : page * size]]
        return _Reply(status=200, payload=shown, headers=headers)

    def _written(self, method: str, identity: int, token: Token, content: bytes) -> _Reply:
        if token.permissions.get("pull-requests") != "write":
            raise _RefusedError(403, "403 Forbidden")
        if (method == "POST") is bool(identity):
            raise _RefusedError(405, "405 Method Not Allowed", "a note is made where it is listed")
        note = self.notes.get(identity)
        if method != "POST" and note is None:
            raise _RefusedError(404, "404 Note Not Found")
        if note is not None and note.author != token.login:
            raise _RefusedError(403, "403 Forbidden", "somebody else's note was to be changed")
        if method == "DELETE":
            del self.notes[identity]
            return _Reply(status=204, content=b"")
        body = json.loads(content)["body"]
        if not isinstance(body, str) or not 0 < len(body) <= LONGEST_NOTE:
            raise _RefusedError(400, "400 Bad Request", "no text, or too long a text")
        if _ACTION.search(body):
            raise _RefusedError(400, "400 Bad Request", "the text has a command that GitLab would follow")
        if note is None:
            return _Reply(status=201, payload=_json(self.add_note(body, token.login)))
        note.body, note.updates = body, note.updates + 1
        return _Reply(status=200, payload=_json(note))


def _json(note: Note) -> Json:
    author = {"id": 1, "username": note.author, "name": "A name", "state": "active"}
    more = {"system": False, "noteable_iid": NUMBER, "noteable_type": "MergeRequest", "resolvable": False}
    return {"id": note.id, "body": note.body, "attachment": None, "author": author} | more


@contextmanager
def serve() -> Iterator[GitLab]:
    """Run both servers: the API, and somewhere else."""
    with running(GitLab) as stub:
        yield stub
