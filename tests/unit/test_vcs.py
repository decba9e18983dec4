"""Commits of small real repositories."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cachegrind_bench import waiting
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.model.result import Commit, Snapshot
from cachegrind_bench.usecases.stored_runs import subjects_of
from cachegrind_bench.vcs import commits, diff
from cachegrind_bench.vcs.commits import commit_info, commit_of
from cachegrind_bench.vcs.git import Git
from cachegrind_bench.vcs.revisions import Repository as Revisions
from tests.unit.repositories import PATH, Repository, git_environment, hanging_at

pytestmark = pytest.mark.skipif(shutil.which("git", path=PATH) is None, reason="no git")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return git_environment(tmp_path)


@pytest.fixture
def repository(tmp_path: Path, environ: dict[str, str]) -> Repository:
    return Repository(tmp_path / "repository", environ)


def test_a_first_commit_has_no_parent_and_its_time_is_utc(repository: Repository) -> None:
    sha = repository.commit()
    assert repository.info() == Commit(
        sha=sha, parent=None, branch="main", dirty=False, committed_at="2023-11-14T22:13:20Z"
    )


def test_a_merge_has_its_first_parent(repository: Repository) -> None:
    repository.commit("one")
    repository.git("checkout", "--quiet", "-b", "side")
    repository.commit("two")
    repository.git("checkout", "--quiet", "main")
    first = repository.commit("three")
    repository.git("merge", "--quiet", "--no-edit", "side")
    assert repository.info().parent == first


def test_a_shallow_clone_still_knows_the_parent(repository: Repository, tmp_path: Path) -> None:
    parent, sha = repository.commit("one"), repository.commit("two")
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.path}", str(tmp_path / "clone"))
    found = commit_info(Git(tmp_path / "clone", repository.environ))
    assert (found.sha, found.parent) == (sha, parent)


def test_a_replaced_history_is_seen_as_it_was(repository: Repository) -> None:
    parent, sha = repository.commit("one"), repository.commit("two")
    repository.git("replace", "--graft", sha)
    assert repository.info().parent == parent


def test_a_directory_below_the_top_belongs_to_the_repository(repository: Repository) -> None:
    sha = repository.commit()
    (repository.path / "a" / "b").mkdir(parents=True)
    found = commit_info(Git(repository.path / "a" / "b", repository.environ))
    assert found.sha == sha


def test_only_changes_of_tracked_files_make_it_dirty(repository: Repository) -> None:
    tracked = repository.path / "tracked"
    tracked.write_text("one")
    repository.git("add", ".")
    repository.commit()
    (repository.path / "untracked").write_text("")
    assert not repository.info().dirty
    tracked.write_text("two")
    assert repository.info().dirty
    repository.git("add", "tracked")
    assert repository.info().dirty
    repository.git("commit", "--quiet", "-m", "two")
    assert not repository.info().dirty
    repository.git("mv", "tracked", "1 renamed")
    assert repository.info().dirty
    repository.git("reset", "--quiet", "--hard")
    tracked.unlink()
    assert repository.info().dirty


def test_a_configured_order_of_files_that_is_not_there_is_not_asked_for(repository: Repository) -> None:
    tracked = repository.path / "tracked"
    tracked.write_text("one")
    repository.git("add", ".")
    repository.commit()
    tracked.write_text("two")
    repository.git("config", "diff.orderFile", "missing")
    assert repository.info().dirty


def test_a_touched_file_is_not_dirty_and_no_lock_or_index_is_written(repository: Repository) -> None:
    tracked = repository.path / "tracked"
    tracked.write_text("one")
    repository.git("add", ".")
    repository.commit()
    index = repository.path / ".git" / "index"
    os.utime(tracked, (1, 1))
    before = (index.stat().st_mtime_ns, sorted(path.name for path in index.parent.iterdir()))
    assert not repository.info().dirty
    assert (index.stat().st_mtime_ns, sorted(path.name for path in index.parent.iterdir())) == before


@pytest.mark.parametrize(
    "name", ["feature/a-b_c.d", "<script>alert(1)</script>", "ünï/çødé", "a'b\"c`d$(e);f|g&h", "--option", "%s%00"]
)
def test_hostile_branch_names_come_through_as_they_are(repository: Repository, name: str) -> None:
    repository.commit()
    repository.git("symbolic-ref", "HEAD", f"refs/heads/{name}")
    repository.commit()
    assert repository.info().branch == name


def test_a_branch_name_that_is_not_utf_8_is_escaped(repository: Repository) -> None:
    repository.git("symbolic-ref", "HEAD", os.fsdecode(b"refs/heads/caf\xe9"))
    repository.commit()
    assert repository.info().branch == "caf\\xe9"


@pytest.mark.parametrize("seconds", ["99999999999999", "x"])
def test_a_made_up_time_is_not_an_error(repository: Repository, seconds: str) -> None:
    tree = repository.git("write-tree")
    raw = f"tree {tree}\nauthor x <y> 1 +0000\ncommitter x <y> {seconds} +0000\n\nmessage\n"
    command = ["git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
    done = subprocess.run(
        command, cwd=repository.path, env=repository.environ, input=raw, capture_output=True, text=True, check=True
    )
    (repository.path / ".git/refs/heads/main").write_text(done.stdout)
    expected = "1970-01-01T00:00:00Z"
    assert repository.info().committed_at == expected


def test_a_detached_head_has_no_branch(repository: Repository) -> None:
    repository.commit()
    repository.git("checkout", "--quiet", "--detach")
    assert repository.info().branch is None


@pytest.mark.parametrize(
    ("variables", "branch"),
    [
        ({"GITHUB_REF_NAME": "topic"}, "topic"),
        ({"GITHUB_HEAD_REF": "topic", "GITHUB_REF_NAME": "7/merge"}, "topic"),
        ({"GITHUB_HEAD_REF": "", "GITHUB_REF_NAME": "v1", "GITHUB_REF_TYPE": "tag"}, None),
        ({"GITHUB_SHA": "0" * 40, "GITHUB_REF_NAME": "topic"}, None),
        ({}, None),
    ],
)
def test_a_detached_head_on_github_has_the_branch_of_its_job(
    repository: Repository, variables: dict[str, str], branch: str | None
) -> None:
    sha = repository.commit()
    repository.git("checkout", "--quiet", "--detach")
    assert repository.info(**{"GITHUB_SHA": sha, **variables}).branch == branch


def test_the_head_of_a_pull_request_on_github_has_its_branch(repository: Repository, tmp_path: Path) -> None:
    sha = repository.commit()
    repository.git("checkout", "--quiet", "--detach")
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"head": {"sha": sha}}}))
    variables = {"GITHUB_SHA": "0" * 40, "GITHUB_HEAD_REF": "topic", "GITHUB_EVENT_PATH": str(event)}
    assert repository.info(**variables).branch == "topic"
    for nonsense in ("", "[]", '{"pull_request": null}'):
        event.write_text(nonsense)
        assert repository.info(**variables).branch is None
    event.unlink()
    assert repository.info(**variables).branch is None


@pytest.mark.parametrize("variable", ["CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_BRANCH"])
def test_a_detached_head_on_gitlab_has_the_branch_of_its_job(repository: Repository, variable: str) -> None:
    sha = repository.commit()
    repository.git("checkout", "--quiet", "--detach")
    assert repository.info(CI_COMMIT_SHA=sha, **{variable: "topic"}).branch == "topic"


def test_a_branch_that_is_checked_out_is_stronger_than_the_service(repository: Repository) -> None:
    sha = repository.commit()
    assert repository.info(GITHUB_SHA=sha, GITHUB_REF_NAME="topic").branch == "main"


def test_a_repository_of_sha256_is_read(tmp_path: Path, environ: dict[str, str]) -> None:
    repository = Repository(tmp_path / "repository", {**environ, "GIT_DEFAULT_HASH": "sha256"})
    parent, sha = repository.commit("one"), repository.commit("two")
    found = repository.info()
    assert (found.sha, found.parent, len(found.sha)) == (sha, parent, 64)


def test_a_worktree_is_read_like_its_repository(repository: Repository, tmp_path: Path) -> None:
    sha = repository.commit()
    repository.git("worktree", "add", "--quiet", str(tmp_path / "tree"), "-b", "other")
    found = commit_info(Git(tmp_path / "tree", repository.environ))
    assert (found.sha, found.branch) == (sha, "other")


def test_settings_of_the_user_do_not_show(repository: Repository) -> None:
    sha = repository.commit()
    config = "[color]\n\tui = always\n[status]\n\tshort = true\n\tshowStash = true\n[log]\n\tshowSignature = true\n"
    (Path(repository.environ["HOME"]) / ".gitconfig").write_text(config)
    assert repository.info().sha == sha


# No commit, and why.


def why(cwd: Path, environ: dict[str, str]) -> str:
    with pytest.raises(MeasurementError) as caught:
        commit_info(Git(cwd, environ))
    return caught.value.message


def test_outside_of_repositories_there_is_no_commit(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "plain").mkdir()
    assert why(tmp_path / "plain", environ) == "not in a git repository"


def test_a_branch_without_commits_has_none(repository: Repository) -> None:
    assert why(repository.path, repository.environ) == "the branch has no commit yet"


def test_without_git_there_is_no_commit(repository: Repository, tmp_path: Path) -> None:
    repository.commit()
    assert why(repository.path, {**repository.environ, "PATH": str(tmp_path)}) == "git is not installed"


def test_a_missing_directory_has_no_commit(tmp_path: Path, environ: dict[str, str]) -> None:
    assert "working directory" in why(tmp_path / "gone", environ)


def test_a_bare_repository_has_no_commit_checked_out(tmp_path: Path, environ: dict[str, str]) -> None:
    repository = Repository(tmp_path / "repository", environ)
    repository.git("init", "--quiet", "--bare", str(tmp_path / "bare"))
    assert "work tree" in why(tmp_path / "bare", environ)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a repository of somebody else, so root to make one")
def test_a_repository_of_somebody_else_says_how_to_trust_it(repository: Repository) -> None:
    repository.commit()
    for path in (repository.path, repository.path / ".git"):
        os.chown(path, 12345, 12345)
    said = why(repository.path, repository.environ)
    assert "safe.directory" in said
    assert str(repository.path) in said


def test_passwords_in_what_git_says_are_left_out(repository: Repository, tmp_path: Path) -> None:
    said = tmp_path / "bin" / "git"
    said.parent.mkdir()
    said.write_text(
        "#!/bin/sh\necho 'error: no object under https://me:p@ss@host/r (HTTP://token@host/o) ftp://u:a/b@h' >&2\nexit 1\n"
    )
    said.chmod(0o755)
    git = Git(repository.path, {**repository.environ, "PATH": f"{said.parent}:{PATH}"})
    done = git.run("fetch")
    assert done.stderr == b"error: no object under https://host/r (HTTP://host/o) ftp://h\n"
    assert "https://host/r (HTTP://host/o)" in git.failed(done, "fetch").message


def test_a_damaged_repository_says_what_git_says(repository: Repository) -> None:
    repository.commit()
    (repository.path / ".git" / "index").write_bytes(b"nonsense")
    assert why(repository.path, repository.environ).startswith("git status failed with status 128: ")


def test_a_git_that_fails_is_named_where_there_is_a_repository(
    repository: Repository, tmp_path: Path, said: list[str]
) -> None:
    look = waiting.Waiting()
    for place in (repository.path, repository.path / ".git", tmp_path):  # no commit yet, no work tree, no repository
        assert commit_of(Git(place, repository.environ, look)) is None
    assert commit_of(Git(repository.path, {"PATH": "/nonexistent"}, look)) is None
    assert said == []
    repository.commit()
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    git = shutil.which("git", path=PATH)
    environ = {**repository.environ, "PATH": f"{program.parent}:{PATH}"}
    for command in ("rev-parse", "status"):
        program.write_text(f'#!/bin/sh\ncase "$*" in *{command}*) kill -9 $$;; esac\nexec {git} "$@"\n')
        program.chmod(0o755)
        assert commit_of(Git(repository.path, environ, look)) is None
        assert said.pop() == f"the commit is not known: git {command} was ended by signal 9"


@pytest.mark.parametrize("hanging", ["rev-parse", "status"])
def test_a_git_that_hangs_is_named_and_given_up(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str], hanging: str
) -> None:
    repository.commit()
    environ = hanging_at(hanging, repository, tmp_path)
    monkeypatch.setattr(waiting, "_FIRST_S", 0.1)
    monkeypatch.setattr(commits, "_ANSWERS_S", 10.0 if hanging == "status" else 0.3)
    monkeypatch.setattr(commits, "_STATUS_S", 0.3)
    assert commit_of(Git(repository.path, environ)) is None
    ended = f"git {hanging} took more than 0.3 s"
    assert any(line.startswith(f"waiting for git {hanging}, ") for line in said)
    assert said[-1] == f"the commit is not known: {ended}"
    assert why(repository.path, environ) == ended


@pytest.mark.parametrize("hanging", ["diff", "log"])
def test_what_is_not_known_as_git_hangs_is_said(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str], hanging: str
) -> None:
    sha = repository.commit()
    monkeypatch.setattr(diff, "_TIMEOUT_S", 0.2)
    monkeypatch.setattr(commits, "_NOTES_TIMEOUT_S", 0.2)
    git = Revisions(repository.path, hanging_at(hanging, repository, tmp_path))
    if hanging == "diff":
        assert diff.hunks(git, sha, sha) is None
        missing = "what changed in the source is"
    else:
        commit = Commit(sha=sha, parent=None, branch=None, dirty=False, committed_at="")
        stored = Snapshot(uid="", tool_version="", created_at="", commit=commit, env_key="", points=())
        assert subjects_of([stored], git) == {}
        missing = "the subjects of commits are"
    assert said == [f"{missing} not known: git {hanging} took more than 0.2 s"]
