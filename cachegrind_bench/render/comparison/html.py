"""A comparison as one HTML page: the verdict, the benchmarks, and flame graphs of both sides for each that is explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.compare.verdict import State
from cachegrind_bench.render.benchmark_page import BenchmarkPage, Details, Row
from cachegrind_bench.render.comparison.states import LOOKS
from cachegrind_bench.render.comparison.view import view
from cachegrind_bench.render.table import Section

if TYPE_CHECKING:
    from cachegrind_bench.compare.explained import Explained

_STYLES = {State.REGRESSION: "regression", State.FAILED: "regression", State.IMPROVEMENT: "improvement"}
_WITHOUT_GRAPH = (
    "calls of this benchmark were not recorded on both sides. Measure with --call-tree, or Python with --python-profile"
)


def page(made: Explained) -> str:
    """Return the page."""
    shown, paths = view(made, whole=True), dict(made.paths())
    remarks = {row.id: row.remarks for row in shown.rows}
    return BenchmarkPage(
        title=" → ".join(made.names),
        headline=shown.headline,
        origin=shown.origin,
        notices=shown.notices,
        columns=("benchmark", "state", *shown.columns[2:]),
        rows=[
            Row((row.id, f"{LOOKS[row.state][0]} {row.state.value}", *row.cells), _STYLES.get(row.state, ""))
            for row in shown.rows
        ],
        left_out=shown.left_out,
        details=[
            Details(
                title=item.title,
                remarks=(*remarks[item.title], *item.remarks),
                hunks=item.hunks,
                graphs=paths.get(item.title, ()),
                without_graph=_WITHOUT_GRAPH,
                tables=[Section(columns=table[0], rows=table[1:]) for table in item.tables],
            )
            for item in shown.explanations
        ],
    ).html(tool_version=made.comparison.candidate.tool_version)
