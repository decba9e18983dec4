"""Many real processes on one database, some killed at any moment: nothing is lost, doubled or half there."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.store.protocol import Query
from cachegrind_bench.store.sql.store import SqlStore
from tests.unit.stored import measured, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cachegrind_bench.store.record import Record

pytest_plugins = ["tests.postgres"]

WRITERS = 12

# Adds runs of its own, and the runs that all writers add, in batches and an order of its own; says what was new.
WRITE = """
import random, sys
from cachegrind_bench.store.sql.store import SqlStore
from tests.unit.test_sql_writers import own, shared
number = int(sys.argv[2])
records = [*own(number), *shared()]
chance = random.Random(number)
chance.shuffle(records)
print("ready", flush=True)
sys.stdin.readline()
new = 0
with SqlStore(sys.argv[1]) as store:
    while records:
        size = chance.randint(1, 5)
        batch, records = records[:size], records[size:]
        new += store.add(batch)
        print(*(record.name for record in batch), sep="\\n", flush=True)
print(new)
"""

# Removes runs that others add, as fast as it can.
REMOVE = """
import sys
from cachegrind_bench.store.sql.store import SqlStore
from tests.unit.test_sql_writers import shared
names = [record.name for record in shared()]
print("ready", flush=True)
sys.stdin.readline()
with SqlStore(sys.argv[1]) as store:
    while True:
        store.remove(names)
"""


def own(number: int) -> list[Record]:
    """Return the runs that only this writer adds; benchmarks of many names, which other writers have as well."""
    numbers = range(1000 + 10 * number, 1010 + 10 * number)
    return [stored(n, *(measured(f"b{(n + i) % 40}", n) for i in range(10))) for n in numbers]


def shared() -> list[Record]:
    """Return the runs that all writers add."""
    return [stored(n, *(measured(f"s{(n * 7 + i) % 30}", n) for i in range(10))) for n in range(20)]


@pytest.fixture
def start(database_url: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return what starts a process of this code on the database; it waits for a line."""
    processes: list[subprocess.Popen[str]] = []

    def begin(code: str, *arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", code, database_url, *map(str, arguments)],
            env={"PYTHONPATH": os.getcwd(), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def go(processes: list[subprocess.Popen[str]]) -> None:
    """Let them all begin at once."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()


@pytest.mark.slow
def test_many_writers_of_an_empty_database_lose_and_double_nothing(
    database_url: str, start: Callable[..., subprocess.Popen[str]]
) -> None:
    processes = [start(WRITE, number) for number in range(WRITERS)]
    go(processes)
    outputs = [process.communicate(timeout=300) for process in processes]
    assert [error for _, error in outputs] == [""] * WRITERS
    expected = {record.name: record.data for number in range(WRITERS) for record in [*own(number), *shared()]}
    assert sum(int(out.split()[-1]) for out, _ in outputs) == len(expected)
    with SqlStore(database_url) as store:
        assert {record.name: record.data for record in store.read()} == expected
        assert sum(len(run.points) for run in store.snapshots(Query())) == 10 * len(expected)
        assert store.check() == []


def test_writers_and_removers_at_once_do_not_block_each_other(
    database_url: str, start: Callable[..., subprocess.Popen[str]]
) -> None:
    writers, removers = [start(WRITE, number) for number in range(6)], [start(REMOVE) for _ in range(3)]
    go([*writers, *removers])
    outputs = [process.communicate(timeout=300) for process in writers]
    assert [error for _, error in outputs] == [""] * 6
    assert [process.poll() for process in removers] == [None] * 3
    for process in removers:
        process.kill()
        process.wait()
    with SqlStore(database_url) as store:
        assert {record.name for number in range(6) for record in own(number)} <= {*store.names()}
        assert store.check() == []


@pytest.mark.slow
def test_killed_writers_leave_nothing_half_there_and_lose_nothing_that_was_stored(
    database_url: str, start: Callable[..., subprocess.Popen[str]]
) -> None:
    chance = random.Random(7)
    acknowledged: set[str] = set()
    for round_ in range(3):
        processes = [start(WRITE, 8 * round_ + number) for number in range(8)]
        go(processes)
        first = processes[0].stdout
        assert first is not None
        acknowledged.add(first.readline().strip())  # by now, all are at it
        for process in processes:
            time.sleep(chance.uniform(0, 0.05))
            process.kill()
        for process in processes:
            acknowledged |= {line for line in process.communicate()[0].split() if line.startswith("runs/")}
        with SqlStore(database_url) as store:
            assert acknowledged <= {*store.names()}
            assert store.check() == []
    assert len(acknowledged) >= 3
    with SqlStore(database_url) as store:
        store.add([*own(0), *shared()])
        assert store.check() == []
