"""A stand-in for GitHub's REST API on loopback: a state to fill, the few requests this tool makes, and faults on demand.

It answers as GitHub does and is stricter: what no correct client sends is noted in `Stub.violations`. What a correct client
may meet (no right to write, a thing that is gone) is answered and not noted. One file, though long: each part needs the rest.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import sys
import threading
import time
import zipfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from socket import SHUT_RDWR, socket
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from email.message import Message

Json = dict[str, Any]

BOT = "github-actions[bot]"
LONGEST_BODY = 65_536
SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
PRIMARY = "API rate limit exceeded for installation ID 1."
_DOCUMENTATION = "https://docs.github.com/rest"
_PERMISSIONS = {"actions", "contents", "issues", "pull-requests"}


@dataclass(frozen=True, slots=True)
class Token:
    """Whose a token is, and what it may; permissions are spelled as in workflows."""

    login: str
    permissions: Mapping[str, Literal["read", "write"]]

    def __post_init__(self) -> None:
        assert _PERMISSIONS.issuperset(self.permissions), self.permissions


@dataclass(slots=True, kw_only=True)
class Issue:
    number: int
    title: str
    body: str | None = None
    author: str = "someone"
    state: str = "open"
    state_reason: str | None = None
    labels: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Pull(Issue):
    """A pull request is an issue, here as there. `head_repo` is "" when the fork was deleted."""

    head_owner: str
    head_branch: str
    head_sha: str
    head_repo: str
    base_branch: str
    base_sha: str


@dataclass(slots=True, kw_only=True)
class Comment:
    """A comment on an issue or pull request. The author is "" when the account was deleted."""

    id: int
    number: int
    author: str
    body: str
    updates: int = 0


@dataclass(slots=True, kw_only=True)
class Artifact:
    id: int
    run: int
    name: str
    content: bytes
    expired: bool = False
    branch: str = "main"  # of its run, as is the next
    sha: str = "a" * 40
    fork: bool = False  # whether its run was of a fork's pull request


@dataclass(slots=True, kw_only=True)
class Repository:
    """Of a public one (`private=False`), all but artifacts can be read without permissions."""

    id: int
    name: str
    private: bool = True
    issues: dict[int, Issue] = field(default_factory=dict)
    comments: dict[int, Comment] = field(default_factory=dict)
    artifacts: dict[int, Artifact] = field(default_factory=dict)


class Request(NamedTuple):
    method: str
    path: str  # as it was asked for, with its query
    body: Any


@dataclass(slots=True, kw_only=True)
class _Reply:
    status: int
    payload: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None  # in place of JSON

    def bytes(self) -> bytes:
        return json.dumps(self.payload).encode() if self.content is None else self.content


class _RefusedError(Exception):
    def __init__(self, status: int, message: str, note: str = "", **more: object) -> None:
        super().__init__(message)
        payload = {"message": message, "documentation_url": _DOCUMENTATION, "status": str(status), **more}
        self.reply = _Reply(status=status, payload=payload)
        self.note = note


@dataclass(slots=True, kw_only=True)
class _Event:
    """Something that happens to the next requests of a kind: other code that runs first, or a fault."""

    times: int
    kind: str  # a regular expression
    callback: Callable[[], object] | None = None
    reply: _Reply | None = None  # what is answered instead
    works: bool = True  # whether the request has its effect nevertheless
    seconds: float = 0
    end: Literal["", "cut", "drop"] = ""


class Stub:
    """The state, what was asked, and what was wrong with it."""

    def __init__(self, api: int, blobs: int) -> None:
        self.url = f"http://127.0.0.1:{api}"
        self.enterprise_url = f"{self.url}/api/v3"
        self.blob_url = f"http://127.0.0.1:{blobs}"
        self.tokens: dict[str, Token] = {}
        self.repositories: dict[str, Repository] = {}
        self.violations: list[str] = []
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self._events: list[_Event] = []
        self._ids = count(101)
        self._lock = threading.RLock()  # callbacks and tests change the state while it is being asked for

    def clear(self) -> None:
        """Forget everything, so that a server may be used for many tests."""
        for kept in (self.tokens, self.repositories, self.violations, self.requests, self._events):
            kept.clear()
        self._ids = count(101)

    # What tests fill it with.

    def repository(self, name: str, *, private: bool = True) -> Repository:
        """Return the repository OWNER/NAME, made when first asked for."""
        with self._lock:
            new = Repository(id=next(self._ids), name=name, private=private)
            return self.repositories.setdefault(name.casefold(), new)

    def add_issue(
        self, repository: str, title: str = "A title", *, labels: Sequence[str] = (), number: int = 0, **more: str
    ) -> Issue:
        with self._lock:
            issues = self.repository(repository).issues
            number = number or max(issues, default=0) + 1
            issues[number] = Issue(number=number, title=title, labels=list(labels), **more)
            return issues[number]

    def add_pull(
        self,
        repository: str,
        *,
        head: str = "contributor:topic",
        head_repo: str | None = None,
        head_sha: str = "a" * 40,
        base_branch: str = "main",
        base_sha: str = "b" * 40,
        state: str = "open",
        number: int = 0,
    ) -> Pull:
        """Add a pull request from the branch OWNER:BRANCH; `head_repo` is OWNER/NAME of the base unless given."""
        owner, _, branch = head.partition(":")
        with self._lock:
            issues = self.repository(repository).issues
            pull = Pull(
                number=number or max(issues, default=0) + 1,
                title="A change",
                author=owner,
                state=state,
                head_owner=owner,
                head_branch=branch,
                head_sha=head_sha,
                head_repo=f"{owner}/{repository.partition('/')[2]}" if head_repo is None else head_repo,
                base_branch=base_branch,
                base_sha=base_sha,
            )
            issues[pull.number] = pull
            return pull

    def add_comment(self, repository: str, number: int, body: str, author: str = "someone") -> Comment:
        with self._lock:
            comment = Comment(id=next(self._ids), number=number, author=author, body=body)
            self.repository(repository).comments[comment.id] = comment
            return comment

    def add_artifact(
        self,
        repository: str,
        run: int,
        name: str,
        content: bytes | Mapping[str, bytes],
        *,
        expired: bool = False,
        branch: str = "main",
        sha: str = "a" * 40,
        fork: bool = False,
    ) -> Artifact:
        """Add an artifact: the bytes of its zip, or the files to put into one."""
        if not isinstance(content, bytes):
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w") as archive:
                for file, data in content.items():
                    archive.writestr(file, data)
            content = buffer.getvalue()
        with self._lock:
            # fmt: off
            artifact = Artifact(id=next(self._ids), run=run, name=name, content=content, expired=expired,
                                branch=branch, sha=sha, fork=fork)
            # fmt: on
            self.repository(repository).artifacts[artifact.id] = artifact
            return artifact

    def comments(self, repository: str, number: int) -> list[Comment]:
        """Return the comments on an issue or pull request, oldest first."""
        with self._lock:
            return [each for each in self.repository(repository).comments.values() if each.number == number]

    # What tests make happen to the next requests of a kind: a regular expression found in "METHOD PATH?QUERY", "" is any.

    def before(self, kind: str, callback: Callable[[], object], times: int = 1) -> None:
        """Run other code when such a request arrives, before it is looked at."""
        self._events.append(_Event(times=times, kind=kind, callback=callback))

    def fail_next(self, times: int = 1, status: int = 502, kind: str = "", *, works: bool = False) -> None:
        """Answer with an error; with `works` the request has had its effect all the same."""
        reply = _RefusedError(status, "Made to fail").reply
        if status >= 500:  # comes from something in front of the API, and is no JSON
            reply = _Reply(status=status, headers={"Content-Type": "text/html"}, content=b"<html>Unicorn!</html>")
        self._events.append(_Event(times=times, kind=kind, reply=reply, works=works))

    def rate_limit_next(
        self, times: int = 1, status: int = 429, retry_after: int | None = 1, kind: str = "", reset: float | None = None
    ) -> None:
        """Answer that there were too many requests: the primary limit if it ends in `reset` seconds, or the secondary."""
        reply = _RefusedError(status, SECONDARY if reset is None else PRIMARY).reply
        if retry_after is not None:
            reply.headers["Retry-After"] = str(retry_after)
        if reset is not None:
            reply.headers |= {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": f"{time.time() + reset:.0f}"}
        self._events.append(_Event(times=times, kind=kind, reply=reply, works=False))

    def slow_next(self, seconds: float, times: int = 1, kind: str = "") -> None:
        """Do what is asked at once, and answer late."""
        self._events.append(_Event(times=times, kind=kind, seconds=seconds))

    def cut_next(self, times: int = 1, kind: str = "", *, whole: bool = False) -> None:
        """Do what is asked, then close the connection in the middle of the answer, or without any (`whole`)."""
        self._events.append(_Event(times=times, kind=kind, end="drop" if whole else "cut"))

    # What the servers call.

    def answer(
        self, method: str, target: str, headers: Message, content: bytes, *, blobs: bool
    ) -> tuple[_Reply, _Event]:
        """Answer one request to the API, or to the host of artifacts, and say what shall go wrong."""
        with self._lock:
            body: Any = None
            with suppress(ValueError):
                body = json.loads(content) if content else None
            self.requests.append(Request(method, target, body))
            due = [each for each in self._events if each.times > 0 and re.search(each.kind, f"{method} {target}")]
            for event in due:
                if event.callback:
                    event.times -= 1
                    event.callback()
            fault = next((each for each in due if not each.callback), _Event(times=1, kind=""))
            fault.times -= 1
            done = self._reply(method, target, headers, content, blobs=blobs) if fault.works else None
            reply = fault.reply or done or _Reply(status=500)
            limits = {"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "4999"}
            limits["X-RateLimit-Reset"] = str(int(time.time()) + 3600)
            headers_of_all = {"Content-Type": "application/json; charset=utf-8", **limits}
            return replace(reply, headers=headers_of_all | reply.headers), fault

    def _reply(self, method: str, target: str, headers: Message, content: bytes, *, blobs: bool) -> _Reply:
        try:
            if blobs:
                return self._blob(method, target, headers)
            return _Call(self, method, target, headers, content).reply()
        except _RefusedError as refused:
            if refused.note:
                self.violations.append(f"{method} {target}: {refused.note}")
            return refused.reply

    def _blob(self, method: str, target: str, headers: Message) -> _Reply:
        """Answer as the host of artifacts, which knows signed addresses and no tokens."""
        if "Authorization" in headers:
            raise _RefusedError(403, "AuthenticationFailed", "a token was sent to the host of artifacts")
        found = [each for one in self.repositories.values() for each in one.artifacts.values()]
        for each in found:
            if method == "GET" and target == blob_path(each):
                return _Reply(status=200, headers={"Content-Type": "application/zip"}, content=each.content)
        raise _RefusedError(404, "BlobNotFound", "no such address of an artifact")


def blob_path(artifact: Artifact) -> str:
    """Return the signed address: who changes it, or leaves the signature out, gets nothing."""
    digest = hashlib.sha256(artifact.content).hexdigest()
    return f"/blob/{artifact.id}?" + urlencode({"sp": "r", "sig": f"{digest[:12]}/+="})


def _times(seconds: int, last: int = 0) -> Json:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    first, second = (
        (start + timedelta(seconds=each)).strftime("%Y-%m-%dT%H:%M:%SZ") for each in (seconds, seconds + last)
    )
    return {"created_at": first, "updated_at": second}


_Numbered = TypeVar("_Numbered", Issue, Pull, Artifact)


def _age(found: Issue | Artifact) -> int:
    return found.id if isinstance(found, Artifact) else found.number


def _user(login: str) -> Json | None:
    kind = "Bot" if login.endswith("[bot]") else "User"
    return {"login": login, "id": len(login), "node_id": "U_1", "type": kind, "site_admin": False} if login else None


class _Call:
    """One request to the API: checked, then answered."""

    def __init__(self, stub: Stub, method: str, target: str, headers: Message, content: bytes) -> None:
        self.stub, self.method, self.target, self.headers, self.content = stub, method, target, headers, content
        parts = urlsplit(target)
        self.enterprise = parts.path.startswith("/api/")
        self.base = stub.enterprise_url if self.enterprise else stub.url
        self.path = parts.path
        self.query = dict(parse_qsl(parts.query, keep_blank_values=True))
        self.body: Json = {}

    def note(self, text: str) -> None:
        """Note a violation that GitHub does not refuse."""
        self.stub.violations.append(f"{self.method} {self.target}: {text}")

    def reply(self) -> _Reply:
        self.token = self.find_token()
        if self.path == ("/api/graphql" if self.enterprise else "/graphql"):
            return self.graphql()
        path = self.path.removeprefix("/api/v3") if self.enterprise else self.path
        found = re.fullmatch(r"/repos/([^/]+/[^/]+)(/.*)|/repositories/([0-9]+)(/.*)", path)
        for method, pattern, answer, query, required, optional in _ROUTES if found else ():
            assert found
            self.resource = found[2] or found[4]
            ids = re.fullmatch(pattern, self.resource)
            if method == self.method and ids:
                self.repository = self.find_repository(found[1] or "", found[3] or "")
                self.check_query(set(query.split()))
                self.check_body(set(required.split()), set(optional.split()))
                return answer(self, *(int(each) for each in ids.groups()))
        raise _RefusedError(404, "Not Found", "no such method and path")

    # Checks of any request, but for what PyGithub alone writes.

    def find_token(self) -> Token:
        found = re.fullmatch(r"(?i:token|bearer) (\S+)", self.headers.get("Authorization", ""))
        if not found:
            raise _RefusedError(401, "Requires authentication", "no Authorization with a token")
        if found[1] not in self.stub.tokens:
            raise _RefusedError(401, "Bad credentials")
        if found[1] in self.target or found[1].encode() in self.content:
            self.note("the token is elsewhere than in Authorization")
        return self.stub.tokens[found[1]]

    def find_repository(self, name: str, number: str) -> Repository:
        for each in self.stub.repositories.values():
            if each.name.casefold() == name.casefold() or str(each.id) == number:
                return each
        raise _RefusedError(404, "Not Found")

    def check_query(self, known: set[str]) -> None:
        if unknown := sorted(set(self.query) - known):
            self.note(f"unknown in the query: {', '.join(unknown)}")

    def check_body(self, required: set[str], optional: set[str]) -> None:
        if not required | optional:
            return
        self.body = json.loads(self.content)
        if missing := sorted(required - set(self.body)):
            raise _RefusedError(422, f'Invalid request.\n\n"{missing[0]}" wasn\'t supplied.', f"no {missing[0]}")
        if unknown := sorted(set(self.body) - required - optional):
            message = f'Invalid request.\n\n"{unknown[0]}" is not a permitted key.'
            raise _RefusedError(422, message, f"unknown in the body: {', '.join(unknown)}")
        for name, value in self.body.items():
            self.check_value(name, value, required=name in required)

    def check_value(self, name: str, value: object, *, required: bool) -> None:
        if name == "labels":
            good = isinstance(value, list) and all(isinstance(each, str) and 0 < len(each) <= 50 for each in value)
        elif name in _VALUES:
            good = value in _VALUES[name]
        else:
            good = isinstance(value, str) and bool(value.strip() or not required)
        if not good:
            raise _RefusedError(422, "Validation Failed", f"{name}: {value!r}")
        longest = {"title": 256, "body": LONGEST_BODY}.get(name)
        if longest and isinstance(value, str) and len(value) > longest:
            said = f"Body is too long (maximum is {longest} characters)"
            error = {"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": said}
            raise _RefusedError(422, "Validation Failed", f"{name} of {len(value)} characters", errors=[error])

    def need(self, level: Literal["read", "write"], *names: str, public: bool = True) -> None:
        """Refuse unless the token has one of these permissions; what is public can be read without."""
        held = {self.token.permissions.get(name) for name in names}
        free = level == "read" and public and not self.repository.private
        if not (free or "write" in held or level in held):
            raise _RefusedError(403, "Resource not accessible by integration")

    def need_for(self, level: Literal["read", "write"], number: int) -> Issue:
        """Return an issue or pull request; for a pull request either of two permissions does."""
        issue = self.repository.issues.get(number)
        if issue is None:
            raise _RefusedError(404, "Not Found")
        self.need(level, "issues", *(["pull-requests"] if isinstance(issue, Pull) else []))
        return issue

    # Answers.

    def graphql(self) -> _Reply:
        return _Reply(status=200, payload={"data": {"viewer": {"login": self.token.login}}})

    def page(self, items: Sequence[Json], key: str = "") -> _Reply:
        """Return one page. The links name the repository by its number, as GitHub's do."""
        size, page = int(self.query.get("per_page", "30")), int(self.query.get("page", "1"))
        if size > 100:
            self.note(f"per_page={size}")
        last = max(1, -(-len(items) // size))
        others = {"prev": min(page - 1, last), "next": page + 1, "last": last, "first": 1}
        shown = (
            (["prev"] if page > 1 else []) + (["next", "last"] if page < last else []) + (["first"] if page > 1 else [])
        )
        place = f"{self.base}/repositories/{self.repository.id}{self.resource}"
        links = [f'<{place}?{urlencode(self.query | {"page": others[rel]})}>; rel="{rel}"' for rel in shown]
        part = list(items[(page - 1) * size : page * size])
        payload = {"total_count": len(items), key: part} if key else part
        return _Reply(status=200, payload=payload, headers={"Link": ", ".join(links)} if links else {})

    def in_order(self, found: Iterable[_Numbered]) -> list[_Numbered]:
        """Sort as lists are: the newest first unless asked otherwise."""
        return sorted(found, key=_age, reverse=self.query.get("direction", "desc") == "desc")

    def list_pulls(self) -> _Reply:
        self.need("read", "pull-requests")
        found = [each for each in self.repository.issues.values() if isinstance(each, Pull) and self.in_state(each)]
        if "base" in self.query:
            found = [each for each in found if each.base_branch == self.query["base"]]
        owner, _, branch = self.query.get("head", "").partition(":")
        if owner and branch:  # accounts are not case sensitive, branches are
            found = [each for each in found if each.head_owner.casefold() == owner.casefold()]
            found = [each for each in found if each.head_branch == branch]
        elif "head" in self.query:
            self.note("head is not OWNER:BRANCH, so GitHub ignores it and lists every pull request")
        return self.page([self.pull_json(each) for each in self.in_order(found)])

    def in_state(self, issue: Issue) -> bool:
        return self.query.get("state", "open") in {"all", issue.state}

    def get_pull(self, number: int) -> _Reply:
        self.need("read", "pull-requests")
        pull = self.repository.issues.get(number)
        if not isinstance(pull, Pull):
            raise _RefusedError(404, "Not Found")
        return _Reply(status=200, payload={**self.pull_json(pull), "merged": False, "comments": 0})

    def list_issues(self) -> _Reply:
        self.need("read", "issues")
        found = [each for each in self.repository.issues.values() if self.in_state(each)]
        for label in filter(None, self.query.get("labels", "").split(",")):
            found = [each for each in found if label.casefold() in map(str.casefold, each.labels)]
        if "creator" in self.query:
            found = [each for each in found if each.author == self.query["creator"]]
        return self.page([self.issue_json(each) for each in self.in_order(found)])

    def create_issue(self) -> _Reply:
        self.need("write", "issues")
        issue = self.stub.add_issue(self.repository.name, **{"author": self.token.login, **self.body})
        return _Reply(status=201, payload=self.issue_json(issue))

    def get_issue(self, number: int) -> _Reply:
        return _Reply(status=200, payload=self.issue_json(self.need_for("read", number)))

    def edit_issue(self, number: int) -> _Reply:
        issue = self.need_for("write", number)
        for name, value in self.body.items():
            setattr(issue, name, value)
        return _Reply(status=200, payload=self.issue_json(issue))

    def list_comments(self, number: int) -> _Reply:
        self.need_for("read", number)
        return self.page([self.comment_json(each) for each in self.stub.comments(self.repository.name, number)])

    def create_comment(self, number: int) -> _Reply:
        self.need_for("write", number)
        comment = self.stub.add_comment(self.repository.name, number, self.body["body"], self.token.login)
        return _Reply(status=201, payload=self.comment_json(comment))

    def change_comment(self, identity: int) -> _Reply:
        comment = self.repository.comments.get(identity)
        if comment is None:
            raise _RefusedError(404, "Not Found")
        self.need_for("write", comment.number)
        if comment.author != self.token.login:
            self.note(f"changes a comment of {comment.author or 'a deleted account'}")
        if self.method == "DELETE":
            del self.repository.comments[identity]
            return _Reply(status=204, content=b"")
        comment.body = self.body["body"]
        comment.updates += 1
        return _Reply(status=200, payload=self.comment_json(comment))

    def list_artifacts(self, run: int) -> _Reply:
        self.need("read", "actions")
        found = [each for each in self.repository.artifacts.values() if each.run == run]
        if "name" in self.query:
            found = [each for each in found if each.name == self.query["name"]]
        return self.page([self.artifact_json(each) for each in self.in_order(found)], "artifacts")

    def list_all_artifacts(self) -> _Reply:
        self.need("read", "actions")
        name = self.query.get("name")
        found = [each for each in self.repository.artifacts.values() if name in (None, each.name)]
        newest_first = sorted(found, key=lambda each: -each.id)
        return self.page([self.artifact_json(each) for each in newest_first], "artifacts")

    def get_artifact(self, identity: int) -> _Reply:
        self.need("read", "actions", public=False)
        artifact = self.repository.artifacts.get(identity)
        if artifact is None:
            raise _RefusedError(404, "Not Found")
        if artifact.expired:
            raise _RefusedError(410, "Artifact has expired")
        return _Reply(status=302, headers={"Location": self.stub.blob_url + blob_path(artifact)}, content=b"")

    # The same as JSON, with the fields that GitHub documents and a client may look at.

    def place(self) -> str:
        return f"{self.base}/repos/{self.repository.name}"

    def issue_json(self, issue: Issue) -> Json:
        url = f"{self.place()}/issues/{issue.number}"
        kind = "pull" if isinstance(issue, Pull) else "issues"
        html = f"https://github.com/{self.repository.name}/{kind}/{issue.number}"
        shown: Json = {name: getattr(issue, name) for name in ("number", "title", "body", "state", "state_reason")}
        shown |= {"url": url, "repository_url": self.place(), "comments_url": f"{url}/comments", "html_url": html}
        shown |= {"id": 10_000 + issue.number, "node_id": f"I_{issue.number}", "locked": False} | _times(issue.number)
        shown |= {"user": _user(issue.author), "author_association": "NONE", "assignees": [], "milestone": None}
        shown["labels"] = [{"id": 1, "name": each, "color": "ededed", "default": False} for each in issue.labels]
        shown["closed_at"] = None if issue.state == "open" else shown["updated_at"]
        if isinstance(issue, Pull):
            shown["pull_request"] = {"url": f"{self.place()}/pulls/{issue.number}"}
        return shown

    def pull_json(self, pull: Pull) -> Json:
        shown = self.issue_json(pull)
        shown |= {"issue_url": shown["url"], "url": shown.pop("pull_request")["url"], "draft": False}
        head = self.end_json(pull.head_owner, pull.head_branch, pull.head_sha, pull.head_repo)
        owner = self.repository.name.partition("/")[0]
        base = self.end_json(owner, pull.base_branch, pull.base_sha, self.repository.name)
        return {**shown, "head": head, "base": base, "merged_at": None, "merge_commit_sha": None}

    def end_json(self, owner: str, branch: str, sha: str, name: str) -> Json:
        known = self.stub.repositories.get(name.casefold())
        fork = name != self.repository.name
        repo = {"id": known.id if known else 1, "name": name.partition("/")[2], "full_name": name, "fork": fork}
        more = {"owner": _user(name.partition("/")[0]), "url": f"{self.base}/repos/{name}", "private": False}
        label = f"{owner}:{branch}" if owner else None
        return {"label": label, "ref": branch, "sha": sha, "user": _user(owner), "repo": repo | more if name else None}

    def comment_json(self, comment: Comment) -> Json:
        html = f"https://github.com/{self.repository.name}/issues/{comment.number}#issuecomment-{comment.id}"
        shown = {"id": comment.id, "node_id": f"IC_{comment.id}", "html_url": html, "body": comment.body}
        shown["url"] = f"{self.place()}/issues/comments/{comment.id}"
        shown["issue_url"] = f"{self.place()}/issues/{comment.number}"
        app = {"id": 15_368, "slug": "github-actions"} if comment.author == BOT else None
        who = {"user": _user(comment.author), "author_association": "NONE", "performed_via_github_app": app}
        return shown | who | _times(comment.id, comment.updates)

    def artifact_json(self, artifact: Artifact) -> Json:
        url = f"{self.place()}/actions/artifacts/{artifact.id}"
        shown = {"id": artifact.id, "node_id": f"A_{artifact.id}", "name": artifact.name, "expired": artifact.expired}
        shown |= {"url": url, "archive_download_url": f"{url}/zip", "size_in_bytes": len(artifact.content)}
        shown["digest"] = f"sha256:{hashlib.sha256(artifact.content).hexdigest()}"
        shown["expires_at"] = _times(artifact.id + 7_776_000)["created_at"]
        home = self.repository.id + 1_000_000 if artifact.fork else self.repository.id
        shown["workflow_run"] = {
            "id": artifact.run,
            "repository_id": self.repository.id,
            "head_repository_id": home,
            "head_branch": artifact.branch,
            "head_sha": artifact.sha,
        }
        return shown | _times(artifact.id)


_VALUES: dict[str, set[Any]] = {
    "state": {"open", "closed"},
    "state_reason": {"completed", "not_planned", "reopened", "duplicate", None},
}

_PAGE = "page per_page"
_ORDER = f"{_PAGE} sort direction state"
# Method, path below the repository, what answers, names in the query, names that the body needs, names that it may have.
_ROUTES: list[tuple[str, str, Callable[..., _Reply], str, str, str]] = [
    ("GET", r"/pulls", _Call.list_pulls, f"{_ORDER} head base", "", ""),
    ("GET", r"/pulls/([0-9]+)", _Call.get_pull, "", "", ""),
    ("GET", r"/issues", _Call.list_issues, f"{_ORDER} labels creator", "", ""),
    ("POST", r"/issues", _Call.create_issue, "", "title", "body labels"),
    # PyGithub asks for one issue when a field is missing, such as `pull_request` of what is none.
    ("GET", r"/issues/([0-9]+)", _Call.get_issue, "", "", ""),
    ("PATCH", r"/issues/([0-9]+)", _Call.edit_issue, "", "", "title body labels state state_reason"),
    ("GET", r"/issues/([0-9]+)/comments", _Call.list_comments, _PAGE, "", ""),
    ("POST", r"/issues/([0-9]+)/comments", _Call.create_comment, "", "body", ""),
    ("PATCH", r"/issues/comments/([0-9]+)", _Call.change_comment, "", "body", ""),
    ("DELETE", r"/issues/comments/([0-9]+)", _Call.change_comment, "", "", ""),
    ("GET", r"/actions/runs/([0-9]+)/artifacts", _Call.list_artifacts, f"{_PAGE} name direction", "", ""),
    ("GET", r"/actions/artifacts", _Call.list_all_artifacts, f"{_PAGE} name", "", ""),
    ("GET", r"/actions/artifacts/([0-9]+)/zip", _Call.get_artifact, "", "", ""),
]


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # each is waited for, so none is left for the next test

    def __init__(self, *, blobs: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.blobs = blobs
        self.stub: Stub
        self.connections: set[socket] = set()

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002  # the base class's
        """Note what went wrong in a callback or here; a client that hangs up is none of our business."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            self.stub.violations.append(f"the stub itself failed: {error!r}")

    def hang_up(self) -> None:
        for each in list(self.connections):
            with suppress(OSError):
                each.shutdown(SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    wbufsize = -1  # an answer in one piece: in two, the second waits 40 ms for the client's acknowledgement

    @property
    def place(self) -> _Server:
        assert isinstance(self.server, _Server)
        return self.server

    def setup(self) -> None:
        super().setup()
        self.place.connections.add(self.connection)
        if self.place.stub.closing.is_set():
            self.place.hang_up()

    def finish(self) -> None:
        self.place.connections.discard(self.connection)
        super().finish()

    def answer(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        place = self.place
        reply, fault = place.stub.answer(self.command, self.path, self.headers, content, blobs=place.blobs)
        if fault.seconds:
            place.stub.closing.wait(fault.seconds)
        self.close_connection = self.close_connection or fault.end != ""
        if fault.end == "drop":
            return
        data = reply.bytes()
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if fault.end else data)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the base class's
        """Be quiet."""


@contextmanager
def serve() -> Iterator[Stub]:
    """Run both servers: the API, and the host of artifacts."""
    with running(Stub) as stub:
        yield stub


_Stub = TypeVar("_Stub", bound=Stub)


@contextmanager
def running(kind: type[_Stub]) -> Iterator[_Stub]:
    """Run both servers of a stand-in of this kind."""
    with _Server(blobs=False) as api, _Server(blobs=True) as blobs:
        stub = kind(api.server_port, blobs.server_port)
        api.stub = blobs.stub = stub
        servers = (api, blobs)
        threads = [threading.Thread(target=each.serve_forever, kwargs={"poll_interval": 0.02}) for each in servers]
        for thread in threads:
            thread.start()
        try:
            yield stub
        finally:
            stub.closing.set()
            for server, thread in zip(servers, threads, strict=True):
                server.shutdown()
                thread.join()
                server.hang_up()
