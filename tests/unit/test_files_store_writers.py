"""Many real processes on one file store, some killed at any moment: what was acknowledged is there, and nothing is wrong."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.store.files import FileStore
from cachegrind_bench.store.protocol import Query
from cachegrind_bench.store.record import rename_record
from tests.unit.stored import stored

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.writers import Writers

pytest_plugins = ["tests.unit.writers"]

WRITERS = 32

# Adds the runs of these numbers in batches of random size, and says which are stored as soon as they are.
WRITE = """
import random, sys
from pathlib import Path
from cachegrind_bench.store.files import FileStore
from tests.unit.stored import stored
store = FileStore(Path(sys.argv[1]))
numbers = list(range(int(sys.argv[2]), int(sys.argv[3])))
chance = random.Random(numbers[0])
print("ready", flush=True)
sys.stdin.readline()
while numbers:
    size = chance.randint(1, 4)
    batch, numbers = [stored(n) for n in numbers[:size]], numbers[size:]
    store.add(batch)
    print(*(record.name for record in batch), sep="\\n", flush=True)
"""

# Removes again and again what is not there and what is.
REMOVE = """
import sys
from pathlib import Path
from cachegrind_bench.store.files import FileStore
from tests.unit.stored import stored
store = FileStore(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
while True:
    store.add([stored(7)])
    store.remove([stored(7).name, stored(8).name])
"""


@pytest.mark.slow
def test_32_writers_at_once_lose_nothing(writers: Writers, tmp_path: Path) -> None:
    # Each writes ten runs of its own and ten that the next one writes as well, all into a store that is not there yet.
    processes = [writers.start(WRITE, tmp_path / "s", n * 10, n * 10 + 20, out=f"{n}.out") for n in range(WRITERS)]
    writers.let_go(processes)
    assert [process.wait(120) for process in processes] == [0] * WRITERS, writers.complaints()
    store, wanted = FileStore(tmp_path / "s"), {stored(n).name for n in range(WRITERS * 10 + 10)}
    assert {*store.names()} == writers.acknowledged() == wanted
    assert store.check() == []
    assert [record.name for record in store.read()] == sorted(wanted)
    assert not list((store.folder / "runs").rglob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_writers_and_removers_killed_at_random_points_lose_nothing_that_was_acknowledged(
    writers: Writers, tmp_path: Path, seed: int
) -> None:
    chance, store = random.Random(seed), FileStore(tmp_path / "s")
    store.add([rename_record("sieve", "filter", "2026-01-01T00:00:00Z")])
    kills, first = 0, 100
    for wave in range(3):
        victims = [writers.start(REMOVE, store.folder, out=f"{wave}-f{n}.remove") for n in range(2)]
        for n in range(10):
            victims.append(writers.start(WRITE, store.folder, first, first + 4000, out=f"{wave}-{n}.out"))
            first += 4000
        chance.shuffle(victims)
        writers.let_go(victims)
        for process in victims:
            time.sleep(chance.uniform(0, 0.3))
            told = writers.acknowledged()
            assert told <= {*FileStore(store.folder).names()}
            assert process.poll() is None, writers.complaints()
            writers.end(process)
            kills += 1
    told = writers.acknowledged()
    fresh = FileStore(store.folder)
    assert kills == 36
    assert len(told) > 50
    assert told <= {*fresh.names()}
    assert fresh.check() == []
    assert len(list(fresh.snapshots(Query()))) == len(fresh.names()) - 1
    fresh.remove([stored(7).name])
    assert [record.name for record in fresh.read()] == fresh.names()
    assert told <= {*fresh.names()}
    assert fresh.check() == []


@pytest.mark.slow
def test_readers_see_every_acknowledged_run_while_others_write_and_remove(writers: Writers, tmp_path: Path) -> None:
    store = FileStore(tmp_path / "s")
    processes = [writers.start(WRITE, store.folder, n * 9000 + 100, (n + 1) * 9000, out=f"{n}.out") for n in range(3)]
    processes.append(writers.start(REMOVE, store.folder, out="f.remove"))
    writers.let_go(processes)
    until, rounds = time.monotonic() + 6, 0
    while time.monotonic() < until:
        told = writers.acknowledged()
        reader = FileStore(store.folder)
        read = [record.name for record in reader.read()]
        assert told <= {*read}
        assert read == sorted({*read})
        assert reader.check() == []
        rounds += 1
    for process in processes:
        assert process.poll() is None
    assert rounds > 3
