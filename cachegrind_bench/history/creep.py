"""Whether the level now is far above the best there was, beyond what steps account for.

Knows numbers only; must not know commits, nor from where on the best level is looked for.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.history.noise import MILLION, typical_move
from cachegrind_bench.history.partition import median

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.history.steps import Step

# A level is the median of so many readings, and two levels are compared.
_READINGS = 5
# Single rises are to blame if they are so many times what is usual, and make up this share of the whole.
_CLEARLY = 4
_MOST = Fraction(4, 5)


class Creep(msgspec.Struct, frozen=True, kw_only=True):
    """From the reading at place `best` on, the level rose from `before` to `after`; from place `over` on, beyond the budget.

    `rises` are the readings that brought it, if few did, else none. Levels are as high as if all steps had come before.
    """

    best: int
    over: int
    before: int
    after: int
    rises: tuple[int, ...]


def within_budget(values: Sequence[int], budget: int) -> bool:
    """Tell, quickly, that no level can be over the budget (in ppm)."""
    return not values or max(values) * MILLION <= min(values) * (MILLION + budget)


def find_creep(values: Sequence[int], steps: Sequence[Step], budget: int) -> Creep | None:
    """Compare the last level with the best. Over the budget (in ppm) it must be both as measured, and without steps."""
    if len(values) < 2 * _READINGS or within_budget(values, budget):
        return None
    flat = levelled(values, steps)
    measured, levels = _running(values, _READINGS), _running(flat, _READINGS)
    best_so_far = list(accumulate(levels, min))
    over = [_beyond(best, level, budget) for best, level in zip(best_so_far, levels, strict=True)]
    if not over[-1] or not _beyond(min(measured), measured[-1], budget):
        return None
    since = len(over)
    while over[since - 1]:  # the first level is the best so far: it is never over
        since -= 1
    lowest = best_so_far[-1]
    place = max(number for number, level in enumerate(levels) if level == lowest) + _READINGS // 2
    return Creep(
        best=place,
        over=since + _READINGS - 1,
        before=lowest,
        after=levels[-1],
        rises=_rises(flat, place, levels[-1] - lowest),
    )


def levelled(values: Sequence[int], steps: Sequence[Step]) -> list[int]:
    """Return what the values would have been had all steps come before them."""
    flat = list(values)
    factor, end = Fraction(1), len(flat)
    for step in reversed(steps):
        _scale(flat, step.at, end, factor)
        if step.before <= 0 or step.after <= 0:  # no factor leads from there to here: as if all had been as it is now
            flat[: step.at] = [flat[step.at]] * step.at
            return flat
        factor *= Fraction(step.after, step.before)
        end = step.at
    _scale(flat, 0, end, factor)
    return flat


def _scale(values: list[int], start: int, stop: int, factor: Fraction) -> None:
    if factor != 1:
        values[start:stop] = [value * factor.numerator // factor.denominator for value in values[start:stop]]


def _running(values: Sequence[int], window: int) -> list[int]:
    return [median(values[start : start + window]) for start in range(len(values) - window + 1)]


def _beyond(best: int, level: int, budget: int) -> bool:
    return level * MILLION > best * (MILLION + budget)


def _rises(flat: Sequence[int], best: int, whole: int) -> tuple[int, ...]:
    """Return the places after the best that are clearly above the one before, if they account for most of the whole."""
    usual = typical_move(flat[best:])
    found = [place for place in range(best + 1, len(flat)) if flat[place] - flat[place - 1] > _CLEARLY * usual]
    return tuple(found) if sum(flat[place] - flat[place - 1] for place in found) >= _MOST * whole else ()
