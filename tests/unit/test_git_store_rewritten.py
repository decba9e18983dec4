"""The store in a git branch whose remote was rewritten, or is read from a mirror; and where git cannot be handed bytes."""

from __future__ import annotations

import os
import resource
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import StoreError
from cachegrind_bench.store.git_store import GitStore
from tests.unit.clones import BRANCH, Place
from tests.unit.stored import NAMES, RECORDS, measured, stored

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LARGE = [stored(100 + n, *(measured(os.urandom(20).hex()) for _ in range(50))) for n in range(3)]


@pytest.fixture(params=["whole", "shallow"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return a whole clone, or one that is shallow and of a single branch, so that git tracks nothing of ours."""
    return Place(tmp_path, request.param)


def squash(place: Place, *without: str, onto: str | None = None) -> str:
    """Begin the branch at the remote anew, or go on from a commit, with what it holds now but for these; return its tip."""
    return place.write(dict.fromkeys(without), parents=[] if onto is None else [onto])


def held(place: Place) -> list[str]:
    return place.run("rev-list", BRANCH, cwd=place.bare).split()


@pytest.mark.parametrize("squashes", [1, 2])
def test_a_history_that_was_squashed_at_the_remote_does_not_come_back(place: Place, squashes: int) -> None:
    store = place.store()
    store.add(RECORDS[:3])
    old = place.run("rev-parse", BRANCH, cwd=place.bare)
    for number in range(squashes):
        squash(place, NAMES[number])
        for again in (store, place.store()):
            assert again.names() == NAMES[number + 1 : 3]
    store.remove([NAMES[2]])
    assert store.add([RECORDS[4]]) == 1
    assert place.store().names() == [*NAMES[squashes:2], NAMES[4]]
    assert old not in held(place)


def test_newest_commits_that_were_squashed_do_not_come_back_either(place: Place) -> None:
    store = place.store()
    for record in RECORDS[:3]:
        store.add([record])
    first = place.run("rev-list", "--max-parents=0", BRANCH, cwd=place.bare)
    squash(place, NAMES[1], onto=first)
    assert store.add([RECORDS[4]]) == 1
    assert store.names() == [NAMES[0], NAMES[2], NAMES[4]]
    assert len(held(place)) == 3


def test_a_local_branch_that_went_another_way_is_an_error_with_two_ways_out(place: Place) -> None:
    store = place.store()
    store.add(RECORDS[:3])
    place.git("fetch", "--quiet", "origin", f"{BRANCH}:{BRANCH}")
    assert store.names() == NAMES[:3]
    new = squash(place, NAMES[1])
    hint = ""
    acts: list[Callable[[], object]] = [store.names, store.names, lambda: store.add([RECORDS[4]])]
    for act in acts:
        with pytest.raises(StoreError, match=f"the branch {BRANCH} here and that of origin went apart") as caught:
            act()
        hint = str(caught.value.hint)
    assert held(place) == [new]
    # The hint's ways: the old branch out of the way, and its runs, if they are wanted.
    assert f"git branch -m {BRANCH} {BRANCH}-old" in hint
    place.git("branch", "-m", BRANCH, f"{BRANCH}-old")
    assert store.names() == [NAMES[0], NAMES[2]]
    assert f"--from git:{BRANCH}-old --to git:{BRANCH}" in hint
    assert store.add(list(GitStore(place.path, f"{BRANCH}-old", None, place.environ).read())) == 1
    assert store.names() == NAMES[:3]


@pytest.mark.parametrize("how", ["pushurl", "pushInsteadOf"])
def test_where_a_mirror_is_read_what_counts_is_the_place_that_is_pushed_to(place: Place, how: str) -> None:
    place.run("init", "--quiet", "--bare", "mirror.git")
    mirror, real = f"file://{place.folder}/mirror.git", f"file://{place.bare}"
    place.git("remote", "set-url", "origin", mirror)
    if how == "pushurl":
        place.git("remote", "set-url", "--push", "origin", real)
    else:
        place.git("config", f"url.{real}.pushInsteadOf", mirror)
    store = place.store(patience=2)
    assert store.names() == []
    assert store.add(RECORDS[:3]) == 3
    assert store.add(RECORDS[2:]) == 5
    assert store.names() == NAMES
    assert place.commits() == 2
    assert place.run("for-each-ref", cwd=place.folder / "mirror.git") == ""


def test_a_push_url_that_is_rewritten_is_rewritten_once(place: Place) -> None:
    real = f"file://{place.bare}"
    place.git("remote", "set-url", "origin", "/nowhere/mirror.git")
    place.git("remote", "set-url", "--push", "origin", "hub:remote.git")
    place.git("config", f"url.file://{place.folder}/.insteadOf", "hub:")
    place.git("config", "url./nowhere/.insteadOf", f"file://{place.folder}/")
    assert place.git("remote", "get-url", "--push", "origin") == real
    assert place.store(patience=2).add(RECORDS) == 8
    assert place.store(patience=2).names() == NAMES


def test_a_password_in_a_push_url_is_in_no_error(place: Place) -> None:
    place.git("remote", "set-url", "--push", "origin", "http://me:secret@127.0.0.1:1/x.git")
    acts: list[Callable[[], object]] = [place.store(patience=1).names, lambda: place.store(patience=1).add(RECORDS)]
    for act in acts:
        with pytest.raises(StoreError, match=r"127\.0\.0\.1") as caught:
            act()
        assert "secret" not in f"{caught.value.message} {caught.value.hint}"


def test_runs_that_cannot_be_handed_to_git_are_an_error_of_the_store_and_nothing_is_written(place: Place) -> None:
    store = place.store()
    store.add(RECORDS[:1])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(StoreError, match="cannot be passed on: File too large"):
            store.add(LARGE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert store.names() == NAMES[:1]
    assert store.add(LARGE) == 3
