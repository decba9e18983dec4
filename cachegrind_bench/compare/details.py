"""Why one benchmark moved: its functions or files, source lines and libraries, cut to what will be shown.

Takes profiles one benchmark at a time, so that a comparison of a thousand never holds more than two of them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.compare.explain import blamed, explain, top
from cachegrind_bench.compare.lines import line_deltas
from cachegrind_bench.compare.python_blame import blame
from cachegrind_bench.compare.python_blame import top as python_top

if TYPE_CHECKING:
    from collections.abc import Callable

    from cachegrind_bench.compare.comparison import Comparison
    from cachegrind_bench.compare.explain import FunctionDelta, MovedFunction, Top
    from cachegrind_bench.compare.lines import LineDelta
    from cachegrind_bench.compare.python_blame import PythonBlame
    from cachegrind_bench.model.metrics import Counts, Profile
    from cachegrind_bench.model.python_profile import PythonProfile

_MOST_MOVED = 20
_MOST_LINES = 5


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
    python: PythonBlame | None = None


def details(
    base: Profile,
    candidate: Profile,
    comparison: Comparison,
    *,
    rows: int = 10,
    by_file: bool = False,
    lines: bool = False,
    python: tuple[PythonProfile, PythonProfile] | None = None,
) -> Details:
    """Explain the difference of two profiles by so many rows, and of two profiles of Python functions."""
    weigh = comparison.weigh
    found = explain(base, candidate)
    functions = top(found.functions, found.total, weigh, rows)
    missing = lines and not (base.lines and candidate.lines)
    most, moved = blamed(found, weigh), weigh(found.total)
    blames = None if python is None else python_top(blame(*python), rows)
    if blames is not None and blames.total * moved < 0:  # instructions went the other way than what decides
        blames = replace(blames, chief=None)
    groups = (_lines(base, candidate, row, weigh, abs(moved)) for row in functions.rows)
    return Details(
        total=found.total,
        top=top(found.files, found.total, weigh, rows) if by_file else functions,
        blamed=most,
        blamed_share=Fraction(weigh(most.delta), moved) if most is not None and moved else Fraction(0),
        moved=found.moved[:_MOST_MOVED],
        moved_count=len(found.moved),
        lines=tuple(group for group in groups if group.lines) if lines and not missing else None,
        lines_missing=missing,
        by_file=by_file,
        python=blames,
    )


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
