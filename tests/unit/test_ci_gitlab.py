"""The comment on GitLab: found, written once and updated as on GitHub; its token goes nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.ci.github import ApiError, Patience
from cachegrind_bench.ci.gitlab import Client, read_merge_request
from cachegrind_bench.ci.posts import Outcome, marker, post
from cachegrind_bench.errors import UsageError
from tests.github_stub import Token
from tests.gitlab_stub import HEAD, LOGIN, NUMBER, PROJECT, GitLab

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "glpat-0123456789abcdefghij"
MARK = marker("gitlab", "comment-benchmarks")


@pytest.fixture
def stub(gitlab: GitLab) -> GitLab:
    gitlab.tokens[TOKEN] = Token(LOGIN, {"pull-requests": "write"})
    gitlab.tokens["re4d"] = Token(LOGIN, {"pull-requests": "read"})
    return gitlab


def client(stub: GitLab, token: str = TOKEN) -> Client:
    return Client(read_merge_request(stub.variables()), token, Patience(backoff_s=0.001))


def posted(stub: GitLab, text: str = "### Slower", *, wanted: bool = True, token: str = TOKEN) -> Outcome:
    return post(client(stub, token).thread(), text, MARK, wanted=wanted)


def test_a_comment_is_written_once_updated_in_its_place_and_not_repeated(stub: GitLab) -> None:
    assert posted(stub, wanted=False) is Outcome.NOT_NEEDED
    assert posted(stub) is Outcome.WRITTEN
    assert stub.bodies() == [f"### Slower\n\n{MARK}\n"]
    assert posted(stub, "### Much slower") is Outcome.UPDATED
    assert posted(stub, "### Much slower", wanted=False) is Outcome.SAME
    (note,) = stub.notes.values()
    assert (note.body, note.updates, note.author) == (f"### Much slower\n\n{MARK}\n", 1, LOGIN)


@pytest.mark.parametrize("place", [0, 249])
def test_ours_is_found_on_every_page(stub: GitLab, place: int) -> None:
    for number in range(250):
        ours = number == place
        stub.add_note(f"old\n\n{MARK}" if ours else "hello", LOGIN if ours else "someone")
    assert posted(stub) is Outcome.UPDATED
    assert [number for number, body in enumerate(stub.bodies()) if MARK in body] == [place]


def test_somebody_elses_note_with_our_mark_is_not_touched_and_of_two_of_ours_one_stays(stub: GitLab) -> None:
    theirs = stub.add_note(f"Fine\n\n{MARK}")
    for text in ("one", "two"):
        stub.add_note(f"{text}\n\n{MARK}", LOGIN)
    assert posted(stub) is Outcome.UPDATED
    assert stub.bodies() == [theirs.body, f"### Slower\n\n{MARK}\n"]


def test_lines_that_gitlab_would_take_for_commands_are_text(stub: GitLab) -> None:
    posted(stub, "### Slower\n/approve\n  /merge\n<!--\n/close\n-->\na/b /c")
    (body,) = stub.bodies()
    assert body.startswith("### Slower\n\\/approve\n  \\/merge\n<!--\n\\/close\n-->\na/b /c")
    assert posted(stub, "### Slower\n/approve\n  /merge\n<!--\n/close\n-->\na/b /c") is Outcome.UPDATED


@pytest.mark.parametrize("kind", ["GET .*/notes", "GET .*/user", "POST", "PUT", "DELETE"])
def test_no_redirect_takes_the_token_elsewhere(stub: GitLab, kind: str) -> None:
    if kind != "POST":
        for text in ("one", "two"):
            stub.add_note(f"{text}\n\n{MARK}", LOGIN)
    stub.redirect_next(1, kind)
    with pytest.raises(ApiError, match="HTTP status 307"):
        posted(stub)


def test_what_a_netrc_has_for_the_host_is_not_sent(
    stub: GitLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "netrc"
    file.write_text("machine 127.0.0.1 login me password s3cret\n")
    monkeypatch.setenv("NETRC", str(file))
    assert posted(stub) is Outcome.WRITTEN


@pytest.mark.parametrize("content", [b"", b"<html>", b"[{}]"])
def test_an_answer_that_makes_no_sense_is_an_error_in_words(stub: GitLab, content: bytes) -> None:
    stub.answer_next(content, 10)
    with pytest.raises(ApiError, match="its answer makes no sense"):
        posted(stub)


@pytest.mark.parametrize("kind", ["GET", "POST", "PUT", "DELETE"])
def test_every_request_may_fail_twice_and_every_answer_may_get_lost_once(stub: GitLab, kind: str) -> None:
    for cut in (False, True):
        stub.notes.clear()
        for text in ("one", "two") if kind != "POST" else ():
            stub.add_note(f"{text}\n\n{MARK}", LOGIN)
        if cut:
            stub.cut_next(1, kind)
        else:
            stub.fail_next(2, 502, kind, works=kind == "POST")
        posted(stub)
        assert stub.bodies() == [f"### Slower\n\n{MARK}\n"]


def test_a_note_that_somebody_removes_meanwhile_is_written_anew_and_limits_are_waited_for(stub: GitLab) -> None:
    posted(stub)
    stub.before("PUT", stub.notes.clear)
    stub.rate_limit_next(1, 429, 0, "POST")
    assert posted(stub, "### Faster") is Outcome.WRITTEN
    assert stub.bodies() == [f"### Faster\n\n{MARK}\n"]


@pytest.mark.parametrize(("token", "status"), [("re4d", 403), ("wr0ng", 401)])
def test_a_token_that_may_not_write_is_an_error_with_advice(stub: GitLab, token: str, status: int) -> None:
    with pytest.raises(ApiError) as caught:
        posted(stub, token=token)
    assert (caught.value.status, stub.bodies()) == (status, [])
    assert caught.value.hint
    assert token not in str(caught.value)


def test_the_commit_of_an_open_merge_request_is_known(stub: GitLab) -> None:
    assert client(stub).open_head() == HEAD
    stub.state = "merged"
    assert client(stub).open_head() is None


def test_the_variables_of_a_job_say_which_merge_request_it_is_for(stub: GitLab) -> None:
    found = read_merge_request(stub.variables(CI_MERGE_REQUEST_SOURCE_BRANCH_SHA="b" * 40))
    assert (found.project, found.number, found.head_sha) == (PROJECT, NUMBER, "b" * 40)
    assert read_merge_request(stub.variables()).head_sha == HEAD


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CI_API_V4_URL", "https://gitlab.example.org/api/v4"),
        ("CI_API_V4_URL", "file:///etc/passwd"),
        ("CI_MERGE_REQUEST_IID", ""),
        ("CI_MERGE_REQUEST_PROJECT_ID", "base%2Fprog"),
    ],
)
def test_variables_that_are_not_of_a_merge_requests_job_are_refused(stub: GitLab, name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name):
        read_merge_request(stub.variables(**{name: value}))
