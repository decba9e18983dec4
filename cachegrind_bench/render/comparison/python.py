"""Names the Python functions that explain the difference."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from cachegrind_bench.model.python_profile import NATIVE
from cachegrind_bench.model.text import change, counted, grouped, is_worth_a_row, share, signed
from cachegrind_bench.render.comparison.blame import chief

if TYPE_CHECKING:
    from cachegrind_bench.compare.explain import Details
    from cachegrind_bench.compare.python_blame import PythonBlame


def python_remarks(details: Details | None) -> list[str]:
    """Say which function did it, and how."""
    row = chief(details)
    if details is None or details.python is None or row is None:
        return []
    total = details.python.base_total
    share_of_all = f"{change(Fraction(row.blame, total))} " if total else ""
    often = f"by calling others {'more' if row.called > 0 else 'less'} often"
    how = f"{signed(row.blame)} instructions"
    if not row.called:
        how += " of its own"
    else:
        how += f", of which {signed(row.called)} {often}" if row.own else f" {often}"
    calls = f"{grouped(row.base.calls)} → {counted(row.candidate.calls, 'call')}"
    return [f"in Python: {row.function.name}, {row.function.place}, {share_of_all}({how}; {calls})"]


def python_table(found: PythonBlame) -> list[tuple[str, ...]]:
    """Return the heading and the rows of a table; the last row is the sum of the others."""
    total = found.total

    def cells(blame: int, own: int, *texts: str) -> tuple[str, ...]:
        return signed(blame), share(blame, total), signed(own), *texts

    rows: list[tuple[str, ...]] = [("blame", "of Δ", "own code", "calls", "Python function", "line")]
    shown = [
        row
        for row in found.rows
        if row.base.calls != row.candidate.calls or is_worth_a_row(row.blame, total) or is_worth_a_row(row.own, total)
    ]
    rest = [*found.rest, *(row for row in found.rows if row not in shown)]
    for row in shown:
        before, after = grouped(row.base.calls), grouped(row.candidate.calls)
        calls = after if before == after else f"{before} → {after}"
        rows.append(cells(row.blame, row.own, calls, row.function.name, row.function.place))
    if rest:
        others = counted(len(rest), "other function")
        rows.append(cells(sum(row.blame for row in rest), sum(row.own for row in rest), "", others))
    if found.native or found.native_blame:
        rows.append(cells(found.native_blame, found.native, "", NATIVE))
    own = sum(row.own for row in (*found.rows, *found.rest)) + found.native
    return [*rows, cells(total, own, "", "total")]
