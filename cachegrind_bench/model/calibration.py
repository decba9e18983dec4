"""From kernels that were counted and timed to what each event takes: a robust fit, and what it is worth. The only user of SciPy.

The logarithm of each time is predicted, since kernels take microseconds or milliseconds, and each counts the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median, pvariance
from typing import Any

import msgspec

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.metrics import WEIGHTS
from cachegrind_bench.model.text import joined, some
from cachegrind_bench.model.time_model import Weight

MOST_APART = 0.03  # of the starts, in the median of the kernels: beyond it, a machine was too busy
_SCALE = 0.1  # errors of the logarithm beyond it count less than their square (soft L1)
_RIDGE = 2.0  # what it costs for a weight to be e times its default, in such errors
_BOUND = math.log(100)  # how far a weight may be from its default
_ERRORS = 3  # standard errors that a range extends to either side
_MOVED = 3  # the factor by which a weight may move with one kind left out, before that is said
_ENOUGH = 3  # kernels that miss the last level
_OFTEN = 100  # at most this many instructions for each miss, or a kernel does not count as one that misses
_SHOWN = 3


class Sample(msgspec.Struct, frozen=True):
    """A kernel: its name, `KIND/VARIANT`; its events, in the order of `WEIGHTS`; and the picoseconds of each start."""

    name: str
    events: tuple[int, ...]
    times: tuple[int, ...]

    @property
    def kind(self) -> str:
        """Which part of the machine it exercises."""
        return self.name.partition("/")[0]


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """What was found; fields are those of `TimeModel`."""

    weights: dict[str, Weight]
    half: tuple[int, int]
    most: tuple[int, int]
    warnings: tuple[str, ...]


def least_squares() -> Callable[..., Any]:
    """Return SciPy's optimizer. UsageError if it is not installed."""
    try:
        from scipy import optimize  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        hint = "in a checkout of cg-bench: pip install '.[calibrate]'"
        raise UsageError("calibrate needs SciPy, which is not installed", hint=hint) from error
    untyped: Any = optimize
    found: Callable[..., Any] = untyped.least_squares
    return found


def apart(times: Iterable[Sequence[int]]) -> float:
    """Return how far the starts of each kernel are apart, in the median of all kernels."""
    return median(max(starts) / min(starts) - 1 for starts in times)


def fit(samples: Sequence[Sample]) -> Fit:
    """Find what each event takes. At least two kinds of kernels are needed."""
    optimize = least_squares()
    whole = _fitted(samples, optimize)
    kinds = sorted({item.kind for item in samples})
    without = {kind: _fitted([item for item in samples if item.kind != kind], optimize, whole) for kind in kinds}
    single = [_fitted([item for item in samples if item is not left_out], optimize, whole) for left_out in samples]
    errors = map(max, _jackknife([*without.values()]), _jackknife(single))
    weights = {name: _weight(*pair) for name, *pair in zip(WEIGHTS, whole, errors, strict=True)}
    # How well kernels of other kinds predict those of one.
    ratios = sorted(min(item.times) / _predicted(without[item.kind], item) for item in samples)
    p5, p25, p75, p95 = (round(1000 * ratios[round(share * (len(ratios) - 1))]) for share in (0.05, 0.25, 0.75, 0.95))
    moved = [
        f"{kind} ({joined(names)})"
        for kind, found in without.items()
        if (names := [name for name, a, b in zip(WEIGHTS, whole, found, strict=True) if max(a / b, b / a) > _MOVED])
    ]
    warnings = (*_unknown(samples), *([_MOVING.format(some(moved, _SHOWN), _MOVED)] if moved else []))
    return Fit(weights=weights, half=(p25, p75), most=(p5, p95), warnings=warnings)


_MOVING = "some weights depend on one kind of kernels: without {} they move by more than a factor of {}"


def _unknown(samples: Sequence[Sample]) -> list[str]:
    missing = [item.name for item in samples if item.events[-1] * _OFTEN >= item.events[0]]
    if len(missing) >= _ENOUGH:
        return []
    few = f"only {len(missing)}" if missing else "none"
    return [
        f"{few} of the kernels miss{'es' if len(missing) == 1 else ''} the simulated last level: what that takes is a guess"
    ]


def _fitted(
    samples: Sequence[Sample], optimize: Callable[..., Any], near: Sequence[float] | None = None
) -> list[float]:
    """Return picoseconds of each event, found from those `near` it. They are positive, as their logarithms are varied.

    The ridge is their distance from the defaults times whatever scale fits best.
    """
    logs = [math.log(min(item.times)) for item in samples]
    totals = [sum(map(int.__mul__, item.events, WEIGHTS.values())) for item in samples]
    scale = median(log - math.log(total) for log, total in zip(logs, totals, strict=True))
    defaults = [math.log(weight) + scale for weight in WEIGHTS.values()]

    def errors(point: Sequence[float]) -> list[float]:
        weights = [*map(math.exp, point)]
        found = [(math.log(_predicted(weights, item)) - log) / _SCALE for item, log in zip(samples, logs, strict=True)]
        distances = [value - default for value, default in zip(point, defaults, strict=True)]
        middle = fmean(distances)
        return [*found, *(_RIDGE * (distance - middle) for distance in distances)]

    low, high = ([default + limit for default in defaults] for limit in (-_BOUND, _BOUND))
    start = defaults if near is None else [*map(max, low, map(min, high, map(math.log, near)))]
    return [*map(math.exp, optimize(errors, start, loss="soft_l1", bounds=(low, high)).x)]


def _jackknife(fits: Sequence[Sequence[float]]) -> list[float]:
    """Return the standard error of the logarithm of each weight, from fits that each leave something else out.

    That of kinds is what another choice of kernels would change, that of single kernels what chance did; few kinds that have one
    of the events can agree by chance, so the larger one counts.
    """
    logs = [[math.log(value) for value in values] for values in zip(*fits, strict=True)]
    return [math.sqrt((len(fits) - 1) * pvariance(values)) for values in logs]


def _weight(value: float, error: float) -> Weight:
    factor = math.exp(_ERRORS * error)
    return Weight(picoseconds=round(value) or 1, low=math.floor(value / factor) or 1, high=math.ceil(value * factor))


def _predicted(weights: Sequence[float], item: Sample) -> float:
    return sum(weight * number for weight, number in zip(weights, item.events, strict=True))
