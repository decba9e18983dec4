"""The store in a git branch keeps what it is given, gives it back, and touches nothing that is the user's."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.errors import StoreError
from cachegrind_bench.store.git_store import GitStore
from cachegrind_bench.store.protocol import Query
from cachegrind_bench.store.record import Record
from cachegrind_bench.vcs import objects
from cachegrind_bench.vcs.branches import Branch
from cachegrind_bench.vcs.git import Git, GitTimeoutError
from tests.unit.clones import BRANCH, Place
from tests.unit.stored import FEBRUARY, NAMES, RECORDS, RENAME, all_names, filled, segment, stored

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ALL = sorted([*RECORDS, FEBRUARY, RENAME], key=lambda record: record.name)


@pytest.fixture(params=["local", "whole", "shallow"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return a repository: without a remote, a whole clone, or one that is shallow and of a single branch."""
    return Place(tmp_path, request.param)


@pytest.fixture
def shared(tmp_path: Path) -> Place:
    """Return a whole clone."""
    return Place(tmp_path, "whole")


def problems(store: GitStore) -> list[str]:
    return [f"{problem.where}: {problem.what}" for problem in store.check()]


def put(place: Place, path: str, data: bytes | None, mode: str = "100644") -> None:
    """Change a file of the branch as somebody may do by hand."""
    place.write({path: data}, mode=mode)


def fold(place: Place, records: list[Record]) -> None:
    """Put these runs of the branch into a segment, as older versions did."""
    place.write(dict([segment(records)]) | dict.fromkeys(record.name for record in records))


def test_a_run_is_one_file_in_a_branch_of_its_own(place: Place) -> None:
    store = place.store()
    assert (store.names(), list(store.read()), list(store.snapshots(Query())), store.check()) == ([], [], [], [])
    assert store.add([FEBRUARY, *reversed(RECORDS), RENAME]) == 10
    assert place.files() == all_names()
    assert place.commits() == 1
    assert place.run("show", f"{BRANCH}:{NAMES[0]}", cwd=place.home).encode() == RECORDS[0].data.rstrip()
    assert store.add([stored(30)]) == 1
    assert place.commits() == 2
    first = place.run("rev-list", "--max-parents=0", BRANCH, cwd=place.home)
    assert first not in place.run("rev-list", "main", cwd=place.home).split()


def test_what_was_added_is_read_back_in_the_order_of_names(place: Place) -> None:
    store = place.store()
    store.add(ALL[:4])
    store.add(ALL[2:])
    for again in (store, place.store()):
        assert again.names() == all_names()
        assert list(again.read()) == ALL
        assert list(again.read(reversed(NAMES))) == RECORDS
        assert list(again.read([])) == []
        assert problems(again) == []
        assert again.profile(NAMES[0]) is None
    with pytest.raises(StoreError, match=stored(99).name):
        list(store.read([NAMES[0], stored(99).name]))


def test_adding_again_makes_no_commit(place: Place) -> None:
    store = place.store()
    assert store.add(ALL) == 10
    assert store.add(ALL) == 0
    assert store.add([]) == 0
    assert place.commits() == 1
    assert store.add([RECORDS[0], RECORDS[0], stored(30), stored(30)]) == 1


def test_work_tree_index_and_everything_of_the_users_stay_as_they_are(place: Place) -> None:
    (place.path / ".git" / "FETCH_HEAD").write_text("what the user fetched\n")
    before = place.untouchable()
    store = place.store()
    store.add(ALL)
    store.add([stored(30)])
    store.remove([NAMES[0]])
    assert store.names()
    assert problems(store) == []
    assert place.untouchable() == before
    assert place.git("rev-parse", "--is-shallow-repository") == ("true" if place.how == "shallow" else "false")
    if place.how != "local":
        assert f"refs/heads/{BRANCH}" not in place.git("for-each-ref", "refs/heads/")


def test_snapshots_are_those_of_the_file_store(place: Place, tmp_path: Path) -> None:
    store, other = place.store(), filled(tmp_path / "s")
    store.add(ALL)
    store.add([stored(30)])
    other.add([stored(30)])
    queries = [
        Query(),
        Query(since="2026-02-01T00:00:00Z"),
        Query(shas=frozenset({f"{3:040x}"[::-1]})),
        Query(wanted=lambda name: name == "sieve"),
    ]
    for query in queries:
        assert list(store.snapshots(query)) == list(other.snapshots(query))
    fold(place, RECORDS)
    for query in queries:
        assert list(store.snapshots(query)) == list(other.snapshots(query))


def test_removed_records_are_gone_also_from_segments(place: Place) -> None:
    store = place.store()
    store.add(ALL)
    assert store.remove([NAMES[0], stored(99).name, RENAME.name, "../x"]) == 2
    fold(place, RECORDS[1:])
    assert store.names() == [*NAMES[1:], FEBRUARY.name]
    assert store.remove([NAMES[0], NAMES[1], FEBRUARY.name]) == 2
    assert place.files() == NAMES[2:]
    assert list(store.read()) == RECORDS[2:]
    assert problems(store) == []
    assert store.remove(NAMES) == 6
    assert store.names() == []
    assert place.files() == []
    assert store.remove(NAMES) == 0
    assert store.add(RECORDS[:1]) == 1
    assert store.names() == NAMES[:1]


def test_many_records_are_read_with_two_processes(shared: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store = shared.store()
    records = [stored(n) for n in range(1000)]
    assert store.add(records) == 1000
    counts = {"cat-file": 0}
    true_run = Git.run

    def counting(self: Git, *arguments: str, **more: Any) -> object:
        counts["cat-file"] += "cat-file" in arguments
        return true_run(self, *arguments, **more)

    monkeypatch.setattr(Git, "run", counting)
    assert {*store.read()} == {*records}
    assert counts["cat-file"] == 2  # one for the sizes, one for the contents


def test_contents_larger_than_what_is_in_memory_at_once_are_read_in_parts(
    shared: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    things = objects.Objects(shared.path, shared.environ)
    contents = [os.urandom(900), b"", b"\n\n", b"x" * 5000, *(bytes([n]) * n * 10 for n in range(250))]
    monkeypatch.setattr(objects, "_GROUP_BYTES", 2000)
    commit = things.commit(None, {f"{number:03}": data for number, data in enumerate(contents)}, "many")
    oids = [entry.oid for _, entry in sorted(things.listing(commit).items())]
    assert list(things.read(oids, 10_000)) == contents
    with pytest.raises(Exception, match="4000 is the most"):
        list(things.read(oids, 4000))


def test_other_clones_see_it_at_once(shared: Place) -> None:
    first, second = shared.store(shared.clone("a")), shared.store(shared.clone("b"))
    assert first.add(RECORDS[:3]) == 3
    assert second.names() == NAMES[:3]
    assert second.add(RECORDS[2:]) == 5
    assert first.names() == NAMES
    assert first.remove(NAMES[:1]) == 1
    assert second.names() == NAMES[1:]
    assert list(second.read()) == RECORDS[1:]


def test_a_lost_race_is_run_again(shared: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = shared.store(), shared.store(shared.clone("b"))
    other.add(RECORDS[:1])
    left = [RECORDS[3], RECORDS[2], RECORDS[1]]
    true_push = Branch.push

    def late(self: Branch, *arguments: str) -> None:
        if self.cwd == shared.path and left:
            other.add([left.pop()])
        true_push(self, *arguments)

    monkeypatch.setattr(Branch, "push", late)
    assert mine.add([RECORDS[4], RECORDS[2]]) == 1
    assert mine.names() == NAMES[:5]
    assert shared.commits() == 5
    assert not left


def test_a_push_whose_answer_got_lost_counts_once(shared: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store = shared.store()
    true_push = Branch.push
    broken = [True]

    def breaking(self: Branch, *arguments: str) -> None:
        true_push(self, *arguments)
        if broken:
            broken.pop()
            raise OSError

    def pushed(self: Branch, *arguments: str) -> None:
        from cachegrind_bench.vcs.branches import AgainError

        try:
            breaking(self, *arguments)
        except OSError:
            raise AgainError("the remote end hung up unexpectedly") from None

    monkeypatch.setattr(Branch, "push", pushed)
    assert store.add(RECORDS) == 8
    assert shared.commits() == 1
    assert not broken


@pytest.mark.slow
@pytest.mark.parametrize("url", ["/nowhere/x.git", "file:///nowhere/x.git", "http://127.0.0.1:1/x.git"])
def test_a_remote_that_cannot_be_reached_is_an_error_and_not_an_empty_store(shared: Place, url: str) -> None:
    shared.store().add(RECORDS)
    shared.git("remote", "set-url", "origin", url)
    store = shared.store()
    actions: list[Callable[[], object]] = [
        store.names,
        lambda: list(store.read()),
        lambda: store.add([RENAME]),
        store.check,
    ]
    for action in actions:
        with pytest.raises(StoreError, match=BRANCH if url.startswith("http") else "does not (exist|appear)"):
            action()
    assert f"refs/heads/{BRANCH}" not in shared.git("for-each-ref")


def test_a_server_with_a_bad_moment_is_asked_again(shared: Place) -> None:
    store = shared.store()
    store.add(RECORDS[:1])
    hook = shared.bare / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\nif [ ! -e {shared.folder}/once ]; then touch {shared.folder}/once; exit 1; fi\n")
    hook.chmod(0o755)
    assert store.add(RECORDS) == 7
    assert (shared.folder / "once").exists()


def test_a_server_that_always_refuses_is_an_error_that_says_why(shared: Place) -> None:
    hook = shared.bare / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\necho >>{shared.folder}/tries; echo 'no data branches here' >&2; exit 1\n")
    hook.chmod(0o755)
    with pytest.raises(StoreError, match=r"hook declined.*no data branches here"):
        shared.store().add(RECORDS)
    assert len((shared.folder / "tries").read_text()) <= 5
    assert BRANCH not in shared.run("for-each-ref", cwd=shared.bare)


def test_a_branch_within_the_name_of_another_is_refused_at_once(shared: Place) -> None:
    shared.run("branch", BRANCH, cwd=shared.bare)
    hook = shared.bare / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\necho >>{shared.folder}/tries\n")
    hook.chmod(0o755)
    store = GitStore(shared.path, f"{BRANCH}/sub", None, shared.environ)
    with pytest.raises(StoreError, match=rf"'refs/heads/{BRANCH}' exists"):
        store.add(RECORDS)
    assert len((shared.folder / "tries").read_text()) <= 5


@pytest.mark.slow
def test_a_lock_at_the_server_is_waited_for_and_then_named(shared: Place) -> None:
    lock = shared.bare / "refs" / "heads" / f"{BRANCH}.lock"
    lock.touch()
    with pytest.raises(StoreError, match=rf"could not be written after .*{BRANCH}\.lock"):
        shared.store(patience=2).add(RECORDS)
    remover = subprocess.Popen(["sh", "-c", f"sleep 2; rm {lock}"])
    assert shared.store().add(RECORDS) == 8
    assert remover.wait(10) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("how", "ref"), [("local", f"heads/{BRANCH}"), ("whole", f"cg-bench/remotes/origin/{BRANCH}")])
def test_a_lock_that_a_killed_git_left_here_does_not_block_for_ever(tmp_path: Path, how: str, ref: str) -> None:
    place = Place(tmp_path, how)
    store = place.store(patience=2)
    store.add(RECORDS[:1])
    assert store.names() == NAMES[:1]
    place.store(place.clone("b") if how == "whole" else None).add(RECORDS[:2])
    lock = place.path / ".git" / "refs" / f"{ref}.lock"
    lock.touch()
    with pytest.raises(StoreError, match=rf"could not be written after .*{ref}\.lock"):
        store.add(RECORDS)
    before = time.time() - 61
    os.utime(lock, (before, before))
    assert store.add(RECORDS) == 6
    assert not lock.exists()


def test_a_branch_that_is_checked_out_is_left_alone(tmp_path: Path) -> None:
    place = Place(tmp_path, "local")
    store = place.store()
    store.add(RECORDS[:1])
    tip = place.git("rev-parse", BRANCH)
    place.git("worktree", "add", "--quiet", "../tree", BRANCH)
    acts: list[Callable[[], int]] = [
        lambda: store.add(RECORDS),
        lambda: store.remove(NAMES),
    ]
    for act in acts:
        with pytest.raises(StoreError, match=r"checked out in .*tree"):
            act()
    assert place.git("rev-parse", BRANCH) == tip
    assert store.names() == NAMES[:1]


def test_what_was_stored_before_there_was_a_remote_is_pushed_with_the_next_run_also_an_old_one(tmp_path: Path) -> None:
    place = Place(tmp_path, "local")
    store = place.store()
    store.add(RECORDS[:3])
    tip = place.git("rev-parse", BRANCH)
    place.git("remote", "add", "origin", str(place.bare))
    place.how = "whole"
    other = place.store(place.clone("b"))
    assert store.names() == NAMES[:3]
    assert other.names() == []
    assert store.add(RECORDS[:1]) == 0
    assert other.names() == NAMES[:3]
    assert store.add([RECORDS[5]]) == 1
    assert other.names() == [*NAMES[:3], NAMES[5]]
    assert other.remove(NAMES[:1]) == 1
    assert store.names() == [*NAMES[1:3], NAMES[5]]
    assert problems(store) == []
    assert place.git("rev-parse", BRANCH) == tip


def test_another_remote_can_be_named_and_one_that_is_not_there_is_an_error(shared: Place) -> None:
    shared.run("init", "--quiet", "--bare", "second.git")
    shared.git("remote", "add", "second", str(shared.folder / "second.git"))
    store = GitStore(shared.path, BRANCH, "second", shared.environ)
    assert store.url == f"git:{BRANCH}@second"
    assert store.add(RECORDS) == 8
    assert shared.store().names() == []
    assert "cg-bench" in shared.run("for-each-ref", cwd=shared.folder / "second.git")
    for name in ("third", "../second.git", str(shared.folder / "second.git")):
        with pytest.raises(StoreError, match="no remote") as caught:
            GitStore(shared.path, BRANCH, name, shared.environ).names()
        assert caught.value.hint == "the remotes are origin, second"


def test_hooks_mirrors_and_the_users_configuration_do_not_matter(shared: Place) -> None:
    shared.git("tag", "mine")
    for name in ("pre-push", "reference-transaction", "post-commit", "pre-commit", "post-checkout"):
        hook = shared.path / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {shared.folder}/ran\nexit 1\n")
        hook.chmod(0o755)
    for key, value in {
        "remote.origin.mirror": "true",
        "remote.origin.prune": "true",
        "fetch.prune": "true",
        "push.followTags": "true",
        "commit.gpgSign": "true",
        "push.gpgSign": "true",
        "user.useConfigOnly": "true",
        "core.autocrlf": "true",
        "push.default": "nothing",
        "fetch.recurseSubmodules": "true",
        "core.quotePath": "true",
    }.items():
        shared.git("config", key, value)
    store = shared.store()
    assert store.add(RECORDS[:4]) == 4
    assert store.add(RECORDS) == 4
    assert list(store.read()) == RECORDS
    assert not (shared.folder / "ran").exists()
    refs = shared.run("for-each-ref", "--format=%(refname)", cwd=shared.bare).split()
    assert refs == [f"refs/heads/{BRANCH}", "refs/heads/main"]
    assert shared.run("log", "-1", "--format=%an %cn", BRANCH, cwd=shared.bare) == "cg-bench cg-bench"


def test_commits_have_the_users_name_where_git_knows_one(shared: Place) -> None:
    shared.git("config", "user.name", "Ada")
    shared.git("config", "user.email", "ada@x")
    shared.store().add(RECORDS)
    assert shared.run("log", "-1", "--format=%an <%ce>", BRANCH, cwd=shared.bare) == "Ada <ada@x>"


def test_a_git_store_works_from_a_subdirectory_and_in_a_bare_repository(shared: Place) -> None:
    (shared.path / "sub").mkdir()
    assert shared.store(shared.path / "sub").add(RECORDS) == 8
    assert shared.store(shared.bare).names() == NAMES
    assert shared.store(shared.bare).add([RENAME]) == 1


def test_outside_a_repository_it_says_so(tmp_path: Path) -> None:
    place = Place(tmp_path, "local")
    (tmp_path / "home" / "x").mkdir()
    with pytest.raises(StoreError, match="not in a git repository"):
        place.store(tmp_path / "home" / "x").names()


def test_files_that_people_put_into_the_branch_stay_there(place: Place) -> None:
    store = place.store()
    store.add(RECORDS[:2])
    put(place, "README.md", b"what this is\n")
    put(place, "README.b\xe4d\n\udcff", b"x")
    store.add(RECORDS)
    assert problems(store) == []
    assert "README.md" in place.files()
    assert list(store.read()) == RECORDS


@pytest.mark.parametrize("content", ["main.c", "runs/2026/01/x and main.c", ".gitignore"])
def test_a_branch_that_holds_something_else_than_a_history_is_neither_changed_nor_read(
    place: Place, content: str
) -> None:
    place.git("branch", "code")
    # With a remote, it is only there.
    commit = place.write(dict.fromkeys(content.split(" and "), b"x"), None, ["main"])
    before = place.untouchable()
    store = place.store()
    for act in (
        lambda: store.add(RECORDS),
        lambda: store.remove(NAMES),
        store.names,
        store.survey,
        store.check,
        lambda: list(store.read()),
        lambda: list(store.snapshots(Query())),
    ):
        with pytest.raises(StoreError, match="does not hold a history, but: ") as caught:
            act()
        assert "name a branch of its own" in str(caught.value.hint)
    assert place.run("rev-parse", BRANCH, cwd=place.home) == commit
    assert place.untouchable() == before


def test_a_branch_that_is_empty_or_has_only_words_about_it_becomes_a_history(place: Place) -> None:
    for changes in ({}, {"README": b"x"}):
        place.write(changes, None, [])
        assert place.store().exists()
        assert place.store().add(RECORDS) == 8


def test_beside_a_damaged_segment_what_has_a_file_is_removed_and_the_segment_stays(place: Place) -> None:
    store = place.store()
    store.add(ALL)
    fold(place, RECORDS)
    late = stored(30)
    store.add([late])
    name = segment(RECORDS)[0]
    put(place, name, b"no gzip")
    again = place.store()
    assert again.remove([FEBRUARY.name, late.name]) == 2
    with pytest.raises(StoreError, match=rf"{name} cannot be read.*it stays, and not removed is {NAMES[0]} .0 were"):
        again.remove(NAMES[:1])
    assert place.files() == sorted([RENAME.name, name])
    assert again.survey().names == [RENAME.name]
    assert [problem.where for problem in again.survey().problems] == [name]


def test_a_partial_clone_fetches_what_it_lacks_at_once(shared: Place) -> None:
    store = shared.store()
    records = [stored(n, created_at=f"2026-{1 + n % 6:02}-01T00:00:00Z") for n in range(60)]
    store.add([*records, RENAME])
    fold(shared, sorted(records[::6], key=lambda record: record.name))
    for setting in ("allowFilter", "allowAnySHA1InWant"):
        shared.run("config", f"uploadpack.{setting}", "true", cwd=shared.bare)
    trace = shared.folder / "trace"
    wanted = sorted([*records, RENAME], key=lambda record: record.name)
    acts: list[Callable[[GitStore], object]] = [
        lambda store: {*store.read()} == {*wanted},
        lambda store: len(list(store.snapshots(Query()))) == 60,
        lambda store: store.check() == [],
        lambda store: len(store.names()) == 61,
        lambda store: store.remove([records[0].name]) == 1,
    ]
    for number, act in enumerate(acts):
        name = f"partial{number}"
        shared.run("clone", "--quiet", "--filter=blob:none", "--no-checkout", f"file://{shared.bare}", name)
        trace.unlink(missing_ok=True)
        environ = {**shared.environ, "GIT_TRACE": str(trace)}
        assert act(GitStore(shared.folder / name, BRANCH, None, environ))
        # The branch itself, its segments, its single records, and after a push the branch again; however many there are.
        asked = [
            line for line in trace.read_text().splitlines() if "run_command:" in line and "git-upload-pack" in line
        ]
        assert 1 <= len(asked) <= 4, asked


def test_everything_that_is_wrong_is_found_and_named(place: Place) -> None:
    store = place.store()
    store.add(ALL)
    put(place, "runs/2026/01/notes.txt", b"x")
    put(place, NAMES[0], RECORDS[0].data + b" ")
    put(place, NAMES[1], b"../elsewhere", mode="120000")
    put(place, NAMES[2], None)
    put(place, f"{NAMES[2]}/x", b"a folder in the place of a file")
    put(place, "segments/2026-01.00000000.jsonl.gz", b"no gzip")
    found = problems(store)
    assert [line.partition(": ")[0] for line in found] == sorted(
        ["runs/2026/01/notes.txt", NAMES[0], NAMES[1], NAMES[2], f"{NAMES[2]}/x", "segments/2026-01.00000000.jsonl.gz"]
    )
    with pytest.raises(StoreError, match=r"segments/2026-01\.00000000"):
        store.names()


@pytest.mark.parametrize(("folder", "mode"), [("runs/2026", "120000"), ("renames", "100644"), ("segments", "120000")])
def test_what_is_in_place_of_a_folder_is_not_taken_for_an_empty_one(shared: Place, folder: str, mode: str) -> None:
    store = shared.store()
    store.add(ALL)
    put(shared, folder, b"../etc", mode=mode)
    again = shared.store()
    where = [folder]
    assert [problem.where for problem in again.survey().problems] == where
    assert [problem.where for problem in again.check()] == where
    told = list[str]()
    list(again.snapshots(Query(), lambda name, _why: told.append(name)))
    assert {*told} == {*where}
    with pytest.raises(StoreError, match="is not a folder"):
        again.names()


def test_records_that_are_links_are_named_where_records_are_read(shared: Place) -> None:
    shared.store().add(ALL)
    put(shared, NAMES[1], b"../elsewhere", mode="120000")
    told = list[str]()
    list(shared.store().snapshots(Query(), lambda name, _why: told.append(name)))
    assert told == [NAMES[1]]


def test_a_remote_that_did_not_answer_in_time_is_asked_again_some_minutes_later(
    shared: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.store().add(ALL)
    shared.run("config", "uploadpack.allowFilter", "true", cwd=shared.bare)
    shared.run("clone", "--quiet", "--filter=blob:none", "--no-checkout", f"file://{shared.bare}", "partial")
    shared.run("branch", BRANCH, f"origin/{BRANCH}", cwd=shared.folder / "partial")
    shared.run("remote", "rename", "origin", "other", cwd=shared.folder / "partial")
    asked = list[str]()

    def fetch_from(_self: Git, remote: str, *_: str, **__: Any) -> Any:
        asked.append(remote)
        raise GitTimeoutError("git fetch took more than 1 s")

    store = GitStore(shared.folder / "partial", BRANCH, None, shared.environ)
    monkeypatch.setattr(Git, "fetch_from", fetch_from)
    assert len(store.check()) == len(ALL)
    assert asked == ["other"]
    monkeypatch.setattr(objects, "_ASK_AGAIN_S", 0)
    store.check()
    assert len(asked) > 2


def test_a_damaged_record_is_never_read_nor_taken_for_the_same(place: Place) -> None:
    store = place.store()
    store.add(RECORDS)
    put(place, NAMES[3], RECORDS[2].data)
    with pytest.raises(StoreError, match=NAMES[3]):
        list(store.read())
    with pytest.raises(StoreError, match="other bytes"):
        store.add([RECORDS[3]])
    assert len(list(store.read(NAMES[:3]))) == 3
    assert {problem.where for problem in store.check()} == {NAMES[3]}


def test_an_object_that_git_lost_is_an_error_that_names_the_record(tmp_path: Path) -> None:
    place = Place(tmp_path, "local")
    store = place.store()
    store.add(RECORDS)
    for name, damage in ((NAMES[1], None), (NAMES[5], b"damaged")):
        oid = place.git("rev-parse", f"{BRANCH}:{name}")
        path = place.path / ".git" / "objects" / oid[:2] / oid[2:]
        path.chmod(0o644)
        path.unlink() if damage is None else path.write_bytes(damage)
    assert [problem.where for problem in store.check()] == [NAMES[1], NAMES[5]]
    with pytest.raises(StoreError):
        list(store.read())
    with pytest.raises(StoreError, match=NAMES[1]):
        list(store.read([NAMES[1]]))
    assert list(store.read(NAMES[2:4])) == RECORDS[2:4]


@pytest.mark.parametrize("text", ["garbage\n", "", f"{'1' * 40}\n"])
def test_a_broken_branch_is_an_error_and_not_an_empty_store(tmp_path: Path, text: str) -> None:
    place = Place(tmp_path, "local")
    store = place.store(patience=2)
    store.add(RECORDS)
    ref = place.path / ".git" / "refs" / "heads" / BRANCH
    ref.write_text(text)
    for act in (store.names, lambda: store.add([RENAME]), store.check):
        with pytest.raises(StoreError):
            act()
    assert ref.read_text() == text


def test_a_file_in_the_place_of_a_folder_is_not_replaced(place: Place) -> None:
    store = place.store()
    store.add([RENAME])
    put(place, "runs", b"a file of somebody's")
    with pytest.raises(StoreError, match="cannot read runs: it is not a folder"):
        store.add(RECORDS)
    assert place.run("show", f"{BRANCH}:runs", cwd=place.home) == "a file of somebody's"


def test_what_is_not_a_record_is_refused_and_nothing_is_written(place: Place) -> None:
    with pytest.raises(StoreError):
        place.store().add([RECORDS[2], Record(name="../evil.json", data=b"{}\n")])
    assert BRANCH not in place.run("for-each-ref", cwd=place.home)


def test_a_branch_that_was_made_anew_at_the_remote_is_followed(shared: Place) -> None:
    store, other = shared.store(), shared.store(shared.clone("b"))
    store.add(RECORDS)
    assert other.names() == NAMES
    shared.run("update-ref", "-d", f"refs/heads/{BRANCH}", cwd=shared.bare)
    assert store.names() == []
    store.add(RECORDS[:2])
    assert other.names() == NAMES[:2]
    assert other.add([RENAME]) == 1
    assert store.names() == sorted([*NAMES[:2], RENAME.name])


def test_every_text_object_format_of_git_will_do(tmp_path: Path) -> None:
    place = Place(tmp_path, "local")
    place.run("init", "--quiet", "--object-format=sha256", "new")
    store = GitStore(tmp_path / "new", BRANCH, None, place.environ)
    assert store.add(RECORDS) == 8
    assert list(store.read()) == RECORDS
