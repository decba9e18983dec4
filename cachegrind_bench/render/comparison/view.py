"""What a comparison shows, as harmless text: rows, remarks, explanations, origin, verdict. Layout is the formats'."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.compare.verdict import BLAMING, Comparison, Difference, Metric, State
from cachegrind_bench.model.metrics import ZERO
from cachegrind_bench.model.symbols import UNKNOWN
from cachegrind_bench.model.text import (
    below,
    change,
    common_start,
    counted,
    grouped,
    in_line,
    is_worth_a_row,
    percent,
    plain,
    share,
    signed,
)
from cachegrind_bench.render.comparison.allocations import allocation_remarks
from cachegrind_bench.render.comparison.blame import blamed_place, chief, culprit, interpreted, lacks_debug_information
from cachegrind_bench.render.comparison.builds import build_file_remarks, build_remarks, lonely_remarks, other_build
from cachegrind_bench.render.comparison.calls import calls_table, cause_remarks
from cachegrind_bench.render.comparison.hunks import MOST_HUNKS, hunk_remarks
from cachegrind_bench.render.comparison.python import python_remarks, python_table
from cachegrind_bench.render.comparison.remarks import fields_text, remarks
from cachegrind_bench.render.comparison.states import numbered
from cachegrind_bench.render.comparison.verdict_line import verdict_line
from cachegrind_bench.render.table import without_empty

if TYPE_CHECKING:
    from cachegrind_bench.compare.explain import Details
    from cachegrind_bench.compare.explained import Explained
    from cachegrind_bench.compare.lines import LineDelta
    from cachegrind_bench.model.metrics import Counts
    from cachegrind_bench.model.result import Result

_CIRCUMSTANCES = frozenset({"container", "cpu_model", "kernel", "os", "virtualization"})
_LONELY = (State.MISSING, State.NEW)
_VARIABLE = "env."  # one that was passed on to the program

_MOST_BUILDS = 5
# The cells of half of what layouts, repeated runs or calls differ by, and of hits; shown where any has one.
_OPTIONAL = (3, 4, 5, 6)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark: a mark with the state, the id, and a cell for each further column; then its remarks.

    `place` is the project's file and line (0 if unknown) that is to blame, if that is known.
    """

    id: str
    state: State
    cells: tuple[str, ...]
    remarks: tuple[str, ...]
    place: tuple[str, int] | None = None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why one benchmark moved: tables with a heading in their first row, and remarks under them.

    What is less than half a percent of the change has no row of its own. Python's functions come first, then those of the
    program, their calls, then source lines; the last row of functions is their sum. `hunks` are those of the change that
    explain it, as a title and the first lines of code.
    """

    title: str
    state: State
    tables: tuple[tuple[tuple[str, ...], ...], ...]
    remarks: tuple[str, ...]
    hunks: tuple[tuple[str, str], ...]


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison ready to be laid out. `left_out` says in words what rows are not shown; empty if all are.

    `deciding` is the column of the number that decides, `start` what all ids begin with. `without_base`: none was found.
    """

    headline: str
    verdict: State
    origin: tuple[tuple[str, str], ...]
    notices: tuple[str, ...]
    columns: tuple[str, ...]
    deciding: str
    start: str
    rows: tuple[Row, ...]
    left_out: str
    explanations: tuple[Explanation, ...]
    without_base: bool


def headline(made: Explained) -> str:
    """Return the verdict in one line."""
    return plain(verdict_line(made.comparison, made.details))


def view(made: Explained, *, whole: bool = False) -> View:
    """Make the view; if `whole`, with all benchmarks."""
    comparison, details, root = made.comparison, made.details, made.root
    shown = comparison.differences[: None if whole else made.rows or None]
    by_id = {item.id: item for item in comparison.differences}
    sides = (("base", made.names[0], comparison.base), ("candidate", made.names[1], comparison.candidate))
    table = [_row(item, comparison, details.get(item.id), root) for item in shown]
    columns, *cells = without_empty([_columns(comparison), *(row.cells for row in table)], _OPTIONAL)
    return View(
        headline=in_line(verdict_line(comparison, details)),
        verdict=comparison.verdict,
        origin=(*((label, in_line(_origin(name, result))) for label, name, result in sides), *_differing(comparison)),
        notices=tuple(map(in_line, notices(comparison, details))),
        columns=("", "benchmark", *columns),
        deciding=f"Δ {comparison.gates.metric.value}",
        start=common_start([plain(item.id) for item in comparison.differences]),
        rows=tuple(replace(row, cells=texts) for row, texts in zip(table, cells, strict=True)),
        left_out=numbered(Counter(item.state for item in comparison.differences[len(shown) :])),
        explanations=tuple(
            _explanation(by_id[name], comparison, details[name], root) for name in made.at_length if name in details
        ),
        without_base=comparison.without_base,
    )


def _columns(comparison: Comparison) -> tuple[str, ...]:
    metric, other = ("Ir", "score") if comparison.gates.metric is Metric.IR else ("score", "Ir")
    return ("base", "candidate", f"Δ {metric}", "±", f"Δ {other}", "Δ LL hits", "Δ RAM hits", "where")


def _origin(name: str, result: Result) -> str:
    commit = result.commit
    if commit is None and not result.benchmarks:
        return f"{name}, nothing found"  # a baseline that was not found was not measured
    origin = f"{name}, commit {commit.described}" if commit is not None else name
    return f"{origin}, measured {result.created_at}"


def _differing(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """Return what else was different when the two were measured: it should not matter, and explains surprises."""
    before, after = comparison.base.env.info, comparison.candidate.env.info
    names = sorted(
        name
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name) and (name in _CIRCUMSTANCES or name.startswith(_VARIABLE))
    )
    # The values of variables are stored as hashes, which mean nothing to a reader.
    texts = [
        f"variable {name.removeprefix(_VARIABLE)}"
        if name.startswith(_VARIABLE)
        else f"{name} {before.get(name, 'unknown')} → {after.get(name, 'unknown')}"
        for name in names
    ]
    return (("differs", in_line(", ".join(texts))),) if texts else ()


def notices(comparison: Comparison, details: Mapping[str, Details]) -> list[str]:
    """Return what holds for the comparison as a whole and should not go unseen."""
    built = (remark for item in comparison.differences for remark in build_remarks(item))
    changed = (remark for item in details.values() for remark in build_file_remarks(item))
    found = [*dict.fromkeys((*built, *changed))][:_MOST_BUILDS]
    found += comparison.remarks
    if comparison.forced:
        found.append(f"compared by force (--force), in spite of {fields_text(comparison.forced)}")
    elif any(item.forced for item in comparison.differences):
        found.append("compared by force (--force), in spite of differing keys")
    if comparison.rescored:
        found.append(f"scores under {', '.join(comparison.rescored)} were computed again under {comparison.model.name}")
    found += [f"{text} does not match any benchmark" for text in comparison.unused]
    explained = [item for item in comparison.differences if item.id in details and item.state in BLAMING]
    if any(lacks_debug_information(item, details[item.id]) for item in explained):
        found.append(
            f"{UNKNOWN}: the program has no debug information; compile with -g (Cargo: debug = true), and do not strip"
        )
    others = [item for item in explained if details[item.id].python is None]
    names = {interpreted(item, details[item.id]) for item in others} - {None}
    if names:
        found.append(
            f"the functions named are C functions of {', '.join(sorted(map(str, names)))}, not those of its script"
        )
    missing, new = ([item.id for item in comparison.differences if item.state is state] for state in _LONELY)
    if len(comparison.differences) == 2 and missing and new:
        found.append(f"the benchmarks have other ids, {missing[0]} and {new[0]}; 'cg-bench run --id' names one")
    return found


def _row(item: Difference, comparison: Comparison, details: Details | None, root: str) -> Row:
    moved, weigh = item.change, comparison.weigh
    grown = item.growth
    blamed = details if item.state in BLAMING else None
    instead = other_build(item, blamed) if blamed is not None else None
    if grown is not None:
        from cachegrind_bench.render.growth import class_text, function_text

        cells = ["" if grown.base is None else class_text(grown.base), class_text(grown.candidate), *[""] * 6]
        cells[-1] = function_text(grown.candidate) if item.state is State.REGRESSION else ""
    elif moved is None:
        sides = [side.counts if side is not None else None for side in (item.base, item.candidate)]
        cells = ["" if counts is None else grouped(weigh(counts)) for counts in sides] + [""] * 6
    else:
        by_ir = comparison.gates.metric is Metric.IR
        first, other = (moved.ir, moved.score) if by_ir else (moved.score, moved.ir)
        cells = [
            grouped(weigh(moved.base)),
            grouped(weigh(moved.candidate)),
            change(first.relative),
            percent(first.margin, 2) if first.margin else "",
            change(other.relative) if comparison.with_caches else "",
            *(map(signed, (moved.delta.ll_hits, moved.delta.ram_hits)) if comparison.with_caches else ("", "")),
            instead or culprit(blamed),
        ]
    if instead:
        blamed = None
    said = [
        *(lonely_remarks(details) if instead else []),
        *python_remarks(blamed),
        *cause_remarks(blamed),
        *hunk_remarks(blamed),
        *allocation_remarks(item, blamed),
        *remarks(item, comparison.gates, root),
    ]
    if comparison.without_base and item.state is State.NEW:
        said = []  # as all are, which the verdict says
    return Row(
        id=plain(item.id),
        state=item.state,
        cells=tuple(map(plain, cells)),
        remarks=tuple(map(in_line, said)),
        place=None if instead else blamed_place(item, blamed, root),
    )


def _explanation(item: Difference, comparison: Comparison, details: Details, root: str) -> Explanation:
    """Return the tables of one benchmark: its functions, and their source lines if these were asked for."""
    from cachegrind_bench.valgrind.demangling import demangled

    weigh, by_ir = comparison.weigh, comparison.gates.metric is Metric.IR
    total = weigh(details.total)
    hits = ["Δ LL hits", "Δ RAM hits"] if comparison.with_caches else []
    other = [] if by_ir or not hits else ["Δ Ir"]  # without caches, both are the same
    columns = [f"Δ {comparison.gates.metric.value}", *other, *hits, "of Δ"]

    def cells(counts: Counts, *names: str) -> tuple[str, ...]:
        others = [counts.Ir] if other else []
        others += [counts.ll_hits, counts.ram_hits] if hits else []
        return (*map(signed, (weigh(counts), *others)), share(weigh(counts), total), *names)

    names = ("file",) if details.by_file else ("function", "file")
    functions = [(*columns, *names)]
    shown = [row for row in details.rows if is_worth_a_row(weigh(row.delta), total)] or details.rows[:1]
    functions += (cells(row.delta, *(demangled(row.name), below(row.file, root))[-len(names) :]) for row in shown)
    others = len(details.rows) + len(details.rest) - len(shown)
    if others:
        delta = sum((row.delta for row in shown), ZERO)
        functions.append(cells(details.total - delta, counted(others, f"other {names[0]}")))
    functions.append(cells(details.total, "total"))
    lines = [cells(line.delta, demangled(name), below(_place(line), root)) for name, line in details.lines or ()]
    by_python = chief(details) is not None
    tables = (
        []
        if details.lonely
        else [
            python_table(details.python) if details.python else [],
            functions,
            # Of an interpreter they say nothing about its script.
            calls_table(details.calls) if details.calls is not None and details.calls.rows and not by_python else [],
            [(*columns, "function", "source line"), *lines] if lines else [],
        ]
    )
    return Explanation(
        title=plain(item.id),
        state=item.state,
        tables=tuple(tuple(tuple(map(plain, row)) for row in table) for table in tables if table),
        remarks=tuple(map(in_line, _explanation_remarks(details))),
        hunks=tuple(_hunk_texts(details)),
    )


def _hunk_texts(details: Details) -> Iterator[tuple[str, str]]:
    """Yield what each hunk has to do with the difference, and its code."""
    found = details.hunks
    if found is None:
        return
    for row in found.shown[:MOST_HUNKS]:
        how = ", called from it or its own" if row is found.through else ""
        for hunk, text in [*zip(row.hunks, row.texts, strict=True)][:MOST_HUNKS]:
            title = f"{hunk.place}, in {row.function.name}: {signed(row.function.ir)} instructions{how}"
            yield in_line(title), "\n".join(map(plain, text.split("\n")))


def _explanation_remarks(details: Details) -> Iterator[str]:
    from cachegrind_bench.valgrind.demangling import demangled

    if details.python is not None and details.python.cut:
        yield (
            "some Python calls were nested too deeply to be followed to their outermost callers, whose blame for calling "
            "more often may be missing"
        )
    for row in details.moved:
        yield f"moved at the same cost: {demangled(row.name)} from {row.base_file} to {row.candidate_file}"
    if details.lines_missing:
        yield "no source lines: measure base and candidate with 'cg-bench run --lines'"
    more = details.moved_count - len(details.moved)
    if more:
        yield f"{more} more functions moved to another file, at the same cost"


def _place(line: LineDelta) -> str:
    """Return where a line is, with its place in the base if that is another."""
    if line.candidate_line == line.base_line == 0:
        return "unknown"
    if line.candidate_line is None:
        return f"{line.base_file}:{line.base_line} (gone)"
    here = f"{line.candidate_file}:{line.candidate_line}"
    if line.base_line is None:
        return f"{here} (new)"
    return here if line.base_line == line.candidate_line else f"{here} (was {line.base_line})"
