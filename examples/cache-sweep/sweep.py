"""Does the score predict time? An array of growing size, read in order and at random, counted by cg-bench and timed natively.

    python examples/cache-sweep/sweep.py [--starts N] [--largest ELEMENTS] [--plot FILE.png]

Compiles sweep.c, and prints a table in Markdown and how well score and estimate correlate with the time. A plot needs Matplotlib.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import correlation
from typing import NamedTuple

SOURCE = Path(__file__).with_name("sweep.c")
SIZES = (*(digit * 10**power for power in range(3, 7) for digit in (1, 2, 5)), 10**7)
ORDERS = "linear", "random"


class Reading(NamedTuple):
    """One size in one order; nanoseconds, score, estimate and instructions are those of one access."""

    order: str
    elements: int
    nanoseconds: float
    score: float
    estimate: float
    Ir: float


def counted(command: list[str], accesses: int, folder: str) -> tuple[float, float, float]:
    """Return the score, the estimate and the instructions of one access."""
    result = Path(folder) / "result.json"
    options = ["--quiet", "--warmup", "0", "--estimate", "--toggle", "work", "--output", str(result)]
    subprocess.run([sys.executable, "-m", "cachegrind_bench", "run", *options, "--", *command], check=True)
    found = json.loads(result.read_text("utf-8"))["benchmarks"][0]
    counts = found["counts"]
    first = sum(counts[name] for name in ("I1mr", "D1mr", "D1mw"))
    last = sum(counts[name] for name in ("ILmr", "DLmr", "DLmw"))
    estimate = counts["Ir"] + 80 * found["branches"]["Bcm"] + 10 * first + 100 * last
    return found["score"]["value"] / accesses, estimate / accesses, counts["Ir"] / accesses


def timed(command: list[str], starts: int) -> float:
    """Return the nanoseconds of CPU time for one access: the least of several starts, each of seven passes."""
    said = (subprocess.run([*command, "7"], check=True, capture_output=True, text=True) for _ in range(starts))
    return min(float(done.stdout) for done in said)


def readings(starts: int, largest: int) -> list[Reading]:
    """Measure all sizes up to the largest in both orders, on one CPU."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    found = []
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/sweep"
        subprocess.run(["cc", "-O2", "-g", "-o", program, SOURCE], check=True)
        for order in ORDERS:
            for elements in (size for size in SIZES if size <= largest):
                command = [program, order, str(elements)]
                accesses = max(10**6, elements) if order == "linear" else 10**6
                counts = counted(command, accesses, folder)
                found.append(Reading(order, elements, timed(command, starts), *counts))
                print(f"{order} {elements:,}: {found[-1].nanoseconds:.2f} ns", file=sys.stderr)
    return found


def table(found: list[Reading]) -> str:
    """Return the readings as a table in Markdown, and the correlations below it."""
    lines = ["| Elements | Order | ns | score | estimate | Ir |", "| ---: | --- | ---: | ---: | ---: | ---: |"]
    for at in sorted(found, key=lambda at: (at.elements, at.order)):
        numbers = f"{at.nanoseconds:.2f} | {at.score:.1f} | {at.estimate:.1f} | {at.Ir:.1f}"
        lines.append(f"| {at.elements:,} | {at.order} | {numbers} |")
    times = [at.nanoseconds for at in found]
    shares = {name: correlation([getattr(at, name) for at in found], times) for name in ("score", "estimate", "Ir")}
    return "\n".join([*lines, "", *(f"Pearson of {name} and time: {share:.3f}" for name, share in shares.items())])


def plot(found: list[Reading], path: str) -> None:
    """Draw time, score and estimate of one access over the size of the array."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    titles = {"nanoseconds": "CPU time (ns)", "score": "score", "estimate": "estimate"}
    for panel, (name, title) in zip(panels, titles.items(), strict=True):
        for order, colour in zip(ORDERS, ("#0072b2", "#d55e00"), strict=True):
            own = [at for at in found if at.order == order]
            sizes = [4 * at.elements for at in own]
            panel.plot(sizes, [getattr(at, name) for at in own], "o-", color=colour, markersize=4, label=order)
        panel.set(title=f"{title} of one access", xscale="log", xlabel="size of the array, bytes", ylim=(0, None))
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25)
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure, print the table, and draw the plot if one is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=4, help="how often each is started to be timed")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="the last size of the array")
    parser.add_argument("--plot", metavar="FILE", help="draw a plot into this file, .svg or .png")
    options = parser.parse_args()
    found = readings(options.starts, options.largest)
    print(table(found))
    if options.plot:
        plot(found, options.plot)


if __name__ == "__main__":
    main()
