"""Saved baselines as a list, and what an update changed, for people and for scripts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.model.text import plain, shortened
from cachegrind_bench.render import markdown, table
from cachegrind_bench.render.report import Report, Section

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from cachegrind_bench.model.result import Commit, Result
    from cachegrind_bench.render.report import Row

_SHOWN = 20
_SHOWN_IDS = 3
_LONGEST_ID = 30


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A baseline and what it holds, or why it cannot be read."""

    name: str
    held: Result | str


def render(entries: Sequence[Entry], place: str, form: str, stream: TextIO) -> None:
    """Write the list of the baselines at this place, in one of the forms json, markdown and table."""
    if form == "json":
        _as_json(entries, stream)
        return
    title = f"{_number(len(entries), 'baseline')} in {plain(place)}"
    columns = ("name", "benchmarks", "commit", "branch", "measured")
    section = Section(title="", columns=columns, rows=tuple(map(_row, entries)))
    broken = tuple(
        f"{entry.name} cannot be read: {plain(entry.held)}" for entry in entries if isinstance(entry.held, str)
    )
    layout = markdown if form == "markdown" else table
    layout.render(Report(title=title, sections=(section,) if entries else (), warnings=broken), stream)


def updated(name: str, before: Result | None, after: Result) -> str:
    """Return what became of a baseline: which benchmarks were added, replaced and dropped, and the commits."""
    old = {item.id for item in before.benchmarks} if before else set[str]()
    new = {item.id for item in after.benchmarks}
    lines = [f"{name}: {'updated' if before else 'new'}, {_number(len(new), 'benchmark')}"]
    for what, ids in (("added", new - old), ("replaced", new & old), ("dropped", old - new)):
        listed = sorted(ids)
        lines += [f"  {what:8}  {plain(item)}" for item in listed[:_SHOWN]]
        if len(listed) > _SHOWN:
            lines.append(f"  {what:8}  and {len(listed) - _SHOWN} more")
    origin = f"{_commit(before.commit) or 'unknown'} -> " if before else ""
    lines.append(f"  commit    {origin}{_commit(after.commit) or 'unknown'}")
    return "\n".join(lines) + "\n"


def _row(entry: Entry) -> Row:
    held = entry.held
    if isinstance(held, str):
        return entry.name, "unreadable"
    branch = held.commit.branch if held.commit else None
    return entry.name, _ids(held), _commit(held.commit), plain(branch or ""), plain(held.created_at)


def _ids(held: Result) -> str:
    ids = [shortened(plain(item.id), _LONGEST_ID) for item in held.benchmarks[:_SHOWN_IDS]]
    more = len(held.benchmarks) - len(ids)
    return ", ".join(ids) + (f" and {more} more" if more else "")


def _commit(commit: Commit | None) -> str:
    if commit is None:
        return ""
    return plain(commit.sha[:12]) + (" with uncommitted changes" if commit.dirty else "")


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _as_json(entries: Sequence[Entry], stream: TextIO) -> None:
    document = {"schema": "cg-bench.baselines/1", "baselines": [_object(entry) for entry in entries]}
    json.dump(document, stream, indent=2, sort_keys=True, ensure_ascii=True)
    stream.write("\n")


def _object(entry: Entry) -> dict[str, object]:
    held = entry.held
    if isinstance(held, str):
        return {"name": entry.name, "error": held}
    commit = held.commit
    return {
        "name": entry.name,
        "error": None,
        "benchmarks": [item.id for item in held.benchmarks],
        "commit": None if commit is None else commit.sha,
        "branch": None if commit is None else commit.branch,
        "dirty": None if commit is None else commit.dirty,
        "created_at": held.created_at,
    }
