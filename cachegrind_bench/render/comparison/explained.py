"""Why one benchmark of a comparison moved, as harmless text: tables of functions and source lines. Layout is the formats'."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.compare.verdict import Metric
from cachegrind_bench.model.text import plain, share, signed
from cachegrind_bench.render.comparison import pythons
from cachegrind_bench.render.demangling import demangled

if TYPE_CHECKING:
    from cachegrind_bench.compare.comparison import Comparison
    from cachegrind_bench.compare.details import Details
    from cachegrind_bench.compare.explain import MovedFunction
    from cachegrind_bench.compare.lines import LineDelta
    from cachegrind_bench.compare.verdict import Difference
    from cachegrind_bench.model.metrics import Counts


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why one benchmark moved: tables whose last row is the sum of the others, and remarks under them.

    Python's functions come before those of the program, source lines after them.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...]
    line_columns: tuple[str, ...] = ()
    lines: tuple[tuple[str, ...], ...] = ()
    python_columns: tuple[str, ...] = ()
    python: tuple[tuple[str, ...], ...] = ()


def explanation(item: Difference, comparison: Comparison, details: Details) -> Explanation:
    """Return the tables of one benchmark: its functions, and their source lines if these were asked for."""
    weigh = comparison.weigh
    by_ir = comparison.gates.metric is Metric.IR
    total = weigh(details.total)

    def cells(counts: Counts, *names: str) -> tuple[str, ...]:
        others = () if by_ir else (signed(counts.Ir),)
        hits = (signed(counts.ll_hits), signed(counts.ram_hits))
        return (signed(weigh(counts)), *others, *hits, share(weigh(counts), total), *map(plain, names))

    names = ("file",) if details.by_file else ("function", "file")
    rows = [
        cells(row.delta, *((row.file,) if details.by_file else (demangled(row.name), row.file)))
        for row in details.top.rows
    ]
    if details.top.rest_functions:
        rows.append(cells(details.top.rest, f"everything else ({details.top.rest_functions} more)"))
    rows.append(cells(details.total, "total"))
    columns = [f"Δ {comparison.gates.metric.value}", *([] if by_ir else ["Δ Ir"]), "Δ LL hits", "Δ RAM hits", "of Δ"]
    return Explanation(
        title=plain(item.id),
        columns=(*columns, *names),
        line_columns=(*columns, "function", "source line"),
        rows=tuple(rows),
        remarks=tuple(map(plain, _explanation_remarks(details))),
        lines=tuple(
            cells(line.delta, demangled(group.function), _place(line))
            for group in details.lines or ()
            for line in group.lines
        ),
        python_columns=pythons.COLUMNS,
        python=tuple(tuple(map(plain, row)) for row in pythons.rows(details.python)) if details.python else (),
    )


def _explanation_remarks(details: Details) -> list[str]:
    found: list[str] = pythons.cautions(details.python)
    found += [_moved(row) for row in details.moved]
    if details.lines_missing:
        found.append("no source lines: measure base and candidate with 'cg-bench run --lines'")
    more = details.moved_count - len(details.moved)
    if more:
        found.append(f"{more} more functions moved to another file, at the same cost")
    return found


def _moved(row: MovedFunction) -> str:
    return f"moved at the same cost: {demangled(row.name)} from {row.base_file} to {row.candidate_file}"


def _place(line: LineDelta) -> str:
    """Return where a line is, with its place in the base if that is another."""
    if line.candidate_line == line.base_line == 0:
        return "unknown"
    here, there = (line.candidate_file, line.candidate_line), (line.base_file, line.base_line)
    if line.candidate_line is None:
        return f"{there[0]}:{there[1]} (gone)"
    if line.base_line is None:
        return f"{here[0]}:{here[1]} (new)"
    return f"{here[0]}:{here[1]}{f' (was {there[1]})' if there[1] != here[1] else ''}"
