"""What each benchmark cost when it was last measured, in one small file of the user's cache folder: `run` says what changed.

Nothing depends on that file: where it cannot be read or written, there is nothing to say. Nothing is written into the project,
as a new file there would change the counts of programs that list their directory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import CgBenchError, FileFormatError
from cachegrind_bench.model.parsing import parse
from cachegrind_bench.model.result import Since
from cachegrind_bench.store.durable import make_folder, read_file, write_atomic

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Benchmark, Result

_MOST = 2_000  # benchmarks of all projects; what was not measured for longest goes first
_MOST_BYTES = 1_000_000


class _Reading(msgspec.Struct, frozen=True, array_like=True):
    how: str  # only runs that were measured and scored alike compare
    score: int
    at: str


def remembered(result: Result, project: Path, environ: Mapping[str, str]) -> dict[str, Since]:
    """Return by id how benchmarks of a project changed since they were last remembered, and remember them as they are now."""
    path = _file(environ)
    if path is None:
        return {}
    known = dict[str, _Reading]()
    try:
        known = parse(read_file(path, _MOST_BYTES), dict[str, _Reading], str(path))
    except (FileNotFoundError, FileFormatError):
        pass  # it is replaced
    except (OSError, CgBenchError):  # it cannot be read
        return {}
    found = dict[str, Since]()
    for item in result.benchmarks:
        if item.score is not None:
            name = hashlib.sha256(f"{project}\0{item.id}".encode("utf-8", "backslashreplace")).hexdigest()[:16]
            before = known.pop(name, None)
            known[name] = _Reading(_how(item), item.score.value, result.created_at)
            if before is not None and before.how == known[name].how and before.score > 0:
                found[item.id] = Since(Fraction(item.score.value, before.score) - 1, before.at)
    with suppress(OSError, CgBenchError):
        make_folder(path.parent)
        write_atomic(path, msgspec.json.encode(dict([*known.items()][-_MOST:])))
    return found


def _file(environ: Mapping[str, str]) -> Path | None:
    """Return the file, as https://specifications.freedesktop.org/basedir-spec has it: relative paths are ignored."""
    return None if (folder := cache_folder(environ)) is None else folder / "last-runs.json"


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of cg-bench in the cache folder of the user, or None without one."""
    cache, home = environ.get("XDG_CACHE_HOME", ""), environ.get("HOME", "")
    if not os.path.isabs(cache):
        cache = os.path.join(home, ".cache")
    return Path(cache, "cg-bench") if os.path.isabs(cache) else None


def _how(item: Benchmark) -> str:
    return f"{item.key} {item.score.model if item.score else ''} {len(item.by_layout())}"
