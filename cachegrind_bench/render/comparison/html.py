"""A comparison as one HTML page that loads nothing: the verdict, the benchmarks, and a flame graph of each that is explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING

from cachegrind_bench.compare.verdict import State
from cachegrind_bench.model.text import shortened
from cachegrind_bench.render.comparison.markdown import name_or_path
from cachegrind_bench.render.comparison.words import LOOKS
from cachegrind_bench.render.flame import graph
from cachegrind_bench.render.page import block, render

if TYPE_CHECKING:
    from cachegrind_bench.compare.call_paths import CallPaths
    from cachegrind_bench.render.comparison.view import View

_MOST_ROWS = 1_000  # of benchmarks
_LONGEST = 300
# Columns of words; all others are numbers.
_WORDS = frozenset({"benchmark", "where", "function", "file", "Python function", "line", "source line", "called from"})
_STYLES = {State.REGRESSION: "regression", State.FAILED: "regression", State.IMPROVEMENT: "improvement"}


def page(view: View, names: tuple[str, str], paths: Mapping[str, CallPaths], *, tool_version: str) -> str:
    """Return the page; `names` are what the user calls the sides, `paths` those of benchmarks by their ids in the view."""
    explained = [(item, paths.get(item.title), map(_words_first, item.tables)) for item in view.explanations]
    return render(
        "comparison",
        with_flames=True,
        data=block([graph(found) for _item, found, _tables in explained if found is not None]),
        title=" → ".join(shortened(name, _LONGEST) for name in names),
        view=view,
        rows=view.rows[:_MOST_ROWS],
        more=len(view.rows[_MOST_ROWS:]),
        explained=explained,
        remarks={row.id: row.remarks for row in view.rows},
        marks={state: looks[0] for state, looks in LOOKS.items()},
        styles=_STYLES,
        is_words=_WORDS.__contains__,
        name_or_path=name_or_path,
        cut=partial(shortened, length=_LONGEST),
        tool_version=tool_version,
    )


def _words_first(table: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return a table with what its rows are called on the left, where a narrow screen shows it."""
    columns = sorted(zip_longest(*table, fillvalue=""), key=lambda column: column[0] not in _WORDS)
    return [list(row) for row in zip(*columns, strict=True)]
