"""A result as one HTML page: what each benchmark took, flame graphs of its call paths, its functions, and its source lines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from cachegrind_bench.compare.call_paths import MOST, CallPaths, all_paths
from cachegrind_bench.model.result import Benchmark, Result
from cachegrind_bench.model.text import counted, grouped, in_line, share
from cachegrind_bench.render.benchmark_page import BenchmarkPage, Details, Row
from cachegrind_bench.render.growth import report as growth_report
from cachegrind_bench.render.report import overview, shown
from cachegrind_bench.valgrind.demangling import demangled

if TYPE_CHECKING:
    from cachegrind_bench.compare.growth import Growth
    from cachegrind_bench.render.table import Report

_DETAILED = 200  # benchmarks at most
_FRAMES, _ROWS = 60_000, 2_000  # in all, so that a page of many benchmarks stays small
_MOST_ROWS, _LEAST_ROWS = 100, 10
_WITHOUT_GRAPH = "calls of this benchmark were not recorded. Measure with --call-tree, or Python with --python-profile"


def page(
    result: Result,
    name: str,
    with_evidence: Callable[[Benchmark], Benchmark],
    *,
    top: int | None = None,
    sort: str = "score",
    growth: Collection[Growth] = (),
    root: str = "",
) -> str:
    """Return the page of a result, which the user knows by this name; `with_evidence` reads the profiles of a benchmark.

    It lists the first `top` functions of each by `sort`, files below `root` relative to it.
    """
    benchmarks = result.benchmarks[:_DETAILED]
    frames = min(MOST, _FRAMES // max(len(benchmarks), 1))
    rows = max(_LEAST_ROWS, min(_MOST_ROWS, _ROWS // max(len(benchmarks), 1))) if top is None else top
    headlines = list[str]()

    def details() -> Iterator[Details]:
        for item in map(with_evidence, benchmarks):
            headlines.append(_headline(item))
            graphs = [*all_paths([item.python], [item.calls], frames)]
            why = _WITHOUT_GRAPH if item.counts is not None else ""
            yield _details(shown(result, item, top=rows, sort=sort, root=root), graphs, why)
        for group in growth:
            yield _details(growth_report(group, root))

    found = [*details()]
    table, *others = overview(result).sections
    labels = [(row[0], ", ".join(filter(None, row[1:]))) for section in others for row in section.rows]
    more = len(result.benchmarks) - len(benchmarks)
    return BenchmarkPage(
        title=result.benchmarks[0].id if len(result.benchmarks) == 1 else name,
        headline=headlines[0] if len(result.benchmarks) == 1 else overview(result).title,
        origin=[(label, text) for label, text in labels if label != "details"],
        notices=[f"Details of {counted(more, 'benchmark')} are left out: choose with --benchmark."] if more else (),
        columns=table.columns,
        rows=[*map(Row, table.rows)],
        details=found,
    ).html(tool_version=result.tool_version)


def _details(report: Report, graphs: Collection[CallPaths] = (), without_graph: str = "") -> Details:
    numbers, *tables = report.sections
    return Details(
        title=report.title,
        remarks=[*map(in_line, report.warnings)],
        numbers=numbers,
        graphs=[*graphs],
        without_graph=without_graph,
        tables=tables,
    )


def _headline(item: Benchmark) -> str:
    """Say what a benchmark took, and where most of it."""
    if item.counts is None:
        return f"{item.id}: {item.status.value}"
    text = f"{grouped(item.counts.Ir)} instructions"
    if item.python is not None and item.python.paths:
        total, costs = item.python.total, item.python.costs()
        text += f", {share(total - item.python.native, total)} of them in {counted(len(costs), 'Python function')}"
        return f"{text}; most, {share(costs[0].ir, total)}, in {costs[0].function.name} itself"
    if item.profile is not None and item.profile.functions:
        at = item.profile.events.index("Ir")
        row = max(item.profile.functions, key=lambda row: (row.counts[at], row.name, row.file))
        text += f"; most, {share(row.counts[at], item.counts.Ir)}, in {demangled(row.name)} itself"
    return text
