"""What a change is in time, in words: the estimate, its parts, and the ranges that such changes lay in."""

from __future__ import annotations

from fractions import Fraction

from cachegrind_bench.compare.estimates import EstimateChange, Range, estimated
from cachegrind_bench.compare.verdict import Difference, State
from cachegrind_bench.model.text import change

_DIGITS = 2  # an estimate has no more
_SMALL = 50  # parts below one in this many of the largest one are left out


def estimate_remarks(difference: Difference) -> list[str]:
    """Say how the estimate moved, and by which of its parts."""
    moved = difference.change
    found = None if moved is None else estimated(difference.base, difference.candidate)
    if found is None or (abs(found.relative) < difference.threshold and difference.state is State.UNCHANGED):
        return []
    text = f"estimate {change(found.relative, _DIGITS)}{_parts(found)}"
    if found.half is None or found.most is None:
        return [text]
    half, most = _range(found.half), _range(found.most)
    return [f"{text}: changes like this moved the time by {half} in half of all cases, by {most} in nine of ten"]


def _parts(found: EstimateChange) -> str:
    """Return what each part moved the estimate by, largest first: they add up to its change."""
    moved = {name: Fraction(part, found.base) for name, part in found.terms.items()}
    least = max(map(abs, moved.values())) / _SMALL
    shown = [f"{name} {change(part, _DIGITS)}" for name, part in moved.items() if part and abs(part) >= least]
    return f" ({', '.join(shown)})" if shown else ""


def _range(found: Range) -> str:
    return f"{change(found.low, _DIGITS).removesuffix(' %')} to {change(found.high, _DIGITS)}"
