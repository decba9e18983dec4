"""Many real processes on one branch, in clones of one bare repository or in one repository, some killed at any moment.

What was acknowledged is there, and nothing is wrong.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.store.protocol import Query
from tests.unit.clones import Place
from tests.unit.stored import RENAME, stored

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.store.git_store import GitStore
    from tests.unit.writers import Writers

pytest_plugins = ["tests.unit.writers"]
pytestmark = pytest.mark.slow

# Adds the runs of these numbers, one after the other, and says which are stored as soon as they are.
WRITE = """
import os, sys
from pathlib import Path
from cachegrind_bench.store.git_store import GitStore
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

# Adds a run and removes it, again and again.
REMOVE = """
import os, sys
from pathlib import Path
from cachegrind_bench.store.git_store import GitStore
from tests.unit.clones import BRANCH
from tests.unit.stored import stored
store = GitStore(Path(sys.argv[1]), BRANCH, None, dict(os.environ), patience=400)
print("ready", flush=True)
sys.stdin.readline()
while True:
    store.add([stored(8)])
    store.remove([stored(8).name])
"""


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


@pytest.mark.parametrize(
    ("how", "number", "each"), [("local", 32, 2), ("whole", 32, 1), ("shallow", 12, 1), ("one clone", 12, 1)]
)
def test_many_writers_at_once_lose_nothing(writers: Writers, tmp_path: Path, how: str, number: int, each: int) -> None:
    (tmp_path / "p").mkdir()
    place = Place(tmp_path / "p", "whole" if how == "one clone" else how)
    homes = [place.path if how in {"local", "one clone"} else place.clone(f"c{n}") for n in range(number)]
    # Each writes runs of its own and one that all write, into a branch that is not there yet.
    numbers = [(100 + n * each, 100 + (n + 1) * each) for n in range(number)]
    before = place.untouchable()
    processes = [
        writers.start(WRITE, home, *own, out=f"{own[0]}.out", environ=place.environ)
        for home, own in zip(homes, numbers, strict=True)
    ]
    writers.let_go(processes)
    until = time.monotonic() + 400
    ends = [process.wait(max(1, until - time.monotonic())) for process in processes]
    assert ends == [0] * number, writers.complaints()
    wanted = {stored(n).name for n in range(100, 100 + number * each)}
    assert writers.acknowledged() == wanted
    assert check_all(place.store(), wanted) == wanted | {stored(7).name}
    assert place.commits() == number * each
    assert place.untouchable() == before
    place.run("fsck", "--strict", cwd=place.home)


@pytest.mark.parametrize("how", ["local", "whole"])
@pytest.mark.parametrize("whole_family", [False, True])
def test_writers_killed_at_random_points_lose_nothing_that_was_acknowledged(
    writers: Writers, tmp_path: Path, how: str, whole_family: bool
) -> None:
    (tmp_path / "p").mkdir()
    chance, place = random.Random(how), Place(tmp_path / "p", how)
    place.store().add([RENAME])
    homes = [place.path if how == "local" else place.clone(f"c{n}") for n in range(8)]
    told: set[str] = set()
    for wave in range(2):
        victims = [writers.start(REMOVE, homes[0], out=f"{wave}.remove", environ=place.environ)]
        for n in range(8):
            first = 100 + 9000 * (8 * wave + n)
            victims.append(
                writers.start(WRITE, homes[n], first, first + 9000, out=f"{wave}-{n}.out", environ=place.environ)
            )
        chance.shuffle(victims)
        writers.let_go(victims)
        writers.wait_for(len(told) + 4)
        for process in victims:
            time.sleep(chance.uniform(0, 0.6))
            assert process.poll() is None, writers.complaints()
            writers.end(process, children=whole_family)
        if how == "whole" and whole_family:
            # The remote's git was killed, too, as no client can: who keeps a server removes its locks.
            for lock in place.bare.rglob("*.lock"):
                lock.unlink()
        told = writers.acknowledged()
        check_all(place.store(), told)
    assert len(told) >= 8
    fresh = place.store(patience=100)  # a git that was killed may have left a lock
    assert fresh.add([stored(50)]) == 1
    fresh.remove([stored(8).name])
    check_all(fresh, told | {stored(50).name, RENAME.name})
    place.run("fsck", cwd=place.home)
