"""Whether a row of comparable readings can be judged at all, or jumps to and fro. Knows numbers only."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.history.noise import MILLION, typical_move
from cachegrind_bench.history.partition import median

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.history.steps import Step

# So many readings are looked at together, and again from half of them on.
WINDOW = 24
# In them: at least so many of the rarer of two kinds, so many changes of kind.
_RARER = 4
_CHANGES = 6
# The gap between two kinds is so many times wider than either kind.
_APART = 2
# So many steps to and fro, within so many readings.
_STEPS = 8
_WITHIN = 40
# Noise from which on nothing can be told: so many times the smallest change that matters.
_TOO_NOISY = 5


class Unsteady(msgspec.Struct, frozen=True, kw_only=True):
    """The readings from `start` to before `stop` jump between about these two levels."""

    start: int
    stop: int
    low: int
    high: int


def unsteady(values: Sequence[int], steps: Sequence[Step], least: int) -> tuple[Unsteady, ...]:
    """Return where the readings cannot be judged, in order, without overlaps. `least` is what matters, in ppm."""
    if len(values) < 2 or (max(values) - min(values)) * MILLION < least * max(abs(min(values)), 1):
        return ()
    found = [*_windows(values, least), *_to_and_fro(steps)]
    joined: list[Unsteady] = []
    for stretch in sorted(found, key=lambda stretch: (stretch.start, stretch.stop)):
        if not joined or stretch.start > joined[-1].stop:
            joined.append(stretch)
            continue
        last = joined.pop()
        joined.append(
            Unsteady(
                start=last.start,
                stop=max(last.stop, stretch.stop),
                low=min(last.low, stretch.low),
                high=max(last.high, stretch.high),
            )
        )
    return tuple(joined)


def _windows(values: Sequence[int], least: int) -> list[Unsteady]:
    """Return the windows of two kinds of readings, or of nothing but noise."""
    found: list[Unsteady] = []
    # The last window ends with the last reading, so that the newest are always looked at.
    last = max(len(values) - WINDOW, 0)
    for start in sorted({*range(0, last, WINDOW // 2), last}):
        window = values[start : start + WINDOW]
        stretch = _two_kinds(window, start, least) or _noisy(window, start, least)
        if stretch is not None:
            found.append(stretch)
    return found


def _two_kinds(window: Sequence[int], start: int, least: int) -> Unsteady | None:
    """Return from where to where these readings alternate between two levels."""
    ordered = sorted(window)
    gap, after = max((high - low, high) for low, high in pairwise(ordered))
    if gap * MILLION < least * max(abs(ordered[0]), 1) or gap == 0:
        return None
    kinds = [value >= after for value in window]
    low, high = [value for value in ordered if value < after], [value for value in ordered if value >= after]
    changes = [place for place, (one, other) in enumerate(pairwise(kinds), 1) if one != other]
    if min(len(low), len(high)) < _RARER or len(changes) < _CHANGES:
        return None
    if gap <= _APART * max(_middle_width(low), _middle_width(high)):
        return None
    return Unsteady(start=start + changes[0], stop=start + changes[-1] + 1, low=median(low), high=median(high))


def _middle_width(ordered: Sequence[int]) -> int:
    """Return how far the middle half of these readings reaches."""
    return ordered[(3 * len(ordered) - 1) // 4] - ordered[len(ordered) // 4]


def _noisy(window: Sequence[int], start: int, least: int) -> Unsteady | None:
    """Return a whole window whose readings move too much to be judged, and as often back as on."""
    if len(window) < WINDOW or typical_move(window) * MILLION < _TOO_NOISY * least * max(abs(median(window)), 1):
        return None
    moves = [after - before for before, after in pairwise(window)]
    turns = sum(before * after < 0 for before, after in pairwise(moves))
    if 2 * turns <= len(moves) or not any(moves):
        return None
    ordered = sorted(window)
    low, high = ordered[len(ordered) // 4], ordered[3 * len(ordered) // 4]
    return Unsteady(start=start, stop=start + len(window), low=low, high=high)


def _to_and_fro(steps: Sequence[Step]) -> list[Unsteady]:
    """Return where levels, each of which lasts for some readings, come back and go again and again."""
    ups = [step.after > step.before for step in steps]
    found: list[Unsteady] = []
    for first in range(len(steps) - _STEPS + 1):
        some = steps[first : first + _STEPS]
        turns = sum(one != other for one, other in pairwise(ups[first : first + _STEPS]))
        if some[-1].at - some[0].at <= _WITHIN and turns >= _STEPS - 2:
            levels = sorted([step.before for step in some] + [step.after for step in some])
            low, high = levels[_STEPS // 2], levels[-_STEPS // 2]
            found.append(Unsteady(start=some[0].at, stop=some[-1].at + 1, low=low, high=high))
    return found
