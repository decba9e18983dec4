"""The stand-in for GitHub is right itself: what it answers, and what it notes as wrong."""

from __future__ import annotations

import http.client
import io
import json
import urllib.error
import urllib.request
import zipfile
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest

from tests import github_stub
from tests.github_stub import BOT, LONGEST_BODY, SECONDARY, Stub, Token

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from email.message import Message

REPO = "/repos/base/prog"
EVERY: dict[str, Literal["read", "write"]] = {"actions": "read", "issues": "write", "pull-requests": "write"}


class Answer(NamedTuple):
    status: int
    headers: Message
    data: Any


class _Stays(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        """Follow nothing."""


def send(asked: urllib.request.Request, *, follow: bool = False) -> Answer:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), *([] if follow else [_Stays()]))
    try:
        with opener.open(asked, timeout=10) as found:
            return Answer(found.status, found.headers, read(found.headers, found.read()))
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.headers, read(error.headers, error.read()))


def read(headers: Message, content: bytes) -> Any:
    is_json = content and headers["Content-Type"].startswith("application/json")
    return json.loads(content) if is_json else content


def ask(
    stub: Stub,
    method: str,
    path: str,
    body: object = None,
    *,
    headers: Mapping[str, str] | None = None,
    follow: bool = False,
) -> Answer:
    """Send a correct request, but for what the test makes wrong; bytes are a body as it is."""
    content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    every = {"Authorization": "token good", "Accept": "application/vnd.github+json"}
    if content is not None:
        every["Content-Type"] = "application/json"
    every |= headers or {}
    if not path.startswith("http"):
        path = stub.url + path
    return send(request(path, content, {name: value for name, value in every.items() if value}, method), follow=follow)


def request(
    url: str, content: bytes | None = None, headers: Mapping[str, str] | None = None, method: str = "GET"
) -> urllib.request.Request:
    return urllib.request.Request(url, content, dict(headers or {}), method=method)  # noqa: S310  # on loopback


@pytest.fixture
def stub() -> Iterator[Stub]:
    with github_stub.serve() as found:
        found.tokens["good"] = Token(BOT, EVERY)
        found.tokens["fork"] = Token(BOT, dict.fromkeys(EVERY, "read"))
        found.add_pull("base/prog", number=7)
        found.add_issue("base/prog", "Slower", labels=["cg-bench", "x"], number=9)
        yield found


def test_comments_are_made_read_changed_and_deleted(stub: Stub) -> None:
    stub.add_comment("base/prog", 7, "hello", "someone")
    made = ask(stub, "POST", f"{REPO}/issues/7/comments", {"body": "ours"})
    assert (made.status, made.data["user"]["login"], made.data["body"]) == (201, BOT, "ours")
    assert ask(stub, "PATCH", f"{REPO}/issues/comments/{made.data['id']}", {"body": "new"}).data["body"] == "new"
    found = ask(stub, "GET", f"{REPO}/issues/7/comments?per_page=100").data
    assert [(each["user"]["login"], each["body"]) for each in found] == [("someone", "hello"), (BOT, "new")]
    assert ask(stub, "DELETE", f"{REPO}/issues/comments/{made.data['id']}").status == 204
    assert [each.body for each in stub.comments("base/prog", 7)] == ["hello"]
    assert ask(stub, "DELETE", f"{REPO}/issues/comments/{made.data['id']}").status == 404
    assert stub.requests[0] == ("POST", f"{REPO}/issues/7/comments", {"body": "ours"})
    assert stub.violations == []


@pytest.mark.parametrize("prefix", ["", "/api/v3"])
def test_whose_a_token_is_and_both_prefixes(stub: Stub, prefix: str) -> None:
    graphql = "/api/graphql" if prefix else "/graphql"
    found = ask(stub, "POST", graphql, {"query": "query { viewer { login } }", "variables": {}})
    assert found.data == {"data": {"viewer": {"login": BOT}}}
    pull = ask(stub, "GET", f"{prefix}{REPO}/pulls/7").data
    assert pull["url"] == f"{stub.url}{prefix}{REPO}/pulls/7"
    assert stub.violations == []
    assert ask(stub, "POST", f"{prefix}/v3/graphql", {"query": "{viewer{login}}"}).status == 404
    assert "errors" in ask(stub, "POST", graphql, {"query": "{viewer{email}}"}).data
    assert len(stub.violations) == 2


def test_pull_requests_are_found_by_their_head_and_only_where_they_go_to(stub: Stub) -> None:
    stub.add_pull("base/prog", head="other:topic", head_repo="", state="closed")
    stub.add_pull("base/prog", head="contributor:Topic", base_branch="next")
    stub.repository("contributor/prog")

    def numbers(query: str, repo: str = REPO) -> list[int]:
        return [each["number"] for each in ask(stub, "GET", f"{repo}/pulls?{query}").data]

    assert numbers("") == [11, 7]
    assert numbers("state=all&direction=asc") == [7, 10, 11]
    assert numbers("state=open&head=Contributor:topic") == [7]
    assert numbers("state=open&head=other:topic") == []
    assert numbers("state=closed&head=other:topic") == [10]
    assert numbers("base=next") == [11]
    assert numbers("head=contributor:topic", "/repos/contributor/prog") == []
    assert ask(stub, "GET", f"{REPO}/pulls/10").data["head"]["repo"] is None
    assert ask(stub, "GET", f"{REPO}/pulls/9").status == 404
    assert stub.violations == []
    assert numbers("head=nobody") == [11, 7]
    assert numbers("head=nobody:") == [11, 7]
    assert len(stub.violations) == 2


def test_issues_are_made_changed_and_found_by_all_their_labels(stub: Stub) -> None:
    made = ask(stub, "POST", f"{REPO}/issues", {"title": "T", "body": "B", "labels": ["cg-bench"]})
    assert (made.status, made.data["number"]) == (201, 10)
    changed = ask(stub, "PATCH", f"{REPO}/issues/10", {"state": "closed", "state_reason": "completed"})
    assert (changed.data["state"], changed.data["closed_at"] is None) == ("closed", False)
    assert "pull_request" not in ask(stub, "GET", f"{REPO}/issues/10").data
    assert "pull_request" in ask(stub, "GET", f"{REPO}/issues/7").data

    def numbers(query: str) -> list[int]:
        return [each["number"] for each in ask(stub, "GET", f"{REPO}/issues?{query}").data]

    assert numbers("") == [9, 7]  # a pull request is an issue
    assert numbers("state=all&labels=cg-bench") == [10, 9]
    assert numbers("state=all&labels=CG-bench,x") == [9]
    assert numbers("state=all&creator=github-actions%5Bbot%5D") == [10]
    assert stub.violations == []


def test_pages_are_linked_by_the_number_of_the_repository(stub: Stub) -> None:
    for number in range(5):
        stub.add_comment("base/prog", 7, str(number))
    first = ask(stub, "GET", f"{REPO}/issues/7/comments?per_page=2")
    place = f"{stub.url}/repositories/{stub.repository('base/prog').id}/issues/7/comments?per_page=2"
    assert first.headers["Link"] == f'<{place}&page=2>; rel="next", <{place}&page=3>; rel="last"'
    second = ask(stub, "GET", f"{place}&page=2")
    assert second.headers["Link"].count("rel=") == 4
    third = ask(stub, "GET", f"{place}&page=3")
    assert third.headers["Link"] == f'<{place}&page=2>; rel="prev", <{place}&page=1>; rel="first"'
    assert [each["body"] for page in (first, second, third) for each in page.data] == list("01234")
    assert ask(stub, "GET", f"{place}&page=4").data == []
    assert ask(stub, "GET", f"{REPO}/issues/7/comments").headers["Link"] is None
    assert stub.violations == []
    ask(stub, "GET", f"{REPO}/issues/7/comments?per_page=101&page=0")
    assert len(stub.violations) == 2


def test_artifacts_are_listed_by_run_and_fetched_from_another_host_without_the_token(stub: Stub) -> None:
    stub.add_artifact("base/prog", 55, "part", {"result.json": b"{}"})
    old = stub.add_artifact("base/prog", 55, "old", b"no zip", expired=True)
    stub.add_artifact("base/prog", 56, "part", b"")
    found = ask(stub, "GET", f"{REPO}/actions/runs/55/artifacts?per_page=100").data
    assert (found["total_count"], [each["name"] for each in found["artifacts"]]) == (2, ["old", "part"])
    assert ask(stub, "GET", f"{REPO}/actions/artifacts/{old.id}/zip").status == 410
    there = ask(stub, "GET", found["artifacts"][1]["archive_download_url"])
    assert there.status == 302
    assert there.headers["Location"].startswith(stub.blob_url)
    content = send(request(there.headers["Location"])).data
    assert zipfile.ZipFile(io.BytesIO(content)).namelist() == ["result.json"]
    assert stub.violations == []
    assert send(request(there.headers["Location"].partition("sig=")[0])).status == 404
    assert ask(stub, "GET", there.headers["Location"].removeprefix(stub.blob_url)).status == 404
    # This library takes the token along.
    assert ask(stub, "GET", found["artifacts"][1]["archive_download_url"], follow=True).status == 403
    assert [each.partition(": ")[2] for each in stub.violations] == [
        "no such address of an artifact",
        "no such method and path",
        "a token was sent to the host of artifacts",
    ]


@pytest.mark.parametrize(
    ("permissions", "method", "path", "status"),
    [
        ({"pull-requests": "write"}, "POST", "issues/7/comments", 201),
        ({"issues": "write"}, "POST", "issues/7/comments", 201),
        ({"pull-requests": "write"}, "POST", "issues/9/comments", 403),
        ({"issues": "write"}, "POST", "issues/9/comments", 201),
        ({"issues": "read", "pull-requests": "read"}, "POST", "issues/7/comments", 403),
        ({"issues": "read", "pull-requests": "write"}, "POST", "issues", 403),
        ({}, "GET", "issues/7/comments", 403),
        ({"pull-requests": "read"}, "GET", "issues/7/comments", 200),
        ({"pull-requests": "read"}, "GET", "pulls", 200),
        ({"issues": "write"}, "GET", "pulls/7", 403),
        ({"issues": "write"}, "GET", "actions/runs/1/artifacts", 403),
        ({"actions": "read"}, "GET", "actions/runs/1/artifacts", 200),
    ],
)
def test_the_permissions_of_a_token_decide(
    stub: Stub, *, permissions: dict[str, Literal["read", "write"]], method: str, path: str, status: int
) -> None:
    stub.tokens["some"] = Token(BOT, permissions)
    body = {"POST": {"title" if path == "issues" else "body": "x"}}.get(method)
    found = ask(stub, method, f"{REPO}/{path}", body, headers={"Authorization": "Bearer some"})
    assert found.status == status
    assert (status == 403) == ("Resource not accessible by integration" in str(found.data))
    assert stub.violations == []


def test_what_is_public_is_read_without_permission_but_for_artifacts(stub: Stub) -> None:
    stub.repository("base/prog").private = False
    stub.tokens["none"] = Token(BOT, {})
    mine = {"Authorization": "token none"}
    content = stub.add_artifact("base/prog", 1, "part", b"")
    assert ask(stub, "GET", f"{REPO}/issues/7/comments", headers=mine).status == 200
    assert ask(stub, "GET", f"{REPO}/actions/runs/1/artifacts", headers=mine).status == 200
    assert ask(stub, "GET", f"{REPO}/actions/artifacts/{content.id}/zip", headers=mine).status == 403
    assert ask(stub, "POST", f"{REPO}/issues/7/comments", {"body": "x"}, headers=mine).status == 403


COMMENTS = f"{REPO}/issues/7/comments"


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "noted"),
    [
        ("GET", "/repos/base/prog", None, {}, 404, "no such method and path"),
        ("PUT", COMMENTS, None, {}, 404, "no such method and path"),
        ("GET", f"{COMMENTS}/", None, {}, 404, "no such method and path"),
        ("GET", f"/api{COMMENTS}", None, {}, 404, "no such method and path"),
        ("GET", COMMENTS, None, {"Authorization": ""}, 401, "no Authorization"),
        ("GET", COMMENTS, None, {"Authorization": "Basic good"}, 401, "no Authorization"),
        ("GET", COMMENTS, None, {"Accept": "application/octet-stream"}, 415, "Accept: "),
        ("GET", COMMENTS, None, {"X-GitHub-Api-Version": "2001-01-01"}, 400, "X-GitHub-Api-Version"),
        ("GET", f"{COMMENTS}?sorted=1", None, {}, 200, "unknown in the query: sorted"),
        ("GET", f"{COMMENTS}?page=1&page=2", None, {}, 200, "twice"),
        ("GET", f"{REPO}/pulls?state=merged", None, {}, 422, "state=merged"),
        ("GET", COMMENTS, {}, {}, 200, "a body where none is known"),
        ("POST", COMMENTS, b"{", {}, 400, "not JSON"),
        ("POST", COMMENTS, [], {}, 400, "not an object"),
        ("POST", COMMENTS, {}, {}, 422, "no body"),
        ("POST", COMMENTS, {"body": " "}, {}, 422, "body: ' '"),
        ("POST", COMMENTS, {"body": 1}, {}, 422, "body: 1"),
        ("POST", COMMENTS, {"body": "x", "event": 1}, {}, 422, "unknown in the body: event"),
        ("POST", COMMENTS, {"body": "x" * (LONGEST_BODY + 1)}, {}, 422, "body of 65537 characters"),
        ("POST", COMMENTS, {"body": "it is good"}, {}, 201, "the token is elsewhere"),
        ("POST", COMMENTS, {"body": "x"}, {"Content-Type": "text/plain"}, 201, "not said to be JSON"),
        ("POST", f"{REPO}/issues", {"title": "x" * 257}, {}, 422, "title of 257"),
        ("POST", f"{REPO}/issues", {"title": "x", "labels": ["y" * 51]}, {}, 422, "labels: "),
        ("PATCH", f"{REPO}/issues/9", {"state": "all"}, {}, 422, "state: 'all'"),
        ("PATCH", f"{REPO}/issues/9", {}, {}, 200, "nothing to change"),
    ],
)
def test_what_no_correct_client_sends_is_noted(
    stub: Stub, *, method: str, path: str, body: object, headers: dict[str, str], status: int, noted: str
) -> None:
    assert ask(stub, method, path, body, headers=headers).status == status
    assert len(stub.violations) == 1
    assert stub.violations[0].startswith(f"{method} {path}: ")
    assert noted in stub.violations[0]


def test_a_request_without_a_user_agent_is_refused_and_noted(stub: Stub) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", int(stub.url.rpartition(":")[2]), timeout=10)
    connection.request("GET", COMMENTS, headers={"Authorization": "token good"})
    assert connection.getresponse().status == 403
    connection.close()
    assert len(stub.violations) == 1


def test_the_longest_body_is_taken_and_counted_in_characters(stub: Stub) -> None:
    assert ask(stub, "POST", COMMENTS, {"body": "é" * LONGEST_BODY}).status == 201
    assert stub.violations == []


def test_the_comment_of_another_is_changed_and_noted(stub: Stub) -> None:
    comment = stub.add_comment("base/prog", 7, "mine", "someone")
    assert ask(stub, "PATCH", f"{REPO}/issues/comments/{comment.id}", {"body": "x"}).status == 200
    assert "changes a comment of someone" in stub.violations[0]


def test_what_a_correct_client_may_meet_is_not_noted(stub: Stub) -> None:
    assert ask(stub, "GET", f"{REPO}/issues/1/comments").status == 404
    assert ask(stub, "GET", "/repos/base/other/pulls").status == 404
    wrong = ask(stub, "GET", COMMENTS, headers={"Authorization": "token old"})
    assert (wrong.status, wrong.data["message"]) == (401, "Bad credentials")
    assert ask(stub, "POST", COMMENTS, {"body": "x"}, headers={"Authorization": "token fork"}).status == 403
    assert stub.violations == []


def test_faults_come_in_order_and_end(stub: Stub) -> None:
    stub.fail_next(2, 502)
    stub.rate_limit_next(status=403, retry_after=None)
    stub.rate_limit_next(retry_after=3, reset=60)
    assert [ask(stub, "GET", COMMENTS).status for _ in range(2)] == [502, 502]
    limited = ask(stub, "GET", COMMENTS)
    assert (limited.status, limited.data["message"], "Retry-After" in limited.headers) == (403, SECONDARY, False)
    primary = ask(stub, "GET", COMMENTS)
    assert (primary.status, primary.headers["Retry-After"], primary.headers["X-RateLimit-Remaining"]) == (429, "3", "0")
    assert ask(stub, "GET", COMMENTS).headers["X-RateLimit-Remaining"] == "4999"
    assert stub.violations == []


def test_a_fault_has_a_kind_and_may_come_after_the_effect(stub: Stub) -> None:
    stub.fail_next(1, 503, "POST .*/comments", works=True)
    stub.cut_next(1, "POST .*/comments")
    stub.cut_next(1, "POST .*/comments", whole=True)
    stub.fail_next(1, 500, "POST .*/comments")
    assert ask(stub, "GET", COMMENTS).status == 200
    assert ask(stub, "POST", COMMENTS, {"body": "1"}).status == 503
    with pytest.raises(http.client.IncompleteRead):
        ask(stub, "POST", COMMENTS, {"body": "2"})
    with pytest.raises(http.client.RemoteDisconnected):
        ask(stub, "POST", COMMENTS, {"body": "3"})
    assert ask(stub, "POST", COMMENTS, {"body": "4"}).status == 500
    assert [each.body for each in stub.comments("base/prog", 7)] == ["1", "2", "3"]


def test_a_slow_answer_comes_after_the_effect_and_is_not_waited_for_at_the_end(stub: Stub) -> None:
    stub.slow_next(60, kind="POST")
    connection = http.client.HTTPConnection("127.0.0.1", int(stub.url.rpartition(":")[2]), timeout=0.2)
    headers = {"Authorization": "token good", "User-Agent": "test", "Content-Type": "application/json"}
    connection.request("POST", COMMENTS, b'{"body": "x"}', headers)
    with pytest.raises(TimeoutError):
        connection.getresponse()
    connection.close()
    assert len(stub.comments("base/prog", 7)) == 1


def test_the_state_changes_while_it_is_asked_for(stub: Stub) -> None:
    pull = stub.add_pull("base/prog")

    def move() -> None:
        pull.head_sha = "c" * 40

    stub.before(f"GET .*/pulls/{pull.number}$", move)
    stub.before("POST", lambda: stub.add_comment("base/prog", 7, "first"))
    assert ask(stub, "GET", f"{REPO}/pulls/7").data["head"]["sha"] == "a" * 40
    assert ask(stub, "GET", f"{REPO}/pulls/{pull.number}").data["head"]["sha"] == "c" * 40
    ask(stub, "POST", COMMENTS, {"body": "second"})
    assert [each.body for each in stub.comments("base/prog", 7)] == ["first", "second"]


def test_a_fault_of_a_callback_is_noted(stub: Stub) -> None:
    def fail() -> None:
        raise ValueError("mine")

    stub.before("GET", fail)
    with pytest.raises(http.client.RemoteDisconnected):
        ask(stub, "GET", COMMENTS)
    assert stub.violations == ["the stub itself failed: ValueError('mine')"]
