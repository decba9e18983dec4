"""Says what is called more often and by whom, or costs more in each call."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from cachegrind_bench.model.text import counted, grouped, is_worth_a_row, percent, signed
from cachegrind_bench.render.comparison.allocations import by_allocations
from cachegrind_bench.render.comparison.names import function_name, short_place

if TYPE_CHECKING:
    from cachegrind_bench.compare.call_split import CallDelta, Caller, CallSplit
    from cachegrind_bench.compare.explain import Details
    from cachegrind_bench.model.call_graph import Calls

_ALL = Fraction(1)


def cause_text(details: Details) -> str | None:
    """Say what happened, from calls: what is called more often and by whom, or costs more in each call; None if unknown."""
    found = details.cause
    if found is None:
        return None
    from cachegrind_bench.compare.call_split import Kind

    name = f"{function_name(found.function)}{f' ({at})' if (at := short_place(found.function)) else ''}"
    caller = found.caller and function_name(found.caller.label)
    if found.caller is not None and found.caller.label.line:
        caller = f"{caller} ({short_place(found.caller.label)})"
    before, after = found.base.number, found.candidate.number
    if found.kind is Kind.CALLED:
        allocated = by_allocations(details)
        if allocated is not None:
            return allocated
        text = f"{name} is called {grouped(after)} instead of {counted(before, 'time')}"
        if found.caller is None:
            return text
        here = found.caller.candidate.number - found.caller.base.number
        some = "" if here == after - before else f"{grouped(abs(here))} {'more' if here > 0 else 'fewer'} "
        return f"{text}, {some}from {'itself' if found.caller.label == found.function else caller}"
    by = f", called from {caller}" if caller else ""
    own = _instead(found.base, found.candidate)
    if before == after == 1:
        itself, comma = (" itself", "") if found.kind is Kind.OWN else (", with what it calls", ",")
        return f"{name}{itself}{comma} costs {own} instructions{by}"
    if found.kind is Kind.INCLUSIVE or found.whole == (found.base, found.candidate):
        return f"each call of {name} costs {own} instructions{by}"
    if found.whole is None:  # what calls within a recursion cost contains one another
        return f"each call of {name} costs {own} instructions in its own code{by}"
    return f"each call of {name} costs {_instead(*found.whole)} instructions, {own} in its own code{by}"


def _instead(base: Calls, candidate: Calls) -> str:
    return f"{each_call(candidate)} instead of {each_call(base)}"


def each_call(calls: Calls) -> str:
    """Return what one of these calls costs, in the mean."""
    return grouped(round(Fraction(calls.ir, calls.number))) if calls.number else "0"


def cause_remarks(details: Details | None) -> list[str]:
    """Say what happened, and how much of the difference that is."""
    said = None if details is None else cause_text(details)
    if details is None or details.cause is None or said is None:
        return []
    found = details.cause
    part = f", {part_of(found.ir, _total(details))}"
    many = f"; it is one of {grouped(found.members)} functions that call each other" if found.members > 1 else ""
    return [f"{said}: {signed(found.ir)} instructions{part}{many}"]


def explained_part(details: Details) -> Fraction:
    """Return which part of the difference of instructions the cause explains."""
    total = _total(details)
    return Fraction(details.cause.ir, total) if details.cause and total else Fraction(0)


def _total(details: Details) -> int:
    """Return the difference of instructions by the calls that the cause is found in."""
    split = details.calls if details.python_calls is None else details.python_calls
    return 0 if split is None else split.total


def part_of(ir: int, total: int) -> str:
    """Say how much of the difference this is; where it is more than all, what others cost less."""
    share_of_it = Fraction(ir, total) if total else Fraction(0)
    if share_of_it < _ALL + Fraction(1, 200):
        return f"{percent(min(share_of_it, _ALL))} of the difference"
    return f"all else {signed(total - ir)}"


def calls_table(found: CallSplit) -> list[tuple[str, ...]]:
    """Return the heading and the rows of a table; the blames of all rows add up to that of the last one.

    What each call costs is with what it calls.
    """
    rows: list[tuple[str, ...]] = [
        ("blame", "Δ cost", "by calls", "by cost of each", "calls", "each", "function", "called from")
    ]
    shown = [row for row in found.rows if is_worth_a_row(max(abs(row.blame), abs(row.by_calls)), found.total)]
    for row in shown:
        before, after = row.base, row.candidate
        each = [each_call(side) if side.number else "–" for side in (before, after)]
        delta = after.ir - before.ir
        numbers = (
            *map(signed, (row.blame, delta, row.by_calls, row.by_cost)),
            _arrow(grouped(before.number), grouped(after.number)),
        )
        rows.append((*numbers, _arrow(*each), *ends(row)))
    rest = found.total - sum(row.blame for row in shown)
    if rest or len(shown) < len(found.rows):
        rows.append((signed(rest), *[""] * 5, "everything else", ""))
    return [*rows, (signed(found.total), *[""] * 5, "total", "")]


def ends(row: CallDelta) -> tuple[str, str]:
    """Return what was called, and from where."""
    more = f" and {counted(row.members - 1, 'other')} in a circle" if row.members > 1 else ""
    return function_name(row.label) + more, ", ".join(map(calls_from, row.callers))


def _arrow(before: str, after: str) -> str:
    return after if before == after else f"{before} → {after}"


def calls_from(caller: Caller) -> str:
    """Return a caller, and how often it calls."""
    return f"{function_name(caller.label)} {_arrow(grouped(caller.base.number), grouped(caller.candidate.number))}"
