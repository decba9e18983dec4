"""How much a row of numbers moves by itself, and how large a change must be to be told from that.

Exact counts mostly do not move at all, so that any estimate of their noise is zero: a share of the smallest change that
matters takes its place then. Knows numbers only.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from cachegrind_bench.history.partition import median

if TYPE_CHECKING:
    from collections.abc import Sequence

MILLION = 1_000_000
# Normal noise has a typical move of 0.95 standard deviations: a level must explain about five of these to be one.
_MOVES_PER_JUMP = Fraction(21, 4)
# Without noise, two readings that are changed by the least that matters are enough for a level of their own.
_LEAST_PER_JUMP = Fraction(3, 2)
# How many typical moves a change must be larger than.
_CLEARLY = 3
# So many readings on each side of a place tell how noisy it is there.
_AROUND = 15


def typical_move(values: Sequence[int]) -> int:
    """Return the median distance between neighbours: what is usual, however large the few steps are. 0 for one value."""
    moves = [abs(after - before) for before, after in pairwise(values)]
    return median(moves) if moves else 0


def penalty(values: Sequence[int], least: int) -> Fraction:
    """Return what a jump must save in distances to be worth it; `least` is the smallest change that matters, in ppm."""
    floor = _LEAST_PER_JUMP * Fraction(max(abs(median(values)), 1) * least, MILLION)
    return max(_MOVES_PER_JUMP * typical_move(values), floor)


def is_clear(values: Sequence[int], at: int, before: int, change: Fraction, least: int) -> bool:
    """Tell whether a change at this place matters, being at least `least` ppm of `before`, and is no noise of its surroundings."""
    if abs(change) * MILLION < least * max(abs(before), 1) or change == 0:
        return False
    sides = values[max(0, at - _AROUND) : at], values[at : at + _AROUND]
    moves = [abs(b - a) for side in sides for a, b in pairwise(side)]
    return not moves or abs(change) > _CLEARLY * median(moves)
