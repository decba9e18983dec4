"""How well counts predict time: the tables of docs/truth.md, and the intervals that a comparison shows.

    python -m benchmarks.truth [--seed N]

Reads `points.csv`: 527 programs and loops of 89 families, counted by Callgrind and timed natively, pinned, on one server
(thread CPU time, the minimum of several starts). A change of a program is composed: a mix of four programs is the base,
and in the candidate one of them, or a fifth, does more, and another less, by no more than what is added. What a change of the
estimate is in time is described by an exponent k: the time changes by (the estimate's ratio) ** k. Its quantiles are printed; and of
changes that are composed of one half of the families, how many lie within the quantiles of those of the other half.
"""

from __future__ import annotations

import argparse
import csv
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import correlation
from typing import NamedTuple

POINTS = Path(__file__).with_name("points.csv")
KINDS = {"native": "real", "Python": "python"}
SIZES = (0.05, 0.2)  # changes up to these, and larger ones, have intervals of their own
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
CHANGES = 60_000
SMALLEST, LARGEST = 0.01, 1.0


class Point(NamedTuple):
    """A program, or one access of a loop: its family and kind, seconds, and counts. `ll` has lines of 64 bytes, `long` of 4,096."""

    family: str
    kind: str
    name: str
    seconds: float
    Ir: float
    D: float
    L1m: float
    Bcm: float
    ll: float
    long: float


Model = Callable[[Point], float]
MODELS: dict[str, Model] = {
    "Ir": lambda at: at.Ir,
    "the score, L1 + 5 LL + 30 RAM": lambda at: at.Ir + at.D - at.L1m + 5 * (at.L1m - at.ll) + 30 * at.ll,
    "Ir + 10 L1m + 100 LLm (Callgrind's, without branches)": lambda at: at.Ir + 10 * at.L1m + 100 * at.ll,
    "the estimate, Ir + 80 Bcm + 10 L1m + 100 LLm": lambda at: at.Ir + 80 * at.Bcm + 10 * at.L1m + 100 * at.ll,
    "the same, LL with lines of 4,096 bytes": lambda at: at.Ir + 80 * at.Bcm + 10 * at.L1m + 100 * at.long,
}


def points() -> list[Point]:
    """Read all points."""
    found: list[Point] = []
    with POINTS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            count = {name: float(row[name]) for name in ("Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "Bcm", "n8", "x8")}
            misses = count["I1mr"] + count["D1mr"] + count["D1mw"]
            data = count["Dr"] + count["Dw"]
            values = float(row["t"]), count["Ir"], data, misses, count["Bcm"], count["n8"], count["x8"]
            each = float(row["units"]) if row["kind"] == "sweep" else 1
            found.append(Point(row["fam"], row["kind"], row["var"], *(value / each for value in values)))
    return found


def changes(own: Sequence[Point], model: Model, seed: int) -> Iterator[tuple[float, float]]:
    """Compose changes, and yield the ratios by the model and in time; half of them backwards."""
    families: dict[str, list[Point]] = defaultdict(list)
    for point in own:
        families[point.family].append(point)
    names, choose = sorted(families), random.Random(seed)
    for _ in range(CHANGES):
        parts = [choose.choice(families[name]) for name in choose.sample(names, 5)]
        shares = [choose.random() for _ in parts[:4]]
        total = sum(shares)
        price = [point.seconds / model(point) for point in parts]
        time = sum(share / total * price[place] for place, share in enumerate(shares))
        net = SMALLEST * (LARGEST / SMALLEST) ** choose.random()
        less = choose.uniform(0, min(shares[1] / total, net))
        more = price[choose.choice((0, 4))]
        after = time + (net + less) * more - less * price[1]
        ratio = 1 + net, after / time
        yield ratio if choose.random() < 0.5 else (1 / ratio[0], 1 / ratio[1])


def of_size(found: Sequence[tuple[float, float]], size: int) -> list[float]:
    """Return the exponents of the changes in one class of size, sorted."""
    low, high = (0, *SIZES, math.inf)[size : size + 2]
    logs = [(math.log(by_model), math.log(in_time)) for by_model, in_time in found]
    return sorted(time / model for model, time in logs if math.log1p(low) < abs(model) <= math.log1p(high))


def quantiles(powers: Sequence[float]) -> list[float]:
    """Return the quantiles of sorted exponents."""
    return [powers[int(share * len(powers))] for share in QUANTILES]


def inside(found: Sequence[float], place: int, tested: Sequence[float]) -> float:
    """Return the share of exponents between a quantile and its counterpart."""
    return sum(found[place] <= power <= found[-1 - place] for power in tested) / len(tested)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the changes that the intervals are made of")
    seed = parser.parse_args().seed
    everything = points()
    sweep = [at for at in everything if at.kind == "sweep" and at.name.startswith(("linread", "rndread"))]
    programs = [at for at in everything if at.kind in KINDS.values()]
    print("| Model | cache sweep | programs |", *[f"{kind}, median error |" for kind in KINDS])
    print("| --- " * (3 + len(KINDS)) + "|")
    for name, model in MODELS.items():
        cells = [f"{correlation([model(at) for at in sweep], [at.seconds for at in sweep]):.3f}"]
        logs = [math.log(model(at)) for at in programs], [math.log(at.seconds) for at in programs]
        cells.append(f"{correlation(*logs):.2f}")
        for kind in KINDS.values():
            prices = sorted(at.seconds / model(at) for at in programs if at.kind == kind)
            middle = prices[len(prices) // 2]
            errors = sorted(abs(middle / price - 1) for price in prices)
            cells.append(f"{errors[len(errors) // 2]:.0%}".replace("%", " %"))
        print(f"| {name} | {' | '.join(cells)} |")
    estimate = next(model for name, model in MODELS.items() if "estimate" in name)
    print("\n| Kind, size of the change |", *[f"{share:.0%} |" for share in QUANTILES], "within 50 % | within 90 % |")
    print("| --- " * (3 + len(QUANTILES)) + "|")
    for title, kind in KINDS.items():
        own = [at for at in programs if at.kind == kind]
        families = sorted({at.family for at in own})
        random.Random(seed).shuffle(families)
        halves = [[at for at in own if at.family in families[start::2]] for start in (0, 1)]
        made, *held_out = (list(changes(part, estimate, seed)) for part in (own, *halves))
        for size, (low, high) in enumerate(pairwise((SMALLEST, *SIZES, LARGEST))):
            cells = [f"{power:.2f}" for power in quantiles(of_size(made, size))]
            sides = [of_size(side, size) for side in held_out]
            for place in (1, 0):  # the range of half, then that of nine in ten
                shares = [inside(quantiles(known), place, tested) for known, tested in (sides, sides[::-1])]
                cells.append(" and ".join(f"{share:.0%}" for share in shares))
            print(f"| {title}, {low:.0%} to {high:.0%} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
