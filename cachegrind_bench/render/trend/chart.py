"""One benchmark's chart as a template draws it: panels, lines, marks and labels, each with its place.

Knows the window of commits and the findings; must not know HTML.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.history.values import STANDING, Kind
from cachegrind_bench.model.text import counted, grouped
from cachegrind_bench.render.trend import finding_text, rules, svg, words

if TYPE_CHECKING:
    from cachegrind_bench.history.values import Finding, Reading, Row, Trend
    from cachegrind_bench.render.trend.rules import Crosses, Rule

_TOP = 30  # the labels of releases lie above the topmost label of the scale
_MAIN = 172
_SMALL = 26
_GAP = 22
_AIR = 13
_MOST_MARKS = 40
# Characters of a path: four of them for each of fifty benchmarks leave half of a megabyte for everything else.
_LONGEST_MAIN, _SHORTEST_MAIN = 3200, 1200
_LONGEST_SMALL = 1000


class Label(msgspec.Struct, frozen=True):
    """Text at a place."""

    x: str
    y: int
    text: str


class Mark(msgspec.Struct, frozen=True):
    """A shape at a commit: `shape` names its symbol, `look` is a class that says how it is filled."""

    at: int
    x: str
    y: int
    shape: str
    look: str
    title: str


class Panel(msgspec.Struct, frozen=True):
    """A quantity over the commits: `name` picks the numbers of the script's data, ticks lie at pixels from the top."""

    name: str
    title: str
    y: int
    height: int
    path: str
    ticks: tuple[Label, ...]


class Chart(msgspec.Struct, frozen=True):
    """A whole chart: `width` in commits, `height` in pixels; `left_out` tells what there was no room for."""

    width: int
    height: int
    bottom: int
    panels: tuple[Panel, ...]
    marks: tuple[Mark, ...]
    releases: tuple[Rule, ...]
    keys: tuple[Rule, ...]
    crosses: Crosses | None
    floor: int
    dates: tuple[Label, ...]
    left_out: str


def chart(row: Row, report: Trend, coarse: int = 1) -> Chart:
    """Lay out a benchmark's chart; it has at least one reading. Lines and marks may be so many times `coarse` as usual."""
    width, first = len(report.commits), report.first
    y = _TOP
    panels = [_panel(row, report, "value", words.value_name(row.model), y=y, height=_MAIN, coarse=coarse)]
    small = [("ll", "LL hits"), ("ram", "RAM hits")]
    if row.model != "ir":
        small.insert(0, ("ir", "Ir"))
    y += _MAIN
    for name, title in small:
        panels.append(_panel(row, report, name, title, y=y + _GAP, height=_SMALL, coarse=coarse))
        y += _GAP + _SMALL
    marks = _marks(row, first, width, max(_MOST_MARKS // coarse, 2))
    releases, keys = rules.releases(report, coarse), rules.keys(row, report, coarse)
    tags = len({at for at, _name in report.releases})
    return Chart(
        width=width,
        height=y + 24,
        bottom=y + 4,
        panels=tuple(panels),
        marks=marks,
        releases=releases,
        keys=keys,
        crosses=rules.crosses(row, report, coarse),
        floor=_TOP + _MAIN,
        dates=_dates(report, y + 19),
        left_out=_left_out(
            (len(_shown(row)) - len(marks), "finding"),
            (tags - len(releases), "release"),
            (len(row.key_changes) - len(keys), "key change"),
        ),
    )


def amount(reading: Reading, name: str) -> int:
    """Return the number of a panel."""
    counts = reading.counts
    return {"value": reading.value, "ir": counts.Ir, "ll": counts.ll_hits, "ram": counts.ram_hits}[name]


def _panel(row: Row, report: Trend, name: str, title: str, *, y: int, height: int, coarse: int) -> Panel:
    values = [(reading.index, amount(reading, name)) for reading in row.readings]
    scale = svg.Scale.of([value for _index, value in values], height)
    main = name == "value"
    step = scale.step()
    return Panel(
        name=name,
        title=title if main else f"{title} {words.compact(values[-1][1])}",
        y=y,
        height=height,
        path=svg.bounded(
            [(index - report.first, scale.place(value)) for index, value in values],
            [index - report.first for index in row.key_changes[-max(_MOST_MARKS // coarse, 1) :]],
            least=1 if main else 2,
            longest=max(_LONGEST_MAIN // coarse, _SHORTEST_MAIN) if main else _LONGEST_SMALL // coarse,
            coarse=min(coarse, 4) if main else 1,
        ),
        ticks=tuple(
            Label("0", y + scale.place(tick), words.compact(tick, step=step)) for tick in scale.ticks() if main
        ),
    )


def _shown(row: Row) -> list[Finding]:
    """Return the findings at readings of the window, the most important first."""
    places = {reading.index for reading in row.readings}
    return [found for found in row.findings if found.index in places]


def _marks(row: Row, first: int, width: int, most: int) -> tuple[Mark, ...]:
    scale = svg.Scale.of([reading.value for reading in row.readings], _MAIN)
    down = {reading.index: _TOP + scale.place(reading.value) for reading in row.readings}
    marks: list[Mark] = []
    for found in sorted(_shown(row)[:most], key=lambda found: (found.index, found.id)):
        y = down[found.index] + (_AIR if found.kind is Kind.IMPROVEMENT else -_AIR)
        marks.append(
            Mark(
                found.index - first,
                svg.percent(found.index, first, width),
                min(max(y, _TOP), _TOP + _MAIN),
                found.kind.value,
                "" if found.confirmed and found.state in STANDING else "hollow",
                _mark_title(found),
            )
        )
    return tuple(marks)


def _left_out(*sorts: tuple[int, str]) -> str:
    told = ", ".join(counted(number, what) for number, what in sorts if number > 0)
    return f"Not drawn, for want of room: {told}." if told else ""


def _mark_title(found: Finding) -> str:
    commits = ", ".join(words.sha(sha) for sha in found.suspects[:3])
    more = f" and {len(found.suspects) - 3} more" if len(found.suspects) > 3 else ""
    size = f" {finding_text.size(found)}" if finding_text.has_size(found) else ""
    return f"{finding_text.kind(found)}{size}: {commits}{more}"


def _dates(report: Trend, y: int) -> tuple[Label, ...]:
    """Return four days below the line, or as many as there are commits."""
    commits, width = report.commits, len(report.commits)
    places = sorted({width * quarter // 4 for quarter in range(4)}) if width >= 8 else range(width)
    return tuple(Label(svg.percent(at + report.first, report.first, width), y, words.day(commits[at])) for at in places)


def told(reading: Reading) -> tuple[str, ...]:
    """Return the numbers of a reading as a table shows them."""
    return tuple(grouped(amount(reading, name)) for name in ("value", "ir", "ll", "ram"))
