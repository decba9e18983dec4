"""What one execution cost more than another one, which did the same but for some iterations."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.model.call_graph import graph_without
from cachegrind_bench.model.metrics import LineCost, Profile, without
from cachegrind_bench.model.result import ProcessCost

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cachegrind_bench.valgrind.processes import Accounts


def difference(more: Accounts, less: Accounts) -> Accounts:
    """Return what `more` cost beyond `less`. Totals are those of the two subtracted, and functions and lines add up to them."""
    profile = without(replace(more.profile, lines=()), replace(less.profile, lines=()))
    profile = replace(profile, lines=tuple(_lines(more.profile, less.profile, profile)))
    total = profile.counts()
    return replace(
        more,
        profile=profile,
        processes=(ProcessCost(executable=more.processes[0].executable, counts=total),),
        calls=more.calls and less.calls and graph_without(more.calls, less.calls, 1, total.Ir),
        split_needed=False,
    )


def _lines(more: Profile, less: Profile, found: Profile) -> Iterator[LineCost]:
    """Yield what the lines of each function cost more; none costs less than nothing, and they add up to what was found of it."""
    before = {(row.file, row.name, row.line): row.counts for row in less.lines}
    totals = {(row.file, row.name): row.counts for row in found.functions}
    none = (0,) * len(more.events)
    for key, rows in groupby(more.lines, key=attrgetter("file", "name")):
        total, sums, given = totals.get(key, none), none, none
        of_function = list(rows)
        for row in of_function:
            old = before.get((*key, row.line), none)
            sums = tuple(map(sum, zip(sums, row.counts, (-count for count in old), strict=True)))
            last = row is of_function[-1]
            upto = total if last else _between(given, sums, total)
            counts = tuple(now - then for now, then in zip(upto, given, strict=True))
            given = upto
            if any(counts):
                yield LineCost(*key, row.line, counts)


def _between(least: Sequence[int], values: Sequence[int], most: Sequence[int]) -> tuple[int, ...]:
    return tuple(min(max(low, value), high) for low, value, high in zip(least, values, most, strict=True))
