"""Which event a job of GitHub Actions is for, and what is refused because GitHub would never send it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.ci.event import Event, MeasuringRun, Pull, read_event
from cachegrind_bench.errors import UsageError
from tests.unit.samples import HOSTILE

if TYPE_CHECKING:
    from pathlib import Path

HEAD, BASE = "a" * 40, "b" * 40
REPOSITORY = {"full_name": "base/prog", "default_branch": "main"}


def pull_request(**head: Any) -> dict[str, Any]:
    side = {"sha": HEAD, "ref": "topic", "repo": {"full_name": "base/prog"}, **head}
    pull = {"number": 7, "head": side, "base": {"sha": BASE, "ref": "main"}}
    return {"repository": REPOSITORY, "pull_request": pull}


def workflow_run(**changes: Any) -> dict[str, Any]:
    home = {"full_name": "contributor/prog", "owner": {"login": "contributor"}}
    values = {"id": 42, "name": "Measure", "event": "pull_request", "head_sha": HEAD, "head_branch": "topic"}
    return {"repository": REPOSITORY, "workflow_run": {**values, "head_repository": home, **changes}}


class Job:
    """Reads events with these payloads."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "event.json"

    def __call__(self, name: str, payload: object, **variables: str | None) -> Event:
        self.file.write_bytes(payload if isinstance(payload, bytes) else json.dumps(payload).encode())
        environ: dict[str, str | None] = {
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(self.file),
            "GITHUB_REPOSITORY": "base/prog",
            "GITHUB_API_URL": "https://api.github.com",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_RUN_ID": "99",
            "GITHUB_WORKFLOW": "Benchmarks",
            "GITHUB_JOB": "benchmarks",
            "GITHUB_SHA": "c" * 40,
            "GITHUB_REF": "refs/heads/main",
            **variables,
        }
        return read_event({key: value for key, value in environ.items() if value is not None})


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_a_push_knows_its_branch_and_what_was_before(job: Job) -> None:
    found = job("push", {"repository": REPOSITORY, "before": BASE})
    assert (found.name, found.repository, found.before) == ("push", "base/prog", BASE)
    assert (found.sha, found.run_id, found.workflow, found.job) == ("c" * 40, 99, "Benchmarks", "benchmarks")
    assert found.on_default_branch
    assert found.is_accepted
    assert (found.pull, found.run, found.group_base) == (None, None, None)
    assert found.run_url == "https://github.com/base/prog/actions/runs/99"


def test_a_branch_that_is_new_has_nothing_before(job: Job) -> None:
    assert job("push", {"repository": REPOSITORY, "before": "0" * 40}).before is None
    assert job("push", {"repository": REPOSITORY}).before is None


@pytest.mark.parametrize(
    ("ref", "on_default", "accepted"),
    [
        ("refs/heads/main", True, True),
        ("refs/heads/topic", False, False),
        ("refs/heads/main/main", False, False),
        ("refs/tags/v1", False, True),
        ("refs/tags/main", False, True),
        ("refs/pull/7/merge", False, False),
        ("main", False, False),
        ("", False, False),
    ],
)
def test_only_the_default_branch_itself_and_tags_are_accepted(
    job: Job, ref: str, *, on_default: bool, accepted: bool
) -> None:
    found = job("push", {"repository": REPOSITORY}, GITHUB_REF=ref)
    assert (found.on_default_branch, found.is_accepted) == (on_default, accepted)


def test_only_the_jobs_own_commit_is_accepted_whatever_was_checked_out(job: Job) -> None:
    found = job("push", {"repository": REPOSITORY})
    assert found.accepts("c" * 40)
    assert not found.accepts(HEAD)
    assert not found.accepts(None)
    assert not job("push", {"repository": REPOSITORY}, GITHUB_REF="refs/heads/topic").accepts("c" * 40)


def test_without_a_known_default_branch_none_is_it(job: Job) -> None:
    assert not job("schedule", {}).on_default_branch
    assert not job("push", {"repository": {}}).on_default_branch


def test_a_pull_request_of_the_repository_itself_is_not_a_fork(job: Job) -> None:
    found = job("pull_request", pull_request(), GITHUB_REF="refs/pull/7/merge")
    assert found.pull == Pull(number=7, head_sha=HEAD, base_ref="main", fork=False)
    assert not found.on_default_branch


@pytest.mark.parametrize("repo", [{"full_name": "contributor/prog"}, {"full_name": "base/prog2"}, None])
def test_another_repository_or_a_deleted_one_is_a_fork(job: Job, repo: dict[str, str] | None) -> None:
    found = job("pull_request", pull_request(repo=repo))
    assert found.pull is not None
    assert found.pull.fork


def test_a_pull_requests_event_is_never_on_the_default_branch_whatever_its_ref_says(job: Job) -> None:
    found = job("pull_request_target", pull_request(), GITHUB_REF="refs/heads/main")
    assert not found.on_default_branch
    assert not found.is_accepted


def test_the_run_that_ended_says_whose_it_was(job: Job) -> None:
    found = job("workflow_run", workflow_run())
    assert found.run == MeasuringRun(
        id=42,
        workflow="Measure",
        event="pull_request",
        head_sha=HEAD,
        head_branch="topic",
        owner="contributor",
        repository="contributor/prog",
    )
    assert found.pull is None


def test_a_run_may_have_no_name_and_no_branch(job: Job) -> None:
    found = job("workflow_run", workflow_run(name=None, head_branch=None))
    assert found.run is not None
    assert (found.run.workflow, found.run.head_branch) == ("", "")


def test_a_branch_of_any_name_stays_text(job: Job) -> None:
    found = job("workflow_run", workflow_run(head_branch=HOSTILE))
    assert found.run is not None
    assert found.run.head_branch == HOSTILE


def test_a_merge_group_says_what_it_builds_on(job: Job) -> None:
    payload = {"repository": REPOSITORY, "merge_group": {"base_sha": BASE}}
    found = job("merge_group", payload, GITHUB_REF="refs/heads/gh-readonly-queue/main/pr-7")
    assert found.group_base == BASE
    assert not found.on_default_branch


def test_addresses_of_an_enterprise_server_are_taken_from_the_job(job: Job) -> None:
    found = job(
        "push",
        {},
        GITHUB_API_URL="https://ghe.example/api/v3",
        GITHUB_SERVER_URL="https://ghe.example",
        GITHUB_RUN_ID="x",
    )
    assert (found.api_url, found.run_id) == ("https://ghe.example/api/v3", 0)
    assert found.run_url == "https://ghe.example/base/prog/actions/runs/0"
    found = job("push", {}, GITHUB_API_URL=None, GITHUB_SERVER_URL="")
    assert (found.api_url, found.server_url) == ("https://api.github.com", "https://github.com")


@pytest.mark.parametrize("name", ["GITHUB_EVENT_NAME", "GITHUB_REPOSITORY", "GITHUB_EVENT_PATH"])
@pytest.mark.parametrize("value", [None, ""])
def test_outside_of_a_job_that_is_said_with_what_to_use_instead(job: Job, name: str, value: str | None) -> None:
    with pytest.raises(UsageError, match=f"{name} is not set") as caught:
        job("push", {}, **{name: value})
    assert "cg-bench run" in (caught.value.hint or "")


def test_a_repository_that_is_not_an_owner_and_name_is_refused(job: Job) -> None:
    with pytest.raises(UsageError, match="not OWNER/NAME"):
        job("push", {}, GITHUB_REPOSITORY="prog")


@pytest.mark.parametrize("payload", [b"", b"[]"])
def test_a_payload_that_is_not_an_object_is_refused(job: Job, payload: bytes) -> None:
    with pytest.raises(UsageError, match="not what GitHub sends"):
        job("push", payload)


def test_a_payload_that_is_not_there_is_an_error(job: Job, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read the event in .*: No such file"):
        job("push", {}, GITHUB_EVENT_PATH=str(tmp_path / "nowhere"))


def test_a_pull_request_that_lacks_something_is_refused(job: Job) -> None:
    payload = pull_request()
    del payload["pull_request"]["head"]
    with pytest.raises(UsageError, match="'head' is missing"):
        job("pull_request", payload)


def test_the_measuring_run_of_a_fork_that_was_deleted_meanwhile_is_not_a_broken_payload(job: Job) -> None:
    """As GitHub has it for pull requests of deleted forks: `head_repository` is null."""
    found = job("workflow_run", workflow_run(head_repository=None))
    assert found.run is not None
    assert found.run.repository == ""
