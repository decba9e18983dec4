"""The trend report as one HTML page that loads nothing: drawings first, one script that adds to them, everything escaped.

Knows the templates; what is said comes from `words`, where lines go from `chart`, the script's numbers from `data`.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from cachegrind_bench.history.report import STANDING, WORSE, stands
from cachegrind_bench.history.values import Kind
from cachegrind_bench.render.names import plain
from cachegrind_bench.render.numbers import counted, grouped
from cachegrind_bench.render.trend import data, stories, svg, words
from cachegrind_bench.render.trend.chart import chart, told

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from cachegrind_bench.history.report import Against, Row, Trend
    from cachegrind_bench.history.values import Finding
    from cachegrind_bench.render.trend.chart import Chart

_SPARK_HEIGHT = 22
_MOST_FIGURES = 8
_MOST_BYTES = 1_000_000
_COARSER = (1, 2, 4, 8, 16, 64)
_MOST_FINDINGS = 200
_MOST_SUSPECTS = 10
_SPOKEN = 1000  # a change of at least one part in so many is coloured


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    look: str
    title: str


@dataclass(frozen=True, slots=True)
class _Section:
    """A benchmark as the templates need it: its line in the table, its chart and its figures."""

    anchor: str
    row: Row
    states: str
    badges: tuple[tuple[str, str, str], ...]
    cells: tuple[_Cell, ...]
    spark: str
    chart: Chart | None
    figures: tuple[tuple[str, ...], ...]


def page(view: Trend) -> str:
    """Return the page. It needs no network, and no script for what matters.

    It has at most `_MOST_BYTES` with 50 benchmarks over 500 commits: where much has happened, drawings get coarser and lists
    shorter, which is told; the script draws all again.
    """
    text = ""
    for coarse in _COARSER:
        text = _page(view, coarse)
        if len(text.encode()) <= _MOST_BYTES:
            break
    return text


def _page(view: Trend, coarse: int) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("cachegrind_bench.render.trend", "templates"),
        autoescape=True,
        finalize=_visible,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    sections = [_section(row, view, coarse) for row in view.rows]
    style, script = _own("page.css"), _own("page.js")
    return environment.get_template("page.html.j2").render(
        view=view,
        words=words,
        stories=stories,
        counted=counted,
        grouped=grouped,
        plain=plain,
        sections=sections,
        anchors={section.row.id: section.anchor for section in sections},
        tiles=_tiles(view),
        moves=stories.moves(view),
        standing=[item for item in view.findings if stands(item)],
        settled=[item for item in view.findings if not stands(item)],
        most_findings=max(_MOST_FINDINGS // coarse, 1),
        keys=_keys(view),
        most_suspects=max(_MOST_SUSPECTS // coarse, 2),
        spark_height=_SPARK_HEIGHT,
        # Ours, and free of what would end their element.
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        data=Markup(data.block(view, [section.anchor for section in sections])),  # noqa: S704
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def _visible(value: object) -> object:
    """Show what hostile text would hide; what is markup already is ours."""
    return plain(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _own(name: str) -> str:
    return files("cachegrind_bench.render.trend").joinpath(name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _anchor(name: str) -> str:
    """Return a name for links that stays the same from report to report, whatever the benchmark is called."""
    return "b-" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def _section(row: Row, view: Trend, coarse: int) -> _Section:
    places = [(reading.index, reading.value) for reading in row.readings]
    return _Section(
        anchor=_anchor(row.id),
        row=row,
        states=" ".join(_states(row)),
        badges=tuple(_badges(row)),
        cells=tuple(_cell(item, row, view) for item in (row.day, row.week, row.month, row.release)),
        spark=svg.spark(places, view.first, view.first + len(view.commits) - 1, _SPARK_HEIGHT - 2),
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
    if row.failing:
        found.append(("✕", "failed", "failing"))
    elif row.missing:
        found.append(("○", "failed", "missing"))
    return found


def _badge(found: Finding) -> str:
    if found.kind is Kind.UNSTABLE:
        return "unstable"
    label = "creep" if found.kind is Kind.CREEP else found.state.value
    return f"{label} {stories.size(found)}"


def _cell(item: Against | None, row: Row, view: Trend) -> _Cell:
    change = item.change if item is not None else None
    look = "none" if change is None else _look(change)
    if row.id in view.health.unstable and change is not None:
        look = "same"  # its jumps mean nothing
    sign = {"worse": "▲ ", "better": "▼ "}.get(look, "")
    return _Cell(sign + words.against(item), look, words.base(item, view))


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


def _tiles(view: Trend) -> list[tuple[str, str, str, int, str]]:
    """Return filter, class, shape, number and words for each of the headline's numbers."""
    found = view.headline
    tiles = [
        ("new", "regression", "▲", found.new, f"new {words.since(found)}"),
        ("open", "regression", "▲", found.open, "still open"),
        ("creeping", "creep", "◆", found.creeping, "creeping"),
        ("recovered", "recovered", "✓", found.recovered, "recovered"),
        ("improvement", "improvement", "▼", found.improved, "newly improved"),
    ]
    if found.possible:
        tiles.insert(1, ("new", "regression", "△", found.possible, "possible: one reading so far"))
    if found.suspicious:
        tiles.append(("improvement", "improvement", "▼", found.suspicious, "suspicious drop"))
    if found.unstable:
        tiles.append(("unstable", "unstable", "≈", found.unstable, "unstable"))
    if found.acknowledged:
        tiles.append(("acknowledged", "recovered", "✓", found.acknowledged, "accepted"))
    return tiles


def _keys(view: Trend) -> Sequence[tuple[str, int]]:
    """Return the comparability keys of the newest readings, and of how many benchmarks each is."""
    found: dict[str, int] = {}
    for row in view.rows:
        if row.latest is not None:
            found[row.latest.key] = found.get(row.latest.key, 0) + 1
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))
