"""The pair of workflows for forks, and the parts of a suite: collected, compared, commented."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from cachegrind_bench.ci.posts import marker
from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.usecases.ci import measure
from tests.cli.ci.job import (
    BASE,
    GOOD,
    MEASURING,
    REPO,
    STORE,
    TOKEN,
    Job,
    base_run,
    collected,
    commented,
    noted,
    one,
    run,
    sent,
    unescaped,
    whole,
)
from tests.github_stub import BOT, Token


def test_a_forks_pull_request_is_commented_by_who_may(job: Job) -> None:
    job.stub.add_pull(REPO, number=7)
    sent(job, GOOD)
    told = whole(job.workflow_run())
    assert (told.code, noted(told)) == (0, [])
    (body,) = job.comments()
    assert unescaped(body).startswith("### ❌ regression: a score +10 %")
    assert marker(MEASURING) in body
    assert job.outputs["baseline-sha"] == BASE
    assert job.step("gate", "--hold", "nothing").code == 0


def test_what_has_no_base_with_it_is_searched_nowhere_else(job: Job) -> None:
    """The candidate's commit says whose it is, and the candidate is a fork's."""
    job.stub.add_pull(REPO, number=7)
    sent(job, {"result.json": GOOD["result.json"]})
    assert collected(job.workflow_run()).code == 0
    told = job.step("compare", *STORE, "--token", TOKEN)
    assert told.code == 0, told.err
    assert job.outputs["verdict"] == "no baseline"
    assert "no baseline: the measuring job found none" in unescaped(job.summary)


def test_the_number_of_the_pull_request_is_never_taken_from_the_artifact(job: Job) -> None:
    """The artifact says in every place it has that it is of number 8 of somebody else, and is commented where it belongs."""
    job.stub.add_pull(REPO, number=7)
    job.stub.add_pull(REPO, head="victim:topic", head_sha="d" * 40, number=8)
    claim = json.loads(encode(run(one(1_100_000), sha="d" * 40)))
    claim |= {"pull_request": 8, "number": 8, "head": "victim:topic"}
    claim["commit"]["branch"] = "victim:topic"
    claim["env"]["info"] = {"pull_request": 8, "github_ref": "refs/pull/8/merge"}
    sent(job, {"result.json": json.dumps(claim).encode(), "base.json": GOOD["base.json"]})
    assert whole(job.workflow_run()).code == 0
    assert (len(job.comments(7)), len(job.comments(8))) == (1, 0)


@pytest.mark.parametrize("name", ["NR", "pr_number", "../8", "number.txt"])
def test_a_file_with_a_number_beside_the_result_is_refused(job: Job, name: str) -> None:
    sent(job, {**GOOD, name: b"8"})
    told = collected(job.workflow_run())
    assert told.code == 2
    assert "does not belong there" in told.err


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"head_sha": "c" * 40}, "no open pull request has the commit"),
        ({"state": "closed"}, "no open pull request has the commit"),
        ({"head_repo": ""}, "no open pull request has the commit"),
        ({"head_repo": "contributor/another"}, "no open pull request has the commit"),
        ({"head": "another:topic"}, "no open pull request has the commit"),
    ],
)
def test_a_head_that_moved_was_closed_or_is_another_forks_gets_no_comment_and_fails_nothing(
    job: Job, changes: dict[str, str], words: str
) -> None:
    job.stub.add_pull(REPO, number=7, **changes)
    sent(job, GOOD)
    told = whole(job.workflow_run())
    assert (told.code, job.comments()) == (0, [])
    (notice,) = noted(told, "notice")
    assert words in notice


def test_of_two_pull_requests_with_one_head_none_is_commented_and_that_is_reported(job: Job) -> None:
    job.stub.add_pull(REPO, number=7)
    job.stub.add_pull(REPO, base_branch="next", number=8)
    sent(job, GOOD)
    told = whole(job.workflow_run())
    assert (told.code, job.comments(7), job.comments(8)) == (0, [], [])
    assert any("2 pull requests have this commit" in each for each in noted(told, "notice"))


def test_a_run_without_a_branch_gets_no_comment_and_that_is_reported(job: Job) -> None:
    job.stub.add_pull(REPO, number=7)
    sent(job, GOOD)
    told = whole(job.workflow_run(head_branch=None))
    assert (told.code, job.comments()) == (0, [])
    assert noted(told, "notice")


def test_a_fork_that_was_deleted_gets_no_comment_and_fails_nothing(job: Job) -> None:
    job.stub.add_pull(REPO, head_repo="", number=7)
    sent(job, GOOD)
    job.workflow_run(head_repository=None)
    told = collected(job)
    assert told.code == 0, told.err
    job.compared()
    told = commented(job)
    assert (told.code, job.comments()) == (0, [])
    assert noted(told, "notice")


def test_here_a_comment_that_cannot_be_written_is_an_error(job: Job) -> None:
    job.stub.tokens[TOKEN] = Token(BOT, {"actions": "read", "pull-requests": "read"})
    job.stub.add_pull(REPO, number=7)
    sent(job, GOOD)
    told = whole(job.workflow_run())
    assert told.code == 2
    assert any("403" in each for each in noted(told, "error"))


def test_a_configuration_that_lies_around_does_not_decide_over_a_foreign_result(job: Job) -> None:
    Path("cg-bench.toml").write_text("this is [no configuration")
    job.stub.add_pull(REPO, number=7)
    sent(job, GOOD)
    assert whole(job.workflow_run()).code == 0


def test_parts_are_merged_and_other_artifacts_are_left_alone(job: Job) -> None:
    for number, name in enumerate("ab"):
        part = {"result.json": encode(run(one(name=name))), "base.json": encode(base_run(one(name=name)))}
        sent(job, part, f"cg-bench-part-measure-{number}", 99)
    sent(job, {"anything": b"else"}, "coverage", 99)
    told = job.pull_request().step("collect", "--run", "99", "--token", TOKEN)
    assert told.code == 0, told.err
    job.compared()
    assert "every benchmark is within its threshold" in job.report
    assert sorted(item.id for item in decode(Path(job.outputs["result-path"]).read_bytes(), "x").benchmarks) == [
        "a",
        "b",
    ]


def test_parts_that_contradict_each_other_are_refused(job: Job) -> None:
    sent(job, {"result.json": encode(run(one()))}, "cg-bench-part-0", 99)
    sent(job, {"result.json": encode(run(one(2_000_000)))}, "cg-bench-part-1", 99)
    told = job.pull_request().step("collect", "--run", "99", "--token", TOKEN)
    assert told.code == 3
    assert noted(told, "error")


def test_parts_that_are_missing_fail_and_are_seen_everywhere(job: Job) -> None:
    part = run(one())
    part = replace(part, env=replace(part.env, info={**part.env.info, "shard_benchmarks": 3}))
    sent(job, {"result.json": encode(part), "base.json": encode(base_run())}, "cg-bench-part-0", 99)
    assert job.pull_request().step("collect", "--run", "99", "--token", TOKEN).code == 0
    told = job.compared()
    assert any("2 benchmarks of the suite were not measured" in each for each in noted(told, "error"))
    assert "not measured" in job.summary
    assert job.step("gate").code == 4


def test_a_run_without_a_result_is_an_error_that_says_what_is_needed(job: Job) -> None:
    sent(job, {"a": b""}, "coverage")
    told = collected(job.workflow_run())
    assert told.code == 2
    assert "run 42 has no result of cg-bench" in told.err
    assert noted(told, "error")


def test_of_artifacts_of_one_name_the_newest_counts_and_expired_ones_are_none(job: Job) -> None:
    sent(job, b"of an attempt before")
    sent(job, GOOD)
    job.stub.add_artifact(REPO, 42, "cg-bench-result-benchmarks-0", b"", expired=True)
    told = collected(job.workflow_run())
    assert (told.code, told.err) == (0, "")
    assert (job.folder / "artifact" / "result.json").read_bytes() == GOOD["result.json"]


def test_together_artifacts_are_bounded_as_well(job: Job) -> None:
    job.monkeypatch.setattr(measure, "_MOST_BYTES", len(GOOD["result.json"]) + len(GOOD["base.json"]))
    sent(job, GOOD)
    assert collected(job.workflow_run()).code == 0
    sent(job, GOOD, "cg-bench-result-benchmarks-1")
    told = collected(job)
    assert told.code == 2
    assert "too large" in told.err


def test_more_artifacts_than_a_matrix_can_have_are_refused_before_any_is_fetched(job: Job) -> None:
    for number in range(257):
        sent(job, b"", f"cg-bench-result-{number}")
    told = collected(job.workflow_run())
    assert told.code == 2
    assert not any("/zip" in each.path or "/blob" in each.path for each in job.stub.requests)
