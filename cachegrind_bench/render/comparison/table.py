"""A comparison as aligned plain text, for terminals and logs alike; the verdict is the last line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.model.text import shortened
from cachegrind_bench.render.comparison.words import MARKS
from cachegrind_bench.render.table import aligned, fitted

if TYPE_CHECKING:
    from typing import TextIO

    from cachegrind_bench.render.comparison.explained import Explanation
    from cachegrind_bench.render.comparison.view import Row, View

_LONGEST_ID = 60
_LONGEST_NAME = 200
_LONGEST_FUNCTION = 48


def render(view: View, stream: TextIO, *, width: int | None = None) -> None:
    """Write the comparison; names are cut to fit this many columns of a terminal, if it has any."""
    lines = aligned(list(view.origin))
    lines += [f"notice: {notice}" for notice in view.notices]
    lines += ["", *_rows(view, width)]
    if view.left_out:
        lines.append(f"  and {view.left_out} (--rows 0 lists all)")
    for explanation in view.explanations:
        lines += ["", *_explanation(explanation, width)]
    lines += ["", view.headline]
    stream.write("\n".join(line.rstrip() for line in lines) + "\n")


def _rows(view: View, width: int | None) -> list[str]:
    """Return the table, each row followed by its remarks."""
    cells = fitted([view.columns, *map(_cells, view.rows)], width, (len(view.columns) - 1, 1))
    heading, *rows = aligned(cells, headed=True)
    lines = [heading]
    for row, text in zip(view.rows, rows, strict=True):
        lines.append(text)
        lines += [f"    {remark}" for remark in row.remarks]
    return lines


def _cells(row: Row) -> tuple[str, ...]:
    *numbers, function = row.cells
    state = f"{MARKS[row.state]} {row.state.value}"
    return (state, shortened(row.id, _LONGEST_ID), *numbers, shortened(function, _LONGEST_FUNCTION))


def _explanation(explanation: Explanation, width: int | None) -> list[str]:
    lines = [
        f"what moved in {shortened(explanation.title, _LONGEST_NAME)}",
        *([*_table(explanation.python_columns, explanation.python, width), ""] if explanation.python else []),
        *_table(explanation.columns, explanation.rows, width),
    ]
    if explanation.lines:
        lines += ["", *_table(explanation.line_columns, explanation.lines, width)]
    return lines + [f"  {remark}" for remark in explanation.remarks]


def _table(columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...], width: int | None) -> list[str]:
    last = len(columns) - 1  # the file or source line, before which a function stands
    rows = tuple(tuple(shortened(cell, _LONGEST_NAME) for cell in row) for row in rows)
    cells = fitted([columns, *rows], None if width is None else width - 2, (last, last - 1) if last else ())
    return [f"  {line}" for line in aligned(cells, headed=True)]
