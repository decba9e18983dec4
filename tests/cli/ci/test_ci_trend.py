"""The report of every night, and whether the readers of these tests see what they are for."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench import process
from cachegrind_bench.model.result import Commit
from cachegrind_bench.store.files import FileStore
from tests.cli.ci.job import REPO, STORE, TOKEN, Job, active, noted, one, orders, run, save
from tests.github_stub import BOT, Token

if TYPE_CHECKING:
    from tests.unit.repositories import Repository


@pytest.fixture
def history(job: Job, repository: Repository) -> Repository:
    """Return a repository in which a benchmark got slower, every commit measured."""
    for number in range(8):
        at = f"2026-01-{number + 1:02}T12:00:00Z"
        sha = repository.commit(f"commit {number}", GIT_COMMITTER_DATE=at)
        commit = Commit(sha=sha, parent=None, branch="main", dirty=False, committed_at=at)
        save(run(one(1_000_000 if number < 4 else 1_100_000), commit=commit, created_at=at))
    job.is_for("schedule", {}, GITHUB_REF="refs/heads/main", GITHUB_SHA=repository.git("rev-parse", "HEAD"))
    return repository


def test_a_report_is_made_and_its_findings_kept_as_issues(job: Job, history: Repository) -> None:
    sha = history.git("rev-parse", "HEAD~3")
    words = ("trend", *STORE, "--token", TOKEN, "--artifact", "cg-bench-trend-x-0", "--issues")
    told = job.step(*words)
    assert told.code == 0, told.err
    assert noted(told) == []
    assert "issues: 1 opened" in told.out
    assert Path(job.outputs["report-path"]).read_text().startswith("<!doctype html>")
    assert json.loads(Path(job.outputs["result-path"]).read_text())["title"] == REPO
    assert "a" in job.summary
    (issue,) = job.stub.repository(REPO).issues.values()
    assert sha in (issue.body or "")
    assert "regression" in issue.title
    # A pull request's artifact of the same name, and one of another branch, are nobody's last report.
    report = Path(job.outputs["result-path"]).read_bytes()
    fake = report.replace(b'"state": "new"', b'"state": "open"')
    job.stub.add_artifact(REPO, 90, "cg-bench-trend-x-0", {"report.json": report})
    job.stub.add_artifact(REPO, 91, "cg-bench-trend-x-0", {"report.json": fake + b"x"}, fork=True)
    job.stub.add_artifact(REPO, 92, "cg-bench-trend-x-0", {"report.json": b"{"}, branch="topic")
    told = job.step(*words)
    assert told.code == 0, told.err
    assert noted(told) == []
    (found,) = json.loads(Path(job.outputs["result-path"]).read_text())["findings"]
    assert found["state"] == "open"
    assert len(job.stub.repository(REPO).issues) == 1


def test_without_a_history_there_is_no_report_and_that_is_an_error(job: Job) -> None:
    done = SimpleNamespace(status=2, signal=None, stdout=b"", stderr=b"", timed_out=False, wall_ms=1)
    job.monkeypatch.setattr(process, "run", lambda *_, **__: done)
    told = job.is_for("schedule", {}).step("trend", *STORE)
    assert told.code == 2
    assert any("there is no report" in each for each in noted(told, "error"))


@pytest.mark.parametrize("name", ["trend", "store"])
def test_how_long_to_wait_for_the_store_is_passed_on(job: Job, name: str) -> None:
    called: list[list[str]] = []

    def run_nothing(command: list[str], **_: object) -> SimpleNamespace:
        called.append(command)
        return SimpleNamespace(status=2, stderr=b"")

    job.has(run(one()))
    job.monkeypatch.setattr(process, "run", run_nothing)
    told = job.is_for("schedule", {}).step(name, *STORE, "--store-timeout", "1.5 s")
    assert told.code == 2
    assert "--store-timeout 1500ms" in " ".join(called[-1])


def test_of_a_damaged_history_there_is_a_report_an_error_and_no_issue_is_closed(job: Job, history: Repository) -> None:
    words = ("trend", *STORE, "--token", TOKEN, "--issues")
    assert job.step(*words).code == 0
    (issue,) = job.stub.repository(REPO).issues.values()
    store = FileStore(history.path / STORE[1].removeprefix("file:"))
    for name in store.names()[4:]:  # no step is seen any more
        (store.folder / name).write_bytes(b"{}")
    told = job.step(*words)
    assert told.code == 2
    assert any("some of the history cannot be read" in each for each in noted(told, "error"))
    assert Path(job.outputs["report-path"]).exists()
    assert issue.state == "open"


def test_a_last_report_that_cannot_be_read_is_a_warning_and_issues_without_permission_an_error(
    job: Job, history: Repository
) -> None:
    del history
    job.stub.add_artifact(REPO, 90, "cg-bench-trend-x-0", {"../report.json": b"{}"})
    job.stub.tokens[TOKEN] = Token(BOT, {"actions": "read", "issues": "read"})
    told = job.step("trend", *STORE, "--token", TOKEN, "--artifact", "cg-bench-trend-x-0", "--issues")
    assert told.code == 2
    assert any("the last report cannot be read" in each for each in noted(told, "warning"))
    assert any("403" in each for each in noted(told, "error"))
    assert list(job.stub.repository(REPO).issues) == []


def test_the_checks_of_these_tests_see_what_they_are_for() -> None:
    log = (
        "x\n::error title=a::b\n  ::notice::c\nx ##[warning]d\n::stop-commands::0123456789abcdefghijklm\n::error::no\n"
    )
    log += "::0123456789abcdefghijklm::\n::nothing::x\nx::error::y\n"
    assert [(each.name, each.text) for each in orders(log)] == [("error", "b"), ("notice", "c"), ("warning", "d")]
    bad = {"a tag": "<b>", "a mention": "hi @x", "a reference": "a #1", "a link": "[a](b)", "an image": "![a]"}
    bad |= {"an address": "http://x", "emphasis": "**b**", "a formula": "$x$", "a heading": "# x"}
    for name, text in bad.items():
        assert name in active(f"{text}\n")
    assert active("### ❌ a@\u200bx #\u200b1 &lt;b&gt; <details>x</details>\n```sh\n@x # <b>\n```\n") == {}
