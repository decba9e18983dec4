"""How costs grow with the size of the input, as a part of JSON documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import msgspec

from cachegrind_bench.model.described import Instructions, Ppm, doc
from cachegrind_bench.model.sizes import GrowthClass
from cachegrind_bench.render.documents.document import fields, optional
from cachegrind_bench.render.growth import doubts, verdict
from cachegrind_bench.valgrind.demangling import demangled

if TYPE_CHECKING:
    from cachegrind_bench.compare.growth import FunctionGrowth, Growth, GrowthChange
    from cachegrind_bench.model.growth import Fit


class FittedGrowth(msgspec.Struct, frozen=True, kw_only=True):
    """The class of a count."""

    growth: Annotated[GrowthClass, doc("the class that fits best")]
    clear: Annotated[bool, doc("whether it is sure")]
    other: Annotated[GrowthClass, doc("the class that is next best")]
    better: Annotated[
        int | None,
        doc("how many times larger the squares are that the next best leaves unexplained; null if none are left"),
    ]
    constant: Annotated[int, doc("the part that does not depend on the size")]
    exponents: Annotated[
        tuple[int | None, ...],
        doc(
            "exponents between neighbouring sizes, without the constant part, in thousandths; null where it did not grow"
        ),
    ]
    predicted: Annotated[int | None, doc("the count at the size to predict; null without one, or beyond all measure")]


class GrowingFunction(msgspec.Struct, frozen=True, kw_only=True):
    """How the own cost of a function grows."""

    function: Annotated[str, doc("name, demangled")]
    file: Annotated[str, doc("its source file, or program")]
    line: Annotated[int, doc("number of its first line; 0 for a native function")]
    growth: Annotated[GrowthClass, doc("the class that fits best")]
    clear: Annotated[bool, doc("whether it is sure")]
    shares_ppm: Annotated[
        tuple[Ppm, ...], doc("its part of Ir at the largest size, and as predicted at 10 and 100 times that")
    ]


class LeftCache(msgspec.Struct, frozen=True, kw_only=True):
    """Where misses start to grow faster than instructions."""

    cache: Annotated[str, doc("`first level` or `last level`")]
    size: Annotated[int, doc("the last size before")]
    larger: Annotated[int, doc("the first size after")]


class GrowingBenchmark(msgspec.Struct, frozen=True, kw_only=True):
    """Benchmarks that differ in the size of their input only."""

    id: Annotated[str, doc("what their names have in common")]
    sizes: Annotated[tuple[int, ...], doc("sizes that were measured")]
    ir: Annotated[tuple[Instructions, ...], doc("Ir at each size")]
    bound: Annotated[GrowthClass | None, doc("the class that it must not exceed")]
    predict: Annotated[int | None, doc("the size to predict")]
    growth: Annotated[
        GrowthClass | None, doc("the class by all that is sure: of Ir, or of a function that will dominate it")
    ]
    verdict: Annotated[str, doc("its growth in words")]
    doubts: Annotated[tuple[str, ...], doc("why it is not sure, and which sizes to add")]
    fits: Annotated[dict[str, FittedGrowth], doc("classes of `Ir`, `score`, `L1 hits`, `LL hits` and `RAM hits`")]
    functions: Annotated[tuple[GrowingFunction, ...], doc("functions, by their part of the cost at the furthest size")]
    leaves: Annotated[tuple[LeftCache, ...], doc("caches that are too small from a size on")]


class ComparedGrowth(msgspec.Struct, frozen=True, kw_only=True):
    """A group on both sides of a comparison."""

    base: Annotated[GrowingBenchmark | None, doc("the base; null if it is new there, or was measured otherwise")]
    candidate: Annotated[GrowingBenchmark, doc("the candidate")]
    exceeds: Annotated[GrowthClass | None, doc("the class that it must not exceed, but does")]


def growing(found: Iterable[Growth]) -> tuple[GrowingBenchmark, ...]:
    """Return how these groups grow."""
    return tuple(map(_growing, found))


def compared(change: GrowthChange) -> ComparedGrowth:
    """Return how a group grows on both sides."""
    base = optional(change.base, _growing)
    return ComparedGrowth(base=base, candidate=_growing(change.candidate), exceeds=change.exceeds)


def _growing(found: Growth) -> GrowingBenchmark:
    return GrowingBenchmark(
        **fields(found, "id", "sizes", "bound", "predict", "growth"),
        ir=tuple(item.counts.Ir for item in found.benchmarks if item.counts is not None),
        verdict=verdict(found),
        doubts=doubts(found),
        fits={label: _fitted(item, found.predict) for label, item in found.fits.items()},
        functions=tuple(map(_function, found.functions)),
        leaves=tuple(LeftCache(cache=cache, size=size, larger=larger) for cache, size, larger in found.leaves),
    )


def _fitted(item: Fit, predict: int | None) -> FittedGrowth:
    return FittedGrowth(
        **fields(item, "growth", "clear", "other", "better", "exponents"),
        constant=round(item.constant),
        predicted=None if predict is None else item.at(predict),
    )


def _function(item: FunctionGrowth) -> GrowingFunction:
    return GrowingFunction(
        function=demangled(item.name),
        **fields(item, "file", "line"),
        growth=item.fit.growth,
        clear=item.fit.clear,
        shares_ppm=item.shares,
    )
