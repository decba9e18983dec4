"""A remote that hangs costs neither minutes without a word nor processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cachegrind_bench import waiting
from cachegrind_bench.errors import MeasurementError, StoreError
from cachegrind_bench.store.git_store import GitStore
from cachegrind_bench.vcs.git import Git
from cachegrind_bench.waiting import Waiting
from tests.unit.clones import BRANCH, Place
from tests.unit.stored import RECORDS
from tests.unit.test_process import wait_until_gone


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, "whole")


def hang(place: Place) -> Path:
    """Let the remote be one that never answers, and return the file with the ids of the processes that wait for it."""
    script, pids = place.folder / "ssh", place.folder / "pids"
    script.write_text(f"#!/bin/sh\necho $$ $PPID >> {pids}\nsleep 60\n")
    script.chmod(0o755)
    place.git("remote", "set-url", "origin", "ssh://user:s3cret@host/x.git")
    place.environ["GIT_SSH"] = str(script)
    return pids


def started(pids: Path) -> list[int]:
    deadline = time.monotonic() + 30
    while not pids.exists() or not pids.read_text().endswith("\n"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return [*map(int, pids.read_text().split())]


def test_whoever_waits_for_a_remote_is_told_and_no_longer_than_asked_for(
    place: Place, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    monkeypatch.setattr(waiting, "_FIRST_S", 0.2)
    pids = hang(place)
    store = GitStore(place.path, BRANCH, None, place.environ, waiting=Waiting(longest=1))
    for act in (store.names, lambda: store.add(RECORDS)):
        said.clear()
        with pytest.raises(StoreError, match="git fetch took more than 1 s") as caught:
            act()
        assert {*said} == {"waiting for origin, 0 s", "waiting for origin, 1 s"}
        assert "s3cret" not in caught.value.message
    assert all(map(wait_until_gone, started(pids)))


def test_whoever_waits_for_an_address_is_not_shown_its_password(
    place: Place, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    monkeypatch.setattr(waiting, "_FIRST_S", 0.1)
    hang(place)
    git, address = Git(place.path, place.environ, Waiting(longest=0.5)), "ssh://user:s3/cret@host/x.git"
    with pytest.raises(MeasurementError, match="took more than"):
        git.run("ls-remote", address, remote=address)
    assert {*said} == {"waiting for ssh:…, 0 s"}


def test_whoever_waits_for_another_try_is_told(place: Place, monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.setattr(waiting, "_FIRST_S", 0.2)
    hang(place)
    place.environ["GIT_SSH"] = "/bin/false"
    store = GitStore(place.path, BRANCH, None, place.environ, waiting=Waiting(longest=2))
    with pytest.raises(StoreError, match=r"could not be written after \d+ tries: git fetch: fatal: Could not read"):
        store.add(RECORDS)
    assert any(line.startswith(f"waiting for the branch {BRANCH} (git fetch: fatal: Could not") for line in said)


def test_no_git_is_left_of_a_process_that_was_killed(place: Place) -> None:
    pids = hang(place)
    code = f"""if True:
        import sys
        from pathlib import Path
        from cachegrind_bench.store.git_store import GitStore
        GitStore(Path({str(place.path)!r}), {BRANCH!r}, None, {place.environ!r}).names()"""
    with subprocess.Popen([sys.executable, "-c", code]) as tool:
        found = started(pids)
        os.kill(tool.pid, signal.SIGKILL)
    assert all(map(wait_until_gone, found))
