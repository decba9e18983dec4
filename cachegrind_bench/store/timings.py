"""How long each benchmark took the last time, to estimate the rest of a run and to balance shards. Losing it costs nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from cachegrind_bench.errors import UsageError
from cachegrind_bench.store.durable import write_atomic

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SCHEMA = "cg-bench.timings/1"
_FILE = "timings.json"
_MOST = 100_000


def read_timings(store: Path) -> dict[str, int]:
    """Return milliseconds by the id of the benchmark; nothing where they are not known or cannot be read."""
    try:
        document: object = json.loads((store / _FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(document, dict):
        return {}
    found = cast("dict[str, object]", document)
    times = found.get("wall_ms")
    if found.get("schema") != SCHEMA or not isinstance(times, dict):
        return {}
    known = cast("dict[str, object]", times)
    return {name: value for name, value in known.items() if type(value) is int and value >= 0}


def write_timings(store: Path, measured: Mapping[str, int]) -> None:
    """Remember these; others stay as they are. A folder that cannot be written is no reason to fail."""
    if not measured:
        return
    times = {**read_timings(store), **measured}
    kept = dict(sorted(times.items())[:_MOST])
    data = json.dumps({"schema": SCHEMA, "wall_ms": kept}, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    try:
        write_atomic(store / _FILE, data)
    except UsageError:
        return
