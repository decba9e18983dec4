"""How many more or fewer allocations there are, and who makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.compare.verdict import Difference
from cachegrind_bench.model.symbols import ALLOCATES, FREES
from cachegrind_bench.model.text import counted, grouped
from cachegrind_bench.render.comparison.names import function_name, short_place

if TYPE_CHECKING:
    from cachegrind_bench.compare.allocations import Allocations, Number
    from cachegrind_bench.compare.call_split import Label
    from cachegrind_bench.compare.explain import Details


def by_allocations(details: Details) -> str | None:
    """Say how many more allocations the function makes that explains most by making them; None if something else does."""
    found, known = details.cause, details.allocations
    if found is None or known is None or found.caller is None:
        return None
    if not (ALLOCATES.match(found.function.name) or FREES.match(found.function.name)):
        return None
    callers = known.made.callers or known.freed.callers
    chief = known.user or (callers[0].label if callers else None)
    return allocations_text(known) if chief == found.caller.label else None


def allocation_remarks(item: Difference, details: Details | None) -> list[str]:
    """Say how many more or fewer allocations there are, and from where, unless the verdict or the cause says so."""
    if details is None or item.allocations is not None or by_allocations(details) is not None:
        return []
    known = details.allocations
    said = None if known is None else allocations_text(known)
    return [said] if said else []


def allocations_text(found: Allocations) -> str | None:
    """Say how many more or fewer allocations there are, and whether fewer of them are freed; None where nothing changed."""
    made, freed = found.made, found.freed
    if not made.callers:
        return _more(freed, "free", found.user) if freed.delta else None
    text = _more(made, "allocation", found.user)
    if found.kept <= 0 or made.delta <= 0:
        return text
    if freed.delta <= 0:
        less = counted(-freed.delta, "fewer free") if freed.delta else "no more frees"
        return f"{text}, and {less}"
    return f"{text}, but only {counted(freed.delta, 'more free')}"


def _more(number: Number, what: str, user: Label | None) -> str:
    """Say how much more often it is done, and which caller changed most."""
    chief, delta = number.callers[0], number.delta
    own = chief.candidate.number - chief.base.number
    some = f"{grouped(abs(own))} {'more' if own > 0 else 'fewer'} " if own != delta else ""
    label = user or chief.label
    at = f" ({place})" if (place := short_place(label)) else ""
    through = f", through {function_name(chief.label)}" if user is not None else ""
    counts = f"{grouped(number.base)} → {grouped(number.candidate)}"
    how = counted(abs(delta), f"{'more' if delta > 0 else 'fewer'} {what}") if delta else f"as many {what}s"
    return f"{how} ({counts}), {some}from {function_name(label)}{at}{through}"
