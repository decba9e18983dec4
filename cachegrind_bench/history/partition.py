"""The best description of a row of numbers by few levels: L1 optimal partitioning, also called the L1 Potts functional.

Knows numbers only; must not know what they measure, nor which jumps matter. Written after Friedrich, Kempe, Liebscher and
Winkler, "Complexity Penalized M-Estimation", 2008; that levels need only be values of the row is from Storath, Weinmann
and Unser, "Exact Algorithms for L1-TV Regularization of Real-Valued or Circle-Valued Signals", 2016.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import groupby
from statistics import median_low
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction


def partition(values: Sequence[int], penalty: Fraction) -> tuple[int, ...]:
    """Return where the levels begin, 0 first, so that the total cost is the least there is. Exact.

    The cost is the sum of the distances of all values from the median of their level, and `penalty` (above 0) for every
    jump between levels. The result for no values is empty. Takes time in proportion to the runs of equal values times
    the number of different values.
    """
    if not values:
        return ()
    if _cost(values) <= penalty:  # one jump costs as much
        return (0,)
    runs = [(value, len(list(equal))) for value, equal in groupby(values)]
    # Whole numbers throughout: equal costs are then equal, whatever the order they were added up in.
    scale, jump, least = penalty.denominator, penalty.numerator, min(values)
    scaled = [((value - least) * scale, weight) for value, weight in runs]
    places = [0]
    for _, weight in runs:
        places.append(places[-1] + weight)
    return tuple(places[start] for start in _starts(scaled, jump))


def _cost(values: Sequence[int]) -> int:
    level = median_low(values)
    return sum(abs(value - level) for value in values)


def _starts(runs: Sequence[tuple[int, int]], jump: int) -> list[int]:
    """Return at which runs, pairs of value and weight, the levels begin."""
    best, last = _forward(runs, jump)
    starts: list[int] = []
    end = len(runs) - 1
    while end >= 0:
        level, cost, start = last[end], 0, end
        # Of several best beginnings the earliest: it needs the fewest jumps.
        for place in range(end, -1, -1):
            value, weight = runs[place]
            cost += weight * abs(value - level)
            if cost > best[end]:
                break
            if cost + (best[place - 1] + jump if place else 0) == best[end]:
                start = place
        starts.append(start)
        end = start - 1
    return starts[::-1]


def _forward(runs: Sequence[tuple[int, int]], jump: int) -> tuple[list[int], list[int]]:
    """Return for each run the least cost of all up to it, and the level that it has then.

    `costs` holds, for each of the levels from `low` to `high`, the least cost up to here if the current level is that one.
    All others are so far off that a jump to them is the cheapest way there, at `limit`: they need not be looked at.
    """
    levels = sorted({value for value, _ in runs})
    best, last = [0], [runs[0][0]]
    low, high, limit = 0, len(levels), jump
    costs = _charged([0] * len(levels), levels, *runs[0])
    for value, weight in runs[1:]:
        if max(costs) > limit:
            costs = [cost if cost < limit else limit for cost in costs]  # noqa: FURB136 - a call for each takes twice as long
        costs = _charged(costs, levels[low:high], value, weight)
        least = min(costs)
        if not low <= bisect_left(levels, value) < high:
            least = min(least, limit)
        # Levels so near to the value may now be cheaper without a jump to them than with one.
        reach = (least + jump - limit) // weight
        first, stop = min(low, bisect_left(levels, value - reach)), max(high, bisect_right(levels, value + reach))
        if first < low:
            costs = [limit + weight * abs(value - level) for level in levels[first:low]] + costs
        if stop > high:
            costs += [limit + weight * abs(value - level) for level in levels[high:stop]]
        best.append(least)
        last.append(levels[first + costs.index(least)])
        limit = least + jump
        inside = [place for place in (0, len(costs) - 1) if costs[place] < limit]
        low, high = first, stop
        if len(inside) < 2:
            drop = next(place for place, cost in enumerate(costs) if cost < limit)
            keep = next(place for place in range(len(costs), 0, -1) if costs[place - 1] < limit)
            costs, low, high = costs[drop:keep], first + drop, first + keep
    return best, last


def _charged(costs: list[int], levels: list[int], value: int, weight: int) -> list[int]:
    """Return these costs with the distances of their levels, in order, from the value added."""
    if weight > 1:
        return [cost + weight * abs(value - level) for cost, level in zip(costs, levels, strict=True)]
    here = bisect_left(levels, value)
    below = [cost + value - level for cost, level in zip(costs[:here], levels, strict=False)]
    return below + [cost + level - value for cost, level in zip(costs[here:], levels[here:], strict=True)]
