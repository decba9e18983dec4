"""A comparison as aligned plain text, for terminals and logs alike; the verdict is the last line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cachegrind_bench.compare.verdict import State
from cachegrind_bench.model.text import shortened
from cachegrind_bench.render.comparison.states import LOOKS
from cachegrind_bench.render.comparison.view import Row, View
from cachegrind_bench.render.table import GREEN, RED, YELLOW, aligned, coloured, fitted, is_wider, wrapped

_LONGEST_ID = 60
_LONGEST_NAME = 200
_LONGEST_FUNCTION = 48
# Columns that give way where a terminal is narrow, first the first; never that of the number that decides.
_OPTIONAL = (("Δ LL hits", "Δ RAM hits"), ("own code", "calls"), ("±",), ("Δ Ir", "Δ score"))
_SIDES = ("base", "candidate")
_COLOURS = {
    State.REGRESSION: RED,
    State.FAILED: RED,
    State.SUSPICIOUS: YELLOW,
    State.NOT_COMPARABLE: YELLOW,
    State.MISSING: YELLOW,
    State.NOISY: YELLOW,
    State.IMPROVEMENT: GREEN,
}


def render(view: View, *, width: int | None = None, colour: bool = False) -> str:
    """Return the comparison, for a terminal of this many columns (None: as wide as it gets), and with colours if it has them."""
    return "".join(f"{line.rstrip()}\n" for line in _lines(view, width, colour=colour))


def _lines(view: View, width: int | None, *, colour: bool) -> Iterator[str]:
    longest = max(len(label) for label, _text in view.origin)
    for label, text in view.origin:
        yield from wrapped(text, width, f"{label:{longest}}  ", " " * (longest + 2))
    for notice in view.notices:
        yield from wrapped(f"notice: {notice}", width, hanging="  ")
    yield ""
    cells = _laid_out(view, width)
    colours = {
        (number, place): colour_of
        for number, row in enumerate(view.rows, 1)
        if colour and (colour_of := _COLOURS.get(row.state))
        for place in (0, cells[0].index(view.deciding))
    }
    heading, *rows = aligned(cells, headed=True, colours=colours)
    yield heading
    for row, text in zip(view.rows, rows, strict=True):
        yield text
        for remark in row.remarks:
            yield from wrapped(remark, width, "    ")
    if view.start and cells[1][0] == LOOKS[view.verdict][0]:
        yield f"  all ids begin with {view.start}"
    if view.left_out:
        yield from wrapped(f"and {view.left_out} (--rows 0 lists all)", width, "  ")
    for explanation in view.explanations:
        yield f"\nwhat moved in {shortened(explanation.title, _LONGEST_NAME)}"
        for place, table in enumerate(explanation.tables):
            yield from [""] if place else []
            yield from _table(table, width and width - 2)
        for remark in explanation.remarks:
            yield from wrapped(remark, width, "  ")
    yield ""
    verdict, *rest = wrapped(view.headline, width)
    state, colon, about = verdict.partition(": ")
    yield coloured(state, _COLOURS.get(view.verdict) if colour else None) + colon + about
    yield from rest


def _laid_out(view: View, width: int | None) -> list[tuple[str, ...]]:
    """Return the table's cells: where these are too wide, with marks instead of states, and ids without what all begin with."""
    *columns, _where = view.columns
    optional = _optional(columns, view.deciding)
    sides = tuple(columns.index(name) for name in _SIDES)
    rows = [view.columns, *map(_cells, view.rows)]
    left_out = {place for places in optional for place in places}
    needed = [[cell for place, cell in enumerate(row) if place not in left_out] for row in rows]
    if is_wider(needed, width):
        brief = (_cells(row, view.start) for row in view.rows)
        rows = [view.columns, *((cells[0][0], *cells[1:]) for cells in brief)]
    return fitted(rows, width, (len(columns), 1), optional, sides)


def _optional(columns: Sequence[str], deciding: str) -> list[tuple[int, ...]]:
    return [tuple(columns.index(name) for name in names if name in columns and name != deciding) for names in _OPTIONAL]


def _cells(row: Row, start: str = "") -> tuple[str, ...]:
    *numbers, function = row.cells
    state = f"{LOOKS[row.state][0]} {row.state.value}"
    return (state, shortened(row.id.removeprefix(start), _LONGEST_ID), *numbers, shortened(function, _LONGEST_FUNCTION))


def _table(rows: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    last = len(rows[0]) - 1  # the file after the function, or the source line, which says more than that
    by_line = rows[0][last] == "source line"
    texts = [[shortened(cell, _LONGEST_NAME) for cell in row] for row in rows]
    order, optional = ((last - 1, last), ()) if by_line else ((last, last - 1), (last,))
    cells = fitted(texts, width, order, _optional(rows[0], rows[0][0]), optional)
    return (f"  {line}" for line in aligned(cells, headed=True))
