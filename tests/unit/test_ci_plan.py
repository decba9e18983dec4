"""What a job has to do, for every event and mode; above all what it must not."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.ci.event import Event, MeasuringRun, Pull
from cachegrind_bench.ci.plan import Hold, Keep, Mode, Plan, artifact_name, plan
from cachegrind_bench.errors import UsageError
from tests.unit.samples import HOSTILE

SHA = "a" * 40


def event(name: str, ref: str = "refs/heads/main", **more: Any) -> Event:
    values: dict[str, Any] = {
        "repository": "base/prog",
        "api_url": "https://api.github.com",
        "server_url": "https://github.com",
        "run_id": 99,
        "workflow": "Benchmarks",
        "job": "benchmarks",
        "sha": SHA,
        "default_branch": "main",
    }
    return Event(name=name, ref=ref, **{**values, **more})


def pull_request(*, fork: bool = False) -> Event:
    pull = Pull(number=7, head_sha=SHA, base_ref="main", fork=fork)
    return event("pull_request", "refs/pull/7/merge", pull=pull)


def after(**changes: Any) -> Event:
    values: dict[str, Any] = {
        "id": 42,
        "workflow": "Measure",
        "event": "pull_request",
        "head_sha": SHA,
        "head_branch": "topic",
        "owner": "contributor",
        "repository": "contributor/prog",
    }
    return event("workflow_run", run=MeasuringRun(**{**values, **changes}))


PUSH, TOPIC, TAG = event("push"), event("push", "refs/heads/topic"), event("push", "refs/tags/v1")
GROUP = event("merge_group", "refs/heads/gh-readonly-queue/main/pr-7", group_base="b" * 40)
EVERY = [PUSH, TOPIC, TAG, GROUP, pull_request(), pull_request(fork=True), event("schedule"), after()]
MEASURED = Plan(measure=True, compare=True, keep=Keep.RESULT, hold=Hold.VERDICT)
JUDGED_BEFORE = replace(MEASURED, hold=Hold.FAILURE)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pull_request(), replace(MEASURED, comment=True)),
        (pull_request(fork=True), MEASURED),
        (PUSH, replace(JUDGED_BEFORE, store=True)),
        (TOPIC, MEASURED),
        (TAG, JUDGED_BEFORE),
        (GROUP, MEASURED),
        (event("workflow_dispatch", "refs/heads/topic"), MEASURED),
        (event("schedule"), Plan(trend=True, keep=Keep.TREND)),
        (after(), Plan(collect=42, compare=True, comment=True)),
    ],
    ids=lambda item: item.name if isinstance(item, Event) else "",
)
def test_what_is_done_follows_from_the_event(found: Event, expected: Plan) -> None:
    assert plan(found, Mode.AUTO) == expected


def test_without_a_history_nothing_is_stored_and_all_else_is_done() -> None:
    assert plan(PUSH, Mode.AUTO, store=False) == JUDGED_BEFORE


@pytest.mark.parametrize("found", EVERY, ids=lambda item: item.name)
def test_measuring_alone_never_writes_with_a_token(found: Event) -> None:
    made = plan(found, Mode.MEASURE)
    assert (made.measure, made.comment, made.store, made.trend, made.collect) == (True, False, False, False, None)


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.MEASURE])
def test_a_part_is_measured_and_left_and_nothing_else(mode: Mode) -> None:
    for found in (PUSH, TOPIC, GROUP, pull_request()):
        assert plan(found, mode, shard=True) == Plan(measure=True, keep=Keep.PART, hold=Hold.FAILURE)


def test_a_fork_gets_no_comment_from_its_own_job_in_any_mode() -> None:
    for mode in Mode:
        assert not plan(pull_request(fork=True), mode).comment


@pytest.mark.parametrize("mode", list(Mode))
def test_pull_request_target_is_refused_in_every_mode(mode: Mode) -> None:
    with pytest.raises(UsageError, match="pull_request_target is not supported") as caught:
        plan(replace(pull_request(), name="pull_request_target"), mode)
    assert "workflow_run" in (caught.value.hint or "")


@pytest.mark.parametrize("found", EVERY, ids=lambda item: item.name)
def test_only_a_push_to_the_default_branch_stores_unasked(found: Event) -> None:
    assert plan(found, Mode.AUTO).store == (found is PUSH)


@pytest.mark.parametrize("found", EVERY, ids=lambda item: item.name)
def test_measuring_and_commenting_on_foreign_data_are_never_one_job(found: Event) -> None:
    for mode in Mode:
        made = plan(found, mode)
        assert not (made.measure and made.collect is not None)
        assert not (found.run is not None and made.comment and made.measure)


def test_storing_collects_from_its_own_run_what_is_of_the_default_branch() -> None:
    for found in (PUSH, event("schedule"), event("workflow_dispatch")):
        assert plan(found, Mode.STORE) == Plan(collect=99, store=True)
    for found in (TOPIC, TAG, GROUP, pull_request(), pull_request(fork=True)):
        made = plan(found, Mode.STORE)
        assert (made.store, made.collect) == (False, None)
        assert made.notice is not None
        assert "not a commit of the default branch" in made.notice


def test_storing_after_another_workflow_wants_a_push_to_this_very_default_branch() -> None:
    ours = {"event": "push", "head_branch": "main", "repository": "base/prog"}
    assert plan(after(**ours), Mode.STORE) == Plan(collect=42, store=True)
    for other in ({"event": "pull_request"}, {"head_branch": "topic"}, {"repository": "contributor/prog"}):
        made = plan(after(**{**ours, **other}), Mode.STORE)
        assert (made.store, made.collect) == (False, None)
        assert made.notice


def test_storing_without_a_store_says_so() -> None:
    made = plan(PUSH, Mode.STORE, store=False)
    assert (made.store, made.collect) == (False, None)
    assert "store: none" in (made.notice or "")


@pytest.mark.parametrize("what", ["push", "schedule", "merge_group", "workflow_dispatch", "pull_request_target"])
def test_after_a_run_that_was_not_of_a_pull_request_nothing_is_commented_and_that_is_reported(what: str) -> None:
    for mode in (Mode.AUTO, Mode.COMMENT):
        made = plan(after(event=what), mode)
        assert made == Plan(notice=made.notice)
        assert f"the run was for a {what}" in (made.notice or "")


def test_a_collecting_job_compares_comments_and_gates_with_what_its_own_run_measured() -> None:
    both = Plan(collect=99, compare=True, keep=Keep.COLLECTED, hold=Hold.VERDICT)
    assert plan(pull_request(), Mode.COMMENT) == replace(both, comment=True)
    assert plan(pull_request(fork=True), Mode.COMMENT) == both
    assert plan(GROUP, Mode.COMMENT) == both
    assert plan(PUSH, Mode.COMMENT) == replace(both, hold=Hold.FAILURE)


def test_a_report_is_made_whatever_the_event() -> None:
    for found in EVERY:
        assert plan(found, Mode.TREND) == Plan(trend=True, keep=Keep.TREND)


def test_artifacts_of_one_run_differ_in_name_where_jobs_places_or_what_is_measured_differ() -> None:
    names = [
        artifact_name(Keep.RESULT, job, index, what)
        for job in ("a", "b", "a-0")
        for index in ("", "1")
        for what in ("", "x/y", "x:y", "x-y", "x" * 80 + "1", "x" * 80 + "2")
    ]
    assert len(set(names)) == len(names)
    assert artifact_name(Keep.PART, "measure", "3") == "cg-bench-part-measure-3"
    assert artifact_name(Keep.RESULT, "", "") == "cg-bench-result-job-0"


@pytest.mark.parametrize("text", [HOSTILE, '":<>|*?\r\n\\/', "../../x", "\udc80", "ä" * 300, "@someone", "::error::x"])
def test_a_name_of_an_artifact_has_no_character_that_github_or_anyone_reads(text: str) -> None:
    for name in (artifact_name(Keep.RESULT, text, "0"), artifact_name(Keep.PART, "job", text, text)):
        assert set(name) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
        assert len(name) < 250
        assert name.startswith("cg-bench-")
