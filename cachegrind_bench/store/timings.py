"""What a suite's folder remembers of each benchmark: how long it took, to estimate the rest of a run and to balance shards, and how many
iterations were counted. Losing it costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from cachegrind_bench.errors import CgBenchError, UsageError
from cachegrind_bench.model.parsing import parse
from cachegrind_bench.store.durable import read_file, write_atomic

_FILE = "timings.json"
_MOST_BYTES = 100_000_000


class _Timings(msgspec.Struct):
    schema: Literal["cg-bench.timings/1"] = "cg-bench.timings/1"
    wall_ms: dict[str, int] = {}
    iterations: dict[str, int] = {}


def _read(store: Path) -> _Timings:
    try:
        return parse(read_file(store / _FILE, _MOST_BYTES), _Timings, _FILE)
    except (OSError, CgBenchError):
        return _Timings()


def read_timings(store: Path) -> dict[str, int]:
    """Return milliseconds by the id of the benchmark; nothing where they are not known or cannot be read."""
    return _read(store).wall_ms


def read_iterations(store: Path) -> dict[str, int]:
    """Return how many iterations were counted the last time, by the id of the benchmark."""
    return _read(store).iterations


def write_timings(store: Path, measured: Mapping[str, int], iterations: Mapping[str, int] | None = None) -> None:
    """Remember these; others stay as they are. A folder that cannot be written is not a reason to fail."""
    if not (measured or iterations):
        return
    found = _read(store)
    found.wall_ms.update(measured)
    found.iterations.update(iterations or {})
    with suppress(UsageError):
        write_atomic(store / _FILE, msgspec.json.encode(found, order="sorted") + b"\n")
