"""Narrowing down which of several commits changed a cost, by measuring as few of them as possible.

Knows commits and values; must not know how a commit is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec


class Narrowed(msgspec.Struct, frozen=True, kw_only=True):
    """The commits that are left, oldest first, and those of them that could not be measured."""

    suspects: tuple[str, ...]
    skipped: tuple[str, ...]


def narrow(suspects: Sequence[str], measure: Callable[[str], int | None], *, before: int, after: int) -> Narrowed:
    """Return which of these commits, oldest first, brought the cost from `before` to `after`.

    The last of them has the new cost. `measure` returns the cost at a commit, None where it cannot be measured: then its
    neighbours are, and if the change lies among such, they remain. A cost belongs to the level it is nearer to.
    """
    values: dict[int, int | None] = {}
    old, new = -1, len(suspects) - 1  # the last place known to be before the change, the first known to be after
    while untried := [place for place in range(old + 1, new) if place not in values]:
        middle = (old + new) // 2
        place = min(untried, key=lambda place: (abs(place - middle), place))
        value = values[place] = measure(suspects[place])
        if value is None:
            continue
        if abs(value - after) < abs(value - before):
            new = place
        else:
            old = place
    left = range(old + 1, new + 1)
    skipped = tuple(suspects[place] for place in left if place in values and values[place] is None)
    return Narrowed(suspects=tuple(suspects[place] for place in left), skipped=skipped)
