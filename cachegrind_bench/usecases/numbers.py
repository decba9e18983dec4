"""How many iterations of each benchmark earlier results count: new results compare with them only if they count as many."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import CgBenchError
from cachegrind_bench.startup.exchange import ITERATIONS
from cachegrind_bench.store.durable import write_atomic
from cachegrind_bench.store.protocol import Query, Store
from cachegrind_bench.store.record import run_name
from cachegrind_bench.usecases.selection import configuration

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Benchmark, Point


def numbers_of(benchmarks: Iterable[Benchmark | Point]) -> dict[str, int]:
    """Return the number of iterations of each benchmark that has one, by ids."""
    return {item.id: item.iterations for item in benchmarks if item.iterations}


def stored(store: Store, ids: Collection[str] | None = None) -> dict[str, int]:
    """Return the numbers of the runs in a store, of its last three months. StoreError if it cannot be read."""
    months = sorted({run.month for run in map(run_name, store.names()) if run is not None})
    runs = store.snapshots(Query(since=min(months[-3:], default=None), wanted=ids.__contains__ if ids else None))
    found = dict[str, int]()
    for run in sorted(runs, key=lambda run: (run.created_at, run.uid)):
        found |= numbers_of(run.points)
    return found


def may_loop(cwd: Path) -> bool:
    """Return whether the suite of this folder has benchmarks of frameworks, of which iterations are counted."""
    with suppress(CgBenchError):
        return any(entry.harness != "pytest" for entry in configuration(cwd).entries)
    return False


def handed_over(numbers: Mapping[str, int], path: Path) -> dict[str, str]:
    """Write numbers to a file, and return the variable by which a cg-bench that measures finds them."""
    write_atomic(path, json.dumps(numbers).encode())
    return {ITERATIONS: str(path)}


def received(environ: Mapping[str, str]) -> dict[str, int]:
    """Return the numbers that were handed over to this process."""
    if ITERATIONS in environ:
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(Path(environ[ITERATIONS]).read_bytes(), type=dict[str, int])
    return {}
