"""Programs that were counted and timed, as files keep them, and models of their time."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

POINTS = Path(__file__).with_name("points.csv")
KINDS = {"native": "real", "Python": "python"}
SWEEP = "linread", "rndread"  # how the names of the article's experiment begin


class Point(NamedTuple):
    """A program, or one access of a loop: its family and kind, seconds, and counts. `ll` has lines of 64 bytes, `long` of 4,096."""

    family: str
    kind: str
    name: str
    build: str
    seconds: float
    Ir: float
    D: float
    L1m: float
    Bcm: float
    ll: float
    long: float | None

    @property
    def terms(self) -> tuple[float, ...]:
        """The parts that the estimate is the sum of."""
        return self.Ir, 80 * self.Bcm, 10 * self.L1m, 100 * self.ll


Model = Callable[[Point], float]


def estimate(at: Point) -> float:
    """Return the estimate of a point."""
    return sum(at.terms)


MODELS: dict[str, Model] = {
    "Ir": lambda at: at.Ir,
    "the score, L1 + 5 LL + 30 RAM": lambda at: at.Ir + at.D - at.L1m + 5 * (at.L1m - at.ll) + 30 * at.ll,
    "Ir + 10 L1m + 100 LLm (Callgrind's, without branches)": lambda at: at.Ir + 10 * at.L1m + 100 * at.ll,
    "the estimate, Ir + 80 Bcm + 10 L1m + 100 LLm": estimate,
}
LONG_LINES: dict[str, Model] = {
    "the same, LL with lines of 4,096 bytes": lambda at: at.Ir + 80 * at.Bcm + 10 * at.L1m + 100 * (at.long or 0),
}


def points(path: Path) -> list[Point]:
    """Read all points of a file; a sweep's are those of one access."""
    found: list[Point] = []
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            count = {name: float(row[name]) for name in ("Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "Bcm", "n8")}
            misses = count["I1mr"] + count["D1mr"] + count["D1mw"]
            values = float(row["t"]), count["Ir"], count["Dr"] + count["Dw"], misses, count["Bcm"], count["n8"]
            each = float(row["units"]) if row["kind"] == "sweep" else 1
            long = float(row["x8"]) / each if row.get("x8") else None
            name = row["fam"], row["kind"], row["var"], row["build"]
            found.append(Point._make((*name, *(value / each for value in values), long)))
    return found


def programs(everything: list[Point]) -> list[Point]:
    """Return the points of whole programs."""
    return [at for at in everything if at.kind in KINDS.values()]
