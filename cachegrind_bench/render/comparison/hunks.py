"""Names the hunks of the change that are in the functions that explain the difference."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from cachegrind_bench.model.symbols import UNKNOWN
from cachegrind_bench.model.text import percent, signed, some
from cachegrind_bench.render.comparison.calls import part_of
from cachegrind_bench.render.comparison.names import function_name, shown_name

if TYPE_CHECKING:
    from cachegrind_bench.compare.explain import Details
    from cachegrind_bench.compare.hunks import Touched

_ALL = Fraction(1)
MOST_HUNKS = 5


def hunk_remarks(details: Details | None) -> list[str]:
    """Say which hunks of the change are in the functions that explain the difference, and where nothing can be said."""
    if details is None or details.hunks is None:
        return []
    found = details.hunks
    if found.idle:
        return [
            "nothing that changed between the commits was executed: a compiler, a library or the memory layout did it"
        ]
    if found.through is not None:
        way = found.through
        part = f"{percent(min(Fraction(way.function.ir, found.total), _ALL))} of it is called from {_changed(way)}"
        own = f"{percent(Fraction(found.ir, found.total))} of the difference is of functions that the change touches"
        return [f"{own if found.touched else 'no function that explains the difference was changed'}, but {part}"]
    if not found.touched:
        if details.python is None and details.blamed is not None and details.blamed.file == UNKNOWN:
            return []  # without debug information it is not known where the function is
        unsaid = "constants, arguments, and code that was inlined where lines are not recorded (--lines)"
        what = f"no function that explains the difference was changed{_inlined(details)}"
        return [f"{what}; what other lines do, such as {unsaid}, cannot be said"]
    part = f", {part_of(found.ir, found.total)}," if found.total else ""
    places = "; ".join(map(_changed, found.touched[:MOST_HUNKS]))
    return [f"{signed(found.ir)} instructions{part} are of functions that the change touches: {places}"]


def _inlined(details: Details) -> str:
    """Say why a function that was not changed may be called on one side only."""
    found = details.cause
    if found is None or (found.base.number and found.candidate.number):
        return ""
    side = "candidate" if found.base.number else "base"
    return f": {function_name(found.function)} may be inlined in the {side}, which has no calls of it"


def _changed(row: Touched) -> str:
    return f"{shown_name(row.function.name)} at {some([hunk.place for hunk in row.hunks], MOST_HUNKS)}"
