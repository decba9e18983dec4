"""A comparison for a pull request: the verdict first, ten changes at most, all else folded, in a bounded size and width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from cachegrind_bench.compare.verdict import State
from cachegrind_bench.model.text import counted, name_or_path, shortened
from cachegrind_bench.render.comparison.states import LOOKS
from cachegrind_bench.render.comparison.view import Row, View
from cachegrind_bench.render.markdown import escape, fold, table
from cachegrind_bench.render.table import without_empty

# GitHub refuses a comment of more than 65,536 characters.
MOST_CHARACTERS = 60_000
_MOST_ROWS = 10
_MOST_FUNCTIONS = 50
_LONGEST_NAME = 120
_LONGEST_CELL = 48
# Rows that are folded, and not explained.
_QUIET = frozenset({State.UNCHANGED, State.SHIFT})
_LEFT_OUT = "\n*More is left out: this text would be too long. `cg-bench diff` shows it.*\n"


def render(view: View, *, most: int = MOST_CHARACTERS) -> str:
    """Return the comparison, without what is folded or remarked where it would get longer than `most` characters."""
    tail = "\n" + "".join(f"{label}: {escape(shortened(text, 400))}  \n" for label, text in view.origin)
    text, left_out = _head(view), ""
    for part in filter(None, _parts(view)):
        if len(text) + len(part) + len(tail) + len(_LEFT_OUT) > most:
            left_out = _LEFT_OUT
        else:
            text += part
    return text + left_out + tail


def _head(view: View) -> str:
    sign = "⚠️" if view.without_base and view.verdict is State.NEW else LOOKS[view.verdict][1]
    lines = [f"### {sign} {_cut(view.headline, 3000)}", ""]
    notices = [notice for notice in view.notices if notice not in view.headline]
    lines += [f"> ⚠️ {_cut(notice, 500)}\n" for notice in notices[:_MOST_ROWS]]
    shown = _changed(view)[:_MOST_ROWS]
    lines += [_table(view, shown)] if shown else []
    if view.start and view.rows:
        lines += [f"All ids begin with {_cut(view.start, _LONGEST_NAME)}\n"]
    return "\n".join(lines)


def _changed(view: View) -> list[Row]:
    return [row for row in view.rows if row.state not in _QUIET]


def _parts(view: View) -> Iterator[str]:
    """Yield what may be left out, the most important first."""
    changed = _changed(view)
    yield _remarks(view, changed[:_MOST_ROWS])
    for item in view.explanations:
        if item.state not in _QUIET:
            tables = "\n".join(map(_explained, item.tables))
            remarks = "".join(f"\n{_cut(remark, 500)}\n" for remark in item.remarks)
            yield fold(f"What moved in {item.title}", tables + remarks)
    unchanged = [row for row in view.rows if row.state in _QUIET]
    # In pieces, so that of a long list only the end is left out.
    more = "more" if view.without_base else "more changed"
    for rows, what in ((changed[_MOST_ROWS:], more), (unchanged, "unchanged")):
        for start in range(0, len(rows), 50):
            some = rows[start : start + 50]
            yield fold(counted(len(some), f"{what} benchmark"), _table(view, some) + _remarks(view, some))
    if view.left_out:
        yield f"\nNot listed: {escape(view.left_out)}.\n"


def _table(view: View, rows: Sequence[Row]) -> str:
    cells = [("benchmark", view.deciding, "base → candidate", "where"), *(_cells(view, row) for row in rows)]
    heading, *others = without_empty(cells, (3,))
    return table(heading, others)


def _cells(view: View, row: Row) -> tuple[str, ...]:
    found = dict(zip(view.columns[2:], row.cells, strict=True))
    sides = " → ".join(found[side] or "–" for side in ("base", "candidate"))
    margin = f" ± {found['±']}" if found.get("±") else ""
    name = f"{LOOKS[row.state][1]} {_name(view, row)}"
    return name, (found[view.deciding] or row.state.value) + margin, sides, shortened(found["where"], _LONGEST_CELL)


def _name(view: View, row: Row) -> str:
    return shortened(row.id.removeprefix(view.start), _LONGEST_CELL)


def _remarks(view: View, rows: Sequence[Row]) -> str:
    remarks = [
        f"- {_cut(_name(view, row), _LONGEST_NAME)}: {_cut(remark, 500)}\n" for row in rows for remark in row.remarks
    ]
    return "\n" + "".join(remarks) if remarks else ""


def _explained(rows: Sequence[Sequence[str]]) -> str:
    """Return a table with a function and its place in one cell; of a very long one the first rows and the last, the sum."""
    wanted = [place for place, name in enumerate(rows[0]) if place == 0 or name not in {"Δ Ir", "Δ score"}]
    cells = [[row[place] for place in wanted] for row in zip(*zip_longest(*rows, fillvalue=""), strict=True)]
    if cells[0][-2].endswith("function"):
        cells = [
            [*row[:-2], ", ".join(name_or_path(cell, _LONGEST_CELL) for cell in row[-2:] if cell)] for row in cells
        ]
    heading, *others = cells
    if len(others) > _MOST_FUNCTIONS:
        others = [*others[: _MOST_FUNCTIONS - 1], ["…"], others[-1]]
    return table(heading, others)


def _cut(text: str, length: int) -> str:
    """Return escaped text of about this many characters at most; an ampersand becomes two."""
    escaped = escape(shortened(text, length))
    return escaped if len(escaped) <= 2 * length else escape(shortened(text, length // 5))
