"""Changes of programs that are composed from points, and ranges for what they cost in time.

A mix of four programs is the base, and in the candidate one of them, or a fifth, does more, and another less, by no more than
what is added. What a change of the estimate is in time is described by an exponent k: the time changes by (the estimate's
ratio) ** k.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.truth.points import Point, estimate

SIZES = (0.05, 0.2)  # changes up to these, and larger ones, have intervals of their own
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
CHANGES = 60_000
SMALLEST, LARGEST = 0.01, 1.0


class Change(NamedTuple):
    """Logarithms of the ratios by the estimate and in time, and whether its parts cancel so far that no range is stated."""

    by_estimate: float
    in_time: float
    cancels: bool

    @property
    def exponent(self) -> float:
        """What to raise the estimate's ratio to for that of the time."""
        return self.in_time / self.by_estimate


def changes(own: Sequence[Point], seed: int) -> Iterator[Change]:
    """Compose changes, half of them backwards."""
    families: dict[str, list[Point]] = defaultdict(list)
    for point in own:
        families[point.family].append(point)
    names, choose = sorted(families), random.Random(seed)
    for _ in range(CHANGES):
        parts = [choose.choice(families[name]) for name in choose.sample(names, 5)]
        shares = [choose.random() for _ in parts[:4]]
        total = sum(shares)
        price = [point.seconds / estimate(point) for point in parts]
        time = sum(share / total * price[place] for place, share in enumerate(shares))
        net = SMALLEST * (LARGEST / SMALLEST) ** choose.random()
        less = choose.uniform(0, min(shares[1] / total, net))
        added = choose.choice((0, 4))
        after = time + (net + less) * price[added] - less * price[1]
        pairs = zip(parts[added].terms, parts[1].terms, strict=True)
        shifts = (
            (net + less) * more / estimate(parts[added]) - less * fewer / estimate(parts[1]) for more, fewer in pairs
        )
        sign = 1 if choose.random() < 0.5 else -1
        yield Change(sign * math.log1p(net), sign * math.log(after / time), 2 * net < sum(map(abs, shifts)))


def of_size(found: Sequence[Change], size: int) -> list[float]:
    """Return the exponents of the changes in one class of size, sorted."""
    low, high = (0, *SIZES, math.inf)[size : size + 2]
    return sorted(at.exponent for at in found if math.log1p(low) < abs(at.by_estimate) <= math.log1p(high))


def quantiles(powers: Sequence[float]) -> list[float]:
    """Return the quantiles of sorted exponents."""
    return [powers[int(share * len(powers))] for share in QUANTILES]


def inside(low: float, high: float, tested: Sequence[float]) -> float:
    """Return the share of exponents between two."""
    return sum(low <= power <= high for power in tested) / len(tested)
