"""The cost over the size of the input on logarithmic axes: as it is now and before the last step, with what fits it.

Knows numbers and geometry; must not know HTML.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from cachegrind_bench.history.values import Row
from cachegrind_bench.model.growth import fit
from cachegrind_bench.model.text import grouped
from cachegrind_bench.render.trend import words

WIDTH, HEIGHT = 420, 240
_LEFT, _TOP, _RIGHT, _BOTTOM = 20, 16, 20, 40
_STEPS = 40


class Side(msgspec.Struct, frozen=True):
    """One curve: `line` is its fit, `dots` are what was measured; `look` is a class of the page."""

    look: str
    line: str
    dots: tuple[tuple[str, str, str], ...]
    text: str


class Curves(msgspec.Struct, frozen=True):
    """A drawing: its sides, and the sizes below it."""

    sides: tuple[Side, ...]
    labels: tuple[tuple[str, str], ...]


def curves(row: Row) -> Curves | None:
    """Return the drawing of a row; None if it has no sizes."""
    now = row.readings[-1] if row.readings else None
    if now is None or not now.curve:
        return None
    steps = [item.index for item in row.findings if item.is_step]
    before = [item for item in row.readings if steps and item.index < max(steps) and item.curve]
    shown = [("now", now), *([("before", before[-1])] if before else [])]
    points = [point for _, reading in shown for point in reading.curve]
    width, height = (
        _axis([size for size, _ in points], WIDTH - _LEFT - _RIGHT),
        _axis([ir for _, ir in points], HEIGHT - _TOP - _BOTTOM),
    )

    def place(size: float, ir: float) -> tuple[str, str]:
        return f"{_LEFT + _along(width, size):.1f}", f"{HEIGHT - _BOTTOM - _along(height, ir):.1f}"

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


_Axis = tuple[float, float]  # the logarithm of the first value, and pixels for each unit


def _axis(values: Sequence[int], pixels: int) -> _Axis:
    low, high = math.log(max(min(values), 1)), math.log(max(*values, 2))
    return low, pixels / max(high - low, 0.01)


def _along(axis: _Axis, value: float) -> float:
    return (math.log(max(value, 1)) - axis[0]) * axis[1]
