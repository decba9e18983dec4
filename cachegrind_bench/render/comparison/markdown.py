"""A comparison for a pull request: the verdict first, at most ten rows, everything else folded, and a bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cachegrind_bench.model.text import shortened
from cachegrind_bench.render.comparison.view import Row, View
from cachegrind_bench.render.comparison.words import LOOKS
from cachegrind_bench.render.markdown import escape, fold, table

# GitHub refuses a comment of more than 65,536 characters.
MOST_CHARACTERS = 60_000
_MOST_ROWS = 10
_MOST_FUNCTIONS = 50
_LONGEST_NAME = 120
_LEFT_OUT = "\n*More is left out: this text would be too long. `cg-bench diff` shows it.*\n"


def render(view: View, *, most: int = MOST_CHARACTERS) -> str:
    """Return the comparison, without what is folded or remarked where it would get longer than `most` characters."""
    tail = "\n" + "".join(f"<sub>{label}: {escape(shortened(text, 400))}</sub><br>\n" for label, text in view.origin)
    text, left_out = _head(view), ""
    for part in filter(None, _parts(view)):
        if len(text) + len(part) + len(tail) + len(_LEFT_OUT) > most:
            left_out = _LEFT_OUT
        else:
            text += part
    return text + left_out + tail


def _head(view: View) -> str:
    sign = "⚠️" if view.headline.startswith("no baseline") else LOOKS[view.verdict][1]
    lines = [f"### {sign} {_cut(view.headline, 3000)}", ""]
    lines += [f"> ⚠️ {_cut(notice, 500)}\n" for notice in view.notices[:_MOST_ROWS]]
    lines += [_table(view, view.rows[:_MOST_ROWS])] if view.rows else []
    return "\n".join(lines)


def _parts(view: View) -> Iterator[str]:
    """Yield what may be left out, the most important first."""
    yield _remarks(view.rows[:_MOST_ROWS])
    for item in view.explanations:
        tables = "\n".join(map(_explained, item.tables))
        remarks = "".join(f"\n{_cut(remark, 500)}\n" for remark in item.remarks)
        yield fold(f"What moved in {item.title}", tables + remarks)
    # In pieces, so that of a long list only the end is left out.
    for start in range(_MOST_ROWS, len(view.rows), 50):
        some = view.rows[start : start + 50]
        yield fold(f"{len(some)} more benchmarks", _table(view, some) + _remarks(some))
    if view.left_out:
        yield f"\nNot listed: {escape(view.left_out)}.\n"


def _table(view: View, rows: Sequence[Row]) -> str:
    signed = ((f"{LOOKS[row.state][1]} {row.state.value}", row.id, *row.cells) for row in rows)
    return table(view.columns, [_shortened(row) for row in signed])


def _remarks(rows: Sequence[Row]) -> str:
    remarks = [f"- {_cut(row.id, _LONGEST_NAME)}: {_cut(remark, 500)}\n" for row in rows for remark in row.remarks]
    return "\n" + "".join(remarks) if remarks else ""


def _explained(rows: Sequence[Sequence[str]]) -> str:
    """Return a table; of a very long one the first rows and the last, which is the sum of functions."""
    columns, *rows = map(_shortened, rows)
    if len(rows) > _MOST_FUNCTIONS:
        rows = [*rows[: _MOST_FUNCTIONS - 1], ["…"], rows[-1]]
    return table(columns, rows)


def _shortened(row: Sequence[str]) -> list[str]:
    return [shortened(cell, _LONGEST_NAME) for cell in row]


def _cut(text: str, length: int) -> str:
    """Return escaped text of about this many characters at most; an ampersand becomes five."""
    escaped = escape(shortened(text, length))
    return escaped if len(escaped) <= 2 * length else escape(shortened(text, length // 5))
