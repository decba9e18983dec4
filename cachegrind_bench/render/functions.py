"""What functions cost, as rows of text: those of a program, those of Python, with their calls, and their source lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.metrics import EVENTS, CostModel, Counts
from cachegrind_bench.model.python_profile import NATIVE, PythonCost
from cachegrind_bench.model.text import below, counted, grouped, share
from cachegrind_bench.render.table import Row, Section

if TYPE_CHECKING:
    from cachegrind_bench.model.call_graph import CallGraph
    from cachegrind_bench.model.result import Benchmark

_NOTHING = Section(rows=())


def sort_name(text: str) -> str:
    """Return the canonical spelling of a column to sort by; UsageError on anything else."""
    names = {name.lower(): name for name in ("score", *EVENTS)}
    if text.lower() not in names:
        raise UsageError(f"cannot sort by {text!r}", hint=f"one of: {', '.join(names.values())}")
    return names[text.lower()]


def hottest(benchmark: Benchmark, *, top: int, sort: str, root: str) -> Section:
    """List the functions that cost most by themselves; files below `root` relative to it."""
    rows = () if benchmark.profile is None else benchmark.profile.functions
    found = _dearest(benchmark, ((row.file, row.name, row.counts) for row in rows), top, sort, "function")
    named = [(*numbers, name, below(file, root)) for *numbers, file, name in found]
    columns = sort_name(sort), "share", "function", "file"
    return Section(title="hottest functions", columns=columns, rows=tuple(named), shrinkable=(3, 2))


def lines(benchmark: Benchmark, *, top: int, sort: str, root: str) -> Section:
    """List the source lines that cost most by themselves, if they were recorded."""
    rows = () if benchmark.profile is None else benchmark.profile.lines
    places = ((f"{row.file}:{row.line}" if row.line else "unknown", row.name, row.counts) for row in rows)
    found = _dearest(benchmark, places, top, sort, "source line")
    named = [(*numbers, name, below(place, root)) for *numbers, place, name in found]
    columns = sort_name(sort), "share", "function", "source line"
    return Section(title="hottest source lines", columns=columns, rows=tuple(named), shrinkable=(3, 2))


def _dearest(
    benchmark: Benchmark, rows: Iterable[tuple[str, str, tuple[int, ...]]], top: int, sort: str, noun: str
) -> list[Row]:
    """Return cost, share, place and name of the first of these rows, and one of all others."""
    from cachegrind_bench.valgrind.demangling import demangled

    profile, score = benchmark.profile, benchmark.score
    if profile is None or score is None or top <= 0:
        return []
    weight = _weight(profile.events, CostModel.parse(score.model), sort_name(sort))
    weighed = sorted(
        ((weight(counts), name, place) for place, name, counts in rows), key=lambda item: (-item[0], *item[1:])
    )
    total = sum(value for value, *_texts in weighed)
    found: list[Row] = [
        (grouped(value), share(value, total), place, demangled(name)) for value, name, place in weighed[:top]
    ]
    rest = weighed[top:]
    if rest:
        value = sum(value for value, *_texts in rest)
        found.append((grouped(value), share(value, total), "", counted(len(rest), f"other {noun}")))
    return found


def _weight(events: tuple[str, ...], model: CostModel, name: str) -> Callable[[tuple[int, ...]], int]:
    def weight(row: tuple[int, ...]) -> int:
        counts = Counts.from_mapping(dict(zip(events, row, strict=True)))
        return model.score(counts) if name == "score" else counts.as_dict()[name]

    return weight


def python(benchmark: Benchmark, *, top: int, root: str = "") -> Section:
    """List the Python functions that cost most by themselves; the rows add up to what the execution cost."""
    profile = benchmark.python
    if profile is None or top <= 0:
        return _NOTHING

    def row(ir: int, *texts: str) -> Row:
        return grouped(ir), share(ir, profile.total), *texts

    def row_of(item: PythonCost) -> Row:
        each = grouped(round(item.inclusive / item.entries)) if item.entries else ""
        numbers = grouped(item.inclusive), grouped(item.calls), each
        return row(item.ir, *numbers, item.function.name, below(item.function.place, root))

    costs = profile.costs()
    rows, rest = [row_of(item) for item in costs[:top]], costs[top:]
    if rest:
        calls = grouped(sum(item.calls for item in rest))
        rows.append(row(sum(item.ir for item in rest), "", calls, "", counted(len(rest), "other function"), ""))
    rows.append(row(profile.native, "", "", "", NATIVE, ""))
    title = f"hottest Python functions, of {grouped(profile.total)} Ir in an execution of its own with -X perf"
    columns = ("Ir", "share", "with callees", "calls", "each", "function", "file")
    return Section(title=title, columns=columns, rows=tuple(rows), shrinkable=(6, 5), droppable=((4,),))


def called(graph: CallGraph | None, *, top: int, root: str) -> Section:
    """List the functions of a program with their calls, if all of these were recorded."""
    from cachegrind_bench.compare.call_pairs import native_sides
    from cachegrind_bench.compare.call_split import costs
    from cachegrind_bench.render.comparison.calls import each_call, ends

    if graph is None or not graph.is_whole or top <= 0:
        return _NOTHING
    side, _same, labels = native_sides(graph, graph)
    found = costs(side, labels)
    shown, rest = found[:top], found[top:]
    rows = list[Row]()
    for item in shown:
        numbers = grouped(item.base.ir), grouped(item.base.number), each_call(item.base)
        name, callers = ends(item)
        own = grouped(item.base_own), share(item.base_own, graph.total)
        rows.append((*own, *numbers, name, below(item.label.place, root), callers))
    if rest:
        ir = sum(item.base_own for item in rest)
        rows.append((grouped(ir), share(ir, graph.total), "", "", "", counted(len(rest), "other function"), "", ""))
    columns = ("Ir", "share", "with callees", "calls", "each", "function", "file", "called from")
    return Section(
        title="functions and their calls",
        columns=columns,
        rows=tuple(rows),
        shrinkable=(7, 6, 5),
        droppable=((7,), (6,), (1,)),
    )
