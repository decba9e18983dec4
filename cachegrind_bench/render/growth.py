"""How costs grow with the size of the input, in words, as titled rows of text, and as part of JSON documents."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from cachegrind_bench.compare.growth import Growth, GrowthChange, growth_change
from cachegrind_bench.model.growth import EXPONENTIAL, Fit
from cachegrind_bench.model.sizes import LEAST_SIZES
from cachegrind_bench.model.text import below, counted, grouped, joined, percent, share
from cachegrind_bench.render.table import Report, Row, Section, without_empty

if TYPE_CHECKING:
    from cachegrind_bench.compare.growth import FunctionGrowth

_MOST_FUNCTIONS = 10
_MISSES = {"first level": "LL hits", "last level": "RAM hits"}  # of each cache


def report(found: Growth, root: str = "") -> Report:
    """Return the report of one group: its sizes, the class of each count, and the functions that will cost most."""
    columns: Row = ("size", "score", "Ir", "exponent of Ir", "LL hits", "RAM hits")
    fit = found.judged
    exponents = ("", *(_exponent(item) for item in fit.exponents)) if fit is not None else ("",) * len(found.sizes)
    rows = [
        (
            grouped(size),
            grouped(item.score.value),
            grouped(item.counts.Ir),
            power,
            *map(grouped, (item.counts.ll_hits, item.counts.ram_hits) if item.counts.with_caches else ()),
        )
        for size, item, power in zip(found.sizes, found.benchmarks, exponents, strict=True)
        if item.counts is not None and item.score is not None
    ]
    steps = {_MISSES[cache] for cache, *_ in found.leaves}  # misses that jump are in no class
    fits: list[Row] = [
        (label, _sure(item, doubted=label in steps), grouped(round(item.constant)), *_next_best(item))
        for label, item in found.fits.items()
    ]
    columns, *rows = without_empty([columns, *rows], (4, 5))
    sections = (
        Section(columns=columns, rows=tuple(rows), droppable=((4, 5), (1,)) if columns[4:] else ((1,),)),
        Section(
            columns=("count", "growth", "constant part", "next best", "leaves unexplained, in squares"),
            rows=tuple(fits),
        ),
        _functions(found, root),
        Section(rows=tuple(_predictions(found))),
    )
    return Report(
        title=f"{found.id}: {verdict(found)}", sections=sections, warnings=(*doubts(found), *_remarks(found, root))
    )


def verdict(found: Growth) -> str:
    """Say in which class it is, as far as that is known."""
    fit = found.judged
    if fit is None:
        return "its growth is unknown"
    if not fit.clear:
        return f"grows with {_named(fit)}, which is in doubt"
    return "does not grow with its input" if not fit.rank else f"grows with {fit.name}"


def _named(fit: Fit) -> str:
    return fit.name if fit.clear else f"{fit.name} or {fit.other}"


def doubts(found: Growth) -> tuple[str, ...]:
    """Say why the class is in doubt, and which sizes would help."""
    fit, sizes = found.judged, found.sizes
    if fit is None:
        return (
            f"only {counted(len(sizes), 'size')} {'was' if len(sizes) == 1 else 'were'} measured: fewer than {LEAST_SIZES} do not show a class of growth",
        )
    if fit.clear:
        return ()
    step = max(2, round(Fraction(sizes[-1], sizes[-2])))
    further = sizes[-1] * step
    narrow = sizes[-1] < 8 * sizes[0] and fit.rank < EXPONENTIAL
    if narrow:
        why, advice = "the sizes are too close", f"add sizes up to {grouped(sizes[0] * 16)} at least"
    elif fit.constant > Fraction(9, 10) * _last(found):
        why, advice = (
            "nearly all of the cost does not depend on the size",
            f"add larger sizes, as {grouped(further)} and {grouped(further * step)}",
        )
    elif len(sizes) < LEAST_SIZES + 2:
        why, advice = "there are too few sizes", f"add sizes, as {grouped(further)} and {grouped(further * step)}"
    else:
        why, advice = (
            "no class fits",
            f"the cost may depend on more than the size; larger sizes, as {grouped(further)}, may show what prevails",
        )
    return (f"{fit.name} and {fit.other} fit nearly as well as each other: {why}; {advice}",)


def _last(found: Growth) -> int:
    counts = found.benchmarks[-1].counts
    return counts.Ir if counts is not None else 0


def _exponent(thousandths: int | None) -> str:
    return "" if thousandths is None else f"{thousandths / 1000:.2f}"


def _sure(fit: Fit, *, doubted: bool = False) -> str:
    return fit.name if fit.clear and not doubted else f"{fit.name}?"


def _next_best(item: Fit) -> Row:
    if not item.rank:  # does not grow: nothing has to be explained
        return "", ""
    said = "the best leaves nothing" if item.better is None else f"{grouped(item.better)} times as much as the best"
    return item.other, said


def _functions(found: Growth, root: str) -> Section:
    from cachegrind_bench.valgrind.demangling import demangled

    shown = found.functions[:_MOST_FUNCTIONS]
    rows = [
        (
            *(_part(part) for part in item.shares),
            _sure(item.fit),
            demangled(item.name),
            below(_place(item), root),
        )
        for item in shown
    ]
    largest = found.sizes[-1] if found.sizes else 0
    columns = (
        f"at {grouped(largest)}",
        f"at {grouped(largest * 10)}",
        f"at {grouped(largest * 100)}",
        "growth",
        "function",
        "file",
    )
    return Section(
        title="functions by their part of Ir, now and as predicted",
        columns=columns,
        rows=tuple(rows),
        shrinkable=(5, 4),
    )


def _part(part: Fraction) -> str:
    return share(part.numerator, part.denominator)


def _place(item: FunctionGrowth) -> str:
    """Return where a function is, with its line if it is Python's."""
    return f"{item.file}:{item.line}" if item.line else item.file


def _predictions(found: Growth) -> Iterator[Row]:
    fit = found.judged
    if fit is None or found.predict is None:
        return
    for label, item in found.fits.items():
        if label in ("score", "Ir"):
            count = found.at(found.predict) if label == "Ir" else item.at(found.predict)
            yield (
                f"{label} at {grouped(found.predict)}",
                "beyond all measure" if count is None else grouped(count),
                "as predicted" if item.clear else "as predicted, in doubt",
            )


def _remarks(found: Growth, root: str) -> Iterator[str]:
    worst, fit = found.worst, found.judged
    exceeds = growth_change(None, found).exceeds
    if exceeds is not None:
        yield f"exceeds the bound {exceeds}"
    if worst is not None and fit is not None and worst.fit.least > fit.most:
        yield _dominating(found, worst, root)
    caches: dict[tuple[int, int], list[str]] = {}
    for cache, size, larger in found.leaves:
        caches.setdefault((size, larger), []).append(cache)
    for (size, larger), names in caches.items():
        yield f"leaves the {joined(names)} between {grouped(size)} and {grouped(larger)}: misses grow faster than instructions from there"


def _dominating(found: Growth, worst: FunctionGrowth, root: str) -> str:
    """Say which function will dominate, and from when."""
    from cachegrind_bench.valgrind.demangling import demangled

    now, later = worst.shares[0], worst.shares[-1]
    at = f"{percent(later)} of the cost at {grouped(100 * found.sizes[-1])}"
    before = f"{percent(now)} at {grouped(found.sizes[-1])}, but " if 2 * now < later else ""
    return f"{demangled(worst.name)} ({below(_place(worst), root)}) grows with {_named(worst.fit)}: {before}{at}"


def class_text(found: Growth) -> str:
    """Return its class by all that is sure, as far as there is any."""
    fit = found.judged
    return found.growth or ("unknown" if fit is None else _sure(fit))


def function_text(found: Growth) -> str:
    """Return the function that grows worst, demangled; nothing where the whole grows as badly."""
    from cachegrind_bench.valgrind.demangling import demangled

    return "" if found.worst is None else demangled(found.worst.name)


def change_remarks(change: GrowthChange, root: str = "") -> list[str]:
    """Say what became of the growth of a group, which function does it, and what the largest size will cost."""
    base, candidate = change.base, change.candidate
    found: list[str] = []
    if change.exceeds is not None:
        what = f"the bound {change.exceeds}" if candidate.bound is not None else f"the {change.exceeds} of the base"
        found.append(f"grows with {class_text(candidate)}, which exceeds {what}")
    elif base is None:
        found.append("only the candidate has it")
    elif change.improved:
        found.append(f"grows with {class_text(candidate)} instead of {class_text(base)}")
    if candidate.worst is not None and (change.exceeds is not None or change.improved):
        found.append(_dominating(candidate, candidate.worst, root))
    if base is not None and base.judged is not None and base.rest is None:
        found.append(
            "only the whole is compared: without profiles of both sides, nothing is known of functions (--with-profile stores them)"
        )
    return [*found, *_predicted(change), *doubts(candidate)]


def _predicted(change: GrowthChange) -> Iterator[str]:
    size = change.candidate.predict
    if size is None or change.candidate.judged is None:
        return
    after = _predicted_count(change.candidate, size)
    before = None if change.base is None or change.base.judged is None else _predicted_count(change.base, size)
    instead = "" if before in (None, after) else f" instead of {before}"
    yield f"at {grouped(size)} it is predicted to take {after}{instead} instructions"


def _predicted_count(found: Growth, size: int) -> str:
    """Return what the functions are predicted to cost together, which knows of more than the whole shows; else the whole."""
    count = found.at(size)
    return "endlessly many" if count is None else grouped(count)
