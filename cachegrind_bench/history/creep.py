"""Creep: whether the level now is far above the best there was, beyond what steps account for, as findings.

The best level is looked for since the last release, and again since each accepted change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from statistics import median_low

import msgspec
from msgspec.structs import replace

from cachegrind_bench.history.accepted import Accepted
from cachegrind_bench.history.lifecycle import identity
from cachegrind_bench.history.steps import MILLION, Step, typical_move
from cachegrind_bench.history.values import Finding, KeyReadings, Kind

_READINGS = 5  # a level is the median of this many readings, and two levels are compared
_CLEARLY, _MOST = 4, Fraction(4, 5)  # a single rise is blamed if this many times the usual one, and this much of all
_STAYS = 75  # percent of the budget
_IN_PART = Fraction(1, 4)  # of the budget: a level that is less than that above the best is back


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
    """Return, quickly, whether no level can be over the budget (in ppm)."""
    return not values or max(values) * MILLION <= min(values) * (MILLION + budget)


def find_creep(values: Sequence[int], steps: Sequence[Step], budget: int) -> Creep | None:
    """Compare the last level with the best. It must be over the budget (in ppm) without steps, and not back at the best as measured."""
    if len(values) < 2 * _READINGS or within_budget(flat := levelled(values, steps), budget):
        return None
    measured, levels = _running(values, _READINGS), _running(flat, _READINGS)
    best_so_far = list(accumulate(levels, min))
    over = [_beyond(best, level, budget) for best, level in zip(best_so_far, levels, strict=True)]
    # An improvement makes no room for creep, unless it undoes it.
    room = _IN_PART * budget if any(step.after < step.before for step in steps) else budget
    if not over[-1] or not _beyond(min(measured), measured[-1], int(room)):
        return None
    since = len(over)
    while over[since - 1]:  # the first level is the best so far: it is never over
        since -= 1
    before, after = best_so_far[-1], levels[-1]
    best = max(number for number, level in enumerate(levels) if level == before) + _READINGS // 2
    moves = {place: flat[place] - flat[place - 1] for place in range(best + 1, len(flat))}
    usual = typical_move(flat[best:])
    rises = [place for place, move in moves.items() if move > _CLEARLY * usual]
    if sum(map(moves.__getitem__, rises)) < _MOST * (after - before):
        rises = []
    return Creep(best=best, over=since + _READINGS - 1, before=before, after=after, rises=tuple(rises))


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
    return [median_low(values[start : start + window]) for start in range(len(values) - window + 1)]


def _beyond(best: int, level: int, budget: int) -> bool:
    return level * MILLION > best * (MILLION + budget)


def creep_findings(row: KeyReadings, steps: Sequence[Step], *, start: int, released: int) -> Iterator[Finding]:
    """Return the creep there is now, and that which ended with an accepted change; no part of it is in `steps`.

    Readings before place `start` cannot be judged. `released` is the place of the last release on the line, or -1.
    """
    lower = row.budget * _STAYS // 100
    if within_budget(levelled(row.values[start:], _shifted(steps, start)), lower):
        return
    for begin, stop, anchor, accepted in _parts(row, start, released):
        inside = _shifted([step for step in steps if step.at < stop], begin)
        name = identity(Kind.CREEP, row.benchmark, row.key, anchor)
        # What was reported once stays until it is clearly less, or a level near the budget would be news again and again.
        budget = lower if name in (row.previous or ()) else row.budget
        found = find_creep(row.values[begin:stop], inside, budget)
        if found is None or (accepted and _is_gone(row, begin, stop, found, steps)):
            continue
        reason = accepted[1].reason if accepted else None
        if accepted and any(accepted[0] in range(*row.span(step.at)) for step in steps):
            reason = None  # a change that was accepted as a step says nothing about what crept before it
        # The suspects came with the rises, or if there were too many for that, at any time since the best level.
        places = found.rises or range(found.best + 1, stop - begin)
        yield row.finding(
            begin + found.over,
            Kind.CREEP,
            (found.before, found.after),
            id=name,
            suspects=tuple(sha for place in places for sha in row.suspects(begin + place)),
            last_good_sha=row.readings[begin + found.best].sha,
            reason=reason,
        )


def _parts(row: KeyReadings, start: int, released: int) -> Iterator[tuple[int, int, str, tuple[int, Accepted] | None]]:
    """Cut the readings at the last release and at each change accepted since; the reading at the cut is in both.

    Return of each part its begin, its end, the commit that begins it, and the accepted change that ends it.
    """
    readings, anchor = row.readings, ""
    before = [place for place, reading in enumerate(readings) if reading.index <= released]
    if before and before[-1] >= start:
        start, anchor = before[-1], row.line[released].sha
    for index, entry in row.accepted:
        place = next((place for place, reading in enumerate(readings) if reading.index >= index), len(readings) - 1)
        if place <= start:
            continue
        yield start, place + 1, anchor, (index, entry)
        start, anchor = place, row.line[index].sha
    if start < len(readings):
        yield start, len(readings), anchor, None


def _shifted(steps: Sequence[Step], start: int) -> list[Step]:
    """Return the steps after a place, as they are in the readings from there on."""
    return [replace(step, at=step.at - start) for step in steps if step.at > start]


def _is_gone(row: KeyReadings, start: int, stop: int, found: Creep, steps: Sequence[Step]) -> bool:
    """Return whether the level has come back since, but for steps."""
    flat = levelled(row.values[start:], _shifted(steps, start))
    now, then = median_low(flat[-_READINGS:]), median_low(flat[: stop - start][-_READINGS:])
    # By how much it was above the best then, on the scale of now.
    best = then * found.before // max(found.after, 1)
    return now * MILLION < best * (MILLION + row.least)
