"""What the tests of the steps share: a job, and GitHub's stand-in."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.ci import github as ci_api
from cachegrind_bench.ci.github import Patience
from tests.cli.ci.job import TOKEN, Job
from tests.github_stub import BOT, Stub, Token
from tests.unit.repositories import PATH, Repository, git_environment

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine


@pytest.fixture
def stub(github: Stub) -> Stub:
    """Return the stand-in of GitHub's API, as these tests begin with it."""
    github.tokens[TOKEN] = Token(BOT, {"actions": "read", "issues": "write", "pull-requests": "write"})
    return github


@pytest.fixture
def job(tmp_path: Path, stub: Stub, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setattr(ci_api, "Patience", lambda: Patience(secondary_s=0.01, backoff_s=0.001))
    return Job(tmp_path, stub, cg_bench, monkeypatch)


@pytest.fixture
def repository(job: Job) -> Repository:
    if shutil.which("git", path=PATH) is None:
        pytest.skip("no git")
    found = Repository(job.root / "repository", git_environment(job.root))
    for name, value in found.environ.items():
        job.monkeypatch.setenv(name, value)
    job.monkeypatch.setenv("PATH", os.pathsep.join([str(Path(shutil.which("python3") or "/usr/bin/x").parent), PATH]))
    job.monkeypatch.chdir(found.path)
    return found
