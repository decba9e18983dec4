"""Which commit to measure next, so that each step of a past is narrowed down to one commit by as few as possible.

Counts repeat, so a search needs no statistics: where two commits cost the same, none between them is measured. What goes up
and down again there is missed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
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
    """What is known now of these commits, oldest first: how many were there before, and why others could not be measured.

    `steps` are the intervals whose ends differ; where these have untried commits, the budget was spent. `subjects` are those
    of the commits that end a step.
    """

    shas: tuple[str, ...]
    measured: int
    known_before: int
    failed: Mapping[str, str]
    steps: tuple[Interval, ...]
    equal: int  # commits between such as cost the same, which were not measured
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


def next_place(count: int, required: Collection[int], known: Known, step: Fraction) -> int | None:
    """Return which of `count` commits to measure next; None if nothing is left to find out.

    First the `required` ones, the newest and the oldest before all: then what is wrong shows at once. Then the middle of what differs most, by more than `step`, of equals the longest. Where the first
    or the last commits cannot be measured, those nearest to them that can are looked for.
    """
    missing = [place for place in required if place not in known]
    if missing:
        return max(missing, key=lambda place: (place == count - 1, place == 0, place))
    found = [item for item in intervals(known) if item.untried and item.difference > step]
    if found:
        widest = max(found, key=lambda item: (item.difference, item.after - item.before, -item.before))
        return _middle(widest.before, widest.after, widest.untried)
    good = [place for place, costs in known.items() if costs is not None]
    if not good:
        return None
    for failed, edge in (
        (_last_failed(known, range(min(good))), min(good)),
        (_last_failed(known, range(count - 1, max(good), -1)), max(good)),
    ):
        between = range(min(failed, edge) + 1, max(failed, edge)) if failed is not None else ()
        untried = [place for place in between if place not in known]
        if untried:
            return _middle(failed or 0, edge, untried)
    return None


def _last_failed(known: Known, places: range) -> int | None:
    """Return the last of these that was tried, on the way from an end to what could be measured."""
    return next((place for place in reversed(places) if place in known), None)


def _middle(before: int, after: int, untried: Collection[int]) -> int:
    return min(untried, key=lambda place: (abs(2 * place - before - after), place))
