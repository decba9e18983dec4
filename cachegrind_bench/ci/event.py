"""Why a job of GitHub Actions runs: the event, read from the job's variables and its payload.

Knows the variables and payloads of GitHub; must not know what the job does about it. What a pull request's author chooses
(names of branches, titles) is text here, and never more.
Format: https://docs.github.com/actions/reference/workflows-and-actions/events-that-trigger-workflows
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.json_reader import Node, SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping

_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+", re.ASCII)
SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_PAYLOAD_LIMIT = 30_000_000  # GitHub's own is 25 MB
_HINT = "'cg-bench ci' is for jobs of GitHub Actions; elsewhere use 'cg-bench run' and 'cg-bench diff'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """The pull request that the job is for. `fork` tells whether its commits are in another repository."""

    number: int
    head_sha: str
    base_ref: str
    base_sha: str
    fork: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuringRun:
    """The run of another workflow whose end started the job (`workflow_run`); `owner` is that of `repository`."""

    id: int
    workflow: str
    event: str
    head_sha: str
    head_branch: str
    owner: str
    repository: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
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
        """Tell whether the job's own commit has been accepted already: one of the default branch, or a tag's."""
        return self.on_default_branch or self.ref.startswith("refs/tags/")

    def accepts(self, sha: str | None) -> bool:
        """Tell whether this commit has been accepted already. A job may check out another than its own."""
        return self.is_accepted and sha == self.sha

    @property
    def on_default_branch(self) -> bool:
        """Tell whether the job is for a commit of the default branch itself."""
        return self.pull is None and self.default_branch is not None and self.ref == f"refs/heads/{self.default_branch}"

    @property
    def run_url(self) -> str:
        """The page of this run of the workflow, or of the one that measured."""
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id if self.run is None else self.run.id}"


def read_event(environ: Mapping[str, str]) -> Event:
    """Return the event of the job we are in. UsageError if we are in none, or its payload is not GitHub's."""
    name, repository = _needed(environ, "GITHUB_EVENT_NAME"), _needed(environ, "GITHUB_REPOSITORY")
    if not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"GITHUB_REPOSITORY is {repository!r}, not OWNER/NAME", hint=_HINT)
    payload = _payload(environ)
    run_id = environ.get("GITHUB_RUN_ID", "")
    try:
        known = payload.get("repository") if payload.has("repository") else None
        default = known.get("default_branch").text() if known is not None and known.has("default_branch") else None
        return Event(
            name=name,
            repository=repository,
            api_url=environ.get("GITHUB_API_URL") or "https://api.github.com",
            server_url=environ.get("GITHUB_SERVER_URL") or "https://github.com",
            run_id=int(run_id) if run_id.isascii() and run_id.isdigit() else 0,
            workflow=environ.get("GITHUB_WORKFLOW", ""),
            job=environ.get("GITHUB_JOB", ""),
            sha=environ.get("GITHUB_SHA", ""),
            ref=environ.get("GITHUB_REF", ""),
            default_branch=default,
            pull=_pull(payload, repository) if name.startswith("pull_request") else None,
            run=_run(payload) if name == "workflow_run" else None,
            group_base=_sha(payload.get("merge_group").get("base_sha")) if name == "merge_group" else None,
            before=_before(payload) if name == "push" else None,
        )
    except SchemaError as error:
        raise UsageError(f"the payload of the event {name!r} is not what GitHub sends: {error}", hint=_HINT) from None


def _needed(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name)
    if not value:
        raise UsageError(f"{name} is not set: this is no job of GitHub Actions", hint=_HINT)
    return value


def _payload(environ: Mapping[str, str]) -> Node:
    path = _needed(environ, "GITHUB_EVENT_PATH")
    try:
        with Path(path).open("rb") as file:
            data = file.read(_PAYLOAD_LIMIT + 1)
        value = json.loads(data) if len(data) <= _PAYLOAD_LIMIT else None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot read the event in {path}: {error}", hint=_HINT) from error
    if not isinstance(value, dict):
        raise UsageError(f"the event in {path} is no JSON object, or too large", hint=_HINT)
    return Node(cast("object", value), "")


def _pull(payload: Node, repository: str) -> Pull:
    pull = payload.get("pull_request")
    head, base = pull.get("head"), pull.get("base")
    home = head.get("repo")  # null once the fork was deleted
    same = not home.is_null() and home.get("full_name").text() == repository
    return Pull(
        number=pull.get("number").count(),
        head_sha=_sha(head.get("sha")),
        base_ref=base.get("ref").text(),
        base_sha=_sha(base.get("sha")),
        fork=not same,
    )


def _run(payload: Node) -> MeasuringRun:
    run = payload.get("workflow_run")
    home = run.get("head_repository")  # null once the fork was deleted
    gone = home.is_null()
    return MeasuringRun(
        id=run.get("id").count(),
        workflow=run.get("name").optional_text() or "",
        event=run.get("event").text(),
        head_sha=_sha(run.get("head_sha")),
        head_branch=run.get("head_branch").optional_text() or "",
        owner="" if gone else home.get("owner").get("login").text(),
        repository="" if gone else home.get("full_name").text(),
    )


def _before(payload: Node) -> str | None:
    sha = _sha(payload.get("before")) if payload.has("before") else ""
    return sha if sha.strip("0") else None


def _sha(node: Node) -> str:
    text = node.text()
    if not SHA.fullmatch(text):
        node.fail("no id of a commit")
    return text
