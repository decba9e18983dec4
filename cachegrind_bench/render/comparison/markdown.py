"""A comparison for a pull request: the verdict first, at most ten rows, everything else folded, and a bounded size."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from cachegrind_bench.compare.verdict import State
from cachegrind_bench.model.text import shortened
from cachegrind_bench.render.markdown import escape, table, unreferenced

if TYPE_CHECKING:
    from typing import TextIO

    from cachegrind_bench.render.comparison.explained import Explanation
    from cachegrind_bench.render.comparison.view import Row, View

# GitHub refuses a comment of more than 65,536 characters.
MOST_CHARACTERS = 60_000
_MOST_ROWS = 10
_MOST_FUNCTIONS = 50
_LONGEST_NAME = 120
_LEFT_OUT = "\n*More is left out: this text would be too long. `cg-bench diff` shows it.*\n"

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


def render(view: View, stream: TextIO, *, most: int = MOST_CHARACTERS) -> None:
    """Write the comparison, leaving out what is folded or remarked where it would get longer than `most` characters."""
    tail = _tail(view)
    text = _head(view)
    remarks = _remarks(view.rows[:_MOST_ROWS])
    left_out = False
    for part in [*([remarks] if remarks else []), *_folded(view)]:
        if len(text) + len(part) + len(tail) + len(_LEFT_OUT) > most:
            left_out = True
        else:
            text += part
    stream.write(text + (_LEFT_OUT if left_out else "") + tail)


def _head(view: View) -> str:
    sign = "⚠️" if view.headline.startswith("no baseline") else _SIGNS[view.verdict]
    lines = [f"### {sign} {_cut(view.headline, 3000)}", ""]
    lines += [f"> ⚠️ {_cut(notice, 500)}\n" for notice in view.notices[:_MOST_ROWS]]
    shown = view.rows[:_MOST_ROWS]
    if shown:
        lines.append(_table(view, shown))
    return "\n".join(lines)


def _folded(view: View) -> list[str]:
    parts = [fold(f"What moved in {item.title}", _explanation(item)) for item in view.explanations]
    rest = view.rows[_MOST_ROWS:]
    # In pieces, so that of a long list only the end is left out.
    for start in range(0, len(rest), 50):
        some = rest[start : start + 50]
        parts.append(fold(f"{len(some)} more benchmarks", _table(view, some) + _remarks(some)))
    if view.left_out:
        parts.append(f"\nNot listed: {escape(view.left_out)}.\n")
    return parts


def _tail(view: View) -> str:
    return "\n" + "".join(f"<sub>{label}: {escape(shortened(text, 400))}</sub><br>\n" for label, text in view.origin)


def fold(summary: str, content: str) -> str:
    """Return Markdown that is folded under a summary, which may be any text."""
    # GitHub reads no Markdown within a summary, only HTML.
    title = html.escape(shortened(summary, _LONGEST_NAME))
    for sign in ("@", "#", ":", "www"):  # that make a mention, a reference or an address of what follows
        title = title.replace(sign, f"{sign}\u200b")
    title = unreferenced(title)
    return f"\n<details><summary>{title}</summary>\n\n{content}\n</details>\n"


def _table(view: View, rows: tuple[Row, ...]) -> str:
    return table(view.columns, [_cells(row) for row in rows])


def _remarks(rows: tuple[Row, ...]) -> str:
    remarks = [f"- {_cut(row.id, _LONGEST_NAME)}: {_cut(remark, 500)}" for row in rows for remark in row.remarks]
    return "\n" + "\n".join(remarks) + "\n" if remarks else ""


def _cells(row: Row) -> tuple[str, ...]:
    cells = [shortened(cell, _LONGEST_NAME) for cell in (row.id, *row.cells)]
    return (f"{_SIGNS[row.state]} {row.state.value}", *cells)


def _explanation(item: Explanation) -> str:
    text = _rows(item.python_columns, item.python) + "\n" if item.python else ""
    text += _rows(item.columns, item.rows)
    if item.lines:
        text += "\n" + _rows(item.line_columns, item.lines)
    return text + "".join(f"\n{_cut(remark, 500)}\n" for remark in item.remarks)


def _rows(columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> str:
    """Return a table; of a very long one the first rows and the last, which is the sum."""
    if len(rows) > _MOST_FUNCTIONS:
        rows = (*rows[: _MOST_FUNCTIONS - 1], ("…",), rows[-1])
    return table(columns, [tuple(shortened(cell, _LONGEST_NAME) for cell in row) for row in rows])


def _cut(text: str, length: int) -> str:
    """Return escaped text of about this many characters at most; an ampersand becomes five."""
    escaped = escape(shortened(text, length))
    return escaped if len(escaped) <= 2 * length else escape(shortened(text, length // 5))
