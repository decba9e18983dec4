"""What the runs of a benchmark tell beside its one score: noise within a memory layout, spread between layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.model.score import CostModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.model.metrics import Counts
    from cachegrind_bench.model.result import Benchmark

Span = tuple[int, int]


class Spans(msgspec.Struct, frozen=True, kw_only=True):
    """Smallest and largest numbers.

    `noise` is that of the score in the layout where it is furthest apart; the others are those between layouts, each
    of which counts by its lower median.
    """

    noise: Span
    identical: bool  # all nine counts, within each layout
    layouts: int
    score: Span
    ir: Span


def spans(benchmark: Benchmark) -> Spans | None:
    """Return how far the runs are apart; None where there are none."""
    if benchmark.score is None or not benchmark.runs:
        return None
    model = CostModel.parse(benchmark.score.model)
    layouts: dict[int, list[Counts]] = {}
    for run in benchmark.runs:
        layouts.setdefault(run.layout, []).append(run.counts)
    scores = [sorted(map(model.score, counts)) for counts in layouts.values()]
    instructions = [sorted(item.Ir for item in counts) for counts in layouts.values()]
    return Spans(
        noise=max(((values[0], values[-1]) for values in scores), key=_relative),
        identical=all(len(set(counts)) == 1 for counts in layouts.values()),
        layouts=len(layouts),
        score=_between(scores),
        ir=_between(instructions),
    )


def _relative(span: Span) -> float:
    return (span[1] - span[0]) / max(span[0], 1)


def _between(layouts: Sequence[Sequence[int]]) -> Span:
    middles = [values[(len(values) - 1) // 2] for values in layouts]
    return min(middles), max(middles)
