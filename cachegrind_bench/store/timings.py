"""How long each benchmark took the last time, to estimate the rest of a run and to balance shards. Losing it costs nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from cachegrind_bench.errors import CgBenchError, UsageError
from cachegrind_bench.model.parsing import parse
from cachegrind_bench.store.baselines import refuse_links
from cachegrind_bench.store.durable import is_special, read_file, write_atomic

SCHEMA = "cg-bench.timings/1"
_FILE = "timings.json"
_MOST = 100_000
_MOST_BYTES = 100_000_000
_LONGEST_MS = 10**12  # 30 years


class _Timings(msgspec.Struct):
    schema: Literal["cg-bench.timings/1"]
    wall_ms: dict[str, object]


def read_timings(store: Path) -> dict[str, int]:
    """Return milliseconds by the id of the benchmark; nothing where they are not known or cannot be read."""
    try:
        found = parse(read_file(store / _FILE, _MOST_BYTES), _Timings, _FILE).wall_ms
    except (OSError, CgBenchError):
        return {}
    return {name: value for name, value in found.items() if type(value) is int and 0 <= value <= _LONGEST_MS}


def write_timings(store: Path, measured: Mapping[str, int]) -> None:
    """Remember these; others stay as they are. A folder that cannot be written is not a reason to fail."""
    if not measured or is_special(store / _FILE):
        return
    times = {**read_timings(store), **measured}
    kept = dict(sorted(times.items())[:_MOST])
    data = json.dumps({"schema": SCHEMA, "wall_ms": kept}, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    with suppress(UsageError):
        refuse_links(store)
        write_atomic(store / _FILE, data)
