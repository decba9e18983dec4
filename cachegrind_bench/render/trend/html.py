"""The trend report as one HTML page that loads nothing: drawings first, one script that adds to them, everything escaped.

Knows the templates; what is said comes from `words`, where lines go from `chart`, the script's numbers from `data`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.history.values import stands
from cachegrind_bench.model.text import counted, grouped, plain, shortened
from cachegrind_bench.render.page.html import looks, ours, template
from cachegrind_bench.render.trend import data, finding_text, words
from cachegrind_bench.render.trend.sections import SPARK_HEIGHT, cut, section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jinja2 import Template

    from cachegrind_bench.history.values import Trend

_PACKAGE = "cachegrind_bench.render.trend"
_MOST_BYTES = 1_000_000
_USUAL = 50 * 500  # readings
_COARSER = (1, 3, 9, 27)
_MOST_FINDINGS = 200
_MOST_SUSPECTS = 10
_MOST_NOTES = 20


def page(view: Trend) -> str:
    """Return the page. It needs no network, and no script for what matters.

    It has at most `_MOST_BYTES` with 50 benchmarks over 500 commits: where much has happened, drawings get coarser and lists
    shorter, which is told; the script draws all again.
    """
    view = _bounded(view)
    most = max(_MOST_BYTES, _MOST_BYTES * len(view.rows) * len(view.commits) // _USUAL)
    text, layout, moves = "", template(_PACKAGE), finding_text.moves(view)
    for coarse in _COARSER:
        text = _page(view, layout, moves, coarse)
        if len(text.encode()) <= most:
            break
    return text


def _bounded(view: Trend) -> Trend:
    """Return the report with texts of bounded length about where it comes from."""
    made = view.provenance
    provenance = replace(
        made,
        title=cut(made.title),
        store=cut(made.store),
        branch=made.branch and cut(made.branch),
        notes=tuple((cut(name), cut(value)) for name, value in made.notes[:_MOST_NOTES]),
    )
    return replace(view, provenance=provenance, release=view.release and shortened(plain(view.release), 40))


def _page(view: Trend, layout: Template, moves: Mapping[str, str], coarse: int) -> str:
    sections = [section(row, view, coarse) for row in view.rows]
    return layout.render(
        view=view,
        words=words,
        stories=finding_text,
        counted=counted,
        grouped=grouped,
        cut=cut,
        sections=sections,
        anchors={item.row.id: item.anchor for item in sections},
        tiles=_tiles(view),
        moves=moves,
        standing=[item for item in view.findings if stands(item)],
        settled=[item for item in view.findings if not stands(item)],
        most_findings=max(_MOST_FINDINGS // coarse, 1),
        keys=_keys(view),
        most_suspects=max(_MOST_SUSPECTS // coarse, 2),
        spark_height=SPARK_HEIGHT,
        tool_version=view.provenance.tool_version,
        data=ours(data.block(view, [item.anchor for item in sections], coarse)),
        **looks(_PACKAGE),
    )


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
