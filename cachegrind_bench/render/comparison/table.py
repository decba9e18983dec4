"""A comparison as aligned plain text, for terminals and logs alike; the verdict is the last line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cachegrind_bench.model.text import shortened
from cachegrind_bench.render.comparison.view import Row, View
from cachegrind_bench.render.comparison.words import LOOKS
from cachegrind_bench.render.table import aligned, fitted

_LONGEST_ID = 60
_LONGEST_NAME = 200
_LONGEST_FUNCTION = 48


def render(view: View, *, width: int | None = None) -> str:
    """Return the comparison; names are cut to fit this many columns of a terminal, if it has any."""
    return "".join(f"{line.rstrip()}\n" for line in _lines(view, width))


def _lines(view: View, width: int | None) -> Iterator[str]:
    yield from aligned(view.origin)
    yield from (f"notice: {notice}" for notice in view.notices)
    yield ""
    cells = fitted([view.columns, *map(_cells, view.rows)], width, (len(view.columns) - 1, 1))
    heading, *rows = aligned(cells, headed=True)
    yield heading
    for row, text in zip(view.rows, rows, strict=True):
        yield text
        yield from (f"    {remark}" for remark in row.remarks)
    if view.left_out:
        yield f"  and {view.left_out} (--rows 0 lists all)"
    for explanation in view.explanations:
        yield f"\nwhat moved in {shortened(explanation.title, _LONGEST_NAME)}"
        for place, table in enumerate(explanation.tables):
            yield from [""] if place else []
            yield from _table(table, width and width - 2)
        yield from (f"  {remark}" for remark in explanation.remarks)
    yield f"\n{view.headline}"


def _cells(row: Row) -> tuple[str, ...]:
    *numbers, function = row.cells
    state = f"{LOOKS[row.state][0]} {row.state.value}"
    return (state, shortened(row.id, _LONGEST_ID), *numbers, shortened(function, _LONGEST_FUNCTION))


def _table(rows: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    last = len(rows[0]) - 1  # the file or source line, after the function
    cells = fitted([[shortened(cell, _LONGEST_NAME) for cell in row] for row in rows], width, (last, last - 1))
    return (f"  {line}" for line in aligned(cells, headed=True))
