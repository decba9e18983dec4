"""Which commit to measure next, so that each step of a past is narrowed down to one commit by as few as possible.

Counts repeat, so a search needs no statistics: where two commits cost the same, none between them is measured. What goes up
and down again there is missed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Collection, Mapping
from fractions import Fraction
from heapq import heappop, heappush
from itertools import pairwise
from typing import TypeAlias

import msgspec

# The scores of one commit by the ids of its benchmarks, None where it could not be measured; by its place, oldest first.
Costs: TypeAlias = Mapping[str, int]
Known: TypeAlias = Mapping[int, Costs | None]


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """Two commits that were measured, with none between them that was; `difference` is the largest of any benchmark.

    `untried` are the places between them where measuring may still help: the others failed.
    """

    before: int
    after: int
    difference: Fraction
    untried: tuple[int, ...]


class Backfilled(msgspec.Struct, frozen=True, kw_only=True):
    """What is known now of these commits, oldest first: how many were there before or taken over from another one, and why others could not be measured.

    `steps` are the intervals whose ends differ; where these have untried commits, the budget was spent. `is_all` is whether
    measuring further ones cannot help. `subjects` are those of the commits that end a step.
    """

    shas: tuple[str, ...]
    measured: int
    taken_over: int
    known_before: int
    failed: Mapping[str, str]
    failed_before: int
    steps: tuple[Interval, ...]
    equal: int  # commits between such as cost the same, which were not measured
    is_all: bool
    costs: Mapping[int, Costs]
    subjects: Mapping[str, str]
    min_step: Fraction


def intervals(known: Known) -> list[Interval]:
    """Return what is between the commits that could be measured, oldest first."""
    good = sorted((place, costs) for place, costs in known.items() if costs is not None)
    return [
        Interval(
            before=before,
            after=after,
            difference=difference(one, other),
            untried=tuple(place for place in range(before + 1, after) if place not in known),
        )
        for (before, one), (after, other) in pairwise(good)
    ]


def difference(one: Costs, other: Costs) -> Fraction:
    """Return the largest difference of any benchmark, as a share of the smaller score; one that only one side has counts as 1."""
    if not one.keys() | other.keys():
        return Fraction(0)
    return max(_difference(one.get(name), other.get(name)) for name in one.keys() | other.keys())


def _difference(one: int | None, other: int | None) -> Fraction:
    return Fraction(1) if one is None or other is None else Fraction(abs(other - one), max(min(one, other), 1))


class Search:
    """What is known of `count` commits by their places, oldest first, and which of them to measure next.

    First the `required` ones, the newest and the oldest before all: then what is wrong shows at once. Then those intervals are
    split whose ends differ by more than `step`, the largest difference first; of several measured at once, no interval has
    two before each has one. Between two commits that cannot be measured, others are not tried. Any number may be under way.
    """

    def __init__(self, count: int, required: Collection[int], step: Fraction, known: Known) -> None:
        self._count, self._step = count, step
        self._required = deque(sorted(set(required), key=lambda place: (place != count - 1, place != 0, -place)))
        self.known: dict[int, Costs | None] = {}
        self._good: list[int] = []
        self._failed: list[int] = []
        self._running: list[int] = []
        self._queue: list[tuple[int, Fraction, int, int, int]] = []  # as `_key` makes them, some outdated
        self._open: dict[int, int] = {}  # how often the intervals to be split may still be, and their sum
        self._halvings = 0
        self._differences: dict[tuple[int, int], Fraction] = {}
        for place, costs in known.items():
            self.finish(place, costs)

    def next(self) -> int | None:
        """Return a place to measure now, which counts as under way; None if nothing can be begun before another has ended."""
        place = self._next_required()
        if place is None:
            place = self._next_between()
        if place is None:
            place = self._next_at_an_end() if self._good else self._next_of_none()
        if place is not None:
            insort(self._running, place)
            self._push(place)
        return place

    def finish(self, place: int, costs: Costs | None) -> None:
        """Take what a commit cost, None if it could not be measured."""
        if _has(self._running, place):
            self._running.remove(place)
        self.known[place] = costs
        insort(self._failed if costs is None else self._good, place)
        self._push(place)
        if costs is not None:
            self._push(place - 1)

    def left(self) -> int:
        """Return about how many commits are still to be measured."""
        return len(self._required) + len(self._running) + self._halvings

    def _next_required(self) -> int | None:
        while self._required:
            place = self._required.popleft()
            if place not in self.known and not _has(self._running, place):
                return place
        return None

    def _next_between(self) -> int | None:
        while self._queue:
            item = heappop(self._queue)
            if item == self._key(item[3]) and (place := self._split(*item[3:])) is not None:
                return place
        return None

    def _next_at_an_end(self) -> int | None:
        """Where the first or the last commits cannot be measured, look for those nearest to them that can."""
        first, last = self._good[0], self._good[-1]
        place = self._split(-1, first, open_end=False)
        return self._split(last, self._count, open_end=False) if place is None else place

    def _next_of_none(self) -> int | None:
        """Where none could be measured so far, go back from the newest in steps that double."""
        if self._running:
            return None
        places = (self._count - (1 << power) for power in range(self._count.bit_length()))
        return next((place for place in places if place >= 0 and place not in self.known), None)

    def _split(self, before: int, after: int, *, open_end: bool = True) -> int | None:
        """Return the middle of the longest stretch in which nothing was tried; None if none is worth it."""
        failed = set(self._failed[bisect_right(self._failed, before) : bisect_left(self._failed, after)])
        running = self._running[bisect_right(self._running, before) : bisect_left(self._running, after)]
        dead = failed if open_end else failed | {-1, self._count}
        marks = [before, *sorted([*failed, *running]), after]
        free = [(one - other, other) for other, one in pairwise(marks) if other + 1 < one and not {other, one} <= dead]
        if not free or not (open_end or failed):
            return None
        length, start = min(free, key=lambda item: (-item[0], item[1]))
        return start + length // 2

    def _push(self, place: int) -> None:
        """Queue the interval around this place again, as it is now."""
        at = bisect_right(self._good, place)
        if not 0 < at < len(self._good):
            return
        before = self._good[at - 1]
        item = self._key(before)
        halvings = 0 if item is None else (-item[2]).bit_length() - 1  # -item[2] - 1 commits are between
        self._halvings += halvings - self._open.get(before, 0)
        self._open[before] = halvings
        if item is not None:
            heappush(self._queue, item)

    def _key(self, before: int) -> tuple[int, Fraction, int, int, int] | None:
        """Return the interval after this good place, the most urgent the smallest; None if it is not to be split."""
        at = bisect_right(self._good, before)
        if at == len(self._good) or self._good[at - 1] != before:
            return None
        after = self._good[at]
        if after == before + 1 or (size := self._difference(before, after)) <= self._step:
            return None
        running = bisect_left(self._running, after) - bisect_right(self._running, before)
        return running, -size, before - after, before, after

    def _difference(self, before: int, after: int) -> Fraction:
        found = self._differences.get((before, after))
        if found is None:
            found = difference(self.known[before] or {}, self.known[after] or {})
            self._differences[before, after] = found
        return found


def _has(places: list[int], place: int) -> bool:
    at = bisect_left(places, place)
    return at < len(places) and places[at] == place
