"""How much a row of numbers moves by itself, and how large a change must be to be told from that.

Exact counts mostly do not move at all, so that any estimate of their noise is zero: a share of the smallest change that
matters takes its place then. Knows numbers only.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from cachegrind_bench.history.partition import median

if TYPE_CHECKING:
    from collections.abc import Sequence

MILLION = 1_000_000
# A change of one part in a million moves a logarithm by so much.
_PER_MILLIONTH = 1_000
# Normal noise has a typical move of 0.95 standard deviations: a level must explain about five of these to be one.
_MOVES_PER_JUMP = Fraction(21, 4)
# Without noise, two readings that are changed by the least that matters are enough for a level of their own.
_LEAST_PER_JUMP = Fraction(3, 2)
# How many typical moves a change must be larger than.
_CLEARLY = 3
# So many readings on each side of a place tell how noisy it is there.
_AROUND = 15


def logarithms(values: Sequence[int]) -> list[int]:
    """Return 10^9 times the natural logarithm of each count's share of the largest: equal shares are equal moves.

    A count of 0 is taken as 1. Another unit of the counts changes no digit, as division rounds correctly.
    """
    largest = max(1, *values)
    return [round(math.log(max(value, 1) / largest) * MILLION * _PER_MILLIONTH) for value in values]


def typical_move(*rows: Sequence[int]) -> int:
    """Return the median distance between neighbours in these rows: what is usual, however large the few steps are.

    0 if one move is all there is, and if the values mostly go on the way they went: noise turns at two readings of three.
    """
    moves = [[after - before for before, after in pairwise(values)] for values in rows]
    sizes = [abs(move) for some in moves for move in some]
    usual = median(sizes) if len(sizes) > 1 else 0
    turns = sum(before * after < 0 for some in moves for before, after in pairwise(some))
    return usual if 3 * turns >= len(sizes) else 0


def penalty(shares: Sequence[int], least: int) -> Fraction:
    """Return what a jump between `logarithms` must save to be worth it; `least` is the smallest change that matters, in ppm."""
    return max(_MOVES_PER_JUMP * typical_move(shares), _LEAST_PER_JUMP * least * _PER_MILLIONTH)


def margin(values: Sequence[int], at: int) -> int:
    """Return how large a change at this place may be and still be the noise of its surroundings."""
    return _CLEARLY * typical_move(values[max(0, at - _AROUND) : at], values[at : at + _AROUND])


def matters(change: Fraction | int, level: int, least: int) -> bool:
    """Tell whether a change, up or down, is at least `least` ppm of a level."""
    bound = least * max(abs(level), 1)
    return not -bound < change * MILLION < bound
