"""The one comment: found on any page, by mark and author, written once whatever gets lost, and nobody else's touched."""

from __future__ import annotations

from typing import Any

import pytest

from cachegrind_bench.ci.github import ApiError, Client, Patience
from cachegrind_bench.ci.posts import Outcome, is_by, marker, post
from tests.github_stub import BOT, Stub, Token
from tests.unit.samples import HOSTILE

REPO, TOKEN = "base/prog", "t0ken-of-the-job"
MARK = marker("Benchmarks", "benchmarks", "")


@pytest.fixture
def stub(github: Stub) -> Stub:
    """Return the stand-in of GitHub's API, as these tests begin with it."""
    github.tokens[TOKEN] = Token(BOT, {"pull-requests": "write"})
    github.tokens["t0ken-of-a-f0rk"] = Token(BOT, {"pull-requests": "read"})
    github.add_pull(REPO, number=7)
    return github


def client(stub: Stub, token: str = TOKEN, **more: Any) -> Client:
    patience = Patience(secondary_s=0.01, backoff_s=0.001)
    return Client(**{"api_url": stub.url, "repository": REPO, "token": token, "patience": patience, **more})


def posted(stub: Stub, text: str = "### Slower", *, wanted: bool = True, **more: Any) -> Outcome:
    return post(client(stub, **more).thread(7), text, MARK, wanted=wanted)


def bodies(stub: Stub) -> list[str]:
    return [comment.body for comment in stub.comments(REPO, 7)]


def written(stub: Stub) -> list[str]:
    return [each.method for each in stub.requests if each.method != "GET" and "graphql" not in each.path]


def test_the_mark_is_one_for_each_name_and_no_name_can_end_it_early() -> None:
    names = [("",), ("a",), ("a", "b"), ("ab",), ("a\0b", ""), ("b", "a"), (HOSTILE,), ("-->",), ("\udc80",)]
    marks = [marker(*each) for each in names]
    assert len(set(marks)) == len(marks)
    assert all(mark.startswith("<!-- cg-bench:") and mark.index("-->") == len(mark) - 3 for mark in marks)
    assert all("\n" not in mark for mark in marks)


def test_a_comment_is_written_once_and_then_updated_in_its_place(stub: Stub) -> None:
    assert posted(stub, "### Slower\n\n\n") is Outcome.WRITTEN
    assert bodies(stub) == [f"### Slower\n\n{MARK}\n"]
    assert posted(stub, "### Much slower") is Outcome.UPDATED
    (comment,) = stub.comments(REPO, 7)
    assert (comment.body, comment.updates, comment.author) == (f"### Much slower\n\n{MARK}\n", 1, BOT)


def test_the_same_text_is_not_written_again(stub: Stub) -> None:
    posted(stub)
    before = len(written(stub))
    assert posted(stub) is Outcome.SAME
    (comment,) = stub.comments(REPO, 7)
    comment.body = comment.body.replace("\n", "\r\n").strip()  # as it may come back
    assert posted(stub) is Outcome.SAME
    assert len(written(stub)) == before


def test_without_need_nothing_is_written_unless_there_is_a_comment_already(stub: Stub) -> None:
    assert posted(stub, wanted=False) is Outcome.NOT_NEEDED
    assert (bodies(stub), written(stub)) == ([], [])
    posted(stub)
    assert posted(stub, "### Unchanged", wanted=False) is Outcome.UPDATED
    assert bodies(stub) == [f"### Unchanged\n\n{MARK}\n"]


def test_without_a_marked_comment_nobody_is_asked_whose_the_token_is(stub: Stub) -> None:
    posted(stub, wanted=False)
    assert not any("graphql" in each.path for each in stub.requests)


@pytest.mark.parametrize("place", [0, 149])
def test_ours_is_found_on_every_page(stub: Stub, place: int) -> None:
    for number in range(150):
        stub.add_comment(
            REPO, 7, f"old\n\n{MARK}" if number == place else "hello", BOT if number == place else "someone"
        )
    assert posted(stub) is Outcome.UPDATED
    assert [index for index, body in enumerate(bodies(stub)) if MARK in body] == [place]
    assert bodies(stub)[place].startswith("### Slower")
    assert written(stub) == ["PATCH"]


@pytest.mark.parametrize("other", ["someone", "", "github-actions", "evil[bot]", "github-actions[bot]x", BOT.upper()])
def test_a_comment_of_somebody_else_with_our_mark_is_not_touched(stub: Stub, other: str) -> None:
    theirs = stub.add_comment(REPO, 7, f"Looks fine to me\n\n{MARK}", other)
    assert posted(stub) is Outcome.WRITTEN
    assert posted(stub, "### Faster") is Outcome.UPDATED
    assert theirs.body == f"Looks fine to me\n\n{MARK}"
    assert [comment.author for comment in stub.comments(REPO, 7)] == [other, BOT]


def test_with_only_somebody_elses_mark_nothing_that_is_not_needed_is_written(stub: Stub) -> None:
    stub.add_comment(REPO, 7, MARK, "someone")
    assert posted(stub, wanted=False) is Outcome.NOT_NEEDED
    assert bodies(stub) == [MARK]


def test_comments_of_ours_with_another_mark_are_another_jobs(stub: Stub) -> None:
    stub.add_comment(REPO, 7, f"### Of another job\n\n{marker('Benchmarks', 'other', '')}", BOT)
    assert posted(stub) is Outcome.WRITTEN
    assert bodies(stub)[0].startswith("### Of another job")
    assert len(bodies(stub)) == 2


def test_of_two_comments_that_two_jobs_wrote_at_once_the_first_stays(stub: Stub) -> None:
    for text in ("one", "two", "three"):
        stub.add_comment(REPO, 7, f"{text}\n\n{MARK}", BOT)
    stub.add_comment(REPO, 7, f"theirs\n\n{MARK}", "someone")
    first = stub.comments(REPO, 7)[0].id
    assert posted(stub) is Outcome.UPDATED
    assert [comment.id for comment in stub.comments(REPO, 7) if comment.author == BOT] == [first]
    assert bodies(stub) == [f"### Slower\n\n{MARK}\n", f"theirs\n\n{MARK}"]


def test_a_second_job_that_writes_while_we_look_leaves_one_comment(stub: Stub) -> None:
    stub.before("POST .*/comments", lambda: stub.add_comment(REPO, 7, f"of the other\n\n{MARK}", BOT))
    assert posted(stub) is Outcome.WRITTEN
    assert sum(MARK in body for body in bodies(stub)) == 1


def test_what_the_other_job_removed_already_is_not_an_error(stub: Stub) -> None:
    stub.add_comment(REPO, 7, f"one\n\n{MARK}", BOT)
    second = stub.add_comment(REPO, 7, f"two\n\n{MARK}", BOT)
    stub.before("DELETE", lambda: stub.repository(REPO).comments.pop(second.id, None))
    assert posted(stub) is Outcome.UPDATED
    assert len(bodies(stub)) == 1


def test_a_comment_that_somebody_removes_meanwhile_is_written_anew(stub: Stub) -> None:
    posted(stub)
    stub.before("PATCH", stub.repository(REPO).comments.clear)
    assert posted(stub, "### Faster") is Outcome.WRITTEN
    assert bodies(stub) == [f"### Faster\n\n{MARK}\n"]


@pytest.mark.parametrize("times", [1, 2])
def test_writing_that_worked_though_its_answer_was_lost_leads_to_one_comment(stub: Stub, times: int) -> None:
    stub.fail_next(times, 502, "POST .*/comments", works=True)
    assert posted(stub) is Outcome.WRITTEN
    assert bodies(stub) == [f"### Slower\n\n{MARK}\n"]


@pytest.mark.parametrize("whole", [True, False])
def test_a_line_that_breaks_while_we_write_leads_to_one_comment(stub: Stub, *, whole: bool) -> None:
    stub.cut_next(1, "POST .*/comments", whole=whole)
    posted(stub)
    assert bodies(stub) == [f"### Slower\n\n{MARK}\n"]


def test_a_server_that_does_it_and_fails_for_ever_ends_in_an_error_and_the_next_job_tidies_up(stub: Stub) -> None:
    stub.fail_next(1000, 502, "POST .*/comments", works=True)
    with pytest.raises(ApiError):
        posted(stub)
    assert len(bodies(stub)) > 1
    stub._events.clear()
    assert posted(stub, "### Faster") is Outcome.UPDATED
    assert bodies(stub) == [f"### Faster\n\n{MARK}\n"]


@pytest.mark.parametrize("kind", ["GET", "graphql", "POST .*/comments", "PATCH", "DELETE"])
def test_every_answer_may_get_lost_once(stub: Stub, kind: str) -> None:
    if "comments" not in kind:
        for text in ("one", "two"):
            stub.add_comment(REPO, 7, f"{text}\n\n{MARK}", BOT)
    stub.cut_next(1, kind, whole=True)
    posted(stub)
    assert bodies(stub) == [f"### Slower\n\n{MARK}\n"]


def test_the_token_of_a_fork_writes_nothing_and_that_is_an_error(stub: Stub) -> None:
    with pytest.raises(ApiError) as caught:
        posted(stub, token="t0ken-of-a-f0rk")
    assert caught.value.status == 403
    assert bodies(stub) == []
    stub.add_comment(REPO, 7, f"old\n\n{MARK}", BOT)
    with pytest.raises(ApiError):
        posted(stub, token="t0ken-of-a-f0rk")
    assert bodies(stub) == [f"old\n\n{MARK}"]


def test_a_persons_token_updates_that_persons_comment(stub: Stub) -> None:
    stub.tokens["p3rson"] = Token("someone", {"pull-requests": "write"})
    bots = stub.add_comment(REPO, 7, f"old\n\n{MARK}", BOT)
    assert posted(stub, token="p3rson") is Outcome.WRITTEN
    assert posted(stub, "### Faster", token="p3rson") is Outcome.UPDATED
    assert bots.body == f"old\n\n{MARK}"


def test_where_it_may_not_be_asked_the_token_is_taken_for_the_jobs(stub: Stub) -> None:
    stub.fail_next(1, 403, "graphql")
    assert client(stub).login() == BOT
    with pytest.raises(ApiError):
        client(stub, token="wr0ng").login()


def test_an_app_is_named_with_bot_in_one_place_and_without_in_another() -> None:
    assert is_by("app[bot]", "app")
    assert is_by("app[bot]", "app[bot]")
    assert is_by("someone", "someone")
    assert not is_by("app", "app[bot]")
    assert not is_by("", "app")
    assert not is_by("someone else", "someone")
