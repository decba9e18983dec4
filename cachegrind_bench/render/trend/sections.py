"""One benchmark as the page's templates need it: its badges, its line in the table, its chart and its figures.

Knows words and numbers; must not know HTML.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.history.values import STANDING, WORSE, Kind, stands
from cachegrind_bench.model.text import plain, shortened
from cachegrind_bench.render.trend import finding_text, svg, words
from cachegrind_bench.render.trend.chart import chart, told

if TYPE_CHECKING:
    from fractions import Fraction

    from cachegrind_bench.history.values import Against, Finding, Row, Trend
    from cachegrind_bench.render.trend.chart import Chart

SPARK_HEIGHT = 22
_LONGEST = 300
_MOST_BADGES = 3
_MOST_FIGURES = 8
_SPOKEN = 500  # a change of at least one part in so many is coloured


class Cell(msgspec.Struct, frozen=True):
    """What stands in a field of the table."""

    text: str
    look: str
    title: str


class Section(msgspec.Struct, frozen=True):
    """A benchmark as the templates need it: its line in the table, its chart and its figures."""

    anchor: str
    row: Row
    full: str
    states: str
    badges: tuple[tuple[str, str, str], ...]
    cells: tuple[Cell, ...]
    spark: str
    chart: Chart | None
    figures: tuple[tuple[str, ...], ...]


def _anchor(name: str) -> str:
    """Return a name for links that stays the same from report to report, whatever the benchmark is called."""
    return "b-" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def cut(text: str) -> str:
    """Return text at a bounded length for an eye that wants to know all; texts of megabytes take no longer than others."""
    return shortened(plain(shortened(text, 2 * _LONGEST)), _LONGEST)


def section(row: Row, view: Trend, coarse: int) -> Section:
    """Put a benchmark together; its drawings and lists may be so many times `coarse` as usual."""
    places = [(reading.index, reading.value) for reading in row.readings]
    return Section(
        anchor=_anchor(row.id),
        row=row,
        full=cut(row.id) if words.name(row.id) != cut(row.id) else "",
        states=" ".join(_states(row)),
        badges=tuple(_badges(row)),
        cells=tuple(_cell(item, row, view) for item in (row.day, row.week, row.month, row.release)),
        spark=svg.spark(places, view.first, view.first + len(view.commits) - 1, SPARK_HEIGHT - 2),
        chart=chart(row, view, coarse) if row.readings else None,
        figures=tuple(_figures(row, view, max(_MOST_FIGURES // coarse, 1))),
    )


def _states(row: Row) -> list[str]:
    """Return the words that the page's filter knows."""
    found = {item.state.value for item in row.findings if item.kind in WORSE}
    found |= {item.kind.value for item in row.findings if item.state in STANDING and item.kind not in WORSE}
    if any(item.kind is Kind.CREEP and item.state in STANDING for item in row.findings):
        found.add("creeping")
    if row.failing or row.missing:
        found.add("unhealthy")
    return sorted(found)


def _badges(row: Row) -> list[tuple[str, str, str]]:
    """Return shape, class and words of what stands, the most important first."""
    found = [(words.SHAPES[item.kind], item.kind.value, _badge(item)) for item in row.findings if stands(item)]
    if len(found) > _MOST_BADGES:
        found[_MOST_BADGES:] = [("", "more", f"and {len(found) - _MOST_BADGES} more")]
    if row.failing:
        found.append(("✕", "failed", "failing"))
    elif row.missing:
        found.append(("○", "failed", "missing"))
    return found


def _badge(found: Finding) -> str:
    if found.kind is Kind.UNSTABLE:
        return "unstable"
    label = "creep" if found.kind is Kind.CREEP else found.state.value
    return f"{label} {finding_text.size(found)}"


def _cell(item: Against | None, row: Row, view: Trend) -> Cell:
    change = item.change if item is not None else None
    look = "none" if change is None else _look(change)
    if row.id in view.health.unstable and change is not None:
        look = "same"  # its jumps mean nothing
    sign = {"worse": "▲ ", "better": "▼ "}.get(look, "")
    return Cell(sign + words.against(item), look, words.base(item, view))


def _look(change: Fraction) -> str:
    if abs(change) * _SPOKEN < 1:
        return "same"
    return "worse" if change > 0 else "better"


def _figures(row: Row, view: Trend, most: int) -> list[tuple[str, ...]]:
    """Return the readings that matter: where something was found, and the last few."""
    places = {reading.index: number for number, reading in enumerate(row.readings)}
    found = [places[item.index] for item in row.findings if item.index in places]
    wanted = {*found, *(place - 1 for place in found if place), *range(len(places) - 3, len(places))}
    chosen = sorted(place for place in wanted if place >= 0)[-most:]
    return [
        (words.day(view.noted.get(reading.sha)), words.sha(reading.sha), *told(reading))
        for reading in (row.readings[place] for place in chosen)
    ]
