"""One benchmark's chart as a template draws it: panels, lines, marks and labels, each with its place.

Knows the window of commits and the findings; must not know HTML.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cachegrind_bench.history.values import Kind, State
from cachegrind_bench.render.numbers import grouped
from cachegrind_bench.render.trend import stories, svg, words

if TYPE_CHECKING:
    from cachegrind_bench.history.report import Row, Trend
    from cachegrind_bench.history.values import Finding, Reading

_TOP = 22
_MAIN = 172
_SMALL = 26
_GAP = 22
_NEAREST_LABELS = 9  # percent of the width between the labels of two releases: closer, only the line is drawn
_AIR = 13
_MOST_MARKS = 60
# Characters of a path: four of them for each of fifty benchmarks leave half of a megabyte for everything else.
_LONGEST_MAIN = 3200
_LONGEST_SMALL = 1000


@dataclass(frozen=True, slots=True)
class Label:
    """Text at a place."""

    x: str
    y: int
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A shape at a commit: `shape` names its symbol, `look` is a class that says how it is filled."""

    at: int
    x: str
    y: int
    shape: str
    look: str
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line from top to bottom at a commit; `text` is shown where there is room, `title` always told."""

    at: int
    x: str
    text: str
    title: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A quantity over the commits: `name` picks the numbers of the script's data, ticks lie at pixels from the top."""

    name: str
    title: str
    y: int
    height: int
    path: str
    ticks: tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A whole chart: `width` in commits, `height` in pixels."""

    width: int
    height: int
    bottom: int
    panels: tuple[Panel, ...]
    marks: tuple[Mark, ...]
    releases: tuple[Line, ...]
    keys: tuple[Line, ...]
    dates: tuple[Label, ...]


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
    return Chart(
        width=width,
        height=y + 24,
        bottom=y + 4,
        panels=tuple(panels),
        marks=tuple(_marks(row, first, width, max(_MOST_MARKS // coarse, 1))),
        releases=_releases(report),
        keys=_keys(row, first, width, max(_MOST_MARKS // coarse, 1)),
        dates=_dates(report, y + 19),
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
            longest=(_LONGEST_MAIN if main else _LONGEST_SMALL) // coarse,
        ),
        ticks=tuple(
            Label("0", y + scale.place(tick), words.compact(tick, step=step)) for tick in scale.ticks() if main
        ),
    )


def _marks(row: Row, first: int, width: int, most: int) -> list[Mark]:
    """Return the newest marks: at most so many of failures, and of findings."""
    scale = svg.Scale.of([reading.value for reading in row.readings], _MAIN)
    down = {reading.index: _TOP + scale.place(reading.value) for reading in row.readings}
    marks = [
        Mark(
            index - first,
            svg.percent(index, first, width),
            _TOP + _MAIN - 8,
            "failed",
            "",
            "failed here",
        )
        for index in row.failed[-most:]
    ]
    for found in sorted(row.findings, key=lambda found: found.index)[-most:]:
        if found.index not in down:
            continue  # before the window
        below = found.kind is Kind.IMPROVEMENT
        y = down[found.index] + (_AIR if below else -_AIR)
        marks.append(
            Mark(
                found.index - first,
                svg.percent(found.index, first, width),
                min(max(y, _TOP), _TOP + _MAIN),
                found.kind.value,
                "" if found.confirmed and found.state in {State.NEW, State.OPEN} else "hollow",
                _mark_title(found),
            )
        )
    return marks


def _mark_title(found: Finding) -> str:
    commits = ", ".join(words.sha(sha) for sha in found.suspects[:3])
    more = f" and {len(found.suspects) - 3} more" if len(found.suspects) > 3 else ""
    size = f" {stories.size(found)}" if stories.has_size(found) else ""
    return f"{stories.kind(found)}{size}: {commits}{more}"


def _keys(row: Row, first: int, width: int, most: int) -> tuple[Line, ...]:
    """Return where keys change, the newest of these places, with words where there is room for them."""
    lines: list[Line] = []
    labelled = -100.0
    for at in row.key_changes[-most:]:
        place = 100 * (at - first) / max(1, width)
        roomy = place - labelled >= _NEAREST_LABELS
        labelled = place if roomy else labelled
        text = "other key" if roomy else ""
        lines.append(Line(at - first, svg.percent(at, first, width), text, _key_title(row, at)))
    return tuple(lines)


def _key_title(row: Row, at: int) -> str:
    keys = {reading.index: reading.key for reading in row.readings}
    return f"measured otherwise from here on: comparability key {keys.get(at, '')[:12]}"


def _releases(report: Trend) -> tuple[Line, ...]:
    width = max(1, len(report.commits))
    lines: list[Line] = []
    labelled = -100.0
    for at, name in report.releases:
        place = 100 * (at - report.first) / width
        roomy = place - labelled >= _NEAREST_LABELS
        labelled = place if roomy else labelled
        note = report.commits[at - report.first]
        told = f"release {name} of {words.day(note)}"
        text = name if len(name) <= 14 else f"{name[:13]}…"
        lines.append(Line(at - report.first, svg.percent(at, report.first, width), text if roomy else "", told))
    return tuple(lines)


def _dates(report: Trend, y: int) -> tuple[Label, ...]:
    """Return four days below the line, or as many as there are commits."""
    commits, width = report.commits, len(report.commits)
    places = sorted({width * quarter // 4 for quarter in range(4)}) if width >= 8 else range(width)
    return tuple(Label(svg.percent(at + report.first, report.first, width), y, words.day(commits[at])) for at in places)


def told(reading: Reading) -> tuple[str, ...]:
    """Return the numbers of a reading as a table shows them."""
    return tuple(grouped(amount(reading, name)) for name in ("value", "ir", "ll", "ram"))
