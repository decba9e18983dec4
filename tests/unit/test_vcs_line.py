"""Lines of commits, releases, merge-bases and worktrees of small real repositories, shallow ones too."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from cachegrind_bench import waiting
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.log import heard_by
from cachegrind_bench.startup import removal
from cachegrind_bench.store.git_store import GitStore
from cachegrind_bench.vcs import commits
from cachegrind_bench.vcs import worktree as worktrees
from cachegrind_bench.vcs.git import Git, untracked_folders
from cachegrind_bench.vcs.revisions import Repository as Revisions
from cachegrind_bench.vcs.worktree import changes_as_commit, own_folder, worktree
from tests.unit.repositories import PATH, Repository, git_environment, hanging_at
from tests.unit.samples import run_without_rights
from tests.unit.stored import NAMES, RECORDS

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
    found = commits.line(revisions(repository), "HEAD")
    assert [note.sha for note in found] == [first, second, merge]
    assert found[-1].parents == (second, side)
    assert [note.sha for note in commits.line(revisions(repository), "main", most=2)] == [second, merge]


@pytest.mark.parametrize("subject", ["<script>alert(1)</script>", "a\tb | c", "ünïcødé ✓", "%H %x00", "'\"\\"])
def test_author_and_subject_are_reported_as_they_are(repository: Repository, subject: str) -> None:
    sha = repository.commit(f"{subject}\n\nand a body\n", GIT_AUTHOR_NAME="Zoë <b>")
    (note,) = commits.line(revisions(repository), sha)
    assert (note.subject, note.committed_at) == (subject, "2023-11-14T22:13:20Z")
    assert note.author.startswith("Zoë")


def test_what_is_not_a_commit_has_no_line(repository: Repository) -> None:
    repository.commit()
    for revision in ("nonesuch", "--all", ""):
        with pytest.raises(MeasurementError):
            commits.line(revisions(repository), revision)


@pytest.mark.parametrize("date", ["abc +0000", ""])
def test_a_date_that_git_cannot_read_is_that_of_1970(repository: Repository, date: str) -> None:
    tree = repository.git("write-tree")
    text = f"tree {tree}\nauthor a <a@b> 1 +0000\ncommitter c <a@b> {date}\n\nx\n"
    (repository.path / "commit").write_text(text)
    sha = repository.git("hash-object", "-w", "-t", "commit", "--literally", "commit")
    repository.git("update-ref", "refs/heads/main", sha)
    (note,) = commits.line(revisions(repository), "main")
    assert note.committed_at in {"1970-01-01T00:00:00Z", "2020-09-13T12:26:42Z"}


def test_notes_are_of_the_commits_that_are_here(repository: Repository) -> None:
    shas = [repository.commit(text) for text in "abc"]
    found = commits.notes(revisions(repository), [shas[2], "f" * 40, shas[0]])
    assert {sha: note.subject for sha, note in found.items()} == {shas[0]: "a", shas[2]: "c"}
    assert commits.notes(revisions(repository), []) == {}
    assert commits.notes(revisions(repository), ["f" * 40]) == {}


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
    line = commits.line(revisions(repository), "HEAD")
    names = [(item.name, item.sha) for item in commits.releases(revisions(repository), line)]
    assert names == [("v1.0", line[0].sha), ("1.10", line[1].sha), ("release-2.0-rc1", line[1].sha)]


@pytest.mark.parametrize("end", ["\u2028", "\x85"])
def test_a_name_may_have_what_unicode_takes_for_the_end_of_a_line(repository: Repository, end: str) -> None:
    sha = repository.commit("a")
    repository.git("tag", f"of{end}v1.0")
    repository.git("remote", "add", f"a{end}b", "/nowhere")
    assert [item.name for item in commits.tags(revisions(repository))] == [f"of{end}v1.0"]
    assert revisions(repository).remotes() == [f"a{end}b"]
    with GitStore(repository.path, f"data{end}x", None, repository.environ) as store:
        store.add(RECORDS)
        assert store.names() == NAMES
    assert repository.git("rev-parse", "HEAD") == sha


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


def test_a_shallow_clone_whose_remote_is_gone_is_reported(repository: Repository, tmp_path: Path) -> None:
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


def test_what_comes_before_githubs_merge_is_fetched_where_only_the_merge_is_here(
    repository: Repository, tmp_path: Path
) -> None:
    shas = [repository.commit(str(number)) for number in range(4)]
    repository.git("switch", "--quiet", "-c", "topic")
    repository.commit("topic")
    repository.git("switch", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-ff", "-m", "merge", "topic")
    repository.git("update-ref", "refs/pull/12/merge", "HEAD")
    repository.git("reset", "--quiet", "--hard", shas[3])
    path = tmp_path / "copy"
    path.mkdir()
    # As actions/checkout does it.
    for words in (
        ("init", "--quiet"),
        ("remote", "add", "origin", f"file://{repository.path}"),
        ("fetch", "--quiet", "--depth=1", "origin", "+refs/pull/12/merge:refs/remotes/pull/12/merge"),
        ("checkout", "--quiet", "refs/remotes/pull/12/merge"),
    ):
        repository.git("-C", str(path), *words)
    here = Revisions(cwd=path, environ=repository.environ)
    merge = here.commit("HEAD")
    assert merge is not None
    base = here.first_parent(merge)
    assert (base, here.commit(shas[3])) == (shas[3], None)
    assert here.ancestors(shas[3], 50) == shas[::-1]


@pytest.mark.parametrize("version", ["0", "2"])
def test_a_commit_that_was_not_pushed_has_a_past_all_the_same(
    repository: Repository, tmp_path: Path, version: str
) -> None:
    base = repository.commit("base")
    for number in range(3):
        repository.commit(str(number))
    repository.git("switch", "--quiet", "-c", "topic", base)
    repository.commit("topic")
    copy = clone(repository, tmp_path / "copy", "--depth=1", "--no-single-branch")
    copy.git("config", "protocol.version", version)
    copy.git("checkout", "--quiet", "--detach", "origin/topic")
    own = copy.commit("not pushed")
    main = revisions(copy).branch("main")
    assert main is not None
    assert revisions(copy).merge_base(own, main) == base
    assert revisions(copy).ancestors(own, 50)[-1] == base


def test_a_clone_is_deepened_by_time_and_never_cut(repository: Repository, tmp_path: Path) -> None:
    for number in range(120):
        repository.commit(str(number), GIT_COMMITTER_DATE=f"{1_700_000_000 + 86_400 * number} +0000")
    copy = clone(repository, tmp_path / "copy", "--depth=30")
    here = revisions(copy)
    copy.commit("not pushed")
    for time, least in (("2024-03-01T00:00:00Z", 31), ("2023-12-20T00:00:00Z", 81), ("2020-01-01T00:00:00Z", 121)):
        here.deepen_since("HEAD", time)
        assert int(copy.git("rev-list", "--count", "HEAD")) >= least
    assert not here.is_shallow()


def test_deepening_moves_no_branch_whatever_is_configured(repository: Repository, tmp_path: Path) -> None:
    shas = [repository.commit(str(number)) for number in range(3)]
    for name in ("work", "feature"):
        repository.git("branch", name)
    copy = clone(repository, tmp_path / "copy", "--depth=1", "--no-single-branch")
    copy.git("config", "remote.origin.fetch", "+refs/heads/*:refs/heads/*")
    copy.git("config", "fetch.prune", "true")
    copy.git("switch", "--quiet", "-c", "work", "origin/work")
    copy.commit("not pushed")
    copy.git("branch", "gone")
    copy.git("checkout", "--quiet", "--detach", "origin/feature")
    before = copy.git("for-each-ref")
    assert revisions(copy).ancestors(shas[2], 50) == shas[::-1]
    assert copy.git("for-each-ref") == before
    assert not (copy.path / ".git" / "FETCH_HEAD").exists()


def test_a_remote_that_does_not_answer_leaves_the_others(repository: Repository, tmp_path: Path) -> None:
    shas = [repository.commit(str(number)) for number in range(3)]
    copy = clone(repository, tmp_path / "copy", "--depth=1")
    copy.git("remote", "rename", "origin", "upstream")
    copy.git("remote", "add", "origin", str(tmp_path / "nonesuch"))
    assert revisions(copy).ancestors(shas[2], 50) == shas[::-1]


def test_variables_of_a_hook_do_not_lead_to_another_repository(repository: Repository, tmp_path: Path) -> None:
    sha = repository.commit("here")
    other = Repository(tmp_path / "other", repository.environ)
    other.commit("there")
    hook = {"GIT_DIR": str(other.path / ".git"), "GIT_WORK_TREE": str(other.path)}
    assert revisions(repository, **hook).commit("HEAD") == sha
    # Where nothing else tells of a repository, they do.
    outside = Revisions(cwd=tmp_path, environ={**repository.environ, **hook})
    assert outside.commit("HEAD") == other.git("rev-parse", "HEAD")


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
    with worktree(revisions(repository), old, tmp_path / "tree") as path:
        assert (path / "file").read_text() == "old\n"
        (path / "left over").touch()
    assert not (tmp_path / "tree").exists()
    assert repository.git("worktree", "list").count("\n") == 0
    assert repository.git("status", "--porcelain=v2", "--branch") == before


def test_a_worktree_that_takes_long_to_be_removed_is_reported(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cachegrind_bench.waiting._FIRST_S", 0.01)
    sha, looked, remove = repository.commit(), threading.Event(), removal.remove

    def slowly(path: str) -> None:
        assert looked.wait(60)
        remove(path)

    def note(text: str) -> None:
        if "waiting for the removal of" in text:
            looked.set()

    with heard_by(note, logging.INFO), worktree(revisions(repository), sha, tmp_path / "tree"):
        monkeypatch.setattr(worktrees, "remove", slowly)
    assert not (tmp_path / "tree").exists()


def test_hooks_of_the_user_do_not_run(repository: Repository, tmp_path: Path) -> None:
    sha = repository.commit()
    hook = repository.path / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    with worktree(revisions(repository), sha, tmp_path / "tree"):
        pass
    assert not (tmp_path / "ran").exists()


def test_a_full_disk_is_named_with_what_to_do(repository: Repository, tmp_path: Path) -> None:
    sha, full = repository.commit(), tmp_path / "bin" / "git"
    full.parent.mkdir()
    full.write_text(
        '#!/bin/sh\ncase "$*" in *"worktree add"*) echo "fatal: could not write to /x: No space left on device" >&2; exit 128;; '
        f'esac\nexec {shutil.which("git")} "$@"\n'
    )
    full.chmod(0o755)
    path = tmp_path / "tree"
    environ = {**repository.environ, "PATH": f"{full.parent}:{repository.environ['PATH']}"}
    full_disk = pytest.raises(MeasurementError, match=f"no space is left for {path}$")
    with full_disk as caught, worktree(Git(repository.path, environ), sha, path):
        pass
    assert caught.value.hint == "free some space there"


@pytest.mark.parametrize("hanging", ["worktree list", "worktree add", "add --update"])
def test_a_git_that_hangs_at_a_worktree_is_named(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str], hanging: str
) -> None:
    sha, name = repository.commit(), hanging.split(maxsplit=1)[0]
    monkeypatch.setattr(waiting, "_FIRST_S", 0.1)
    monkeypatch.setattr(worktrees, "_TIMEOUT_S", 0.3)
    git = Git(repository.path, hanging_at(hanging, repository, tmp_path))
    with pytest.raises(MeasurementError, match=f"git {name} took more than 0.3 s"):  # noqa: SIM117 - the next one raises it
        with worktree(git, sha, tmp_path / "tree") if name == "worktree" else nullcontext(changes_as_commit(git)):
            pass
    assert f"waiting for git {name}, 0 s" in said


def test_a_worktree_that_another_git_has_half_made_is_waited_for(repository: Repository, tmp_path: Path) -> None:
    sha, half = repository.commit(), repository.path / ".git" / "worktrees" / "half"
    half.mkdir(parents=True)
    (half / "locked").write_text("initializing")
    (half / "gitdir").write_text(f"{tmp_path}/half/.git\n")
    (half / "commondir").touch()
    timer = threading.Timer(0.5, shutil.rmtree, [half])
    timer.start()
    try:
        with worktree(revisions(repository), sha, tmp_path / "tree") as path:
            assert (path / ".git").exists()
    finally:
        timer.join()


def test_changes_that_are_not_committed_can_be_a_commit(repository: Repository, tmp_path: Path) -> None:
    (repository.path / "file").write_text("old\n")
    repository.git("add", "file")
    repository.commit()
    assert changes_as_commit(revisions(repository)) is None
    (repository.path / "file").write_text("new\n")
    sha = changes_as_commit(revisions(repository))
    assert sha is not None
    with worktree(revisions(repository), sha, tmp_path / "tree") as path:
        assert (path / "file").read_text() == "new\n"
    assert repository.git("stash", "list") == ""
    assert repository.git("status", "--porcelain") == "M file"


def test_what_is_staged_stays_staged_in_the_index_of_a_hook(repository: Repository, tmp_path: Path) -> None:
    sha = repository.commit("empty")
    index = tmp_path / "index"
    (repository.path / "file").touch()
    repository.git("add", "file", GIT_INDEX_FILE=str(index))
    before = index.read_bytes()
    hook = {**repository.environ, "GIT_INDEX_FILE": str(index), "GIT_DIR": str(repository.path / ".git")}
    with worktree(Git(repository.path, hook), sha, tmp_path / "tree"):
        pass
    assert index.read_bytes() == before


def test_a_worktree_of_the_user_that_is_not_there_just_now_is_not_forgotten(
    repository: Repository, tmp_path: Path
) -> None:
    sha = repository.commit()
    repository.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "disk"))
    (tmp_path / "disk").rename(tmp_path / "unmounted")
    with worktree(revisions(repository), sha, tmp_path / "tree"):
        pass
    (tmp_path / "unmounted").rename(tmp_path / "disk")
    repository.git("-C", str(tmp_path / "disk"), "status")
    assert repository.git("worktree", "list").count("\n") == 1


def test_the_worktree_of_a_process_that_was_killed_is_removed_by_the_next(
    repository: Repository, tmp_path: Path
) -> None:
    sha, folder = repository.commit(), tmp_path / "cg-bench.x"
    folder.mkdir()
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom cachegrind_bench.vcs.git import Git\nfrom cachegrind_bench.vcs.worktree import worktree\n"
        "with worktree(Git(Path(sys.argv[1]), dict(os.environ)), sys.argv[2], Path(sys.argv[3])):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    command = [sys.executable, "-c", code, str(repository.path), sha, str(folder / "tree")]
    done = subprocess.run(command, env={**repository.environ, "PYTHONPATH": os.getcwd()}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert (folder / "tree").exists()
    with worktree(revisions(repository), sha, tmp_path / "one"):
        assert not folder.exists()
        # Ours is alive, and another one beside it does it no harm.
        with worktree(revisions(repository), sha, tmp_path / "other"):
            assert (tmp_path / "one" / ".git").exists()
    assert repository.git("worktree", "list").count("\n") == 0


MAKE = """
import os, signal, sys
from pathlib import Path
from cachegrind_bench.vcs import git, worktree
with worktree.own_folder() as folder:
    if len(sys.argv) > 1:
        git.Git(Path(sys.argv[1]), dict(os.environ)).text("worktree", "add", "--detach", str(folder / "tree"))
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("half_made", [True, False])
def test_the_folder_of_a_process_that_was_killed_before_git_had_made_a_worktree_is_removed(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, half_made: bool
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sha, environ = repository.commit(), {**repository.environ, "PYTHONPATH": os.getcwd(), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", MAKE, *([str(repository.path)] if half_made else [])]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = Path(done.stdout.strip())
    assert left.is_dir()
    if half_made:
        (repository.path / ".git" / "worktrees" / "tree" / "locked").write_text("initializing\n")
    for name, text in {"theirs": None, "damaged": "cg-bench x"}.items():
        (tmp_path / f"cg-bench.{name}").mkdir()
        if text is not None:
            (tmp_path / f"cg-bench.{name}" / "owner").write_text(text)
    with own_folder() as folder, own_folder() as other:
        assert folder.is_dir()
        with worktree(revisions(repository), sha, other / "tree"):
            assert not left.exists()
    assert {path.name for path in tmp_path.glob("cg-bench.*")} == {f"cg-bench.{name}" for name in ("theirs", "damaged")}
    assert repository.git("worktree", "list").count("\n") == 0


LEAVE = """
import os, signal, subprocess, sys
from pathlib import Path
from cachegrind_bench.vcs import git, worktree
if len(sys.argv) > 4:  # as before the machine started anew
    known = worktree._process
    worktree._process = lambda pid: known(pid).replace(known(pid).split()[1], sys.argv[4])
with worktree.worktree(git.Git(Path(sys.argv[1]), dict(os.environ)), sys.argv[2], Path(sys.argv[3])):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("how", ["not asked for", "another start", "in the middle of git"])
def test_the_place_of_a_process_that_was_killed_can_be_used_again_though_its_files_are_gone(
    repository: Repository, tmp_path: Path, how: str
) -> None:
    sha, place = repository.commit(), tmp_path / "cg-bench.51" / "tree"
    place.parent.mkdir()
    words = "another-start" if how == "another start" else ""
    command = [sys.executable, "-c", LEAVE, str(repository.path), sha, str(place), *words.split()]
    killed = subprocess.Popen(command, env={**repository.environ, "PYTHONPATH": os.getcwd()})
    # Until it is asked for, it is a process that has ended and is still listed.
    os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{killed.pid}/stat").exists()
    if how == "in the middle of git":
        (repository.path / ".git" / "worktrees" / "tree" / "locked").write_text("initializing\n")
    shutil.rmtree(place)  # as whoever takes the numbered folder next does
    with worktree(revisions(repository), sha, place):
        assert (place / ".git").exists()
    assert killed.wait() == -signal.SIGKILL
    assert repository.git("worktree", "list").count("\n") == 0


@pytest.mark.parametrize("name", ["cg-bench.51", "theirs"])
def test_a_worktree_that_a_killed_git_has_half_made_is_forgotten_if_it_was_ours(
    repository: Repository, tmp_path: Path, name: str
) -> None:
    sha, entry = repository.commit(), repository.path / ".git" / "worktrees" / "tree"
    entry.mkdir(parents=True)
    (entry / "locked").write_text("initializing\n")
    (entry / "gitdir").write_text(f"{tmp_path / name}/tree/.git\n")
    (entry / "commondir").touch()
    os.utime(entry / "commondir", (0, 0))
    outcome = nullcontext() if name == "cg-bench.51" else pytest.raises(MeasurementError, match="failed to read")
    with outcome as caught, worktree(revisions(repository), sha, tmp_path / "cg-bench.52" / "tree"):
        pass
    assert entry.exists() == (caught is not None)
    if caught is not None:
        assert caught.value.hint == f"if no git is at work there, one was killed: rm -r {entry}"


def test_the_place_of_another_machine_is_left_alone(repository: Repository, tmp_path: Path) -> None:
    sha = repository.commit()
    for number, place in enumerate((tmp_path / "tree", tmp_path / "cg-bench.x" / "tree")):
        repository.git("worktree", "add", "--quiet", "--detach", str(place))
        reason = f"cg-bench elsewhere another-start 4026531836 {number} 1"
        repository.git("worktree", "lock", "--reason", reason, str(place))
    (tmp_path / "tree").rename(tmp_path / "moved")
    with (
        pytest.raises(MeasurementError, match="a worktree of another machine"),
        worktree(revisions(repository), sha, tmp_path / "tree"),
    ):
        pass
    assert (tmp_path / "cg-bench.x" / "tree" / ".git").exists()
    assert repository.git("worktree", "list").count("\n") == 2


@pytest.mark.parametrize("goes", [True, False])
def test_a_worktree_in_which_something_still_writes_is_no_error(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str], goes: bool
) -> None:
    tries = list[str]()

    def remove(path: str) -> None:
        tries.append(path)
        if not goes or len(tries) < 3:
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        removal.remove(path)

    monkeypatch.setattr(worktrees, "remove", remove)
    monkeypatch.setattr(worktrees, "_PAUSE_S", 0)
    git = revisions(repository)
    sha, text = repository.commit(), Git.text

    def forget(self: Git, *words: str, **how: Any) -> str:
        """As git does where it cannot remove the files."""
        if "remove" not in words:
            return text(self, *words, **how)
        shutil.rmtree(repository.path / ".git" / "worktrees" / "tree")
        return ""

    monkeypatch.setattr(Git, "text", forget)
    for _ in range(2):
        with worktree(git, sha, tmp_path / "tree") as tree:
            pass
        assert not tree.exists()
    assert len([line for line in said if line.endswith("tree: Directory not empty")]) == (0 if goes else 2)
    assert len([*tmp_path.glob("tree.left.*")]) == (0 if goes else 2)


def test_folders_that_cannot_be_written_into_are_removed(repository: Repository) -> None:
    sha = repository.commit()
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom cachegrind_bench.vcs.git import Git\nfrom cachegrind_bench.vcs.worktree import worktree\nbegin()\n"
        "os.chdir(sys.argv[1])\nfolder = Path(sys.argv[1], 'd')\nos.environ['HOME'] = sys.argv[1]\n"
        "with worktree(Git(Path('r').absolute(), dict(os.environ)), sys.argv[2], Path('tree').absolute()) as tree:\n"
        "    (tree / 'cache' / 'm').mkdir(parents=True)\n    (tree / 'cache' / 'm' / 'f').touch()\n"
        "    os.chmod(tree / 'cache' / 'm', 0o555)\n    os.chmod(tree / 'cache', 0o555)\n"
        "print(os.path.exists('tree'))"
    )
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to others
        repository.git("clone", "--quiet", str(repository.path), f"{folder}/r")
        subprocess.run(["chmod", "-R", "a+rwX", folder], check=True)
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "65534:65534", folder], check=True)
        assert run_without_rights(code, folder, sha) == "False\n"


def test_files_that_are_only_announced_or_half_merged_are_part_of_the_changes(repository: Repository) -> None:
    (repository.path / "file").write_text("base\n")
    repository.git("add", "file")
    repository.commit()
    (repository.path / "new").write_text("announced\n")
    repository.git("add", "--intent-to-add", "new")
    sha = changes_as_commit(revisions(repository))
    assert sha is not None
    assert repository.git("show", f"{sha}:new") == "announced"
    repository.git("reset", "--quiet")
    repository.git("switch", "--quiet", "-c", "side")
    for branch, text in (("side", "a\n"), ("main", "b\n")):
        repository.git("switch", "--quiet", branch)
        (repository.path / "file").write_text(text)
        repository.git("commit", "--quiet", "-a", "-m", text)
    with pytest.raises(subprocess.CalledProcessError):
        repository.git("merge", "side")
    before = repository.git("status", "--porcelain=v2")
    sha = changes_as_commit(revisions(repository))
    assert sha is not None
    assert "<<<<<<<" in repository.git("show", f"{sha}:file")
    assert repository.git("status", "--porcelain=v2") == before


def test_a_lock_of_the_user_is_not_ours(repository: Repository, tmp_path: Path) -> None:
    sha = repository.commit()
    repository.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "mine"))
    repository.git("worktree", "lock", "--reason", "cg-bench results", str(tmp_path / "mine"))
    with worktree(revisions(repository), sha, tmp_path / "tree"):
        pass
    assert (tmp_path / "mine" / ".git").exists()


def test_the_index_of_a_hook_is_left_alone_where_only_variables_report_of_the_repository(
    repository: Repository, tmp_path: Path
) -> None:
    sha = repository.commit("empty")
    home = tmp_path / "files"
    home.mkdir()
    (repository.path / ".git").rename(tmp_path / "dot.git")
    place = {"GIT_DIR": str(tmp_path / "dot.git"), "GIT_WORK_TREE": str(home)}
    index = tmp_path / "index"
    index.write_bytes(b"of the commit that is made")
    with worktree(Git(home, {**repository.environ, **place, "GIT_INDEX_FILE": str(index)}), sha, tmp_path / "tree"):
        pass
    assert index.read_bytes() == b"of the commit that is made"


def test_changes_that_git_cannot_read_are_no_unchanged_tree(repository: Repository) -> None:
    (repository.path / "file").touch()
    repository.git("add", "file")
    repository.commit()
    (repository.path / ".git" / "index").write_bytes(b"damaged")
    with pytest.raises(MeasurementError, match="git add failed"):
        changes_as_commit(revisions(repository))


def test_folders_that_git_does_not_track_are_found_the_uppermost_first(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository", git_environment(tmp_path))
    for name in ("a/deep", "ignored/deep", "src/b\udcff\n", "src/__pycache__"):
        (repository.path / name).mkdir(parents=True)
        (repository.path / name / "file").touch()
    for name in (".gitignore", "src/tracked"):
        (repository.path / name).write_text("ignored\n")
    Repository(repository.path / "src" / "clone", repository.environ).commit()
    repository.git("add", ".gitignore", "src/tracked")
    repository.commit()
    git = Git(repository.path, repository.environ)
    names = ["a", "ignored", "src/b\udcff\n", "src/clone"]
    assert sorted(untracked_folders(git)) == [str(repository.path / name) for name in names]
    for number in range(2000):
        (repository.path / "src" / f"more{number:060}").mkdir()
        (repository.path / "src" / f"more{number:060}" / "file").touch()
    found = untracked_folders(git)
    assert {str(repository.path / "a"), str(repository.path / "ignored")} < set(found)
    assert sum(map(len, found)) < 30_000
