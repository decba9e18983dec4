"""Changes of cost that were meant, as written in the repository: which benchmarks, since which commit, and why.

Knows the text of `cg-bench-accepted.toml`; must not know where the file is.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, cast

import msgspec

from cachegrind_bench.config.suggestions import named, nearest
from cachegrind_bench.config.toml_lines import places
from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.text import matches

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from cachegrind_bench.config.toml_lines import Steps
    from cachegrind_bench.model.history import CommitNote

ACCEPTED_FILE = "cg-bench-accepted.toml"
_TABLE = "accepted"
_KEYS = ("benchmark", "commit", "reason")
_EXAMPLE = 'each begins with [[accepted]] and has benchmark = "…", commit = "…" and reason = "…"'
_SHA = re.compile(r"[0-9a-f]{7,64}")
_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the benchmarks that match a pattern, meant by the commit whose sha begins so; `line` is that in the file."""

    benchmark: str
    commit: str
    reason: str
    line: int

    def concerns(self, benchmark: str) -> bool:
        """Tell whether this is about that benchmark."""
        return matches(benchmark, self.benchmark)


def parse_accepted(text: str, *, path: str) -> tuple[Accepted, ...]:
    """Read the text of such a file, in its order; `path` is its name in messages. FileFormatError with file and line."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _no_toml(str(error), text, path) from error
    except (RecursionError, ValueError) as error:  # brackets in thousands, a number of thousands of digits
        raise FileFormatError("not valid TOML: too deep, or a number too long", path=path) from error
    if not data:
        return ()
    lines = places(text)
    for key in data:
        if key != _TABLE:
            raise FileFormatError(f"unknown key {key!r}", path=path, line=lines.get((key,)), hint=_EXAMPLE)
    tables: object = data[_TABLE]
    if not isinstance(tables, list):
        message = f"write [[{_TABLE}]] in double brackets: there may be several"
        raise FileFormatError(message, path=path, line=lines.get((_TABLE,)), hint=_EXAMPLE)
    return tuple(_entry(table, number, path, lines) for number, table in enumerate(cast("list[object]", tables)))


def _entry(table: object, number: int, path: str, lines: Mapping[Steps, int]) -> Accepted:
    own = lines.get((_TABLE, number)) or lines.get((_TABLE,))
    if not isinstance(table, dict):
        raise FileFormatError(f"{named(table)} is not a table", path=path, line=own, hint=_EXAMPLE)
    values = cast("dict[str, Any]", table)
    for key in values:
        if key not in _KEYS:
            meant = nearest(key, {name: name for name in _KEYS})
            advice = f"did you mean {meant!r}?" if meant else f"known are {', '.join(_KEYS)}"
            line = lines.get((_TABLE, number, key), own)
            raise FileFormatError(f"unknown key {key!r}; {advice}", path=path, line=line)
    benchmark, commit, reason = (_text(values, key, path, lines.get((_TABLE, number, key), own)) for key in _KEYS)
    commit = commit.lower()
    if not _SHA.fullmatch(commit):
        raise FileFormatError(
            f"{commit!r} is not a commit id",
            path=path,
            line=lines.get((_TABLE, number, "commit"), own),
            hint="write at least 7 digits of its sha; a branch or tag would move on",
        )
    return Accepted(benchmark=benchmark, commit=commit, reason=reason, line=own or 1)


def _text(values: Mapping[str, Any], key: str, path: str, line: int | None) -> str:
    if key not in values:
        raise FileFormatError(f"{key} is missing", path=path, line=line, hint=_EXAMPLE)
    value: object = values[key]
    if not isinstance(value, str):
        raise FileFormatError(f"{key} must be a text, not {named(value)}", path=path, line=line)
    if not value.strip():
        raise FileFormatError(f"{key} is empty", path=path, line=line)
    return value.strip()


def _no_toml(told: str, text: str, path: str) -> FileFormatError:
    place = _PLACE.search(told)
    line = int(place[1]) if place and place[1] else text.rstrip().count("\n") + 1
    return FileFormatError(f"not valid TOML: {_PLACE.sub('', told)}", path=path, line=line, hint=_EXAMPLE)


def without_effect(
    accepted: Sequence[Accepted], line: Sequence[CommitNote], benchmarks: Collection[str] | None
) -> tuple[Accepted, ...]:
    """Return the entries that name no commit on this line, or no benchmark: misspelt, or of a past that is not looked at.

    Without `benchmarks`, of which only some may be known, only commits matter.
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
    entries = [entry for entry in accepted if entry.concerns(benchmark)]
    found = [
        (index, number)
        for number, entry in enumerate(entries)
        for index, note in enumerate(line)
        if note.sha.startswith(entry.commit)
    ]
    return tuple((index, entries[number]) for index, number in sorted(found))
