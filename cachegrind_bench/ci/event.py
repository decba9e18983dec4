"""Why a job of GitHub Actions runs: the event, read from the job's variables and its payload.

Knows the variables and payloads of GitHub; must not know what the job does about it. What a pull request's author chooses
(names of branches, titles) is text here, and never more.
Format: https://docs.github.com/actions/reference/workflows-and-actions/events-that-trigger-workflows
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from cachegrind_bench.errors import FileFormatError, UsageError
from cachegrind_bench.model.parsing import parse

_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+", re.ASCII)
_HINT = "'cg-bench ci' is for jobs of GitHub Actions; elsewhere use 'cg-bench run' and 'cg-bench diff'"


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    """The pull request that the job is for. `fork`: whether its commits are in another repository."""

    number: int
    head_sha: str
    base_ref: str
    fork: bool


class MeasuringRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run of another workflow whose end started the job (`workflow_run`); `owner` is that of `repository`."""

    id: int
    workflow: str
    event: str
    head_sha: str
    head_branch: str
    owner: str
    repository: str


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One job. `repository` is OWNER/NAME, `ref` as refs/heads/main.

    `group_base` is the commit that a merge group builds on, `before` what the branch was before a push; None if it is new.
    """

    name: str
    repository: str
    api_url: str
    server_url: str
    run_id: int
    workflow: str
    job: str
    sha: str
    ref: str
    default_branch: str | None = None
    pull: Pull | None = None
    run: MeasuringRun | None = None
    group_base: str | None = None
    before: str | None = None

    @property
    def is_accepted(self) -> bool:
        """Return whether the job's own commit has been accepted already: one of the default branch, or a tag's."""
        return self.on_default_branch or self.ref.startswith("refs/tags/")

    def accepts(self, sha: str | None) -> bool:
        """Return whether this commit has been accepted already. A job may check out another than its own."""
        return self.is_accepted and sha == self.sha

    @property
    def on_default_branch(self) -> bool:
        """Return whether the job is for a commit of the default branch itself."""
        return self.pull is None and self.default_branch is not None and self.ref == f"refs/heads/{self.default_branch}"

    @property
    def run_url(self) -> str:
        """The page of this run of the workflow, or of the one that measured."""
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id if self.run is None else self.run.id}"


# Of payloads, what matters here.
class _Owner(msgspec.Struct):
    login: str


class _Home(msgspec.Struct):
    full_name: str
    owner: _Owner | None = None


class _Head(msgspec.Struct):
    sha: str
    repo: _Home | None  # null once the fork was deleted


class _Base(msgspec.Struct):
    ref: str


class _PullRequest(msgspec.Struct):
    number: int
    head: _Head
    base: _Base


class _WorkflowRun(msgspec.Struct):
    id: int
    event: str
    head_sha: str
    head_repository: _Home | None  # null once the fork was deleted
    name: str | None = None
    head_branch: str | None = None


class _MergeGroup(msgspec.Struct):
    base_sha: str


class _Repository(msgspec.Struct):
    default_branch: str | None = None


class _Payload(msgspec.Struct):
    repository: _Repository | None = None


class _PullPayload(_Payload, kw_only=True):
    pull_request: _PullRequest


class _RunPayload(_Payload, kw_only=True):
    workflow_run: _WorkflowRun


class _GroupPayload(_Payload, kw_only=True):
    merge_group: _MergeGroup


class _PushPayload(_Payload, kw_only=True):
    before: str | None = None


def read_event(environ: Mapping[str, str]) -> Event:
    """Return the event of the job we are in. UsageError if we are in none, or its payload is not GitHub's."""
    name, repository = needed(environ, "GITHUB_EVENT_NAME"), needed(environ, "GITHUB_REPOSITORY")
    if not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"GITHUB_REPOSITORY is {repository!r}, not OWNER/NAME", hint=_HINT)
    payload = _payload(environ, name)
    run_id = environ.get("GITHUB_RUN_ID", "")
    return Event(
        name=name,
        repository=repository,
        api_url=environ.get("GITHUB_API_URL") or "https://api.github.com",
        server_url=environ.get("GITHUB_SERVER_URL") or "https://github.com",
        run_id=int(run_id) if run_id.isdecimal() else 0,
        workflow=environ.get("GITHUB_WORKFLOW", ""),
        job=environ.get("GITHUB_JOB", ""),
        sha=environ.get("GITHUB_SHA", ""),
        ref=environ.get("GITHUB_REF", ""),
        default_branch=None if payload.repository is None else payload.repository.default_branch,
        pull=_pull(payload.pull_request, repository) if isinstance(payload, _PullPayload) else None,
        run=_run(payload.workflow_run) if isinstance(payload, _RunPayload) else None,
        group_base=payload.merge_group.base_sha if isinstance(payload, _GroupPayload) else None,
        # Of a new branch, it is zeros.
        before=payload.before if isinstance(payload, _PushPayload) and (payload.before or "").strip("0") else None,
    )


def needed(environ: Mapping[str, str], name: str, job: str = "a job of GitHub Actions", hint: str = _HINT) -> str:
    """Return a variable that every such job has. UsageError where it is not set or empty."""
    value = environ.get(name)
    if not value:
        raise UsageError(f"{name} is not set: this is not {job}", hint=hint)
    return value


def _payload(environ: Mapping[str, str], event: str) -> _Payload:
    path = needed(environ, "GITHUB_EVENT_PATH")
    kinds: dict[str, type[_Payload]] = {"workflow_run": _RunPayload, "merge_group": _GroupPayload, "push": _PushPayload}
    kind = _PullPayload if event.startswith("pull_request") else kinds.get(event, _Payload)
    try:
        return parse(Path(path).read_bytes(), kind, path)
    except OSError as error:
        raise UsageError(f"cannot read the event in {path}: {error.strerror}", hint=_HINT) from error
    except FileFormatError as error:
        raise UsageError(
            f"the payload of the event {event!r} is not what GitHub sends: {error.what}", hint=_HINT
        ) from None


def _pull(pull: _PullRequest, repository: str) -> Pull:
    head, home = pull.head, pull.head.repo
    fork = home is None or home.full_name != repository
    return Pull(number=pull.number, head_sha=head.sha, base_ref=pull.base.ref, fork=fork)


def _run(run: _WorkflowRun) -> MeasuringRun:
    home = run.head_repository
    return MeasuringRun(
        id=run.id,
        workflow=run.name or "",
        event=run.event,
        head_sha=run.head_sha,
        head_branch=run.head_branch or "",
        owner="" if home is None or home.owner is None else home.owner.login,
        repository="" if home is None else home.full_name,
    )
