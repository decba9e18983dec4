"""Which commits of a real repository a past has, and which of them are measured in any case."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.model.metrics import DEFAULT_MODEL
from cachegrind_bench.usecases import worktrees
from cachegrind_bench.usecases.backfill import BackfillRequest, Past, past_of
from cachegrind_bench.usecases.selection import SelectRequest
from cachegrind_bench.usecases.worktrees import opened_worktree
from cachegrind_bench.vcs.commits import commit_info
from cachegrind_bench.vcs.git import Git
from cachegrind_bench.vcs.revisions import Repository as Revisions
from tests.unit.repositories import Repository, git_environment
from tests.unit.samples import result

DAY_S = 86_400
BEGIN_S = 1_700_000_000


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Return ten commits, one a day, of which the third and the seventh have a tag; the eighth merges a branch of one commit."""
    made = Repository(tmp_path / "repository", git_environment(tmp_path))
    for number in range(10):
        date = f"{BEGIN_S + number * DAY_S} +0000"
        if number == 7:
            made.git("switch", "--quiet", "-c", "side")
            made.commit("side", GIT_COMMITTER_DATE=date)
            made.git("switch", "--quiet", "main")
            made.git("merge", "--quiet", "--no-ff", "-m", "7", "side", GIT_COMMITTER_DATE=date)
        else:
            made.commit(str(number), GIT_COMMITTER_DATE=date)
        if number in (2, 6):
            made.git("tag", f"v{number}")
    made.git("tag", "nightly", "main~4")
    return made


def chosen(repository: Repository, revisions: str = "main", **asked: Any) -> tuple[list[str], list[int]]:
    """Return the subjects of the commits, and the places of those that are measured in any case."""
    found = past(repository, revisions, **asked)
    return [repository.git("log", "-1", "--format=%s", sha) for sha in found.shas], sorted(found.required)


def past(repository: Repository, revisions: str = "main", **asked: Any) -> Past:
    values: dict[str, Any] = {
        **dict.fromkeys(("since", "tags", "every", "commits", "seconds", "carry")),
        "all_commits": False, "min_step": Fraction(1, 500), "words": (), "command": ("true",),
        "select": SelectRequest(), "retry": False, "split": 1, "fresh": False, "model": DEFAULT_MODEL,
    }  # fmt: skip
    request = BackfillRequest(revisions=revisions, **(values | asked))
    return past_of(request, Revisions(repository.path, repository.environ))


def test_a_past_begins_with_the_base_and_follows_first_parents(repository: Repository) -> None:
    assert chosen(repository) == ([str(number) for number in range(10)], [0, 2, 5, 6, 9])
    assert chosen(repository, "v2..main") == ([str(number) for number in range(2, 10)], [0, 3, 4, 7])
    assert "side" in chosen(repository, all_commits=True)[0]


def test_tags_are_those_commits_alone(repository: Repository) -> None:
    assert chosen(repository, tags="v*") == (["2", "6"], [0, 1])
    with pytest.raises(UsageError, match=r"no commits in 'main' with a tag like 'w\*'"):
        chosen(repository, tags="w*")


def test_where_git_cannot_work_the_revisions_are_not_to_blame(repository: Repository) -> None:
    (repository.path / ".git" / "HEAD").unlink()
    with pytest.raises(MeasurementError, match="not in a git repository"):
        past(repository)


def test_a_worktree_has_an_absolute_path_whatever_tmpdir_is(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", ".")
    revisions = Revisions(repository.path, repository.environ)
    with opened_worktree(revisions, Mock(), SelectRequest()) as place:
        assert place.folder.is_absolute()


def test_what_a_program_leaves_next_to_its_worktree_goes_with_it(repository: Repository) -> None:
    revisions = Revisions(repository.path, repository.environ)
    with opened_worktree(revisions, Mock(), SelectRequest()) as place:
        (place.folder / "left").touch()
    assert not place.folder.exists()


@pytest.mark.parametrize("there", [True, False])
def test_what_a_link_in_a_commit_leads_to_is_no_place_for_the_configuration(
    repository: Repository, tmp_path: Path, there: bool
) -> None:
    victim, own = tmp_path / "victim", repository.path / "cg-bench.toml"
    if there:
        victim.write_text("precious")
    own.symlink_to(victim)
    repository.git("add", own.name)
    sha = repository.commit("with a link")
    own.unlink()
    own.write_text('[[benchmark]]\ncommand = "true"\n')
    revisions = Revisions(repository.path, repository.environ)
    with opened_worktree(revisions, Mock(return_value=result(commit=None)), SelectRequest()) as place:
        overlaid = replace(place, overlay=replace(place.overlay, always=True))
        overlaid.measure(sha, ())
    assert (victim.read_text() if victim.exists() else None) == ("precious" if there else None)


def test_a_folder_that_is_a_link_to_another_place_in_a_commit_is_none_of_it(
    repository: Repository, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (repository.path / "sub").symlink_to(tmp_path / "elsewhere")
    repository.git("add", "sub")
    sha = repository.commit("with a link")
    (repository.path / "sub").unlink()
    (repository.path / "sub").mkdir()
    revisions = Revisions(repository.path / "sub", repository.environ)
    refused = pytest.raises(MeasurementError, match="has no folder sub")
    with opened_worktree(revisions, Mock(), SelectRequest()) as place, refused:
        place.side("main", sha, ("--", "true"))


def test_a_result_of_what_set_up_has_checked_out_is_not_that_of_the_commit(repository: Repository) -> None:
    other = commit_info(Git(repository.path, repository.environ))
    repository.commit("later")
    measured = Mock(return_value=result(commit=other))
    revisions = Revisions(repository.path, repository.environ)
    sha = repository.git("rev-parse", "HEAD")
    refused = pytest.raises(MeasurementError, match="is of another commit")
    with opened_worktree(revisions, measured, SelectRequest()) as place, refused:
        place.side("main", sha, ("--", "true"))
    refused = pytest.raises(MeasurementError, match="is of another commit")
    with opened_worktree(revisions, measured, SelectRequest()) as place, refused:
        worktrees._cost(place, ("--", "true"), {"true"}, DEFAULT_MODEL, sha)


def test_every_nth_commit_is_measured_in_any_case(repository: Repository) -> None:
    assert chosen(repository, every=4)[1] == [0, 2, 4, 5, 6, 8, 9]
    assert chosen(repository, every=1)[1] == list(range(10))


def test_since_leaves_out_what_is_older(repository: Repository) -> None:
    assert chosen(repository, since="2023-11-20T12:00:00Z") == (["6", "7", "8", "9"], [0, 3])
    with pytest.raises(UsageError, match="no commits"):
        chosen(repository, since="2030-01-01T00:00:00Z")


def test_benchmarks_that_a_commit_lists_itself_are_asked_for_like_others(repository: Repository) -> None:
    def wanted(text: str, **asked: Any) -> tuple[frozenset[str], list[str] | None]:
        (repository.path / "cg-bench.toml").write_text(text, encoding="utf-8")
        found = past(repository, command=(), carry=(), **asked)
        others = None if found.others is None else [name for name in ("perf/a.py::b", "c") if found.others(name)]
        return found.wanted, others

    alone = '[[benchmark]]\nid = "a"\ncommand = "true"\n'
    assert wanted(alone) == (frozenset({"a"}), None)
    both = alone + '[[benchmark]]\npytest = "perf"\n'
    assert wanted(both) == (frozenset({"a"}), ["perf/a.py::b", "c"])
    assert wanted(both, select=SelectRequest(expression="perf")) == (frozenset(), ["perf/a.py::b"])
