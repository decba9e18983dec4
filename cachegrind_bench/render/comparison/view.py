"""What a comparison shows, as harmless text: rows, remarks, explanations, origin, verdict. Layout is the formats'."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.compare.verdict import BLAMING, Metric, State
from cachegrind_bench.model.text import change, grouped, percent, plain, signed
from cachegrind_bench.render.comparison import pythons, words
from cachegrind_bench.render.comparison.explained import Explanation, explanation
from cachegrind_bench.render.demangling import demangle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cachegrind_bench.compare.comparison import Comparison
    from cachegrind_bench.compare.details import Details
    from cachegrind_bench.compare.verdict import Difference
    from cachegrind_bench.model.result import Result

_CIRCUMSTANCES = frozenset({"container", "cpu_model", "kernel", "os", "virtualization"})
_LONELY = (State.MISSING, State.NEW)
_VARIABLE = "env."  # one that was passed on to the program

COLUMNS = ("", "benchmark", "base", "candidate", "Δ {metric}", "±", "Δ {other}", "Δ LL hits", "Δ RAM hits", "where")
# Among the cells of a row, that of half of what layouts, repeated runs or calls differ by; shown where any do.
_MARGIN = COLUMNS.index("±") - 2


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark: a mark with the state, the id, and a cell for each further column; then its remarks.

    `place` is the project's file and line (0 if unknown) that is to blame, if that is known.
    """

    id: str
    state: State
    cells: tuple[str, ...]
    remarks: tuple[str, ...]
    place: tuple[str, int] | None = None


class View(msgspec.Struct, frozen=True, kw_only=True):
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
    columns = _columns(comparison)
    table = tuple(_row(item, comparison, details.get(item.id)) for item in shown)
    if not any(row.cells[_MARGIN] for row in table):
        columns = tuple(name for name in columns if name != "±")
        table = tuple(replace(row, cells=(*row.cells[:_MARGIN], *row.cells[_MARGIN + 1 :])) for row in table)
    return View(
        headline=plain(words.headline(comparison, details)),
        verdict=comparison.verdict,
        origin=(*((label, plain(_origin(name, result))) for label, name, result in sides), *_differing(comparison)),
        notices=tuple(map(plain, notices(comparison, details))),
        columns=columns,
        rows=table,
        left_out=words.numbered(Counter(item.state for item in comparison.differences[len(shown) :])),
        explanations=tuple(
            explanation(by_id[name], comparison, details[name]) for name in explained if name in details
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
    alone = (item for item in comparison.differences if item.id in details and details[item.id].python is None)
    names = {words.interpreted(item) for item in alone} - {None}
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
    blamed = details if item.state in BLAMING else None
    if moved is None:
        sides = (item.base, item.candidate)
        numbers = [
            "" if side is None or side.counts is None else grouped(comparison.weigh(side.counts)) for side in sides
        ] + [""] * (len(COLUMNS) - 4)
    else:
        by_ir = comparison.gates.metric is Metric.IR
        shifts = (moved.ir, moved.score) if by_ir else (moved.score, moved.ir)
        numbers = [
            grouped(comparison.weigh(moved.base)),
            grouped(comparison.weigh(moved.candidate)),
            change(shifts[0].relative),
            percent(shifts[0].margin, 2) if shifts[0].margin else "",
            change(shifts[1].relative),
            signed(moved.counts.ll_hits),
            signed(moved.counts.ram_hits),
            pythons.culprit(blamed),
        ]
    chief = pythons.chief(blamed)
    return Row(
        id=plain(item.id),
        state=item.state,
        cells=tuple(map(plain, numbers)),
        remarks=tuple(map(plain, [*pythons.remarks(blamed), *words.remarks(item, comparison.gates)])),
        place=None if chief is None else pythons.annotated(chief.function),
    )
