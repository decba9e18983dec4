"""A profile without what measuring itself adds to it, so that nothing measured costs exactly nothing.

Pure arithmetic on profiles; must not know where they come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.model.metrics import EVENTS, FunctionCost, Profile

if TYPE_CHECKING:
    from collections.abc import Sequence

# Callgrind books an instruction that reads and writes back as both; which of the two a miss belongs to can depend on what
# came before. So what one of them lacks, the other has too much.
_TWINS = tuple(
    (EVENTS.index(read), EVENTS.index(write)) for read, write in (("Dr", "Dw"), ("D1mr", "D1mw"), ("DLmr", "DLmw"))
)

_LEVELS = tuple(
    tuple(map(EVENTS.index, names))
    for names in (("Ir", "I1mr", "ILmr"), ("Dr", "D1mr", "DLmr"), ("Dw", "D1mw", "DLmw"))
)


def without(profile: Profile, empty: Profile, times: int = 1) -> Profile:
    """Return `profile` less so many times `empty`, function by function; both have the nine events, and no lines.

    No count becomes negative: what a row cannot give is taken from its twin (reads for writes), then from the row that
    has most of it. Nor are there more misses than accesses: what is left of a function that did nothing but measure is
    that its lines lie elsewhere in the caches. Where nothing was executed or accessed beyond the empty ones, nothing is left
    at all. Rows of zeros are left out.
    """
    if all(count == times * less for count, less in zip(_accesses(profile), _accesses(empty), strict=True)):
        return Profile(events=EVENTS, functions=())
    left = {(row.file, row.name): list(row.counts) for row in profile.functions}
    for row in empty.functions:
        counts = left.setdefault((row.file, row.name), [0] * len(EVENTS))
        for place, count in enumerate(row.counts):
            counts[place] -= times * count
    owed = [0] * len(EVENTS)
    for counts in left.values():
        _settle_twins(counts)
        for place, count in enumerate(counts):
            if count < 0:
                owed[place] -= count
                counts[place] = 0
    for place, debt in enumerate(owed):
        _pay(left, place, debt)
    for counts in left.values():
        _limit_misses(counts)
    rows = (FunctionCost(*key, tuple(counts)) for key, counts in sorted(left.items()) if any(counts))
    return Profile(events=EVENTS, functions=tuple(rows))


def _accesses(profile: Profile) -> tuple[int, ...]:
    totals = profile.totals()
    return tuple(totals[accesses] for accesses, _first, _last in _LEVELS)


def _limit_misses(counts: list[int]) -> None:
    for accesses, first, last in _LEVELS:
        counts[first] = min(counts[first], counts[accesses])
        counts[last] = min(counts[last], counts[first])


def _settle_twins(counts: list[int]) -> None:
    for pair in _TWINS:
        for short, other in (pair, pair[::-1]):
            taken = max(0, min(-counts[short], counts[other]))
            counts[short] += taken
            counts[other] -= taken


def _pay(left: dict[tuple[str, str], list[int]], place: int, debt: int) -> None:
    """Take so much of an event, then of its twin, from the rows that have most; what none has is forgiven."""
    for event in (place, *(_other(pair, place) for pair in _TWINS if place in pair)):
        for key in sorted(left, key=lambda key: (-left[key][event], key)):
            taken = min(debt, left[key][event])
            left[key][event] -= taken
            debt -= taken
            if not debt:
                return


def _other(pair: Sequence[int], place: int) -> int:
    return pair[1] if pair[0] == place else pair[0]
