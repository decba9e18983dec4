"""Many real processes on one branch, in clones of one bare repository or in one repository, some killed at any moment.

What was acknowledged is there, and nothing is wrong.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.store.protocol import Query
from tests.unit.clones import Place
from tests.unit.stored import RENAME, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cachegrind_bench.store.gitstore import GitStore

WRITERS = 32

# Adds the runs of these numbers, one after the other, and says which are stored as soon as they are.
WRITE = """
import os, sys
from pathlib import Path
from cachegrind_bench.store.gitstore import GitStore
from tests.unit.clones import BRANCH
from tests.unit.stored import stored
store = GitStore(Path(sys.argv[1]), BRANCH, None, dict(os.environ), patience=400)
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    record = stored(number)
    store.add([record, stored(7)])
    print(record.name, flush=True)
"""

# Folds again and again.
FOLD = """
import os, sys
from pathlib import Path
from cachegrind_bench.store.gitstore import GitStore
from tests.unit.clones import BRANCH
store = GitStore(Path(sys.argv[1]), BRANCH, None, dict(os.environ), patience=400)
print("ready", flush=True)
sys.stdin.readline()
while True:
    store.compact("2026-02")
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Return what starts a Python process whose output goes to a file of its own; all are ended after the test."""
    with ExitStack() as stack:

        def begin(code: str, place: Place, *arguments: object, out: Path) -> subprocess.Popen[bytes]:
            file = stack.enter_context(out.open("wb"))
            errors = stack.enter_context(out.with_suffix(".err").open("wb"))
            process = subprocess.Popen(
                [sys.executable, "-c", code, *map(str, arguments)],
                env={**place.environ, "PYTHONPATH": os.getcwd(), "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=errors,
            )
            stack.callback(end, process)
            return process

        (tmp_path / "out").mkdir()
        yield begin


def family(pid: int) -> list[int]:
    """Return a process and all that it has started, down to the last: git runs in sessions of its own."""
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return [pid, *(each for child in children for each in family(child))]


def end(process: subprocess.Popen[bytes], *, children: bool = False) -> None:
    for pid in family(process.pid) if children else [process.pid]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait(10)
    if process.stdin is not None:
        process.stdin.close()


def wait_until_ready(outs: list[Path]) -> None:
    until = time.monotonic() + 120
    while not all(out.read_bytes().startswith(b"ready\n") for out in outs):
        assert time.monotonic() < until, [out.with_suffix(".err").read_text() for out in outs]
        time.sleep(0.02)


def go(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()


def acknowledged(folder: Path) -> set[str]:
    """Return the names that writers have said to be stored; a killed one's last line may be half there."""
    lines = [line for out in folder.glob("*.out") for line in out.read_text().splitlines(keepends=True)]
    return {line.rstrip("\n") for line in lines if line.endswith("\n")} - {"ready"}


def check_all(store: GitStore, wanted: set[str]) -> set[str]:
    """Read everything in every way. A git whose master was killed may still add something meanwhile; return the names."""
    before = store.names()
    assert wanted <= {*before}
    assert store.check() == []
    read = [record.name for record in store.read()]
    runs = {snapshot.uid[:8] for snapshot in store.snapshots(Query())}
    after = store.names()
    assert {*before} <= {*read} <= {*after}
    assert read == sorted({*read})
    assert {*uids(read)} <= runs <= {*uids(after)}
    return {*before}


def uids(names: list[str]) -> list[str]:
    return [name.split(".")[2] for name in names if name.startswith("runs/")]


@pytest.mark.slow
@pytest.mark.parametrize(("how", "each"), [("local", 3), ("whole", 2), ("shallow", 1), ("one clone", 1)])
def test_32_writers_at_once_lose_nothing(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path, how: str, each: int
) -> None:
    (tmp_path / "p").mkdir()
    place = Place(tmp_path / "p", "whole" if how == "one clone" else how)
    outs = [tmp_path / "out" / f"{number}.out" for number in range(WRITERS)]
    homes = [place.path if how in {"local", "one clone"} else place.clone(f"c{n}") for n in range(WRITERS)]
    # Each writes runs of its own and one that all write, into a branch that is not there yet.
    numbers = [(100 + n * each, 100 + (n + 1) * each) for n in range(WRITERS)]
    before = place.untouchable()
    writers = [start(WRITE, place, home, *own, out=out) for home, own, out in zip(homes, numbers, outs, strict=True)]
    wait_until_ready(outs)
    go(writers)
    until = time.monotonic() + 400
    assert [writer.wait(max(1, until - time.monotonic())) for writer in writers] == [0] * WRITERS, [
        out.with_suffix(".err").read_text()[-500:] for out in outs
    ]
    wanted = {stored(n).name for n in range(100, 100 + WRITERS * each)}
    assert acknowledged(tmp_path / "out") == wanted
    assert check_all(place.store(), wanted) == wanted | {stored(7).name}
    assert place.commits() == WRITERS * each
    assert place.untouchable() == before
    place.run("fsck", "--strict", cwd=place.home)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["local", "whole"])
@pytest.mark.parametrize("whole_family", [False, True])
def test_writers_killed_at_random_points_lose_nothing_that_was_acknowledged(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path, how: str, whole_family: bool
) -> None:
    (tmp_path / "p").mkdir()
    chance, out, place = random.Random(how), tmp_path / "out", Place(tmp_path / "p", how)
    place.store().add([RENAME])
    homes = [place.path if how == "local" else place.clone(f"c{n}") for n in range(8)]
    told: set[str] = set()
    for wave in range(3):
        outs = [out / f"{wave}-{n}.out" for n in range(8)] + [out / f"{wave}.fold"]
        writers = [
            start(WRITE, place, homes[n], first := 100 + 9000 * (8 * wave + n), first + 9000, out=outs[n])
            for n in range(8)
        ]
        writers.append(start(FOLD, place, homes[0], out=outs[8]))
        wait_until_ready(outs)
        go(writers)
        before, until = len(acknowledged(out)), time.monotonic() + 120
        while len(acknowledged(out)) < before + 4:  # however slow the machine is
            assert time.monotonic() < until, [path.with_suffix(".err").read_text()[-500:] for path in outs]
            time.sleep(0.02)
        chance.shuffle(writers)
        for process in writers:
            time.sleep(chance.uniform(0, 0.6))
            assert process.poll() is None, [path.with_suffix(".err").read_text()[-500:] for path in outs]
            end(process, children=whole_family)
        told = acknowledged(out)
        check_all(place.store(), told)
    assert len(told) >= 12
    fresh = place.store(patience=100)  # a git that was killed may have left a lock
    assert fresh.add([stored(50)]) == 1
    fresh.compact("2026-02")
    check_all(fresh, told | {stored(50).name, RENAME.name})
    place.run("fsck", cwd=place.home)
