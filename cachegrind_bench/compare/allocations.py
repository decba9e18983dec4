"""How often executions allocate and free memory, and who does it more or less often, from their calls.

An allocation is a call of malloc and its like, or of C++'s operator new, from anything else than these: what one of them
calls in turn is the same allocation. What the compiler inlined, or a program allocates without them, is not known.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec.structs import asdict

from cachegrind_bench.compare.call_pairs import native_sides
from cachegrind_bench.compare.call_split import Caller, Label, Sides, passes_on, user_of
from cachegrind_bench.model.call_graph import NO_CALLS, CallGraph, Calls
from cachegrind_bench.model.described import doc
from cachegrind_bench.model.symbols import ALLOCATES, FREES, RESIZES

if TYPE_CHECKING:
    import re

_NONE = Calls(0, 0)


class Number(msgspec.Struct, frozen=True, kw_only=True):
    """How often something is done."""

    base: Annotated[int, doc("how often in the base")]
    candidate: Annotated[int, doc("how often in the candidate")]
    delta: Annotated[int, doc("how much more often")]
    callers: Annotated[tuple[Caller, ...], doc("functions that do it more or less often, the largest difference first")]


class Allocations(msgspec.Struct, frozen=True, kw_only=True):
    """What is `made` and `freed`, and by how many more blocks than in the base are made than freed.

    That is not known, and `kept` 0, where realloc, which may make a block or only move one, is called more or less often.

    `user` is where the first of the callers, as `xmalloc` or `strdup`, is called from more or less often.
    """

    made: Number
    freed: Number
    kept: int
    user: Label | None = None


def counted(base: CallGraph | None, candidate: CallGraph) -> Allocations:
    """Count the allocations of two executions, or of one."""
    return allocations(native_sides(base or NO_CALLS, candidate))


def allocations(sides: Sides) -> Allocations:
    """Count the allocations of two sides."""
    made, freed = _number(sides, ALLOCATES), _number(sides, FREES)
    chief = next((caller for caller in (*made.callers, *freed.callers)), None)
    return Allocations(
        made=made,
        freed=freed,
        kept=0 if _number(sides, RESIZES).delta else made.delta - freed.delta,
        user=None if chief is None else _user(sides, chief),
    )


def _user(sides: Sides, chief: Caller) -> Label | None:
    """Return where a chain of calls begins that ends with this function; each in it only passes on being called more often."""
    labels, into = sides[2], defaultdict[int, dict[int, list[int]]](dict)
    for at, side in enumerate(sides[:2]):
        for (caller, callee), each in side.calls.items():
            into[callee].setdefault(caller, [0, 0])[at] += each.number
    found = next(number for number, label in labels.items() if label == chief.label)
    calls, seen = [chief.base.number, chief.candidate.number], set[int]()
    while into[found] and found not in seen:
        times = [sum(column) for column in zip(*into[found].values(), strict=True)]
        if not passes_on((calls[0], calls[1]), (times[0], times[1])):
            break
        seen.add(found)
        found, calls = max(into[found].items(), key=lambda item: (abs(item[1][1] - item[1][0]), -item[0]))
    label = labels[found]
    if found in seen or not label.code.is_system:
        return None if found in seen or label == chief.label else label
    return user_of(sides, label.name)


def _number(sides: Sides, what: re.Pattern[str]) -> Number:
    labels, found = sides[2], defaultdict[int, list[Calls]](lambda: [_NONE, _NONE])
    for at, side in enumerate(sides[:2]):
        for (caller, callee), calls in side.calls.items():
            inner = ALLOCATES.match(labels[caller].name) or FREES.match(labels[caller].name)
            if not inner and what.match(labels[callee].name):
                found[caller][at] = found[caller][at].plus(calls)
    callers = [Caller(**asdict(labels[number]), base=both[0], candidate=both[1]) for number, both in found.items()]
    moved = [caller for caller in callers if caller.base.number != caller.candidate.number]
    base, candidate = (sum(both[at].number for both in found.values()) for at in (0, 1))
    return Number(
        base=base,
        candidate=candidate,
        delta=candidate - base,
        callers=tuple(
            sorted(moved, key=lambda caller: (-abs(caller.candidate.number - caller.base.number), caller.rank))
        ),
    )
