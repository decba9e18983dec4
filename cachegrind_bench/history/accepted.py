"""Changes of cost that were accepted, as written in the repository: which benchmarks, since which commit, and why.

Knows the text of `cg-bench-accepted.toml`; must not know where the file is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import msgspec

from cachegrind_bench.config.source import Source, parsed
from cachegrind_bench.config.suggestions import named, nearest
from cachegrind_bench.model.result import CommitNote
from cachegrind_bench.model.text import matches

ACCEPTED_FILE = "cg-bench-accepted.toml"
_TABLE = "accepted"
_KEYS = ("benchmark", "commit", "reason")
_EXAMPLE = 'each begins with [[accepted]] and has benchmark = "…", commit = "…" and reason = "…"'
_SHA = re.compile(r"[0-9a-f]{7,64}")


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted change of the benchmarks that match a pattern, by the commit whose sha begins so; `line` is in the file."""

    benchmark: str
    commit: str
    reason: str
    line: int

    def concerns(self, benchmark: str) -> bool:
        """Return whether this is about that benchmark."""
        return matches(benchmark, self.benchmark)


def parse_accepted(text: str, *, path: str) -> tuple[Accepted, ...]:
    """Read the text of such a file, in its order; `path` is its name in messages. FileFormatError with file and line."""
    source = parsed(text, Path(path), path)
    for key in source.data:
        if key != _TABLE:
            source.fail(f"unknown key {key!r}", key, hint=_EXAMPLE)
    tables: object = source.data.get(_TABLE, [])
    if not isinstance(tables, list):
        source.fail(f"write [[{_TABLE}]] in double brackets: there may be several", _TABLE, hint=_EXAMPLE)
    return tuple(_entry(source, number, table) for number, table in enumerate(cast("list[object]", tables)))


def _entry(source: Source, number: int, table: object) -> Accepted:
    at = _TABLE, number
    if not isinstance(table, dict):
        source.fail(f"{named(table)} is not a table", *at, hint=_EXAMPLE)
    values = cast("dict[str, Any]", table)
    for key in values:
        if key not in _KEYS:
            meant = nearest(key, {name: name for name in _KEYS})
            advice = f"did you mean {meant!r}?" if meant else f"known are {', '.join(_KEYS)}"
            source.fail(f"unknown key {key!r}; {advice}", *at, key)
    for key in _KEYS:
        if key not in values:
            source.fail(f"{key} is missing", *at, hint=_EXAMPLE)
        if not isinstance(values[key], str):
            source.fail(f"{key} must be a text, not {named(values[key])}", *at, key)
        if not values[key].strip():
            source.fail(f"{key} is empty", *at, key)
    benchmark, commit, reason = (str(values[key]).strip() for key in _KEYS)
    if not _SHA.fullmatch(commit.lower()):
        hint = "write at least 7 digits of its sha; a branch or tag can move"
        source.fail(f"{commit.lower()!r} is not a commit id", *at, "commit", hint=hint)
    return Accepted(benchmark=benchmark, commit=commit.lower(), reason=reason, line=source.line(*at) or 1)


def without_effect(
    accepted: Sequence[Accepted], line: Sequence[CommitNote], benchmarks: Collection[str] | None
) -> tuple[Accepted, ...]:
    """Return the entries whose commit is not on this line, or whose benchmark is unknown: misspelt, or of a past that is not shown.

    Without `benchmarks` (perhaps only some are known), only commits matter.
    """
    return tuple(
        entry
        for entry in accepted
        if (benchmarks is not None and not any(entry.concerns(benchmark) for benchmark in benchmarks))
        or not any(note.sha.startswith(entry.commit) for note in line)
    )


def accepted_here(
    benchmark: str, line: Sequence[CommitNote], accepted: Sequence[Accepted]
) -> tuple[tuple[int, Accepted], ...]:
    """Return the entries about this benchmark with the places of their commits on the line, by place, then as in the file."""
    found = [
        (index, number, entry)
        for number, entry in enumerate(accepted)
        if entry.concerns(benchmark)
        for index, note in enumerate(line)
        if note.sha.startswith(entry.commit)
    ]
    return tuple((index, entry) for index, _, entry in sorted(found, key=itemgetter(0, 1)))
