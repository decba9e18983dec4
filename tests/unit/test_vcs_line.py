"""Lines of commits, releases, merge-bases and worktrees of small real repositories, shallow ones too."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.vcs import log
from cachegrind_bench.vcs.revisions import Repository as Revisions
from cachegrind_bench.vcs.worktree import changes_as_commit, worktree
from tests.unit.repositories import PATH, Repository, git_environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("git", path=PATH) is None, reason="no git")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return git_environment(tmp_path)


@pytest.fixture
def repository(tmp_path: Path, environ: dict[str, str]) -> Repository:
    return Repository(tmp_path / "repository", environ)


def revisions(of: Repository, **more: str) -> Revisions:
    return Revisions(cwd=of.path, environ={**of.environ, **more})


def clone(of: Repository, path: Path, *options: str) -> Repository:
    """Return a clone over a real transport, which a path alone would not be."""
    path.parent.mkdir(exist_ok=True)
    of.git("clone", "--quiet", *options, f"file://{of.path}", str(path))
    found = Repository.__new__(Repository)
    found.path, found.environ = path, of.environ
    return found


# Lines


def test_a_line_is_that_of_first_parents_and_the_oldest_comes_first(repository: Repository) -> None:
    first = repository.commit("first")
    repository.git("switch", "--quiet", "-c", "side")
    side = repository.commit("on the side")
    repository.git("switch", "--quiet", "main")
    second = repository.commit("second")
    repository.git("merge", "--quiet", "--no-ff", "-m", "merge", "side")
    merge = repository.git("rev-parse", "HEAD")
    found = log.line(repository.path, repository.environ, "HEAD")
    assert [note.sha for note in found] == [first, second, merge]
    assert found[-1].parents == (second, side)
    assert [note.sha for note in log.line(repository.path, repository.environ, "main", most=2)] == [second, merge]


@pytest.mark.parametrize("subject", ["<script>alert(1)</script>", "a\tb | c", "ünïcødé ✓", "%H %x00", "'\"\\"])
def test_author_and_subject_are_told_as_they_are(repository: Repository, subject: str) -> None:
    sha = repository.commit(f"{subject}\n\nand a body\n", GIT_AUTHOR_NAME="Zoë <b>")
    (note,) = log.line(repository.path, repository.environ, sha)
    assert (note.subject, note.committed_at) == (subject, "2023-11-14T22:13:20Z")
    assert note.author.startswith("Zoë")


def test_what_is_no_commit_has_no_line(repository: Repository) -> None:
    repository.commit()
    for revision in ("nonesuch", "--all", ""):
        with pytest.raises(MeasurementError):
            log.line(repository.path, repository.environ, revision)


def test_notes_are_of_the_commits_that_are_here(repository: Repository) -> None:
    shas = [repository.commit(text) for text in "abc"]
    found = log.notes(repository.path, repository.environ, [shas[2], "f" * 40, shas[0]])
    assert {sha: note.subject for sha, note in found.items()} == {shas[0]: "a", shas[2]: "c"}
    assert log.notes(repository.path, repository.environ, []) == {}
    assert log.notes(repository.path, repository.environ, ["f" * 40]) == {}


def test_releases_are_tags_on_the_line_that_look_like_versions(repository: Repository) -> None:
    repository.commit("a")
    repository.git("tag", "v1.0")
    repository.git("tag", "nightly")
    repository.git("switch", "--quiet", "-c", "side")
    repository.commit("off the line")
    repository.git("tag", "v9.9")
    repository.git("switch", "--quiet", "main")
    repository.commit("b")
    repository.git("tag", "-a", "-m", "annotated", "release-2.0-rc1")
    repository.git("tag", "1.10")
    line = log.line(repository.path, repository.environ, "HEAD")
    names = [(item.name, item.sha) for item in log.releases(repository.path, repository.environ, line)]
    assert names == [("v1.0", line[0].sha), ("1.10", line[1].sha), ("release-2.0-rc1", line[1].sha)]


# Revisions


def test_revisions_mean_commits_or_nothing(repository: Repository) -> None:
    first, second = repository.commit("a"), repository.commit("b")
    repository.git("tag", "-a", "-m", "x", "v1")
    here = revisions(repository)
    assert [here.commit(text) for text in ("HEAD", "main", "v1", "HEAD~1", first[:8])] == [
        second,
        second,
        second,
        first,
        first,
    ]
    assert [here.commit(text) for text in ("nonesuch", "", "--help", "a\nb", "a\0b", "HEAD:x")] == [None] * 6


def test_a_branch_may_be_one_of_a_remote(repository: Repository, tmp_path: Path) -> None:
    sha = repository.commit()
    copy = revisions(clone(repository, tmp_path / "copy"))
    assert [copy.branch(name) for name in ("main", "origin/main", "nonesuch", "HEAD")] == [sha, sha, None, None]


def test_a_merge_base_is_where_two_branches_part(repository: Repository) -> None:
    base = repository.commit("base")
    repository.git("switch", "--quiet", "-c", "topic")
    topic = repository.commit("topic")
    repository.git("switch", "--quiet", "main")
    main = repository.commit("main")
    assert revisions(repository).merge_base(topic, main) == base
    repository.git("switch", "--quiet", "--orphan", "other")
    assert revisions(repository).merge_base(repository.commit("other"), main) is None


def test_ancestors_are_first_parents_nearest_first(repository: Repository) -> None:
    shas = [repository.commit(str(number)) for number in range(5)]
    assert revisions(repository).ancestors(shas[4], 2) == [shas[4], shas[3], shas[2]]
    assert revisions(repository).ancestors(shas[1], 50) == [shas[1], shas[0]]


def test_a_shallow_clone_is_deepened_as_far_as_needed(repository: Repository, tmp_path: Path) -> None:
    base = repository.commit("base")
    for number in range(60):
        repository.commit(str(number))
    repository.git("switch", "--quiet", "-c", "topic", base)
    topic = repository.commit("topic")
    copy = clone(repository, tmp_path / "copy", "--depth=1", "--no-single-branch")
    here = revisions(copy)
    assert here.is_shallow()
    main = here.branch("main")
    assert main is not None
    assert here.merge_base(topic, main) == base
    assert here.ancestors(main, 60)[-1] == base
    assert not copy.git("status", "--porcelain")


def test_a_shallow_clone_whose_remote_is_gone_is_told(repository: Repository, tmp_path: Path) -> None:
    repository.commit("a")
    sha = repository.commit("b")
    copy = clone(repository, tmp_path / "copy", "--depth=1")
    repository.path.rename(tmp_path / "gone")
    with pytest.raises(MeasurementError, match="shallow and could not be deepened") as caught:
        revisions(copy).ancestors(sha, 5)
    assert "fetch-depth: 0" in (caught.value.hint or "")


def test_the_base_of_githubs_merge_is_its_first_parent_even_where_only_the_merge_is_here(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit("base")
    repository.git("switch", "--quiet", "-c", "topic")
    repository.commit("topic")
    repository.git("switch", "--quiet", "main")
    main = repository.commit("main goes on")
    repository.git("merge", "--quiet", "--no-ff", "-m", "merge", "topic")
    merge = repository.git("rev-parse", "HEAD")
    copy = clone(repository, tmp_path / "copy", "--depth=1")
    there = {"GITHUB_SHA": merge, "GITHUB_REF": "refs/pull/12/merge"}
    assert revisions(copy, **there).pull_request_base(merge) == main
    assert revisions(copy, **{**there, "GITHUB_REF": "refs/heads/main"}).pull_request_base(merge) is None
    assert revisions(copy, **{**there, "GITHUB_SHA": main}).pull_request_base(merge) is None


# Worktrees


def test_a_worktree_is_there_and_then_gone_and_the_users_own_is_not_touched(
    repository: Repository, tmp_path: Path
) -> None:
    (repository.path / "file").write_text("old\n")
    repository.git("add", "file")
    old = repository.commit("old")
    (repository.path / "file").write_text("new\n")
    repository.git("commit", "--quiet", "-a", "-m", "new")
    (repository.path / "file").write_text("newer\n")
    before = repository.git("status", "--porcelain=v2", "--branch")
    with worktree(repository.path, old, tmp_path / "tree", repository.environ) as path:
        assert (path / "file").read_text() == "old\n"
        (path / "left over").touch()
    assert not (tmp_path / "tree").exists()
    assert repository.git("worktree", "list").count("\n") == 0
    assert repository.git("status", "--porcelain=v2", "--branch") == before


def test_hooks_of_the_user_do_not_run(repository: Repository, tmp_path: Path) -> None:
    sha = repository.commit()
    hook = repository.path / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    with worktree(repository.path, sha, tmp_path / "tree", repository.environ):
        pass
    assert not (tmp_path / "ran").exists()


def test_changes_that_are_not_committed_can_be_a_commit(repository: Repository, tmp_path: Path) -> None:
    (repository.path / "file").write_text("old\n")
    repository.git("add", "file")
    repository.commit()
    assert changes_as_commit(repository.path, repository.environ) is None
    (repository.path / "file").write_text("new\n")
    sha = changes_as_commit(repository.path, repository.environ)
    assert sha is not None
    with worktree(repository.path, sha, tmp_path / "tree", repository.environ) as path:
        assert (path / "file").read_text() == "new\n"
    assert repository.git("stash", "list") == ""
    assert repository.git("status", "--porcelain") == "M file"
