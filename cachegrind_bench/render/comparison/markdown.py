"""A comparison for a pull request: the verdict first, at most ten rows, everything else folded, and a bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.compare.verdict import State
from cachegrind_bench.render.markdown import escape, table
from cachegrind_bench.render.names import shortened

if TYPE_CHECKING:
    from typing import TextIO

    from cachegrind_bench.render.comparison.view import Explanation, Row, View

# GitHub refuses a comment of more than 65,536 characters.
MOST_CHARACTERS = 60_000
_MOST_ROWS = 10
_LONGEST_NAME = 120

_SIGNS = {
    State.REGRESSION: "❌",
    State.FAILED: "💥",
    State.SUSPICIOUS: "❓",
    State.NOT_COMPARABLE: "🚫",
    State.MISSING: "❓",
    State.NOISY: "🌊",
    State.SHIFT: "↔️",
    State.IMPROVEMENT: "✅",
    State.NEW: "🆕",
    State.UNCHANGED: "✔️",
}


def render(view: View, stream: TextIO) -> None:
    """Write the comparison, cutting what is folded (the least important first) where it gets too long."""
    head = _head(view)
    tail = _tail(view)
    size = len(head) + len(tail)
    for part in _folded(view):
        if size + len(part) > MOST_CHARACTERS:
            head += "\n*More is left out: this text would be too long. `cg-bench diff` shows it.*\n"
            break
        head += part
        size += len(part)
    stream.write(head + tail)


def _head(view: View) -> str:
    lines = [f"### {_SIGNS[view.verdict]} {escape(shortened(view.headline, 1000))}", ""]
    lines += [f"> ⚠️ {escape(shortened(notice, 1000))}\n" for notice in view.notices]
    shown = view.rows[:_MOST_ROWS]
    if shown:
        lines.append(_table(view, shown))
    return "\n".join(lines)


def _folded(view: View) -> list[str]:
    parts = [_fold(f"What moved in {item.title}", _explanation(item)) for item in view.explanations]
    rest = view.rows[_MOST_ROWS:]
    # In pieces, so that a long list is cut between benchmarks.
    for start in range(0, len(rest), 50):
        some = rest[start : start + 50]
        parts.append(_fold(f"{len(some)} more benchmarks", _table(view, some)))
    if view.left_out:
        parts.append(f"\nNot listed: {escape(view.left_out)}.\n")
    return parts


def _tail(view: View) -> str:
    return "\n" + "".join(f"<sub>{label}: {escape(shortened(text, 400))}</sub><br>\n" for label, text in view.origin)


def _fold(summary: str, content: str) -> str:
    return f"\n<details><summary>{escape(shortened(summary, _LONGEST_NAME))}</summary>\n\n{content}\n</details>\n"


def _table(view: View, rows: tuple[Row, ...]) -> str:
    text = table(view.columns, [_cells(row) for row in rows])
    remarks = [
        f"- {escape(shortened(row.id, _LONGEST_NAME))}: {escape(shortened(remark, 500))}"
        for row in rows
        for remark in row.remarks
    ]
    return text + ("\n" + "\n".join(remarks) + "\n" if remarks else "")


def _cells(row: Row) -> tuple[str, ...]:
    cells = [shortened(cell, _LONGEST_NAME) for cell in (row.id, *row.cells)]
    return (f"{_SIGNS[row.state]} {row.state.value}", *cells)


def _explanation(item: Explanation) -> str:
    text = table(item.columns, [tuple(shortened(cell, _LONGEST_NAME) for cell in row) for row in item.rows])
    if item.lines:
        rows = [tuple(shortened(cell, _LONGEST_NAME) for cell in row) for row in item.lines]
        text += "\n" + table(item.line_columns, rows)
    return text + "".join(f"\n{escape(shortened(remark, 500))}\n" for remark in item.remarks)
