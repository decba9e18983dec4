"""The comment under a pull request."""

from __future__ import annotations

import pytest

from cachegrind_bench.ci.posts import marker
from cachegrind_bench.model.codec import encode
from tests.cli.ci.job import REPO, SLOWER, TOKEN, Job, base_run, commented, noted, one, run, unescaped
from tests.github_stub import BOT, Token


def test_what_moved_is_commented_and_then_kept_up_to_date(job: Job) -> None:
    job.stub.add_pull(REPO, head="base:topic", number=7)
    job.pull_request().has(SLOWER, base_run()).compared()
    told = commented(job)
    assert (told.code, noted(told)) == (0, [])
    (body,) = job.comments()
    assert unescaped(body).startswith("### ❌ regression: a score +10 %")
    assert len(body) < 60_000
    job.has(run(one())).compared()
    assert commented(job).code == 0
    (body,) = job.comments()
    assert body.startswith("### ✔️ unchanged")


@pytest.mark.parametrize(
    ("when", "ir", "number"),
    [
        ("on-change", 1_000_000, 0),
        ("always", 1_000_000, 1),
        ("never", 1_100_000, 0),
        ("on-change", 900_000, 1),
        ("on-change", 1_100_000, 1),
    ],
)
def test_when_there_is_a_comment_is_chosen(job: Job, when: str, ir: int, number: int) -> None:
    job.stub.add_pull(REPO, head="base:topic", number=7)
    job.pull_request().has(run(one(ir)), base_run()).compared()
    assert commented(job, "--comment", when).code == 0
    assert len(job.comments()) == number


def test_no_baseline_alone_is_not_a_reason_for_a_comment(job: Job) -> None:
    job.stub.add_pull(REPO, head="base:topic", number=7)
    job.pull_request().has(run(one())).compared()
    assert commented(job).code == 0
    assert job.comments() == []


def test_a_fork_may_not_comment_which_is_a_warning_and_fails_nothing(job: Job) -> None:
    job.stub.tokens[TOKEN] = Token(BOT, {"pull-requests": "read"})
    job.stub.add_pull(REPO, number=7)
    job.pull_request(repo="contributor/prog").has(SLOWER, base_run()).compared()
    told = commented(job)
    assert (told.code, job.comments()) == (0, [])
    (warning,) = noted(told, "warning")
    assert "no comment" in warning
    assert "403" in warning


def test_a_head_that_moved_gets_no_comment_and_fails_nothing(job: Job) -> None:
    job.stub.add_pull(REPO, head="base:topic", head_sha="c" * 40, number=7)
    job.pull_request().has(SLOWER, base_run()).compared()
    told = commented(job)
    assert (told.code, job.comments()) == (0, [])
    assert "has a newer commit" in told.out


def test_a_closed_pull_request_gets_no_comment_and_fails_nothing(job: Job) -> None:
    job.stub.add_pull(REPO, head="base:topic", state="closed", number=7)
    job.pull_request().has(SLOWER, base_run()).compared()
    told = commented(job)
    assert (told.code, job.comments()) == (0, [])
    assert "was closed" in told.out


def test_two_jobs_and_two_artifacts_have_a_comment_each(job: Job) -> None:
    job.stub.add_pull(REPO, head="base:topic", number=7)
    job.pull_request().has(SLOWER, base_run()).compared()
    for artifact in ("one", "two", "one"):
        assert commented(job, "--artifact", artifact).code == 0
    job.monkeypatch.setenv("GITHUB_JOB", "other")
    assert commented(job, "--artifact", "one").code == 0
    assert len(job.comments()) == 3


def test_without_a_token_there_is_no_comment_and_that_is_reported(job: Job) -> None:
    job.pull_request().has(SLOWER, base_run()).compared()
    told = job.step("comment")
    assert told.code == 0
    assert any("no token" in each for each in noted(told, "warning"))


def test_a_comment_before_there_is_a_report_is_an_error_in_words(job: Job) -> None:
    assert job.pull_request().step("comment", "--token", TOKEN).code == 2


def test_a_bad_day_of_github_ends_in_one_comment(job: Job) -> None:
    job.stub.add_pull(REPO, head="base:topic", number=7)
    for number in range(150):
        job.stub.add_comment(REPO, 7, f"comment {number}")
    job.stub.add_comment(REPO, 7, marker("Benchmarks", "benchmarks", ""), "someone")
    job.pull_request().has(SLOWER, base_run()).compared()
    job.stub.fail_next(2, 502, "GET .*/pulls")
    job.stub.rate_limit_next(1, 429, 0, "GET .*/comments")
    job.stub.fail_next(1, 502, "POST .*/comments", works=True)
    assert commented(job).code == 0
    assert len(job.comments()) == 152
    assert job.comments()[-1].startswith("### ❌ regression")


@pytest.mark.parametrize("status", [502, 403])
def test_a_github_that_never_answers_is_a_warning(job: Job, status: int) -> None:
    job.stub.add_pull(REPO, head="base:topic", number=7)
    job.pull_request().has(SLOWER, base_run()).compared()
    job.stub.fail_next(1000, status)
    told = commented(job)
    assert told.code == 0
    assert len(noted(told, "warning")) == 1


def test_on_an_enterprise_server_it_is_the_same(job: Job) -> None:
    job.stub.add_pull(REPO, number=7)
    job.monkeypatch.setenv("GITHUB_API_URL", job.stub.enterprise_url)
    job.variables["GITHUB_API_URL"] = job.stub.enterprise_url
    job.stub.add_artifact(
        REPO, 42, "cg-bench-result-x", {"result.json": encode(SLOWER), "base.json": encode(base_run())}
    )
    assert job.workflow_run().step("collect", "--run", "42", "--token", TOKEN).code == 0
    job.compared()
    assert commented(job).code == 0
    assert len(job.comments()) == 1
    assert all(each.path.startswith(("/api/", "/blob/")) for each in job.stub.requests)
