"""One benchmark's chart as a template draws it: panels, lines, marks and labels, each with its place.

Knows the window of commits and the findings; must not know HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from cachegrind_bench.history.values import ACTIVE, Finding, Kind, Reading, Row, Trend
from cachegrind_bench.model.text import counted, plain, shortened, some
from cachegrind_bench.render.trend import svg, words

QUANTITIES = ("value", "ir", "ll", "ram")
_TOP = 30  # the labels of releases lie above the topmost label of the scale
_MAIN = 172
_SMALL = 26
_GAP = 22
_AIR = 13
_MOST_MARKS = 40
# Characters of a path: four of them for each of fifty benchmarks leave half of a megabyte for everything else.
_LONGEST_MAIN, _SHORTEST_MAIN = 3200, 1200
_LONGEST_SMALL = 1000
_MOST_RULES = 60
_MOST_CROSSES = 120  # eight pixels each fill a chart
# Percent of the width that a label takes, on a desk and on a phone.
_ROOM, _PHONE_ROOM = 9, 30
_LONGEST_LABEL = 14
# The same in page.js: what a date takes, how much of a commit's id is in its place, how many readings have dots.
_DATE_ROOM, _SHORT, _MOST_DOTS = 19, 7, 40
_TURNED = 72  # from here on, in percent, labels lie left of their lines: so the longest one stays within a phone


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
    """A quantity over the commits: `name` picks the numbers of the script's data, ticks lie at pixels from the top.

    `dots` are at the readings, where there are few enough to tell them apart. Where some commits have no reading, `bars` under the
    line are at those that were measured, and at those whose counts were taken over.
    """

    name: str
    title: str
    y: int
    height: int
    path: str
    dots: str
    bars: tuple[str, str] | None
    ticks: tuple[Label, ...]


class Rule(msgspec.Struct, frozen=True):
    """A line from top to bottom at a commit; `text` is shown where there is room, `title` always.

    `turned` puts the text on the left of the line, `tight` is set where a phone has no room for it.
    """

    at: int
    x: str
    text: str
    title: str
    turned: bool
    tight: bool


class Chart(msgspec.Struct, frozen=True):
    """A whole chart: `width` in commits, `height` in pixels; `left_out` says what there was no room for."""

    width: int
    height: int
    bottom: int
    panels: tuple[Panel, ...]
    marks: tuple[Mark, ...]
    releases: tuple[Rule, ...]
    keys: tuple[Rule, ...]
    crosses: tuple[str, str, str] | None  # places, as many signs, and their title
    floor: int
    dates: tuple[Label, ...]
    left_out: str


def chart(row: Row, report: Trend, coarse: int = 1) -> Chart:
    """Lay out a benchmark's chart; it has at least one reading. Lines and marks may be `coarse` times as coarse as usual."""
    width = len(report.commits)
    panels = [_panel(row, report, "value", words.value_name(row.model), y=_TOP, height=_MAIN, coarse=coarse)]
    small = [*([("ir", "Ir")] if row.model != "ir" else []), ("ll", "LL hits"), ("ram", "RAM hits")]
    y = _TOP + _MAIN
    for name, title in small:
        panels.append(_panel(row, report, name, title, y=y + _GAP, height=_SMALL, coarse=coarse))
        y += _GAP + _SMALL
    places = {reading.index for reading in row.readings}
    shown = [found for found in row.findings if found.index in places]  # the most important first
    marks = _marks(shown[: max(_MOST_MARKS // coarse, 2)], row, report)
    tags, keys = releases(report, coarse), key_changes(row, report, coarse)
    left_out = [
        counted(number, what)
        for number, what in (
            (len(shown) - len(marks), "finding"),
            (len({at for at, _name in report.releases}) - len(tags), "release"),
            (len(row.key_changes) - len(keys), "key change"),
        )
        if number > 0
    ]
    return Chart(
        width=width,
        height=y + 24,
        bottom=y + 4,
        panels=tuple(panels),
        marks=marks,
        releases=tags,
        keys=keys,
        crosses=_crosses(row, report, coarse),
        floor=_TOP + _MAIN,
        dates=tuple(_dates(report, y + 19)),
        left_out=f"Not drawn, for lack of space: {', '.join(left_out)}." if left_out else "",
    )


def _dates(report: Trend, y: int) -> Iterator[Label]:
    """Yield up to four days below the line, as far as a phone has room for them; of the second on one day, the commit."""
    width, free, last = len(report.commits), 0.0, ""
    for at in sorted({width * quarter // 4 for quarter in range(4)}):
        x = 100 * (at + 0.5) / width
        if free <= x <= 100 - _DATE_ROOM:
            day = words.day(report.commits[at])
            yield Label(
                svg.percent(at, 0, width), y, day if day != last else words.sha(report.commits[at].sha)[:_SHORT]
            )
            free, last = x + _DATE_ROOM, day


def amount(reading: Reading, name: str) -> int:
    """Return the number of a panel, which is one of `QUANTITIES`."""
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
        dots="".join(f"M{index - report.first} {scale.place(value)}h0" for index, value in values)
        if main and len(values) <= _MOST_DOTS
        else "",
        bars=_bars(row, report, height) if main else None,
        ticks=tuple(
            Label("0", y + scale.place(tick), words.compact(tick, step=step)) for tick in scale.ticks() if main
        ),
    )


def _bars(row: Row, report: Trend, height: int) -> tuple[str, str] | None:
    """Return paths along the bottom, of commits that were measured and of those taken over; None where all were measured."""
    taken = {reading.index: reading.taken_over for reading in row.readings}
    if len(taken) == max(taken) - min(taken) + 1 and not any(taken.values()):
        return None
    paths = ["", ""]
    last: tuple[int, bool] | None = None
    for index, is_taken in sorted(taken.items()):
        path = paths[is_taken]
        grows = (index - 1, is_taken) == last
        paths[is_taken] = (path[: path.rindex("H")] if grows else f"{path}M{index - report.first - 0.5:g} {height}") + (
            f"H{index - report.first + 0.5:g}"
        )
        last = (index, is_taken)
    return (paths[0], paths[1]) if len("".join(paths)) <= _LONGEST_MAIN else ("", "")


def _marks(shown: Sequence[Finding], row: Row, report: Trend) -> tuple[Mark, ...]:
    scale = svg.Scale.of([reading.value for reading in row.readings], _MAIN)
    down = {reading.index: _TOP + scale.place(reading.value) for reading in row.readings}
    marks: list[Mark] = []
    for found in sorted(shown, key=lambda found: (found.index, found.id)):
        y = down[found.index] + (_AIR if found.kind is Kind.IMPROVEMENT else -_AIR)
        commits = some([words.sha(sha) for sha in found.suspects], 3)
        marks.append(
            Mark(
                found.index - report.first,
                svg.percent(found.index, report.first, len(report.commits)),
                min(max(y, _TOP), _TOP + _MAIN),
                found.kind.value,
                "" if found.confirmed and found.state in ACTIVE else "hollow",
                f"{words.kind(found)}{words.size(found)}: {commits}",
            )
        )
    return tuple(marks)


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


def key_changes(row: Row, report: Trend, coarse: int) -> tuple[Rule, ...]:
    """Return the lines where a benchmark was measured otherwise than before."""
    named = {reading.index: plain(reading.key[:12]) for reading in row.readings}
    places = [
        (at - report.first, "other key", f"measured differently from here on: comparability key {named.get(at, '')}")
        for at in row.key_changes
    ]
    return _rules(places, len(report.commits), _MOST_RULES // coarse)


def _crosses(row: Row, report: Trend, coarse: int) -> tuple[str, str, str] | None:
    """Return where a benchmark failed, as crosses in one row; of places that would cover each other, one."""
    width = len(report.commits)
    places = [at - report.first for at in row.failed]
    kept = _spread(places, width, _MOST_CROSSES // coarse)
    if not kept:
        return None
    x = " ".join(svg.percent(place, 0, width, digits=1) for place in kept)
    return x, "×" * len(kept), f"failed at {counted(len(places), 'commit')}"


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
    """Return at most `most` places in their order: all, or from the newest back those that do not crowd."""
    if len(places) <= most:
        return list(places)
    nearest = width / max(1, most)
    kept: list[int] = []
    for place in reversed(places):
        if not kept or kept[-1] - place >= nearest:
            kept.append(place)
    return kept[: max(1, most)][::-1]
