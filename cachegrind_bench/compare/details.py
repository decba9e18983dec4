"""Why one benchmark moved: its functions or files, source lines and libraries, cut to what will be shown.

Takes profiles one benchmark at a time, so that a comparison of a thousand never holds more than two of them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.compare.explain import blamed, by_file, explain, top
from cachegrind_bench.compare.gates import Metric
from cachegrind_bench.compare.lines import line_deltas
from cachegrind_bench.compare.python_blame import blame
from cachegrind_bench.compare.python_blame import top as python_top

if TYPE_CHECKING:
    from collections.abc import Callable

    from cachegrind_bench.compare.comparison import Comparison
    from cachegrind_bench.compare.explain import FunctionDelta, MovedFunction, Top
    from cachegrind_bench.compare.lines import LineDelta
    from cachegrind_bench.compare.python_blame import PythonTop
    from cachegrind_bench.model.metrics import Counts, Profile
    from cachegrind_bench.model.python_profile import PythonProfile

_MOST_MOVED = 20
_MOST_LINES = 5


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """How much to explain: rows of functions (or files), and whether source lines too."""

    rows: int = 10
    by_file: bool = False
    lines: bool = False


class FunctionLines(msgspec.Struct, frozen=True, kw_only=True):
    """The source lines that moved most within one function, and how many others of it moved."""

    function: str
    lines: tuple[LineDelta, ...]
    more: int


class Details(msgspec.Struct, frozen=True, kw_only=True):
    """`top.rows` and `top.rest` add up to `total`, exactly. `moved` is cut, `moved_count` is not.

    The rows are functions, or (`by_file`) files. `lines` is None where they were not asked for, or a profile was
    recorded without them (`lines_missing`). `blamed_share` is how much of what decides the blamed function explains, 0 where
    nothing moved; it is above 1 where others went the other way. `python` is None unless both sides have a profile of Python functions.
    """

    total: Counts
    top: Top
    blamed: FunctionDelta | None
    blamed_share: Fraction
    moved: tuple[MovedFunction, ...]
    moved_count: int
    lines: tuple[FunctionLines, ...] | None
    lines_missing: bool
    by_file: bool
    python: PythonTop | None = None


def details(
    base: Profile,
    candidate: Profile,
    comparison: Comparison,
    wanted: Wanted,
    *,
    python: tuple[PythonProfile, PythonProfile] | None = None,
) -> Details:
    """Explain the difference of two profiles, and of two profiles of Python functions."""
    weigh = weight(comparison)
    found = explain(base, candidate)
    functions = top(found, weigh, wanted.rows)
    missing = wanted.lines and not (base.lines and candidate.lines)
    lines = None
    if wanted.lines and not missing:
        whole = abs(weigh(found.total))
        groups = (_lines(base, candidate, row, weigh, whole) for row in functions.rows)
        lines = tuple(group for group in groups if group.lines)
    most, moved = blamed(found, weigh), weigh(found.total)
    return Details(
        total=found.total,
        top=top(by_file(found), weigh, wanted.rows) if wanted.by_file else functions,
        blamed=most,
        blamed_share=Fraction(weigh(most.delta), moved) if most is not None and moved else Fraction(0),
        moved=found.moved[:_MOST_MOVED],
        moved_count=len(found.moved),
        lines=lines,
        lines_missing=missing,
        by_file=wanted.by_file,
        python=None if python is None else _python(*python, weigh(found.total), wanted.rows),
    )


def _python(base: PythonProfile, candidate: PythonProfile, moved: int, rows: int) -> PythonTop:
    """Return the Python functions; none is named first where their instructions went the other way than what decides."""
    found = python_top(blame(base, candidate), rows)
    return replace(found, chief=None) if found.whole.total * moved < 0 else found


def _lines(
    base: Profile, candidate: Profile, row: FunctionDelta, weigh: Callable[[Counts], int], whole: int
) -> FunctionLines:
    """Return the lines of one function that matter: each at least a hundredth of the whole difference."""
    found = line_deltas(base, candidate, row.base_keys, row.candidate_keys)
    differing = sorted(
        (line for line in found if line.base != line.candidate),
        key=lambda line: (-abs(weigh(line.delta)), line.candidate_line or 0, line.base_line or 0),
    )
    large = [line for line in differing if abs(weigh(line.delta)) * 100 >= whole][:_MOST_LINES]
    return FunctionLines(function=row.name, lines=tuple(large), more=len(differing) - len(large))


def weight(comparison: Comparison) -> Callable[[Counts], int]:
    """Return what a comparison's rows are ordered by: the number that decides."""
    return _ir if comparison.gates.metric is Metric.IR else comparison.model.score


def _ir(counts: Counts) -> int:
    return counts.Ir
