"""What a change is in time, in words: the estimate with the ranges that such changes lay in."""

from __future__ import annotations

from cachegrind_bench.compare.estimates import Range, estimated
from cachegrind_bench.compare.verdict import Difference, State
from cachegrind_bench.model.text import change

_DIGITS = 2  # an estimate has no more


def estimate_remarks(difference: Difference) -> list[str]:
    """Say how the estimate moved, and where score and estimate part, which part of it did that."""
    moved = difference.change
    found = None if moved is None else estimated(difference.base, difference.candidate)
    if moved is None or found is None:
        return []
    by_estimate, by_score = found.relative, moved.score.relative
    quiet = abs(by_estimate) < difference.threshold
    if quiet and difference.state is State.UNCHANGED:
        return []
    text = f"estimate {change(by_estimate, _DIGITS)}"
    if not quiet and (by_estimate * by_score < 0 or abs(by_score) < difference.threshold):
        up = by_estimate > 0
        term = next(name for name, (before, after) in found.terms.items() if (after > before) is up)
        text += f", by {'more' if up else 'fewer'} {term}"
    if found.half is None or found.most is None:
        return [text]
    half, most = _range(found.half), _range(found.most)
    return [f"{text}: changes like this moved the time by {half} in half of all cases, by {most} in nine of ten"]


def _range(found: Range) -> str:
    return f"{change(found.low, _DIGITS).removesuffix(' %')} to {change(found.high, _DIGITS)}"
