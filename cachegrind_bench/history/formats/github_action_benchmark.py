"""One run for github-action-benchmark's tool customSmallerIsBetter; and back, also from what it keeps: data.js, or JSON.

The action keeps name, value, unit and a text, `extra`, which it shows. Ours carries all that is needed to read a run back:
run, commit, keys, counts. Other tools' entries have times of their own kind, never Cachegrind's counts.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast
from urllib.parse import quote, unquote

import msgspec

from cachegrind_bench.errors import FileFormatError, UsageError
from cachegrind_bench.history.formats.fields import Runs, texts_of
from cachegrind_bench.model.metrics import EVENTS
from cachegrind_bench.model.result import Snapshot, Status

UNIT = "score"

# The lines of `extra`: what is called how in `fields`. Words of the last are left out where they are not known.
_RUN = {word: word for word in ("model", "key", "environment", "run", "created_at")} | {"cg_bench": "tool_version"}
_COMMIT = {"commit": "sha", "committed_at": "committed_at", "dirty": "dirty", "parent": "parent", "branch": "branch"}
_PAGE = re.compile(r"\s*window\.BENCHMARK_DATA\s*=", re.ASCII)
_WORD = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z0-9_]++)=(\S*)", re.ASCII)
_HINT = "'cg-bench history export --format github-action-benchmark' writes what can be read back"


class _Push(msgspec.Struct):
    benches: list[Any]  # anything, as there are other tools


class _Page(msgspec.Struct):
    """What the action keeps: the pushes of each suite."""

    entries: dict[str, list[_Push]]


class _Entry(msgspec.Struct):
    name: str
    value: int | float
    extra: str


def write(run: Snapshot) -> str:
    """Return the entries of each benchmark that went well, as a JSON list."""
    entries = [
        {"name": point.id, "unit": UNIT, "value": point.score.value, "extra": _extra(texts_of(run, point))}
        for point in run.points
        if point.score is not None
    ]
    return json.dumps(entries, indent=2) + "\n"


def _extra(texts: dict[str, str]) -> str:
    lines = [
        {event: texts[event] for event in EVENTS},
        {word: texts[name] for word, name in _RUN.items()},
        {word: texts[name] for word, name in _COMMIT.items() if texts[name]},
    ]
    return "\n".join(
        " ".join(f"{word}={quote(text, safe='+:/')}" for word, text in items.items()) for items in lines if items
    )


def read(text: str, name: str) -> tuple[list[Snapshot], int]:
    """Return the runs in a list of entries, in the page's data.js, or in the same without JavaScript around it.

    The number is that of other tools' entries. FileFormatError if none of the entries are ours, or one of them is damaged.
    """
    page = _PAGE.match(text)
    try:
        document: Any = json.loads(text[page.end() :].strip().removesuffix(";") if page else text)
        if page or isinstance(document, dict):
            suites = msgspec.convert(document, _Page).entries.values()
            entries = [entry for suite in suites for push in suite for entry in push.benches]
        else:
            entries = msgspec.convert(document, list[Any])
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"not data of github-action-benchmark: {error}"[:300], path=name, hint=_HINT) from error
    nothing = dict[str, Any]()  # one for all, as there may be many millions of other things
    found = [cast("dict[str, Any]", entry) if isinstance(entry, dict) else nothing for entry in entries]
    ours = [
        entry
        for entry in found
        if entry.get("unit") == UNIT and isinstance(extra := entry.get("extra"), str) and " environment=" in extra
    ]
    if entries and not ours:
        units = sorted({repr(entry.get("unit"))[:30] if entry else "none" for entry in found})
        raise FileFormatError(
            f"none of its {len(entries)} entries is a score with Cachegrind's counts: their units are {', '.join(units[:5])}",
            path=name,
            hint=_HINT,
        )
    runs = Runs()
    for number, entry in enumerate(ours, 1):
        try:
            _add(runs, msgspec.convert(entry, _Entry))
        except (ValueError, KeyError, UsageError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            which = f"entry {number} of those that are scores ({str(entry.get('name'))[:80]!r})"
            raise FileFormatError(f"{which}: {what}", path=name, hint=_HINT) from error
    return runs.all(), len(entries) - len(ours)


def _add(runs: Runs, entry: _Entry) -> None:
    """Add an entry; one run may have been handed over in parts, or twice."""
    words = {word: unquote(text, errors="strict") for word, text in _WORD.findall(entry.extra)}
    texts = words | {name: words[word] for word, name in _RUN.items()}
    texts |= {name: words.get(word, "") for word, name in _COMMIT.items()}
    texts |= {"benchmark": entry.name, "status": Status.OK.value}
    runs.add(texts, score=entry.value, repeated=True)
