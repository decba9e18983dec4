"""The words about a single finding that a trend report's renderings share: its size, its story, who is behind it. Plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.history.values import Kind, State, is_suspicious, relative
from cachegrind_bench.model.text import counted, grouped
from cachegrind_bench.render.trend.words import STATES, short_change

if TYPE_CHECKING:
    from cachegrind_bench.history.values import Finding, Row, Trend


def size(found: Finding) -> str:
    """Return how much the level changed, after a space; nothing where there is not one change to speak of."""
    if found.kind is Kind.UNSTABLE:
        return ""
    return f" {short_change(relative(found.before, found.after))}" if found.before else " from 0"


def kind(found: Finding) -> str:
    """Return what was found and where it is in its life, in a few words."""
    if found.kind is Kind.UNSTABLE:
        return "unstable" if found.state is not State.RECOVERED else "steady again"
    if found.kind is Kind.IMPROVEMENT and found.state is State.RECOVERED:
        return "improvement, lost again"
    sure = "" if found.confirmed else ", after only one reading" if found.lone_base else ", one reading so far"
    doubt = ", does it still do its work?" if is_suspicious(found) else ""
    known = found.kind is Kind.IMPROVEMENT and found.state is State.OPEN
    return f"{'' if known else f'{STATES[found.state]} '}{found.kind.value}{doubt}{sure}"


def ended(found: Finding) -> str:
    """Return the words in front of the commit at which the level was back."""
    return "lost with" if found.kind is Kind.IMPROVEMENT else "recovered with"


def story(found: Finding) -> str:
    """Return the levels before and after, or what makes a benchmark unstable."""
    if found.kind is Kind.UNSTABLE:
        return f"jumps between about {grouped(found.before)} and {grouped(found.after)}: no alarms are raised"
    return f"{grouped(found.before)} → {grouped(found.after)}"


class Blame(msgspec.Struct, frozen=True):
    """Who may be behind a finding: words in front of these commits, how many more there are, and whether bisect helps."""

    words: str
    commits: tuple[str, ...]
    more: int = 0
    bisectable: bool = False


def blame(found: Finding, most: int) -> Blame:
    """Return at most so many of the suspects, as it suits what was found."""
    suspects = found.suspects
    if found.kind is Kind.UNSTABLE:
        return Blame("since", suspects[:1]) if suspects else Blame("from the first reading on", ())
    if len(suspects) <= 1:
        return Blame("with", suspects)
    number = counted(len(suspects), "commit")
    if found.kind is Kind.CREEP:
        return Blame(f"little by little, in {number}, of which the first and the last are", (suspects[0], suspects[-1]))
    return Blame(f"with one of {number}:", suspects[:most], max(len(suspects) - most, 0), bisectable=True)


def moves(report: Trend) -> dict[str, str]:
    """Return by the id of a finding which counts changed with it, as far as its readings are shown."""
    found = {item.id: _moved(item, row) for row in report.rows for item in row.findings}
    return {name: text for name, text in found.items() if text}


def _moved(found: Finding, row: Row) -> str:
    """Return which counts changed with a step: it tells work from caches."""
    same = [reading for reading in row.readings if reading.key == found.key]
    place = next((number for number, reading in enumerate(same) if reading.index == found.index), 0)
    if found.kind not in (Kind.REGRESSION, Kind.IMPROVEMENT) or not place:
        return ""
    pairs = zip(
        *((item.counts.Ir, item.counts.ll_hits, item.counts.ram_hits) for item in same[place - 1 : place + 1]),
        strict=True,
    )
    changes = (short_change(relative(before, after)) for before, after in pairs)
    return ", ".join(map(" ".join, zip(("Ir", "LL hits", "RAM hits"), changes, strict=True)))
