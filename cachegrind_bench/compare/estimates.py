"""What a change costs in time, as far as counts can tell: the estimates of both sides, and in which range the time lay.

It never decides anything. Knows two benchmarks; must not know words.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated

import msgspec
from msgspec.structs import replace

from cachegrind_bench.model.described import Points, PointsMore, PpmMore, doc
from cachegrind_bench.model.metrics import estimate_terms
from cachegrind_bench.model.result import Benchmark

# Where the estimate changed by a factor r, the time changed by r ** k. By the largest change of a class: k in 5, 25, 75 and
# 95 of 100 composed changes, from `python -m benchmarks.truth`.
EXPONENTS: Mapping[str, tuple[tuple[float, tuple[float, float, float, float]], ...]] = {
    "native": (
        (1.05, (-0.29, 0.41, 1.42, 3.53)),
        (1.2, (-0.24, 0.45, 1.39, 3.12)),
        (float("inf"), (0.03, 0.55, 1.28, 2.41)),
    ),
    "python": (
        (1.05, (0.41, 0.79, 1.18, 1.62)),
        (1.2, (0.44, 0.80, 1.16, 1.57)),
        (float("inf"), (0.55, 0.84, 1.12, 1.43)),
    ),
}

_SMALLEST, _LARGEST = 1.01, 2  # factors of the composed changes


class Range(msgspec.Struct, frozen=True):
    """A range of relative changes."""

    low: Annotated[PpmMore, doc("its lower end")]
    high: Annotated[PpmMore, doc("its upper end")]


class EstimateChange(msgspec.Struct, frozen=True, kw_only=True):
    """Estimates of the time, in no unit, and what a change like this was in time."""

    base: Annotated[Points, doc("estimate of the base")]
    candidate: Annotated[Points, doc("estimate of the candidate")]
    relative: Annotated[PpmMore, doc("relative change of the estimate")] = msgspec.field(name="change_ppm")
    # None where no change like it was composed: it is very small or large, or mostly consists of parts that cancel.
    half: Annotated[Range | None, doc("where the time of half of such changes lay; null if none like it is known")] = (
        msgspec.field(name="half_ppm")
    )
    most: Annotated[Range | None, doc("where the time of nine in ten lay")] = msgspec.field(name="most_ppm")
    terms: Annotated[Mapping[str, PointsMore], doc("change of each part of the estimate")]  # the first moved most


def estimated(base: Benchmark | None, candidate: Benchmark | None) -> EstimateChange | None:
    """Compare the estimates of two benchmarks; None where a side has none."""
    if base is None or candidate is None or base.counts is None or candidate.counts is None:
        return None
    if base.branches is None or candidate.branches is None:
        return None
    before = estimate_terms(base.counts, base.branches)
    after = estimate_terms(candidate.counts, candidate.branches)
    old, new = sum(before.values()), sum(after.values())
    if not (old and new):
        return None
    moved = {name: after[name] - before[name] for name in before}
    terms = dict(sorted(moved.items(), key=lambda item: -abs(item[1])))
    relative = Fraction(new - old, old)
    found = EstimateChange(base=old, candidate=new, relative=relative, half=None, most=None, terms=terms)
    parts = sum(map(abs, moved.values()))
    ratio = new / old
    if not _SMALLEST <= max(ratio, 1 / ratio) <= _LARGEST or 2 * abs(new - old) < parts:
        return found
    kind = "python" if _is_python(candidate) else "native"
    size = max(ratio, 1 / ratio)
    powers = next(powers for largest, powers in EXPONENTS[kind] if size <= largest)
    p5, p25, p75, p95 = (Fraction(ratio**power - 1).limit_denominator(10**9) for power in powers)
    half, most = Range(min(p25, p75), max(p25, p75)), Range(min(p5, p95), max(p5, p95))
    return replace(found, half=half, most=most)


def _is_python(benchmark: Benchmark) -> bool:
    programs = [os.path.basename(item.executable) for item in benchmark.processes[:1]]
    return "python" in benchmark.key_fields or any(name.startswith(("python", "pypy")) for name in programs)
