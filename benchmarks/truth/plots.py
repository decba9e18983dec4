"""The plots of docs/truth.md: all programs, and those that the estimate is furthest from. They need Matplotlib."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from benchmarks.truth.points import KINDS, Point, estimate
from benchmarks.truth.tables import worst

COLOURS = {"real": "#0072b2", "python": "#d55e00"}
SHOWN = 12


def label(at: Point) -> str:
    """Name a program in few letters."""
    named = at.name if at.name.startswith(at.family) else f"{at.family} {at.name}"
    return named if at.build == "default" else f"{named}, {at.build}"


def draw(everything: list[Point], path: Path, title: str) -> None:
    """Draw time over estimate, and the worst failures."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained", width_ratios=(1, 1.1))
    for name, kind in KINDS.items():
        if all(at.kind != kind for at in everything):
            continue
        own = [at for at in everything if at.kind == kind]
        middle = median(at.seconds / estimate(at) for at in own)
        predicted = [estimate(at) * middle * 1e3 for at in own]
        left.plot(
            predicted, [at.seconds * 1e3 for at in own], "o", color=COLOURS[kind], alpha=0.6, markersize=4, label=name
        )
    ends = left.get_xlim()
    for factor, style in ((1, "-"), (2, ":"), (0.5, ":")):
        left.plot(ends, [end * factor for end in ends], style, color="grey", linewidth=0.8)
    left.set(xscale="log", yscale="log", xlabel="predicted by the estimate (ms)", ylabel="CPU time (ms)", title=title)
    left.legend(frameon=False)
    found = sorted((pair for kind in KINDS.values() for pair in worst(everything, estimate, kind)), key=_furthest)[
        :SHOWN
    ]
    bars = right.barh(
        [label(at) for _, at in found],
        [factor - 1 if factor > 1 else 1 - 1 / factor for factor, _ in found],
        color=[COLOURS[at.kind] for _, at in found],
    )
    right.bar_label(bars, [f"{factor:.1f}x" if factor > 1 else f"1/{1 / factor:.1f}" for factor, _ in found], padding=3)
    right.margins(x=0.15)
    right.invert_yaxis()
    right.axvline(0, color="black", linewidth=0.8)
    right.set(xticks=[], title="Worst of each family: time / prediction")
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
    right.spines["bottom"].set_visible(False)
    figure.savefig(path, dpi=100)


def _furthest(pair: tuple[float, Point]) -> tuple[float, str]:
    return -max(pair[0], 1 / pair[0]), pair[1].name
