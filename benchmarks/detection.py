"""What the search for changes finds, misses and imagines, on made-up series of which the truth is known: docs/detection.md.

    python benchmarks/detection.py [--series N]

Each series is judged anew after every commit, as a nightly report would. A false alarm is anything confirmed, at any time,
that is not the truth; a candidate is what only one reading speaks for. The delay counts the commits after the one
that brought the change. All numbers come from fixed seeds.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.history.findings import find
from cachegrind_bench.history.values import Finding, Kind, Reading, Series, State
from cachegrind_bench.model.metrics import Counts
from cachegrind_bench.model.result import CommitNote

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LEVEL = 50_000_000
COMMITS = 200
SOON = 3
SHAPES = ("flat", "step", "bump", "ramp", "outliers", "two levels")
NOISES = ("none", "±0.01 %", "±0.1 %", "normal, σ 0.1 %")
SHARES = {"none": 0.0, "±0.01 %": 1e-4, "±0.1 %": 1e-3, "normal, σ 0.1 %": 1e-3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """A made-up series: its values, the place where it changes, and what should be said then."""

    values: tuple[int, ...]
    place: int | None
    kind: Kind | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was said over the life of one series."""

    false_alarms: int
    candidates: int
    delay: int | None
    found_at_end: bool
    exact: bool


def made(shape: str, noise: str, rng: random.Random) -> Truth:
    """Make a series of this shape."""
    share = SHARES[noise]
    length = COMMITS + 50 if shape == "ramp" else COMMITS
    place = 50 if shape == "ramp" else rng.randrange(20, length - 20)
    factors: list[float] = []
    for commit in range(length):
        since = commit - place
        factor = {
            "step": 1.005 if since >= 0 else 1.0,
            "bump": 1.005 if 0 <= since < 5 else 1.0,
            "ramp": 1 + 0.04 * max(since + 1, 0) / COMMITS,
            "outliers": 1.003 if rng.random() < 0.01 else 1.0,
            "two levels": 1.01 if since >= 0 and rng.random() < 0.5 else 1.0,
        }.get(shape, 1.0)
        factors.append(factor * (1 + (rng.gauss(0, share) if "normal" in noise else rng.uniform(-share, share))))
    kind = {"step": Kind.REGRESSION, "bump": Kind.REGRESSION, "ramp": Kind.CREEP, "two levels": Kind.UNSTABLE}.get(
        shape
    )
    if shape == "ramp":
        place += COMMITS // 2  # from here on the level is 2 % above the best
    return Truth(values=tuple(round(LEVEL * factor) for factor in factors), place=place if kind else None, kind=kind)


def series(values: Sequence[int]) -> tuple[Series, list[CommitNote]]:
    """Return a series with a reading at each of as many commits."""
    line = [
        CommitNote(
            sha=f"{index:040x}",
            parents=(),
            committed_at=f"{2020 + index // 300}-01-01T00:00:00Z",
            author="",
            subject="",
        )
        for index in range(len(values))
    ]
    nothing = Counts(Ir=0, I1mr=0, ILmr=0, Dr=0, D1mr=0, DLmr=0, Dw=0, D1mw=0, DLmw=0)
    readings = tuple(
        Reading(index=index, sha=line[index].sha, key="k", value=value, counts=nothing, created_at="", uid=str(index))
        for index, value in enumerate(values)
    )
    return Series(id="benchmark", model="ir", readings=readings), line


def is_true(finding: Finding, truth: Truth, shape: str) -> bool:
    """Tell whether this is the change that was made, or within two commits of it."""
    if truth.place is None:
        return False
    if shape == "two levels":  # until they have changed often enough, they are steps
        return finding.index >= truth.place
    if shape == "bump" and finding.kind is Kind.IMPROVEMENT:  # its end
        return abs(finding.index - truth.place - 5) <= 2
    return finding.kind is truth.kind and (shape == "ramp" or abs(finding.index - truth.place) <= 2)


def lived(shape: str, noise: str, seed: int) -> Outcome:
    """Judge a series after each of its commits."""
    truth = made(shape, noise, random.Random(f"{shape} {noise} {seed}"))
    whole, line = series(truth.values)
    wrong: set[tuple[Kind, int]] = set()
    candidates: set[tuple[Kind, int]] = set()
    delay: int | None = None
    found: tuple[Finding, ...] = ()
    for length in range(2, len(truth.values) + 1):
        found = find(replace(whole, readings=whole.readings[:length]), line)
        false = [finding for finding in found if not is_true(finding, truth, shape)]
        wrong |= {(finding.kind, finding.index) for finding in false if finding.confirmed}
        candidates |= {(finding.kind, finding.index) for finding in false if not finding.confirmed}
        if (
            delay is None
            and truth.place is not None
            and any(
                finding.confirmed and finding.kind is truth.kind and is_true(finding, truth, shape) for finding in found
            )
        ):
            delay = length - 1 - truth.place
    right = [finding for finding in found if finding.kind is truth.kind and is_true(finding, truth, shape)]
    if shape == "bump":
        right = [finding for finding in right if finding.state is State.RECOVERED]
    exact = any(finding.index == truth.place for finding in right)
    return Outcome(
        false_alarms=len(wrong), candidates=len(candidates), delay=delay, found_at_end=bool(right), exact=exact
    )


def row(shape: str, noise: str, number: int) -> str:
    """Return a row of the table."""
    outcomes = [lived(shape, noise, seed) for seed in range(number)]
    alarmed = sum(outcome.false_alarms > 0 for outcome in outcomes)
    candidates = sum(outcome.candidates for outcome in outcomes)
    cells = [shape, noise, str(alarmed), str(candidates)]
    delays = sorted(outcome.delay for outcome in outcomes if outcome.delay is not None)
    if shape in {"flat", "outliers"}:
        cells += ["", "", "", ""]
    else:
        cells += [
            str(sum(outcome.found_at_end for outcome in outcomes)),
            "" if shape in {"ramp", "two levels"} else str(sum(outcome.exact for outcome in outcomes)),
            str(sum(delay <= SOON for delay in delays)),
            f"{statistics.median(delays):g}, {delays[-1]}" if delays else "",
        ]
    return f"| {' | '.join(cells)} |"


def timings() -> list[str]:
    """Return how long one series takes, in processor time: the best of five."""
    rng = random.Random("time")
    shapes: dict[str, Callable[[int], float]] = {
        "exact, no change": lambda _: 1.0,
        "exact, 10 steps": lambda place: 1 + 0.005 * (10 * place // 1000),
        "±0.15 %, no change": lambda _: 1 + rng.uniform(-1.5e-3, 1.5e-3),
        "±0.1 %, a step every 50": lambda place: 1 + 0.005 * (place // 50) + rng.uniform(-1e-3, 1e-3),
        "±10 %": lambda _: 1 + rng.uniform(-0.1, 0.1),
        "exact, each commit 0.02 % more": lambda place: 1 + 2e-4 * place,
    }
    rows: list[str] = []
    for name, shape in shapes.items():
        cells = [name]
        for length in (200, 500, 1000):
            whole, line = series([round(LEVEL * shape(place)) for place in range(length)])
            taken: list[float] = []
            for _ in range(5):
                start = time.process_time()
                find(whole, line)
                taken.append(time.process_time() - start)
            cells.append(f"{1000 * min(taken):.2g}")
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=100, help="so many of each kind")
    number: int = parser.parse_args().series
    print(f"Of {number} series each:\n")
    print(
        "| shape | noise | with a false alarm | false candidates | found | at the exact commit | within 3 commits | delay: median, most |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    kinds = [(shape, noise) for shape in SHAPES for noise in NOISES]
    with ProcessPoolExecutor() as pool:
        for line in pool.map(row, *zip(*kinds, strict=True), [number] * len(kinds)):
            print(line, flush=True)
    print("\nMilliseconds for a series of:\n\n| | 200 readings | 500 | 1,000 |\n| --- | --- | --- | --- |")
    print("\n".join(timings()))


if __name__ == "__main__":
    main()
