"""What a suite's folder remembers of each benchmark: how long it took, to estimate the rest of a run and to balance shards, and how many
iterations were counted. Losing it costs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from cachegrind_bench.errors import CgBenchError, UsageError
from cachegrind_bench.model.parsing import parse
from cachegrind_bench.store.durable import read_file, write_atomic

SCHEMA = "cg-bench.timings/1"
_FILE = "timings.json"
_MOST = 100_000
_MOST_BYTES = 100_000_000
_LONGEST_MS = 10**12  # 30 years


class _Timings(msgspec.Struct):
    schema: Literal["cg-bench.timings/1"]
    wall_ms: dict[str, object] = {}
    iterations: dict[str, object] = {}


def _read(store: Path) -> _Timings:
    try:
        return parse(read_file(store / _FILE, _MOST_BYTES), _Timings, _FILE)
    except (OSError, CgBenchError):
        return _Timings(schema="cg-bench.timings/1")


def _numbers(found: Mapping[str, object]) -> dict[str, int]:
    return {name: value for name, value in found.items() if type(value) is int and 0 <= value <= _LONGEST_MS}


def read_timings(store: Path) -> dict[str, int]:
    """Return milliseconds by the id of the benchmark; nothing where they are not known or cannot be read."""
    return _numbers(_read(store).wall_ms)


def read_iterations(store: Path) -> dict[str, int]:
    """Return how many iterations were counted the last time, by the id of the benchmark."""
    return _numbers(_read(store).iterations)


def write_timings(store: Path, measured: Mapping[str, int], iterations: Mapping[str, int] | None = None) -> None:
    """Remember these; others stay as they are. A folder that cannot be written is not a reason to fail."""
    if not (measured or iterations):
        return
    found = _read(store)
    known = {"wall_ms": (found.wall_ms, measured), "iterations": (found.iterations, iterations or {})}
    kept = {name: dict(sorted({**_numbers(old), **new}.items())[:_MOST]) for name, (old, new) in known.items()}
    data = json.dumps({"schema": SCHEMA, **kept}, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    with suppress(UsageError):
        write_atomic(store / _FILE, data)
