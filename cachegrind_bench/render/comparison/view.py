"""What a comparison shows, as harmless text: rows, remarks, explanations, origin, verdict. Layout is the formats'."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cachegrind_bench.compare.details import weight
from cachegrind_bench.compare.gates import Metric
from cachegrind_bench.compare.verdict import State
from cachegrind_bench.render.comparison import words
from cachegrind_bench.render.demangling import demangle, demangled
from cachegrind_bench.render.names import plain
from cachegrind_bench.render.numbers import change, grouped, share, signed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cachegrind_bench.compare.comparison import Comparison
    from cachegrind_bench.compare.details import Details
    from cachegrind_bench.compare.explain import MovedFunction
    from cachegrind_bench.compare.lines import LineDelta
    from cachegrind_bench.compare.verdict import Difference
    from cachegrind_bench.model.metrics import Counts
    from cachegrind_bench.model.result import Result

_CIRCUMSTANCES = frozenset({"container", "cpu_model", "kernel", "os", "virtualization"})
_LONELY = (State.MISSING, State.NEW)
_VARIABLE = "env."  # one that was passed on to the program

COLUMNS = ("", "benchmark", "base", "candidate", "Δ {metric}", "Δ {other}", "Δ LL hits", "Δ RAM hits", "mostly in")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One benchmark: a mark with the state, the id, and a cell for each further column; then its remarks."""

    id: str
    state: State
    cells: tuple[str, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why one benchmark moved: a table whose last row is the sum of the others, and remarks under it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...]
    line_columns: tuple[str, ...] = ()
    lines: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A comparison ready to be laid out. `left_out` says in words what rows are not shown; empty if all are."""

    headline: str
    verdict: State
    origin: tuple[tuple[str, str], ...]
    notices: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: str
    explanations: tuple[Explanation, ...]


def view(
    comparison: Comparison,
    details: Mapping[str, Details],
    *,
    rows: int,
    names: tuple[str, str],
    explained: Sequence[str] = (),
) -> View:
    """Make the view: the first `rows` benchmarks (0: all), `details` by id, of which `explained` at length.

    `names` are what the user calls base and candidate.
    """
    shown = comparison.differences[:rows] if rows else comparison.differences
    by_id = {item.id: item for item in comparison.differences}
    sides = (("base", names[0], comparison.base), ("candidate", names[1], comparison.candidate))
    demangle(_names(details))
    return View(
        headline=plain(words.headline(comparison, details)),
        verdict=comparison.verdict,
        origin=(*((label, plain(_origin(name, result))) for label, name, result in sides), *_differing(comparison)),
        notices=tuple(map(plain, notices(comparison, details))),
        columns=_columns(comparison),
        rows=tuple(_row(item, comparison, details.get(item.id)) for item in shown),
        left_out=words.numbered(Counter(item.state for item in comparison.differences[len(shown) :])),
        explanations=tuple(
            _explanation(by_id[name], comparison, details[name]) for name in explained if name in details
        ),
    )


def _names(details: Mapping[str, Details]) -> Iterator[str]:
    """Yield the names of all functions that will be shown."""
    for item in details.values():
        yield from (row.name for row in item.top.rows)
        yield from (row.name for row in item.moved)
        yield from (group.function for group in item.lines or ())
        if item.blamed is not None:
            yield item.blamed.name


def _columns(comparison: Comparison) -> tuple[str, ...]:
    names = [Metric.SCORE.value, Metric.IR.value]
    if comparison.gates.metric is Metric.IR:
        names.reverse()
    return tuple(column.format(metric=names[0], other=names[1]) for column in COLUMNS)


def _origin(name: str, result: Result) -> str:
    commit = result.commit
    if commit is None:
        # A baseline that was searched for in vain is nobody's measurement.
        return f"{name}, measured {result.created_at}" if result.benchmarks else f"{name}, nothing found"
    branch = f" on {commit.branch}" if commit.branch else ""
    dirty = " with uncommitted changes" if commit.dirty else ""
    return f"{name}, commit {commit.sha[:12]}{branch}{dirty}, measured {result.created_at}"


def _differing(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """Return what else was different when the two were measured: it should not matter, and explains surprises."""
    before, after = comparison.base.env.info, comparison.candidate.env.info
    names = sorted(
        name
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name) and (name in _CIRCUMSTANCES or name.startswith(_VARIABLE))
    )
    # The values of variables are stored as hashes, which tell nobody anything.
    texts = [
        f"variable {name.removeprefix(_VARIABLE)}"
        if name.startswith(_VARIABLE)
        else f"{name} {before.get(name, 'unknown')} → {after.get(name, 'unknown')}"
        for name in names
    ]
    return (("differs", plain(", ".join(texts))),) if texts else ()


def notices(comparison: Comparison, details: Mapping[str, Details]) -> list[str]:
    """Return what holds for the comparison as a whole and should not go unseen."""
    found = list(comparison.remarks)
    if comparison.forced:
        found.append(f"compared by force (--force), in spite of {words.fields_text(comparison.forced)}")
    elif any(item.forced for item in comparison.differences):
        found.append("compared by force (--force), in spite of differing keys")
    if comparison.rescored:
        found.append(f"scores under {', '.join(comparison.rescored)} were computed again under {comparison.model.name}")
    found += [f"{text} fits no benchmark" for text in comparison.unused]
    names = {words.interpreted(item) for item in comparison.differences if item.id in details} - {None}
    if names:
        found.append(
            f"the functions named are C functions of {', '.join(sorted(map(str, names)))}, not those of its script"
        )
    missing, new = ([item.id for item in comparison.differences if item.state is state] for state in _LONELY)
    if len(comparison.differences) == 2 and missing and new:
        found.append(f"the benchmarks have other ids, {missing[0]} and {new[0]}; 'cg-bench run --id' names one")
    return found


def _row(item: Difference, comparison: Comparison, details: Details | None) -> Row:
    moved = item.change
    if moved is None:
        sides = (item.base, item.candidate)
        numbers = [
            "" if side is None or side.counts is None else grouped(weight(comparison)(side.counts)) for side in sides
        ] + [""] * 5
    else:
        by_ir = comparison.gates.metric is Metric.IR
        shifts = (moved.ir, moved.score) if by_ir else (moved.score, moved.ir)
        numbers = [
            grouped(weight(comparison)(moved.base)),
            grouped(weight(comparison)(moved.candidate)),
            *(change(shift.relative) for shift in shifts),
            signed(moved.counts.ll_hits),
            signed(moved.counts.ram_hits),
            "" if details is None or details.blamed is None else demangled(details.blamed.name),
        ]
    return Row(
        id=plain(item.id),
        state=item.state,
        cells=tuple(map(plain, numbers)),
        remarks=tuple(map(plain, words.remarks(item, comparison.gates))),
    )


def _explanation(item: Difference, comparison: Comparison, details: Details) -> Explanation:
    """Return the tables of one benchmark: its functions, and their source lines if these were asked for."""
    weigh = weight(comparison)
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
    )


def _explanation_remarks(details: Details) -> list[str]:
    found: list[str] = []
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
