"""How a count grows with the size of the input: the class that fits exact counts best.

Whole numbers and fractions only, logarithms too, so that a fit is the same to the last digit on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations, pairwise
from math import isqrt

import msgspec

from cachegrind_bench.model.sizes import CLASSES, LEAST_SIZES, GrowthClass

_LINEAR, EXPONENTIAL = CLASSES.index("n"), CLASSES.index("2^n")
_BITS = 64  # of a logarithm after the point
_LAST_EXPONENTIAL = 200  # no count of a program reaches what 2^n is beyond
_FLAT = Fraction(1, 500)  # what moves less than this over all sizes does not grow
_SIMPLER = 25  # how many times smaller the squares must be for a lower term, or a base, more
# Of the cost at the largest size, for a part that grows faster than a linear one below it.
_LEAST_PART = Fraction(1, 20)
_CLEAR = 4  # and those of a class than those of the next one, to be sure of it; of the fewest sizes, four times that
_UNEXPLAINED = Fraction(1, 50)  # of the squares, beyond which no class fits


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """The class of a count, as constant + lower * n + factor * f(n); `base` is that of an exponential one.

    `least` and `most` are the places of the slowest and the fastest class that cannot be ruled out. The `other` class is the
    next best: it leaves `better` times as much unexplained, in squares (None where nothing is). `exponents` are those between
    neighbouring sizes, without the constant, in thousandths; None where the count did not grow there.
    """

    growth: GrowthClass
    constant: Fraction
    lower: Fraction
    factor: Fraction
    base: Fraction = Fraction(2)
    least: int
    most: int
    other: GrowthClass
    better: int | None
    exponents: tuple[int | None, ...]

    @property
    def rank(self) -> int:
        """The place of its class among all."""
        return CLASSES.index(self.growth)

    @property
    def clear(self) -> bool:
        """Whether the class explains the counts, and does so much better than all others."""
        return self.least == self.most

    @property
    def name(self) -> str:
        """Its class, an exponential one with its base."""
        return self.growth if self.rank < EXPONENTIAL else f"{float(self.base):.3g}^n"

    def at(self, size: int) -> int | None:
        """Return the count that is predicted for this size; None where it is beyond all that can be measured."""
        if self.rank == EXPONENTIAL and size > _LAST_EXPONENTIAL:
            return None
        return max(0, round(self.constant + self.lower * size + self.factor * _value(self.rank, size, self.base)))


@cache
def log2(number: int) -> Fraction:
    """Return the logarithm to the base 2 of a number from 1 on, cut after 64 bits: by squaring, the same everywhere."""
    whole = number.bit_length() - 1
    rest, bits = (number << 2 * _BITS) >> whole, whole  # at least 1 and less than 2, with twice the bits
    for _ in range(_BITS):
        rest = rest * rest >> 2 * _BITS
        bits <<= 1
        if rest >> 2 * _BITS > 1:
            rest >>= 1
            bits |= 1
    return Fraction(bits, 1 << _BITS)


@cache
def _value(rank: int, size: int, base: Fraction = Fraction(2)) -> Fraction:
    """Return what the function of a class is for a size."""
    match CLASSES[rank]:
        case "1":
            return Fraction(1)
        case "n^1.5":
            return Fraction(isqrt(size**3 << 2 * _BITS), 1 << _BITS)
        case "2^n":
            return base**size
        case name:
            powers = {"n": 1, "n²": 2, "n³": 3}
            power = powers.get(name.removesuffix("log n").strip(), 0)
            return Fraction(size) ** power * (log2(size) if name.endswith("log n") else 1)


class _Model(msgspec.Struct, frozen=True):
    """One way to explain counts: its parts, and in squares what it leaves unexplained, for each count that it could have missed."""

    rank: int
    squares: Fraction
    parts: int
    constant: Fraction
    lower: Fraction
    factor: Fraction
    base: Fraction


def fit(points: Sequence[tuple[int, int]], least: Sequence[int] = ()) -> Fit:
    """Return the class of counts by size, of at least four sizes in ascending order.

    By least squares of what is left unexplained, relative to the count, or to `least` where that is more. No part is
    negative: nothing costs less than nothing at any size.
    """
    counts = [count for _, count in points]
    data = _Data(points, [max(pair) for pair in zip(counts, least or [1] * len(counts), strict=True)])
    best = [data.model(rank) for rank in range(EXPONENTIAL)]
    chosen, *others = sorted(best, key=_by_squares)
    is_flat = max(counts) - min(counts) <= _FLAT * min(counts)
    if is_flat:
        chosen, others = best[0], best[1:]
    elif points[-1][0] <= _LAST_EXPONENTIAL:
        exponential = data.exponential()
        if exponential.squares * _SIMPLER < chosen.squares:
            chosen, others = exponential, best
    other = min(others, key=_by_squares)
    better = min(int(other.squares / chosen.squares), 10**9) if chosen.squares else None
    most = chosen.squares * _CLEAR * (1 if len(points) > LEAST_SIZES else 4)
    near = [chosen.rank, *(model.rank for model in others if model.squares < most)]
    if is_flat:
        near = [0]
    elif chosen.squares > _UNEXPLAINED * best[0].squares:
        near = [0, EXPONENTIAL]
    return Fit(
        growth=CLASSES[chosen.rank],
        constant=chosen.constant if chosen.rank else chosen.factor,
        lower=chosen.lower,
        factor=chosen.factor if chosen.rank else Fraction(0),
        base=chosen.base,
        least=min(near),
        most=max(near),
        other=CLASSES[other.rank],
        better=better,
        exponents=_exponents(points, chosen.constant if chosen.rank else Fraction(0)),
    )


def _by_squares(model: _Model) -> tuple[Fraction, int]:
    return model.squares, model.rank


def _exponents(points: Sequence[tuple[int, int]], constant: Fraction) -> tuple[int | None, ...]:
    found: list[int | None] = []
    for (size, count), (larger, more) in pairwise(points):
        before, after = int(count - constant), int(more - constant)
        is_seen = before > 0 and after > 0
        found.append(round(1000 * (log2(after) - log2(before)) / (log2(larger) - log2(size))) if is_seen else None)
    return tuple(found)


class _Data:
    """Counts by size, each with what its rest is relative to. In whole numbers, which are quicker than fractions."""

    def __init__(self, points: Sequence[tuple[int, int]], units: Sequence[int]) -> None:
        self._sizes = [size for size, _ in points]
        self._counts = [count << _BITS for _, count in points]
        self._weights = [((max(units) << _BITS // 2) // unit) ** 2 for unit in units]
        self._ones = [1 << _BITS] * len(points)

    def model(self, rank: int, base: Fraction = Fraction(2)) -> _Model:
        """Return the best model of a class: with a constant, and with a linear part below it where neither does without."""
        function = [int(_value(rank, size, base) * (1 << _BITS)) for size in self._sizes]
        parts = {"factor": function}
        if not rank:
            return self._best(rank, base, parts)
        parts["constant"] = self._ones
        plain = self._best(rank, base, parts)
        if rank <= _LINEAR or rank == EXPONENTIAL or len(self._sizes) <= LEAST_SIZES:
            return plain
        mixed = self._best(rank, base, parts | {"lower": [size << _BITS for size in self._sizes]})
        part, below = mixed.factor * function[-1], mixed.lower * (self._sizes[-1] << _BITS)
        is_seen = part >= _LEAST_PART * (part + below)
        is_better = mixed.squares * _SIMPLER < min(plain.squares, self._linear.squares)
        return mixed if is_seen and is_better else plain

    @cached_property
    def _linear(self) -> _Model:
        return self.model(_LINEAR)

    def exponential(self) -> _Model:
        """Return the exponential model whose base, to a thousandth, explains most."""
        found = self._best_base([1 + Fraction(number, 10) for number in range(1, 31)])
        for step in (Fraction(1, 100), Fraction(1, 1000)):
            near = (found.base + step * number for number in range(-10, 11))
            found = self._best_base([base for base in near if base > 1])
        return found

    def _best_base(self, bases: Sequence[Fraction]) -> _Model:
        models = (self.model(EXPONENTIAL, base) for base in bases)
        return min(models, key=lambda model: (model.squares, model.base))

    def _best(self, rank: int, base: Fraction, parts: Mapping[str, list[int]]) -> _Model:
        """Return the best of the models with the first part and any others, none of them negative."""
        first, *others = parts.items()
        chosen = [[first, *some] for number in range(len(parts)) for some in combinations(others, number)]
        found = (self._solved(rank, base, dict(some)) for some in chosen)
        return min(filter(None, found), key=lambda model: (model.squares, model.parts))

    def _solved(self, rank: int, base: Fraction, parts: Mapping[str, list[int]]) -> _Model | None:
        """Return the least squares of these parts; None if one of them is negative."""
        functions = list(parts.values())
        rows = [[self._product(left, right) for right in (*functions, self._counts)] for left in functions]
        solution = dict(zip(parts, _eliminated(rows), strict=True))
        if min(solution.values()) < 0:
            return None
        # What is left unexplained is at a right angle to all parts.
        explained = sum(solution[name] * row[-1] for name, row in zip(parts, rows, strict=True))
        squares = (self._product(self._counts, self._counts) - explained) / max(1, len(self._sizes) - len(parts))
        constant, lower, factor = (solution.get(name, Fraction(0)) for name in ("constant", "lower", "factor"))
        return _Model(rank, squares, len(parts), constant, lower, factor, base)

    def _product(self, left: Sequence[int], right: Sequence[int]) -> Fraction:
        return Fraction(sum(weight * a * b for weight, a, b in zip(self._weights, left, right, strict=True)))


def _eliminated(rows: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    """Return the solution of linear equations, the last column being the right sides; 0 where one says nothing."""
    left = [list(row) for row in rows]
    for place, row in enumerate(left):
        for other in left:
            if other is not row and row[place]:
                times = other[place] / row[place]
                other[:] = [a - times * b for a, b in zip(other, row, strict=True)]
    return [row[-1] / row[place] if row[place] else Fraction(0) for place, row in enumerate(left)]
