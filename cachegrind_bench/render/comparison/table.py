"""A comparison as aligned plain text, for terminals and logs alike; the verdict is the last line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.render.comparison.words import MARKS
from cachegrind_bench.render.names import shortened
from cachegrind_bench.render.table import aligned

if TYPE_CHECKING:
    from typing import TextIO

    from cachegrind_bench.render.comparison.view import Explanation, Row, View

_LONGEST_ID = 60
_LONGEST_FUNCTION = 48


def render(view: View, stream: TextIO) -> None:
    """Write the comparison."""
    lines = aligned(list(view.origin))
    lines += [f"notice: {notice}" for notice in view.notices]
    lines += ["", *_rows(view)]
    if view.left_out:
        lines.append(f"  and {view.left_out} (--rows 0 lists all)")
    for explanation in view.explanations:
        lines += ["", *_explanation(explanation)]
    lines += ["", view.headline]
    stream.write("\n".join(line.rstrip() for line in lines) + "\n")


def _rows(view: View) -> list[str]:
    """Return the table, each row followed by its remarks."""
    heading, *rows = aligned([view.columns, *map(_cells, view.rows)], headed=True)
    lines = [heading]
    for row, text in zip(view.rows, rows, strict=True):
        lines.append(text)
        lines += [f"    {remark}" for remark in row.remarks]
    return lines


def _cells(row: Row) -> tuple[str, ...]:
    *numbers, function = row.cells
    return (
        f"{MARKS[row.state]} {row.state.value}",
        shortened(row.id, _LONGEST_ID),
        *numbers,
        shortened(function, _LONGEST_FUNCTION),
    )


def _explanation(explanation: Explanation) -> list[str]:
    lines = [explanation.title]
    lines += [f"  {line}" for line in aligned([explanation.columns, *explanation.rows], headed=True)]
    if explanation.lines:
        lines += [
            "",
            *(f"  {line}" for line in aligned([explanation.line_columns, *explanation.lines], headed=True)),
        ]
    return lines + [f"  {remark}" for remark in explanation.remarks]
