"""What lies across a whole chart: lines at releases and where the comparability key changes, crosses where a benchmark failed.

Knows places and room for words; must not know HTML.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.model.text import counted, plain, shortened
from cachegrind_bench.render.trend import svg, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.history.values import Row, Trend

_MOST_RULES = 60
_MOST_CROSSES = 120  # eight pixels each fill a chart
# Percent of the width that a label takes, on a desk and on a phone.
_ROOM, _PHONE_ROOM = 9, 30
_LONGEST_LABEL = 14
_TURNED = 72  # from here on, in percent, labels lie left of their lines: so the longest one stays within a phone


class Rule(msgspec.Struct, frozen=True):
    """A line from top to bottom at a commit; `text` is shown where there is room, `title` always told.

    `turned` puts the text on the left of the line, `tight` tells that a phone has no room for it.
    """

    at: int
    x: str
    text: str
    title: str
    turned: bool
    tight: bool


class Crosses(msgspec.Struct, frozen=True):
    """Crosses in one row: as many places as signs."""

    x: str
    text: str
    title: str


def releases(report: Trend, coarse: int) -> tuple[Rule, ...]:
    """Return the lines of releases, the newest of those that crowd."""
    commits, most = report.commits, _MOST_RULES // coarse
    names: dict[int, list[str]] = {}
    for at, name in report.releases:
        names.setdefault(at - report.first, []).append(name)
    places: list[tuple[int, str, str]] = []
    for place in _spread(list(names), len(commits), most):
        # Cut before it is made plain: tags may be as long as they like, and there is a chart for each benchmark.
        name = shortened(", ".join(plain(shortened(name, 120)) for name in names[place][:10]), 60)
        places.append((place, name, f"release {name} of {words.day(commits[place])}"))
    return _rules(places, len(commits), most)


def keys(row: Row, report: Trend, coarse: int) -> tuple[Rule, ...]:
    """Return the lines where a benchmark was measured otherwise than before."""
    named = {reading.index: plain(reading.key[:12]) for reading in row.readings}
    places = [
        (at - report.first, "other key", f"measured otherwise from here on: comparability key {named.get(at, '')}")
        for at in row.key_changes
    ]
    return _rules(places, len(report.commits), _MOST_RULES // coarse)


def crosses(row: Row, report: Trend, coarse: int) -> Crosses | None:
    """Return where a benchmark failed; of places that would cover each other, one."""
    width = len(report.commits)
    places = [at - report.first for at in row.failed]
    kept = _spread(places, width, _MOST_CROSSES // coarse)
    if not kept:
        return None
    x = " ".join(svg.percent(place, 0, width, digits=1) for place in kept)
    return Crosses(x, "×" * len(kept), f"failed at {counted(len(places), 'commit')}")


def _rules(places: Sequence[tuple[int, str, str]], width: int, most: int) -> tuple[Rule, ...]:
    kept = set(_spread([place for place, _text, _title in places], width, most))
    found: list[Rule] = []
    free = phone_free = -100.0
    for place, text, title in places:
        if place not in kept:
            continue
        x = 100 * (place + 0.5) / max(1, width)
        turned = x > _TURNED
        roomy = x - _ROOM * turned >= free
        phone_roomy = roomy and x - _PHONE_ROOM * turned >= phone_free
        free = x + _ROOM * (not turned) if roomy else free
        phone_free = x + _PHONE_ROOM * (not turned) if phone_roomy else phone_free
        label = (text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…") if roomy else ""
        found.append(Rule(place, svg.percent(place, 0, width), label, title, turned, tight=not phone_roomy))
    return tuple(found)


def _spread(places: Sequence[int], width: int, most: int) -> list[int]:
    """Return at most so many places in their order: all, or from the newest back those that do not crowd."""
    if len(places) <= most:
        return list(places)
    nearest = width / max(1, most)
    kept: list[int] = []
    for place in reversed(places):
        if not kept or kept[-1] - place >= nearest:
            kept.append(place)
    return kept[: max(1, most)][::-1]
