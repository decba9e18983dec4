"""Where a row of comparable readings steps from one level to another, and where it cannot be judged at all.

Exact counts mostly do not move at all, so that any estimate of their noise is zero: a share of the smallest change that
matters takes its place then. Knows numbers only; must not know commits, nor what becomes of a step later.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from statistics import median_low

import msgspec
from msgspec.structs import replace

from cachegrind_bench.history.partition import partition

MILLION = 1_000_000
_PER_MILLIONTH = 1_000  # what a change of one part in a million moves a logarithm by
_MOVES_PER_JUMP = Fraction(21, 4)  # typical moves, each 0.95 standard deviations of normal noise, that a level explains
_LEAST_PER_JUMP = Fraction(3, 2)  # without noise, two readings that are changed by the least that matters are a level
_CLEARLY = 3  # typical moves that a change must be larger than
_AROUND = 15  # readings on each side of a place that show how noisy it is there
_NEAR = 9  # readings next to a step, whose median is its level: further away it may have crept
_AT_ONCE = 3  # readings around a change that show whether it came at once or crept
_LONG = 20  # readings on one side that show whether the level moves by itself


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The level changed from `before` to `after`, whose first reading is the one `at` this place.

    `confirmed` is False while only one reading speaks for the new level, or for the old one.
    """

    at: int
    before: int
    after: int
    confirmed: bool


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
    usual = median_low(sizes) if len(sizes) > 1 else 0
    turns = sum(before * after < 0 for some in moves for before, after in pairwise(some))
    return usual if 3 * turns >= len(sizes) else 0


def penalty(shares: Sequence[int], least: int) -> Fraction:
    """Return what a jump between `logarithms` must save to be worth it; `least` is the smallest change that matters, in ppm."""
    return max(_MOVES_PER_JUMP * typical_move(shares), _LEAST_PER_JUMP * least * _PER_MILLIONTH)


def matters(change: Fraction | int, level: int, least: int) -> bool:
    """Return whether a change, up or down, is at least `least` ppm of a level."""
    bound = least * max(abs(level), 1)
    return not -bound < change * MILLION < bound


def find_steps(values: Sequence[int], least: int) -> tuple[Step, ...]:
    """Return the steps of at least `least` ppm, in order.

    A single reading that is off, with others after it, is not a step. Nor is a slow change, however far it goes.
    """
    if len(values) < 2 or not matters(max(values) - min(values), min(values), least):
        return ()
    # A level far above or below must not hide steps: on a scale of logarithms, a jump has the same price everywhere.
    shares = logarithms(values)
    starts = _without_spikes(values, list(partition(shares, penalty(shares, least))))
    starts = _worth(values, starts, least)
    # The newest reading may be a level, unless the step before would not matter without it.
    last = len(values) - 1
    more = [*starts, last]
    if last > starts[-1] and _worth(values, more, least) == more:
        starts = more
    return tuple(
        Step(at=at, before=before, after=after, confirmed=1 < at < last)
        for first, at, end in zip(starts, starts[1:], [*starts[2:], len(values)], strict=False)
        for before, after in [_levels(values, first, at, end)]
    )


def _without_spikes(values: Sequence[int], starts: list[int]) -> list[int]:
    """Give a level of a single reading to the neighbour that is nearer to it, unless it lies on the way from one to the other."""
    starts = starts.copy()
    number = 1
    while number < len(starts) - 1:
        at, end = starts[number], starts[number + 1]
        stop = starts[number + 2] if number + 2 < len(starts) else len(values)
        left, right = median_low(values[starts[number - 1] : at]), median_low(values[end:stop])
        if end - at > 1 or left < values[at] < right or left > values[at] > right:
            number += 1
            continue
        nearer_right = abs(values[at] - right) < abs(values[at] - left)
        del starts[number + 1 if nearer_right else number]
    return starts


def _worth(values: Sequence[int], starts: list[int], least: int) -> list[int]:
    """Join levels until all steps between them matter."""
    bounds = [*starts, len(values)]
    matter = [_matters(values, bounds[number : number + 3], least) for number in range(len(starts) - 1)]
    while False in matter:
        gone = matter.index(False)
        del bounds[gone + 1], matter[gone]
        for number in range(max(gone - 1, 0), min(gone + 1, len(matter))):
            matter[number] = _matters(values, bounds[number : number + 3], least)
    return bounds[:-1]


def _matters(values: Sequence[int], bounds: Sequence[int], least: int) -> bool:
    """Return whether the step from one level to the next is real; `bounds` are the begin of both, and the end."""
    first, at, end = bounds
    before, after = _levels(values, first, at, end)
    old, new = values[max(first, at - _AT_ONCE) : at], values[at : min(end, at + _AT_ONCE)]
    rises = after > before
    at_once = _agreed(new, down=rises, whole=len(new) == end - at) - _agreed(
        old, down=not rises, whole=len(old) == at - first
    )
    drift = _drift(values, first, at, end)
    # Medians are half the readings of both sides apart, and what would have moved in that time anyway is not a step.
    drift = max(drift, Fraction(0)) if rises else min(drift, Fraction(0))
    changes = [
        after - before - drift * (min(at - first, _NEAR) + min(end - at, _NEAR)) / 2,
        at_once - drift * (len(old) + len(new)) / 2,
    ]
    if not all(change > 0 if rises else change < 0 for change in changes):
        return False
    smaller = min(changes, key=abs)
    noise = _CLEARLY * typical_move(values[max(0, at - _AROUND) : at], values[at : at + _AROUND])
    by_one = _largest_move(values, at, rises=rises) + noise
    return abs(smaller) > noise and matters(smaller, before, least) and matters(by_one, before, least)


def _largest_move(values: Sequence[int], at: int, *, rises: bool) -> int:
    """Return the most that one reading near this place is above the one before, or below; without those that are off."""
    near = range(max(at - 2, 0), min(at + 2, len(values)))
    smooth = [
        median_low(values[place - 1 : place + 2]) if 0 < place < len(values) - 1 else values[place] for place in near
    ]
    moves = [after - before if rises else before - after for before, after in pairwise(smooth)]
    return max(*moves, 0)


def _drift(values: Sequence[int], first: int, at: int, end: int) -> Fraction:
    """Return by how much the longer of two levels moves by itself, per reading; 0 if both are short."""
    old, new = values[max(first, at - _LONG) : at], values[at : min(end, at + _LONG)]
    level = old if len(old) >= len(new) else new
    half = len(level) // 2
    if half < _AT_ONCE:
        return Fraction(0)
    return Fraction(median_low([after - before for before, after in zip(level, level[half:], strict=False)]), half)


def _agreed(values: Sequence[int], *, down: bool, whole: bool) -> int:
    """Return the median of up to three readings. If they are the `whole` level, two neighbours must agree on it.

    Of two readings the one counts that is nearer to the other level: the lower one if that is `down`.
    """
    if not whole or len(values) == 1:
        return median_low(values)
    nearer, farthest = (min, max) if down else (max, min)
    return farthest(nearer(pair) for pair in pairwise(values))


def _levels(values: Sequence[int], first: int, at: int, end: int) -> tuple[int, int]:
    return median_low(values[max(first, at - _NEAR) : at]), median_low(values[at : min(end, at + _NEAR)])


WINDOW = 24  # readings that are looked at together, and again from half of them on
_RARER, _CHANGES = 4, 6  # the least readings of the rarer of two kinds in a window, and changes of kind
_APART = 2  # how many times wider than either kind the gap between them is
_STEPS, _WITHIN = 8, 40  # steps up and down, within this many readings
_TOO_NOISY = 5  # how many times the smallest change that matters the noise is where nothing can be judged


class Unsteady(msgspec.Struct, frozen=True, kw_only=True):
    """The readings from `start` to before `stop` jump between about these two levels."""

    start: int
    stop: int
    low: int
    high: int


def unsteady(values: Sequence[int], steps: Sequence[Step], least: int) -> tuple[Unsteady, ...]:
    """Return where the readings cannot be judged, in order, without overlaps. `least` is what matters, in ppm."""
    if len(values) < 2 or not matters(max(values) - min(values), min(values), least):
        return ()
    # The last window ends with the last reading, so that the newest are always looked at.
    last = max(len(values) - WINDOW, 0)
    windows = ((start, values[start : start + WINDOW]) for start in sorted({*range(0, last, WINDOW // 2), last}))
    found = [_two_kinds(window, start, least) or _noisy(window, start, least) for start, window in windows]
    joined: list[Unsteady] = []
    stretches = [stretch for stretch in (*found, *_to_and_fro(steps)) if stretch is not None]
    for stretch in sorted(stretches, key=lambda stretch: (stretch.start, stretch.stop)):
        if not joined or stretch.start > joined[-1].stop:
            joined.append(stretch)
            continue
        one = joined[-1]
        stop, low, high = max(one.stop, stretch.stop), min(one.low, stretch.low), max(one.high, stretch.high)
        joined[-1] = replace(one, stop=stop, low=low, high=high)
    return tuple(joined)


def _two_kinds(window: Sequence[int], start: int, least: int) -> Unsteady | None:
    """Return from where to where these readings alternate between two levels."""
    ordered = sorted(window)
    gap, after = max((high - low, high) for low, high in pairwise(ordered))
    if gap == 0 or not matters(gap, ordered[0], least):
        return None
    kinds = [value >= after for value in window]
    low, high = [value for value in ordered if value < after], [value for value in ordered if value >= after]
    changes = [place for place, (one, other) in enumerate(pairwise(kinds), 1) if one != other]
    if min(len(low), len(high)) < _RARER or len(changes) < _CHANGES:
        return None
    middles = (side[(3 * len(side) - 1) // 4] - side[len(side) // 4] for side in (low, high))  # of their middle halves
    if gap <= _APART * max(middles):
        return None
    return Unsteady(start=start + changes[0], stop=start + changes[-1] + 1, low=median_low(low), high=median_low(high))


def _noisy(window: Sequence[int], start: int, least: int) -> Unsteady | None:
    """Return a whole window whose readings move too much to be judged, and as often back as on."""
    if len(window) < WINDOW or not matters(typical_move(window), median_low(window), _TOO_NOISY * least):
        return None
    moves = [after - before for before, after in pairwise(window)]
    turns = sum(before * after < 0 for before, after in pairwise(moves))
    if 2 * turns <= len(moves) or not any(moves):
        return None
    ordered = sorted(window)
    low, high = ordered[len(ordered) // 4], ordered[3 * len(ordered) // 4]
    return Unsteady(start=start, stop=start + len(window), low=low, high=high)


def _to_and_fro(steps: Sequence[Step]) -> list[Unsteady]:
    """Return where levels that each last for some readings come back and go again and again."""
    ups = [step.after > step.before for step in steps]
    found: list[Unsteady] = []
    for first in range(len(steps) - _STEPS + 1):
        some = steps[first : first + _STEPS]
        turns = sum(one != other for one, other in pairwise(ups[first : first + _STEPS]))
        if some[-1].at - some[0].at <= _WITHIN and turns >= _STEPS - 2:
            levels = sorted(level for step in some for level in (step.before, step.after))
            low, high = levels[_STEPS // 2], levels[-_STEPS // 2]
            found.append(Unsteady(start=some[0].at, stop=some[-1].at + 1, low=low, high=high))
    return found
