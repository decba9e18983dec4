"""GitHub's API on a bad day: limits, lost answers, other people's data; and never a request that GitHub would frown at."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.ci.github import ApiError, Artifact, Client, OpenPull, Patience
from tests import github_stub
from tests.github_stub import BOT, LONGEST_BODY, Stub, Token

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


REPO, TOKEN = "base/prog", "t0ken-of-the-job"
QUICK = Patience(secondary_s=0.01, backoff_s=0.001)
OURS = 103  # the comment of `filled`


@pytest.fixture
def stub(github: Stub) -> Stub:
    """Return the stand-in of GitHub's API, as these tests begin with it."""
    github.tokens[TOKEN] = Token(BOT, {"actions": "read", "issues": "write", "pull-requests": "write"})
    github.tokens["t0ken-of-a-f0rk"] = Token(BOT, {"actions": "read", "issues": "read", "pull-requests": "read"})
    github.repository(REPO)
    return github


def client(stub: Stub, token: str = TOKEN, **more: Any) -> Client:
    return Client(**{"api_url": stub.url, "repository": REPO, "token": token, "patience": QUICK, **more})


@pytest.fixture
def api(stub: Stub) -> Client:
    return client(stub)


def refusal(action: Callable[[], object]) -> ApiError | None:
    """Do this, and return how it was refused, if it was; any other exception is nobody's answer."""
    try:
        action()
    except ApiError as error:
        return error
    return None


def asked(stub: Stub, method: str = "") -> list[str]:
    return [f"{each.method} {each.path}" for each in stub.requests if each.method.startswith(method)]


# Pull requests.


def test_a_pull_request_is_read_as_it_is_now(stub: Stub, api: Client) -> None:
    pull = stub.add_pull(REPO, head="contributor:topic", number=7)
    assert api.pull(7) == OpenPull(number=7, head_sha="a" * 40, head_repository="contributor/prog")
    pull.head_sha = "c" * 40
    found = api.pull(7)
    assert found is not None
    assert found.head_sha == "c" * 40
    pull.state = "closed"
    assert api.pull(7) is None


def test_a_pull_request_of_a_deleted_fork_has_no_repository(stub: Stub, api: Client) -> None:
    stub.add_pull(REPO, head_repo="", number=7)
    assert api.pull(7) == OpenPull(number=7, head_sha="a" * 40, head_repository=None)
    assert api.open_pulls("contributor", "topic")[0].head_repository is None


def test_open_pull_requests_are_found_by_their_head_alone(stub: Stub, api: Client) -> None:
    stub.add_pull(REPO, head="contributor:topic", number=1)
    stub.add_pull(REPO, head="contributor:topic", base_branch="next", number=2)
    stub.add_pull(REPO, head="contributor:other", number=3)
    stub.add_pull(REPO, head="another:topic", number=4)
    stub.add_pull(REPO, head="contributor:topic", state="closed", number=5)
    assert [pull.number for pull in api.open_pulls("contributor", "topic")] == [2, 1]
    assert api.open_pulls("nobody", "topic") == []


@pytest.mark.parametrize("branch", ["a&state=closed", "a#b", "ä/ö"])
def test_a_branch_may_have_any_name_and_asks_for_nothing_else(stub: Stub, api: Client, branch: str) -> None:
    stub.add_pull(REPO, head=f"contributor:{branch}", number=7)
    stub.add_pull(REPO, head="contributor:a", number=8)
    assert [pull.number for pull in api.open_pulls("contributor", branch)] == [7]


# Comments.


def test_all_pages_are_read_a_hundred_at_a_time(stub: Stub, api: Client) -> None:
    stub.add_pull(REPO, number=7)
    for number in range(250):
        stub.add_comment(REPO, 7, f"comment {number}")
    assert [comment.body for comment in api.comments(7)] == [f"comment {number}" for number in range(250)]
    assert len(asked(stub, "GET")) == 3
    assert all("per_page=100" in each for each in asked(stub))


def test_a_comment_of_an_account_that_is_gone_has_no_author(stub: Stub, api: Client) -> None:
    stub.add_pull(REPO, number=7)
    stub.add_comment(REPO, 7, "boo", author="")
    assert [(comment.author, comment.body) for comment in api.comments(7)] == [("", "boo")]


def test_comments_are_written_changed_and_removed(stub: Stub, api: Client) -> None:
    stub.add_pull(REPO, number=7)
    api.add_comment(7, "one")
    api.add_comment(7, "two")
    first, second = api.comments(7)
    assert first.author == BOT
    api.edit_comment(first.id, "changed")
    api.delete_comment(second.id)
    assert [comment.body for comment in stub.comments(REPO, 7)] == ["changed"]


def test_a_comment_that_is_too_long_is_an_error_that_says_so(stub: Stub, api: Client) -> None:
    stub.add_pull(REPO, number=7)
    with pytest.raises(ApiError, match="HTTP status 422") as caught:
        api.add_comment(7, "x" * (LONGEST_BODY + 1))
    assert caught.value.status == 422
    stub.violations.clear()


# Whose token it is.


def test_the_name_behind_a_token_is_asked_for(stub: Stub) -> None:
    assert client(stub).login() == BOT
    stub.tokens["mine"] = Token("someone", {})
    assert client(stub, "mine").login() == "someone"
    assert client(stub, api_url=stub.enterprise_url).login() == BOT


# An Enterprise server.


@pytest.mark.parametrize("slash", ["", "/"])
def test_on_an_enterprise_server_everything_is_asked_there(stub: Stub, slash: str) -> None:
    stub.add_pull(REPO, number=7)
    made = stub.add_artifact(REPO, 42, "cg-bench-result-x", b"PK")
    for number in range(150):
        stub.add_comment(REPO, 7, str(number))
    api = client(stub, api_url=stub.enterprise_url + slash)
    assert api.login() == BOT
    assert len(api.comments(7)) == 150
    api.add_comment(7, "new")
    assert [pull.number for pull in api.open_pulls("contributor", "topic")] == [7]
    (artifact,) = api.artifacts(42)
    assert artifact.id == made.id
    assert api.download(artifact, 100) == b"PK"
    assert all(each.path.startswith(("/api/v3/", "/api/graphql", "/blob/")) for each in stub.requests)


# Limits and failures.


def reads(api: Client) -> object:
    return api.comments(7)


def writes(api: Client) -> object:
    api.add_comment(7, "ours")
    return None


def changes(api: Client) -> object:
    api.edit_comment(OURS, "ours")
    return None


def removes(api: Client) -> object:
    api.delete_comment(OURS)
    return None


def fetches(api: Client) -> object:
    return api.download(api.artifacts(42)[0], 100)


def left_by(action: Callable[[Client], object]) -> int:
    """Return how many comments there are after it, of one before."""
    return 2 if action is writes else 0 if action is removes else 1


EVERY = pytest.mark.parametrize("action", [reads, writes, changes, removes, fetches])


@pytest.fixture
def filled(stub: Stub) -> Stub:
    """Return the stub with a pull request, a comment of ours and an artifact."""
    stub.add_pull(REPO, number=7)
    assert stub.add_comment(REPO, 7, "old", BOT).id == OURS
    stub.add_artifact(REPO, 42, "cg-bench-result-x", b"PK")
    return stub


@EVERY
def test_failing_twice_is_not_a_failure(filled: Stub, api: Client, action: Callable[[Client], object]) -> None:
    filled.fail_next(2, 502)
    action(api)
    assert len(filled.comments(REPO, 7)) == left_by(action)


@EVERY
def test_failing_for_ever_is_an_error_after_a_few_tries(
    filled: Stub, api: Client, action: Callable[[Client], object]
) -> None:
    filled.fail_next(1000, 502)
    with pytest.raises(ApiError) as caught:
        action(api)
    assert caught.value.status == 502
    assert 3 <= len(filled.requests) <= 10


@EVERY
@pytest.mark.parametrize("status", [403, 429])
def test_what_github_asks_to_wait_is_waited(
    filled: Stub, api: Client, action: Callable[[Client], object], status: int
) -> None:
    filled.rate_limit_next(2, status, retry_after=0)
    action(api)
    assert len(filled.comments(REPO, 7)) == left_by(action)


def test_retry_after_is_obeyed(filled: Stub, api: Client) -> None:
    filled.rate_limit_next(1, 429, retry_after=1)
    start = time.monotonic()
    assert len(api.comments(7)) == 1
    assert time.monotonic() - start >= 1


@pytest.mark.parametrize("status", [403, 429])
def test_a_secondary_limit_without_a_time_is_waited_for_patiently(filled: Stub, status: int) -> None:
    filled.rate_limit_next(1, status, retry_after=None)
    start = time.monotonic()
    client(filled, patience=Patience(secondary_s=0.3, backoff_s=0.001)).add_comment(7, "ours")
    if status == 403:
        assert time.monotonic() - start >= 0.3
    assert len(filled.comments(REPO, 7)) == 2


def test_a_limit_that_ends_in_an_hour_is_not_waited_for(filled: Stub, api: Client) -> None:
    filled.rate_limit_next(1, 403, retry_after=None, reset=3600)
    with pytest.raises(ApiError):
        api.comments(7)


@EVERY
def test_a_server_that_hangs_up_once_is_asked_again(
    filled: Stub, api: Client, action: Callable[[Client], object]
) -> None:
    filled.cut_next(1, whole=True)
    if action is removes:  # it worked, and what is gone cannot be removed again
        with pytest.raises(ApiError) as caught:
            action(api)
        assert caught.value.status == 404
    else:
        action(api)
    assert len(filled.requests) >= 2


@EVERY
def test_an_answer_that_breaks_off_is_an_error_and_no_crash(
    filled: Stub, api: Client, action: Callable[[Client], object]
) -> None:
    filled.cut_next(1)
    error = refusal(lambda: action(api))  # None where nobody reads the answer
    assert error is None or (error.status, TOKEN in str(error)) == (0, False)


@pytest.mark.parametrize("action", [reads, fetches])
def test_what_is_waited_for_is_said(filled: Stub, action: Callable[[Client], object], said: list[str]) -> None:
    filled.slow_next(2.7)
    action(client(filled))
    (line,) = said
    assert re.fullmatch(r"waiting for GitHub to .*, [23] s", line)


def test_a_server_that_is_not_there_is_an_error_without_status(stub: Stub) -> None:
    api = client(stub, api_url="http://127.0.0.1:9")
    with pytest.raises(ApiError, match="GitHub did not") as caught:
        api.comments(7)
    assert caught.value.status == 0
    assert TOKEN not in str(caught.value)
    with pytest.raises(ApiError):
        api.login()


@pytest.mark.parametrize("action", [writes, changes, removes])
def test_the_token_of_a_fork_may_read_and_not_write_which_is_reported_at_once(
    filled: Stub, action: Callable[[Client], object]
) -> None:
    api = client(filled, "t0ken-of-a-f0rk")
    assert len(api.comments(7)) == 1
    before = len(filled.requests)
    with pytest.raises(ApiError, match="HTTP status 403") as caught:
        action(api)
    assert caught.value.status == 403
    assert "fork" in (caught.value.hint or "")
    assert len(filled.requests) == before + 1
    assert [comment.body for comment in filled.comments(REPO, 7)] == ["old"]


@pytest.mark.parametrize(("token", "status"), [("wr0ng", 401), ("p0werless", 403)])
def test_a_wrong_or_powerless_token_is_reported_with_advice_and_never_shown(
    filled: Stub, token: str, status: int
) -> None:
    filled.tokens["p0werless"] = Token(BOT, {})
    for action in (reads, writes, changes):
        with pytest.raises(ApiError) as caught:
            action(client(filled, token))
        assert caught.value.status == status
        assert caught.value.hint
        assert token not in f"{caught.value.message}{caught.value.hint}"


def test_what_is_not_there_is_reported(stub: Stub, api: Client) -> None:
    for action in (reads, writes, changes, removes):
        with pytest.raises(ApiError) as caught:
            action(api)
        assert caught.value.status == 404
    with pytest.raises(ApiError, match="pull request 7"):
        api.pull(7)
    stub.add_issue(REPO, number=8)
    with pytest.raises(ApiError):
        api.pull(8)  # an issue is no pull request


@pytest.mark.parametrize("answer", [b"<html>", b'[{"id": "x"}]'])
def test_an_answer_that_is_not_what_was_asked_for_is_an_error_in_one_sentence(
    stub: Stub, api: Client, answer: bytes
) -> None:
    """A proxy in between may say anything."""
    stub.add_pull(REPO, number=7)
    for action in (api.login, lambda: api.pull(7), lambda: api.comments(7), lambda: api.artifacts(1)):
        answers(stub, answer)
        assert (refusal(action) or ApiError("")).message.startswith("GitHub did not ")


def test_what_was_redirected_and_not_made_is_an_error(stub: Stub, api: Client) -> None:
    """As GitHub answers for a repository that was renamed."""
    for action in (lambda: api.add_comment(7, "text"), lambda: api.add_issue("title", "text", "x")):
        answers(stub, b"", 307)
        assert "was the repository renamed?" in str(refusal(action))


def test_an_error_has_no_signed_address(stub: Stub, api: Client) -> None:
    stub.add_artifact(REPO, 42, "a", b"PK")
    (artifact,) = api.artifacts(42)
    answers(stub, b"", 302, {"Location": "http://127.0.0.1:1/blob/1?sp=r&sig=SIGNED"})
    error = refusal(lambda: api.download(artifact, 100))
    assert "/blob/1?…" in str(error)
    assert "SIGNED" not in str(error)


def answers(stub: Stub, content: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
    """Have this be the next answer."""
    reply = github_stub._Reply(status=status, content=content, headers=dict(headers or {}))
    stub._events.append(github_stub._Event(times=1, kind="", reply=reply, works=False))


# Artifacts.


def test_artifacts_of_a_run_come_by_name_without_those_that_expired(stub: Stub, api: Client) -> None:
    stub.add_artifact(REPO, 42, "b", {"x": b"1"}, fork=True, branch="topic", sha="c" * 40)
    first = stub.add_artifact(REPO, 42, "a", {"x": b"1"})
    stub.add_artifact(REPO, 42, "c", {"x": b"1"}, expired=True)
    stub.add_artifact(REPO, 43, "d", {"x": b"1"})
    found = api.artifacts(42)
    assert [(item.name, item.own, item.branch, item.sha) for item in found] == [
        ("a", True, "main", "a" * 40),
        ("b", False, "topic", "c" * 40),
    ]
    assert (found[0].id, found[0].size) == (first.id, len(first.content))


def test_of_many_artifacts_all_pages_are_read(stub: Stub, api: Client) -> None:
    for number in range(120):
        stub.add_artifact(REPO, 42, f"a{number:03}", b"")
    assert [item.name for item in api.artifacts(42)] == [f"a{number:03}" for number in range(120)]


def test_of_the_artifacts_of_one_name_the_newest_are_looked_at_and_only_as_many_as_wanted(
    stub: Stub, api: Client
) -> None:
    made = [stub.add_artifact(REPO, number, "a", b"", expired=number == 149).id for number in range(150)]
    stub.add_artifact(REPO, 1, "b", b"")
    seen: list[int] = []

    def wanted(item: Artifact) -> bool:
        seen.append(item.id)
        return True

    last = api.last_own("a", wanted, most=2)
    assert (seen, last and last.id) == ([made[148], made[147]], made[148])
    assert len(stub.requests) == 1
    seen.clear()
    api.last_own("a", wanted, most=1000)
    assert len(seen) == 149


def test_an_artifact_is_fetched_from_where_it_is_kept_without_showing_the_token_there(stub: Stub, api: Client) -> None:
    made = stub.add_artifact(REPO, 42, "a", b"\0" * 100_000)
    (artifact,) = api.artifacts(42)
    assert api.download(artifact, 100_000) == made.content
    assert asked(stub)[-1].startswith("GET /blob/")


def test_an_artifact_is_fetched_with_the_token_whatever_a_netrc_on_the_runner_says(
    stub: Stub, api: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an Enterprise server API and git have one address, and a job may have put its name into ~/.netrc, for git."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine localhost login someone password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    stub.add_artifact(REPO, 42, "a", b"PK")
    api = client(stub, api_url=stub.url.replace("127.0.0.1", "localhost"))
    assert api.download(api.artifacts(42)[0], 100) == b"PK"


def test_an_artifact_that_is_too_large_is_not_asked_for(stub: Stub, api: Client) -> None:
    stub.add_artifact(REPO, 42, "a", bytes(1001))
    (artifact,) = api.artifacts(42)
    before = len(stub.requests)
    with pytest.raises(ApiError, match="too large: more than 1000 bytes"):
        api.download(artifact, 1000)
    assert len(stub.requests) == before


def test_an_artifact_that_is_larger_than_was_said_is_not_read_to_its_end(stub: Stub, api: Client) -> None:
    made = stub.add_artifact(REPO, 42, "a", b"")
    (artifact,) = api.artifacts(42)
    made.content = bytes(50_000_000)
    with pytest.raises(ApiError, match="too large"):
        api.download(artifact, 1000)


def test_an_artifact_that_is_gone_expired_or_not_ours_to_read_is_reported(stub: Stub, api: Client) -> None:
    made = stub.add_artifact(REPO, 42, "a", b"PK")
    (artifact,) = api.artifacts(42)
    made.expired = True
    with pytest.raises(ApiError, match="HTTP status 410"):
        api.download(artifact, 100)
    stub.repository(REPO).artifacts.clear()
    with pytest.raises(ApiError, match="HTTP status 404") as caught:
        api.download(artifact, 100)
    assert "actions: read" in (caught.value.hint or "")


def test_artifacts_without_a_run_are_nobodys() -> None:
    artifact = Artifact(id=1, name="a", size=0, branch=None, sha=None, own=False, created_at="")
    assert not artifact.own


# Issues.


def test_issues_of_a_label_come_open_and_closed_and_pull_requests_are_none(stub: Stub, api: Client) -> None:
    stub.add_issue(REPO, "One", labels=["cg-bench"], body="text", author="someone")
    stub.add_issue(REPO, "Two", labels=["cg-bench", "x"], state="closed")
    stub.add_issue(REPO, "Three", labels=["x"])
    stub.add_pull(REPO).labels.append("cg-bench")
    found = api.issues("cg-bench")
    assert [(item.number, item.title, item.body, item.author, item.open) for item in found] == [
        (2, "Two", "", "someone", False),
        (1, "One", "text", "someone", True),
    ]
    assert len(stub.requests) == 1


def test_of_many_issues_all_pages_are_read(stub: Stub, api: Client) -> None:
    for number in range(101):
        stub.add_issue(REPO, str(number), labels=["cg-bench"])
    assert len(api.issues("cg-bench")) == 101
    assert len(stub.requests) == 2


def test_issues_are_opened_changed_closed_and_opened_again(stub: Stub, api: Client) -> None:
    number = api.add_issue("Slower", "text", "cg-bench")
    api.edit_issue(number, title="Slower still", body="more", is_open=False)
    issue = stub.repository(REPO).issues[number]
    assert (issue.title, issue.body, issue.state, issue.labels) == ("Slower still", "more", "closed", ["cg-bench"])
    assert issue.author == BOT
    api.edit_issue(number, title="Slower", body="text", is_open=True)
    assert issue.state == "open"


def test_who_asks_says_so_and_the_token_stands_in_no_address(filled: Stub, api: Client) -> None:
    """The stub notes a request without User-Agent, and a token anywhere but in the header."""
    for action in (reads, writes, changes, fetches, removes):
        action(api)
    assert TOKEN not in repr(filled.requests)
    assert TOKEN not in repr(api)
