"""Pictures that need no script: sparklines, and the cost over the size of the input.

Knows numbers and geometry; must not know HTML. Charts are drawn by `page.js`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby

import msgspec

from cachegrind_bench.history.values import Row
from cachegrind_bench.model.growth import fit
from cachegrind_bench.model.text import grouped
from cachegrind_bench.render.trend import words

_SPARK_WIDTH, _SPARK_HEIGHT = 60, 100
WIDTH, HEIGHT = 420, 240
_LEFT, _TOP, _RIGHT, _BOTTOM = 20, 16, 20, 40
_STEPS = 40


def spark(values: Sequence[tuple[int, int]], first: int, commits: int) -> str:
    """Return a path of (commit, value) pairs in steps; of commits that share a column, the last is drawn."""
    if not values:
        return ""
    low, high = min(value for _, value in values), max(value for _, value in values)
    span = max(high - low, high // 50, 1)  # what changes by less looks as flat as it is, here and in charts
    columns = {
        (commit - first) * _SPARK_WIDTH // commits: round(_SPARK_HEIGHT * ((high + low + span) / 2 - value) / span)
        for commit, value in values
    }
    steps = [next(group) for _, group in groupby(sorted(columns.items()), key=lambda step: step[1])]
    path = "".join(f"H{column}V{down}" for column, down in steps)
    return f"M{path[1:].replace('V', ' ', 1)}H{max(columns) + 1}"


class Side(msgspec.Struct, frozen=True):
    """One curve: `line` is its fit, `dots` are what was measured; `look` is a class of the page."""

    look: str
    line: str
    dots: tuple[tuple[str, str, str], ...]
    text: str


class Curves(msgspec.Struct, frozen=True):
    """The cost over the size, on logarithmic axes: its sides, and the sizes below it."""

    sides: tuple[Side, ...]
    labels: tuple[tuple[str, str], ...]


def curves(row: Row) -> Curves | None:
    """Return the curve of a row as it is now, and as it was before the last step; None if it has no sizes."""
    now = row.readings[-1] if row.readings else None
    if now is None or not now.curve:
        return None
    steps = [item.index for item in row.findings if item.is_step]
    before = [item for item in row.readings if steps and item.index < max(steps) and item.curve]
    shown = [("now", now), *([("before", before[-1])] if before else [])]
    points = [point for _, reading in shown for point in reading.curve]
    across = _axis([size for size, _ in points], WIDTH - _LEFT - _RIGHT)
    up = _axis([ir for _, ir in points], HEIGHT - _TOP - _BOTTOM)

    def place(size: float, ir: float) -> tuple[str, str]:
        return f"{_LEFT + across(size):.1f}", f"{HEIGHT - _BOTTOM - up(ir):.1f}"

    sides: list[Side] = []
    for look, reading in shown:
        found = fit(reading.curve)
        first, last = reading.curve[0][0], reading.curve[-1][0]
        sizes = [round(first * (last / first) ** (step / _STEPS)) for step in range(_STEPS + 1)]
        line = " ".join(",".join(place(size, ir)) for size in sizes if (ir := found.at(size)))
        dots = tuple((*place(size, ir), f"{grouped(ir)} Ir at {grouped(size)}") for size, ir in reading.curve)
        sides.append(
            Side(look, line, dots, f"{look}, {words.sha(reading.sha)}: {found.name}{'' if found.clear else '?'}")
        )
    labels = tuple((place(size, 1)[0], grouped(size)) for size, _ in (now.curve[0], now.curve[-1]))
    return Curves(tuple(sides), labels)


def _axis(values: Sequence[int], pixels: int) -> Callable[[float], float]:
    """Return where values are along a logarithmic axis of this many pixels."""
    low, high = math.log(max(min(values), 1)), math.log(max(*values, 2))
    return lambda value: (math.log(max(value, 1)) - low) * pixels / max(high - low, 0.01)
