"""Many real processes on one file store, some killed at any moment: what was acknowledged is there, and nothing is wrong."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.store.files import FileStore
from cachegrind_bench.store.protocol import Query
from cachegrind_bench.store.record import rename_record
from tests.unit.stored import stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

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

# Folds again and again.
FOLD = """
import sys
from pathlib import Path
from cachegrind_bench.store.files import FileStore
store = FileStore(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
while True:
    store.compact("2026-02")
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Return what starts a Python process whose output goes to a file of its own; all are ended after the test."""
    with ExitStack() as stack:

        def begin(code: str, *arguments: object, out: Path) -> subprocess.Popen[bytes]:
            file = stack.enter_context(out.open("wb"))
            errors = stack.enter_context(out.with_suffix(".err").open("wb"))
            process = subprocess.Popen(
                [sys.executable, "-c", code, *map(str, arguments)],
                env={"PYTHONPATH": os.getcwd(), "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=errors,
            )
            stack.callback(end, process)
            return process

        (tmp_path / "out").mkdir()
        yield begin


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(10)
    if process.stdin is not None:
        process.stdin.close()


def wait_until_ready(outs: list[Path]) -> None:
    until = time.monotonic() + 60
    while not all(out.read_bytes().startswith(b"ready\n") for out in outs):
        assert time.monotonic() < until, [out.with_suffix(".err").read_text() for out in outs]
        time.sleep(0.02)


def go(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()


def acknowledged(folder: Path) -> set[str]:
    """Return the names that writers have said to be stored; a killed one's last line may be half there."""
    lines = [line for out in folder.glob("*.out") for line in out.read_text().splitlines(keepends=True)]
    return {line.rstrip("\n") for line in lines if line.endswith("\n")} - {"ready"}


@pytest.mark.slow
def test_32_writers_at_once_lose_nothing(start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path) -> None:
    outs = [tmp_path / "out" / f"{number}.out" for number in range(WRITERS)]
    # Each writes ten runs of its own and ten that the next one writes as well, all into a store that is not there yet.
    writers = [start(WRITE, tmp_path / "s", n * 10, n * 10 + 20, out=out) for n, out in enumerate(outs)]
    wait_until_ready(outs)
    for writer in writers:
        go(writer)
    assert [writer.wait(120) for writer in writers] == [0] * WRITERS, [
        out.with_suffix(".err").read_text()[-500:] for out in outs
    ]
    store, wanted = FileStore(tmp_path / "s"), {stored(n).name for n in range(WRITERS * 10 + 10)}
    assert {*store.names()} == acknowledged(tmp_path / "out") == wanted
    assert store.check() == []
    assert [record.name for record in store.read()] == sorted(wanted)
    assert not list((store.folder / "runs").rglob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_writers_and_folders_killed_at_random_points_lose_nothing_that_was_acknowledged(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path, seed: int
) -> None:
    chance, store, out = random.Random(seed), FileStore(tmp_path / "s"), tmp_path / "out"
    store.add([rename_record("sieve", "filter", "2026-01-01T00:00:00Z")])
    kills, first = 0, 0
    for wave in range(3):
        count = 10
        outs = [out / f"{wave}-{n}.out" for n in range(count)] + [out / f"{wave}-f{n}.fold" for n in range(2)]
        folds = [start(FOLD, store.folder, out=path) for path in outs[count:]]
        writers = [
            start(WRITE, store.folder, first + n * 4000, first + (n + 1) * 4000, out=outs[n]) for n in range(count)
        ]
        first += count * 4000
        wait_until_ready(outs)
        victims = [*writers, *folds]
        chance.shuffle(victims)
        for process in victims:
            go(process)
        for process in victims:
            time.sleep(chance.uniform(0, 0.3))
            told = acknowledged(out)
            assert told <= {*FileStore(store.folder).names()}
            assert process.poll() is None, [path.with_suffix(".err").read_text()[-500:] for path in outs]
            process.kill()
            process.wait(10)
            kills += 1
    told = acknowledged(out)
    fresh = FileStore(store.folder)
    assert kills == 36
    assert len(told) > 50
    assert told <= {*fresh.names()}
    assert fresh.check() == []
    assert len(list(fresh.snapshots(Query()))) == len(fresh.names()) - 1
    folded = fresh.compact("2026-12")
    assert folded >= 0
    assert [record.name for record in fresh.read()] == fresh.names()
    assert told <= {*fresh.names()}
    assert fresh.check() == []


@pytest.mark.slow
def test_readers_see_every_acknowledged_run_while_others_write_and_fold(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    store, out = FileStore(tmp_path / "s"), tmp_path / "out"
    outs = [out / f"{n}.out" for n in range(3)] + [out / "f.fold"]
    processes = [start(WRITE, store.folder, n * 9000, (n + 1) * 9000, out=outs[n]) for n in range(3)]
    processes.append(start(FOLD, store.folder, out=outs[3]))
    wait_until_ready(outs)
    for process in processes:
        go(process)
    until, rounds, moved = time.monotonic() + 6, 0, 0
    while time.monotonic() < until:
        told = acknowledged(out)
        reader = FileStore(store.folder)
        read = [record.name for record in reader.read()]
        assert told <= {*read}
        assert read == sorted({*read})
        assert reader.check() == []
        rounds += 1
        moved = max(moved, len(list((store.folder / "segments").glob("*.gz"))))
    for process in processes:
        assert process.poll() is None
    assert rounds > 3
    assert moved
