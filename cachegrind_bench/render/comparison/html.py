"""A comparison as one HTML page: the verdict, the benchmarks, and flame graphs of both sides for each that is explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cachegrind_bench.compare.verdict import State
from cachegrind_bench.render.benchmark_page import BenchmarkPage, Details, Row
from cachegrind_bench.render.comparison.words import LOOKS
from cachegrind_bench.render.table import Section

if TYPE_CHECKING:
    from cachegrind_bench.compare.call_paths import CallPaths
    from cachegrind_bench.render.comparison.view import View

_STYLES = {State.REGRESSION: "regression", State.FAILED: "regression", State.IMPROVEMENT: "improvement"}
_WITHOUT_GRAPH = (
    "calls of this benchmark were not recorded on both sides. Measure with --call-tree, or Python with --python-profile"
)


def page(view: View, names: tuple[str, str], paths: Mapping[str, Sequence[CallPaths]], *, tool_version: str) -> str:
    """Return the page; `names` are what the user calls the sides, `paths` those of benchmarks by their ids in the view."""
    remarks = {row.id: row.remarks for row in view.rows}
    return BenchmarkPage(
        title=" → ".join(names),
        headline=view.headline,
        origin=view.origin,
        notices=view.notices,
        columns=("benchmark", "state", *view.columns[2:]),
        rows=[
            Row((row.id, f"{LOOKS[row.state][0]} {row.state.value}", *row.cells), _STYLES.get(row.state, ""))
            for row in view.rows
        ],
        left_out=view.left_out,
        details=[
            Details(
                title=item.title,
                remarks=(*remarks[item.title], *item.remarks),
                hunks=item.hunks,
                graphs=paths.get(item.title, ()),
                without_graph=_WITHOUT_GRAPH,
                tables=[Section(columns=table[0], rows=table[1:]) for table in item.tables],
            )
            for item in view.explanations
        ],
    ).html(tool_version=tool_version)
