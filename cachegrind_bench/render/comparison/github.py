"""A comparison as GitHub workflow commands: one annotation a benchmark that matters, every character escaped.

Format: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Collection

from cachegrind_bench.compare.verdict import State
from cachegrind_bench.model.text import shortened
from cachegrind_bench.render.comparison.states import LOOKS
from cachegrind_bench.render.comparison.view import Row, View

# GitHub shows ten annotations of a kind for each step and drops the others without a word.
_MOST = 10
_LONGEST, LONGEST_MESSAGE = 200, 4000


def render(view: View, *, brief: bool = False) -> str:
    """Return the annotations, worst first, and last the verdict; if `brief`, that only where no benchmark has an annotation.

    Without a base all benchmarks are new, which is not worth an annotation.
    """
    text = ""
    for level in ("error", "warning", "notice"):
        rows = [row for row in view.rows if LOOKS[row.state][2] == level]
        rows = [row for row in rows if not (view.without_base and row.state is State.NEW)]
        room = _MOST - (level == "notice")
        shown = rows if len(rows) <= room else rows[: room - 1]
        for row in shown:
            text += command(level, f"{row.state.value}: {row.id}", message(row, view), place=row.place)
        if len(shown) < len(rows):
            text += command(level, "cg-bench", f"{len(rows) - len(shown)} more benchmarks like these")
    if brief and (text or view.without_base):
        return text
    notices = "".join(f" ({notice})" for notice in view.notices if notice not in view.headline)
    level = LOOKS[view.verdict][2] or "notice"
    known = any(LOOKS[row.state][2] == level for row in view.rows)  # once is enough
    return text + command("notice" if known else level, "cg-bench", view.headline + notices)


def message(row: Row, view: View, columns: Collection[str] | None = None) -> str:
    """Return the numbers of a benchmark (of these columns; None: all) and the remarks on it, in one line."""
    numbers = [
        f"{label} {shortened(cell, _LONGEST)}"
        for label, cell in zip(view.columns[2:], row.cells, strict=True)
        if cell and (columns is None or label in columns)
    ]
    return "; ".join([", ".join(numbers), *row.remarks] if numbers else row.remarks)


def command(level: str, title: str, message: str, *, place: tuple[str, int] | None = None) -> str:
    """Return the line that makes an annotation: an `error`, `warning` or `notice`, at a file and line if there are any."""
    properties = f"title={_property(shortened(title, _LONGEST))}"
    if place is not None and len(place[0]) <= LONGEST_MESSAGE:
        properties += f",file={_property(place[0])}" + (f",line={place[1]}" if place[1] else "")
    return f"::{level} {properties}::{_data(shortened(message, LONGEST_MESSAGE))}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
