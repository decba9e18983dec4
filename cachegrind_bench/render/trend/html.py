"""The trend report as one HTML page that loads nothing: what matters as text, charts by its script, everything escaped.

Knows the templates; what is said comes from `words`, small pictures from `drawings`, the script's numbers from `data`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from cachegrind_bench.history.values import ACTIVE, WORSE, Against, Kind, Row, Trend, is_active
from cachegrind_bench.model.metrics import IR_MODEL
from cachegrind_bench.model.text import grouped, plain, shortened
from cachegrind_bench.render.page import render
from cachegrind_bench.render.trend import data, words
from cachegrind_bench.render.trend.drawings import HEIGHT, WIDTH, curves, spark

_MOST_ROWS = 5_000
_MOST_FINDINGS = 200
_MOST_SUSPECTS = 10
_MOST_NOTES = 20
_MOST_BADGES = 3
_MOST_FIGURES = 8
_LONGEST = 300
_COLOURED = 500  # a change of at least one part in this many


def page(view: Trend) -> str:
    """Return the page. It needs no network, and no script for what matters. Of very many benchmarks, those with findings come first."""
    anchors, moves = {row.id: _anchor(row.id) for row in view.rows}, words.moves(view)
    view = _bounded(view)
    keys = Counter(row.latest.key for row in view.rows if row.latest is not None)  # of the newest readings
    young = words.is_young(view)  # looks at all rows
    return render(
        "trend",
        data=data.block(view, [anchors[row.id] for row in view.rows]),
        view=view,
        words=words,
        cut=_cut,
        sections=[_section(row, anchors[row.id], view, young=young) for row in view.rows],
        anchors=anchors,
        sparse=any(map(_is_sparse, view.rows)),
        tiles=list(_tiles(view)),
        moves=moves,
        standing=[item for item in view.findings if is_active(item)],
        settled=[item for item in view.findings if not is_active(item)],
        most_findings=_MOST_FINDINGS,
        keys=sorted(keys.items(), key=lambda item: (-item[1], item[0])),
        most_suspects=_MOST_SUSPECTS,
        tool_version=view.provenance.tool_version,
        curves_size=(WIDTH, HEIGHT),
    )


def _bounded(view: Trend) -> Trend:
    """Return the report with a bounded number of benchmarks, and texts of bounded length about where it comes from."""
    made, rows, left_out = view.provenance, view.rows, []
    if len(rows) > _MOST_ROWS:
        left_out = [
            ("Benchmarks", f"{_MOST_ROWS:,} of {len(rows):,}; for others give --benchmark PATTERN to cg-bench trend")
        ]
        rows = tuple(sorted(rows, key=lambda row: not row.findings)[:_MOST_ROWS])
    provenance = replace(
        made,
        title=_cut(made.title),
        store=_cut(made.store),
        branch=made.branch and _cut(made.branch),
        notes=tuple((_cut(name), _cut(value)) for name, value in (*left_out, *made.notes[:_MOST_NOTES])),
    )
    return replace(view, rows=rows, provenance=provenance, release=view.release and shortened(plain(view.release), 40))


def _cut(text: str) -> str:
    """Return text at a bounded length for a full title; texts of megabytes take no longer than others."""
    return shortened(plain(shortened(text, 2 * _LONGEST)), _LONGEST)


def _is_sparse(row: Row) -> bool:
    """Return whether some commits between its first and last reading have none of their own."""
    readings = row.readings
    return bool(readings) and (
        len(readings) <= readings[-1].index - readings[0].index or any(reading.taken_over for reading in readings)
    )


def _tiles(view: Trend) -> Iterator[tuple[str, str, str, int, str]]:
    """Yield filter, class, shape, number and words for each of the headline's numbers."""
    found = view.headline
    yield "new", "regression", "▲", found.new, f"new {words.since(found)}"
    if found.possible:
        yield "new", "regression", "△", found.possible, "possible: one reading so far"
    yield "open", "regression", "▲", found.open, "still open"
    yield "creeping", "creep", "◆", found.creeping, "creeping"
    yield "recovered", "recovered", "✓", found.recovered, "recovered"
    yield "improvement", "improvement", "▼", found.improved, "newly improved"
    if found.suspicious:
        yield "improvement", "improvement", "▼", found.suspicious, "suspicious drop"
    if found.unstable:
        yield "unstable", "unstable", "≈", found.unstable, "unstable"
    if found.acknowledged:
        yield "acknowledged", "recovered", "✓", found.acknowledged, "accepted"


def _anchor(name: str) -> str:
    """Return the anchor of a benchmark, for links that stay the same from report to report, whatever its name has in it."""
    return "b-" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def _section(row: Row, anchor: str, view: Trend, *, young: bool) -> dict[str, object]:
    """Return a benchmark as the templates need it: its line in the table, its chart and its figures."""
    places = [(reading.index, reading.value) for reading in row.readings]
    first = words.since_first(row)
    return {
        "anchor": anchor,
        "row": row,
        "full": _cut(row.id) if words.name(row.id) != _cut(row.id) else "",
        "states": " ".join(_states(row)),
        "badges": _badges(row),
        "latest": words.levels(first) if young else words.compact(row.latest.value) if row.latest else "–",
        "cells": [
            _cell(item, row, view) for item in ([first] if young else (row.day, row.week, row.month, row.release))
        ],
        "spark": spark(places, view.first, len(view.commits)),
        "curves": curves(row),
        "height": _height(row),
        "figures": _figures(row, view),
    }


def _height(row: Row) -> int:
    """Return the height of the drawing in pixels, with the panels below it that it has."""
    if row.model != IR_MODEL.name:
        return 370
    return 322 if data.with_caches(row) else 226


def _states(row: Row) -> list[str]:
    """Return the words that the page's filter knows."""
    found = {item.state.value for item in row.findings if item.kind in WORSE}
    found |= {item.kind.value for item in row.findings if item.state in ACTIVE and item.kind not in WORSE}
    found |= {"creeping" for item in row.findings if item.kind is Kind.CREEP and item.state in ACTIVE}
    return sorted(found | ({"unhealthy"} if row.failing or row.missing else set[str]()))


def _badges(row: Row) -> list[tuple[str, str, str]]:
    """Return shape, class and words of what somebody should look at, the most important first."""
    found: list[tuple[str, str, str]] = []
    for item in filter(is_active, row.findings):
        label = "creep" if item.kind is Kind.CREEP else item.state.value
        text = "unstable" if item.kind is Kind.UNSTABLE else label + words.size(item)
        found.append((words.SHAPES[item.kind], item.kind.value, text))
    if len(found) > _MOST_BADGES:
        found[_MOST_BADGES:] = [("", "more", f"and {len(found) - _MOST_BADGES} more")]
    if row.failing:
        found.append(("✕", "failed", "failing"))
    elif row.missing:
        found.append(("○", "failed", "missing"))
    return found


def _cell(item: Against | None, row: Row, view: Trend) -> tuple[str, str, str]:
    """Return text, class and title of how a benchmark compares with an earlier reading."""
    change = item.change if item is not None else None
    sign, look = "", "same"
    if change is None:
        look = "none"
    elif abs(change) * _COLOURED >= 1 and row.id not in view.health.unstable:  # the jumps of those mean nothing
        sign, look = ("▲ ", "worse") if change > 0 else ("▼ ", "better")
    return sign + words.against(item), look, words.base(item, view)


def _figures(row: Row, view: Trend) -> list[tuple[str, ...]]:
    """Return the readings that matter: where something was found, and the last few."""
    places = {reading.index: number for number, reading in enumerate(row.readings)}
    found = [places[item.index] for item in row.findings if item.index in places]
    wanted = {*found, *(place - 1 for place in found if place), *range(len(places) - 3, len(places))}
    chosen = sorted(place for place in wanted if place >= 0)[-_MOST_FIGURES:]
    return [
        (
            words.day(view.noted.get(reading.sha)),
            words.sha(reading.sha),
            *(
                grouped(data.amount(reading, name)) if name in {"value", "ir"} or reading.counts.with_caches else "–"
                for name in data.QUANTITIES
            ),
        )
        for reading in (row.readings[place] for place in chosen)
    ]
