"""The tables of docs/truth.md, of a file of points."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import correlation, median

from benchmarks.truth.changes import LARGEST, QUANTILES, SIZES, SMALLEST, changes, inside, of_size, quantiles
from benchmarks.truth.points import KINDS, LONG_LINES, MODELS, SWEEP, Model, Point, programs
from cachegrind_bench.compare.estimates import EXPONENTS


def of_logarithms(model: Model, own: Sequence[Point]) -> float:
    """Return Pearson's correlation of the logarithms of model and time."""
    return correlation([math.log(model(at)) for at in own], [math.log(at.seconds) for at in own])


def _present(everything: list[Point]) -> list[tuple[str, str]]:
    return [(title, kind) for title, kind in KINDS.items() if any(at.kind == kind for at in everything)]


def models(everything: list[Point]) -> Iterator[str]:
    """Yield how well each model predicts the time."""
    sweep = [at for at in everything if at.kind == "sweep" and at.name.startswith(SWEEP)]
    own = programs(everything)
    families = sorted({at.family for at in own})
    yield f"| Model | cache sweep | programs | lowest without a family | {' | '.join(f'{title}, median error' for title, _ in _present(own))} |"
    yield "| --- " * (4 + len(_present(own))) + "|"
    for name, model in {**MODELS, **(LONG_LINES if all(at.long is not None for at in everything) else {})}.items():
        cells = [f"{correlation([model(at) for at in sweep], [at.seconds for at in sweep]):.3f}"]
        lowest = min(of_logarithms(model, [at for at in own if at.family != family]) for family in families)
        cells += [f"{of_logarithms(model, own):.2f}", f"{lowest:.2f}"]
        for _, kind in _present(own):
            prices = [at.seconds / model(at) for at in own if at.kind == kind]
            middle = sorted(prices)[len(prices) // 2]
            errors = sorted(abs(middle / price - 1) for price in prices)
            cells.append(f"{errors[len(errors) // 2]:.0%}".replace("%", " %"))
        yield f"| {name} | {' | '.join(cells)} |"


def ranges(everything: list[Point], seed: int) -> Iterator[str]:
    """Yield the exponents of composed changes, and how they hold for changes of the other half of the families."""
    yield f"| Kind, size of the change | {' | '.join(f'{share:.0%}' for share in QUANTILES)} | within 50 % | within 90 % |"
    yield "| --- " * (3 + len(QUANTILES)) + "|"
    for title, kind in _present(everything):
        own = [at for at in everything if at.kind == kind]
        families = sorted({at.family for at in own})
        random.Random(seed).shuffle(families)
        halves = [[at for at in own if at.family in families[start::2]] for start in (0, 1)]
        made, *held_out = (list(changes(part, seed)) for part in (own, *halves))
        for size, (low, high) in enumerate(pairwise((SMALLEST, *SIZES, LARGEST))):
            cells = [f"{power:.2f}" for power in quantiles(of_size(made, size))]
            sides = [of_size(side, size) for side in held_out]
            for place in (1, 0):  # the range of half, then that of nine in ten
                pairs = ((quantiles(known), tested) for known, tested in (sides, sides[::-1]))
                shares = [inside(known[place], known[-1 - place], tested) for known, tested in pairs]
                cells.append(" and ".join(f"{share:.0%}" for share in shares))
            yield f"| {title}, {low:.0%} to {high:.0%} | {' | '.join(cells)} |"


def stated(everything: list[Point], seed: int) -> Iterator[str]:
    """Yield how many composed changes lie within the ranges that reports state, of those that they state a range for."""
    yield "| Kind, size of the change | within the stated 50 % | within the stated 90 % |"
    yield "| --- | --- | --- |"
    for title, kind in _present(everything):
        shown = [at for at in changes([at for at in everything if at.kind == kind], seed) if not at.cancels]
        native_or_python = EXPONENTS["python" if kind == "python" else "native"]
        for size, (low, high) in enumerate(pairwise((SMALLEST, *SIZES, LARGEST))):
            p5, p25, p75, p95 = native_or_python[size][1]
            tested = of_size(shown, size)
            yield f"| {title}, {low:.0%} to {high:.0%} | {inside(p25, p75, tested):.0%} | {inside(p5, p95, tested):.0%} |"


def worst(everything: list[Point], model: Model, kind: str) -> list[tuple[float, Point]]:
    """Return the programs of a kind by how far their time is from the prediction, as factors: of each family the worst, first the worst."""
    own = [at for at in everything if at.kind == kind]
    if not own:
        return []
    middle = median(at.seconds / model(at) for at in own)
    factors = {at: at.seconds / model(at) / middle for at in own}
    order = sorted(own, key=lambda at: (-abs(math.log(factors[at])), at.family, at.name))
    first: dict[str, Point] = {}
    for at in order:
        first.setdefault(at.family, at)
    return [(factors[at], at) for at in first.values()]
