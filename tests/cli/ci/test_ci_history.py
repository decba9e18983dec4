"""Compared with a history, and stored in it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench import process
from cachegrind_bench.model.result import Commit, comparability_key
from tests.cli.ci.job import HEAD, STORE, TOKEN, Job, noted, one, run, save

if TYPE_CHECKING:
    from tests.unit.repositories import Repository


def test_a_pull_request_is_compared_with_what_it_was_merged_with(job: Job, repository: Repository) -> None:
    base = repository.commit("base")
    repository.git("switch", "--quiet", "-c", "topic")
    repository.commit("topic")
    repository.git("switch", "--quiet", "main")
    main = repository.commit("main goes on")
    repository.git("merge", "--quiet", "--no-ff", "-m", "merge", "topic")
    merge = repository.git("rev-parse", "HEAD")
    repository.git("checkout", "--quiet", "--detach")
    save(run(one(1), sha=base), run(one(), sha=main))
    job.pull_request().monkeypatch.setenv("GITHUB_SHA", merge)
    told = job.has(run(one(1_100_000), sha=merge)).step("compare", *STORE, "--token", TOKEN)
    assert told.code == 0, told.err
    assert (job.outputs["verdict"], job.outputs["baseline-sha"]) == ("regression", main)


def test_an_empty_history_is_not_a_baseline_and_says_so(job: Job, repository: Repository) -> None:
    sha = repository.commit("a")
    job.monkeypatch.setenv("GITHUB_SHA", sha)
    told = job.has(run(one(), sha=sha)).step("compare", *STORE)
    assert told.code == 0, told.err
    assert job.outputs["verdict"] == "no baseline"
    assert any("no baseline" in each for each in noted(told, "warning"))
    assert "no baseline" in job.summary


def test_an_environment_that_changed_is_not_a_baseline_and_what_changed_is_reported(
    job: Job, repository: Repository
) -> None:
    first, second = repository.commit("a"), repository.commit("b")
    there = run(one(), sha=first)
    fields = {**there.env.fields, "valgrind": "3.16.1"}
    save(replace(there, env=replace(there.env, fields=fields, key=comparability_key(fields))))
    job.monkeypatch.setenv("GITHUB_SHA", second)
    here = run(one(), sha=second)
    here = replace(here, env=replace(here.env, key=comparability_key(here.env.fields)))
    told = job.has(here).step("compare", *STORE, "--require-baseline")
    assert told.code == 0, told.err
    assert job.outputs["verdict"] == "no baseline"
    assert "valgrind 3.16.1 → 3.24.0" in job.summary
    assert job.step("gate").code == 3


def test_a_push_is_stored_for_its_commit_and_found_by_the_next(job: Job, repository: Repository) -> None:
    first = repository.commit("a")
    job.monkeypatch.setenv("GITHUB_SHA", first)
    told = job.has(run(one(), sha=first)).step("store", *STORE, "--token", TOKEN)
    assert told.code == 0, told.err
    assert noted(told) == []
    assert any((repository.path / ".cg-bench").rglob("*"))
    second = repository.commit("b")
    job.monkeypatch.setenv("GITHUB_SHA", second)
    assert job.has(run(one(1_100_000), sha=second)).step("compare", *STORE).code == 0
    assert (job.outputs["verdict"], job.outputs["baseline-sha"]) == ("regression", first)


def test_a_result_of_another_commit_is_not_stored(job: Job) -> None:
    told = job.has(run(one(), sha="c" * 40)).step("store", *STORE)
    assert told.code == 2
    assert "not stored" in told.err
    assert noted(told, "error")
    assert not Path(".cg-bench").exists()
    told = job.workflow_run(event="push", head_sha="d" * 40).has(run(one())).step("store", *STORE)
    assert told.code == 2


def stored_quietly(job: Job) -> list[list[str]]:
    """Let no command of our own run, and return what would have."""
    words: list[list[str]] = []

    def fake(command: list[str], **_: Any) -> SimpleNamespace:
        words.append(command)
        return SimpleNamespace(status=0, signal=None, stdout=b"", stderr=b"", timed_out=False, wall_ms=1)

    job.monkeypatch.setattr(process, "run", fake)
    return words


@pytest.mark.parametrize("dirty", [True, False])
def test_what_no_report_would_show_is_stored_with_a_warning(job: Job, *, dirty: bool) -> None:
    words = stored_quietly(job)
    commit = Commit(sha=HEAD, parent=None, branch=None, dirty=True, committed_at="2026-01-30T12:00:00Z")
    told = job.has(run(one(), commit=commit if dirty else None)).step("store", *STORE)
    assert told.code == 0, told.err
    (warning,) = noted(told, "warning")
    assert ("building changed files" if dirty else "without a commit") in warning
    assert words[-1][-2:] == ["file:.cg-bench", str(job.folder / "artifact" / "result.json")]


def test_a_history_that_cannot_be_written_is_an_error_with_the_reason_and_the_permission(job: Job) -> None:
    told = b"x\ncg-bench: error: the branch is protected\n  ::error::x\n"
    done = SimpleNamespace(status=2, signal=None, stdout=b"", stderr=told, timed_out=False, wall_ms=1)
    job.monkeypatch.setattr(process, "run", lambda *_, **__: done)
    found = job.has(run(one())).step("store", *STORE)
    assert found.code == 2
    (error,) = noted(found, "error")
    assert "the result was not stored: the branch is protected" in error
    assert "contents: write" in error
