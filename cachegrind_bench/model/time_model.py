"""What events take in time on one CPU, as `cg-bench calibrate` found it: the values of a model, and the time it gives counts.

Knows no file and no clock; must not know how a model is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

import msgspec

from cachegrind_bench.model.metrics import Branches, Counts, weighed_events

Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=10**12)]


class Weight(msgspec.Struct, frozen=True, kw_only=True):
    """What one event takes, in whole picoseconds, and the range that it lies in."""

    picoseconds: Whole
    low: Whole
    high: Whole


class TimeModel(msgspec.Struct, frozen=True, kw_only=True):
    """The weights of one CPU, under the names of `metrics.WEIGHTS`.

    In `half` of all kernels, and in nine of ten (`most`), the time was between these multiples of what a model said that was made
    without kernels of their kind, in thousandths. `starts_ppm` is how far the starts of the kernels were apart in the median.
    """

    schema: Literal["cg-bench.time-model/1"] = "cg-bench.time-model/1"
    name: str
    created_at: str
    cpu: str
    compiler: str
    geometry: str
    kernels: int
    starts_ppm: int
    weights: Mapping[str, Weight]
    half: tuple[Whole, Whole]
    most: tuple[Whole, Whole]
    warnings: tuple[str, ...] = ()

    def picoseconds(self, counts: Counts, branches: Branches) -> int:
        """Return the time that these counts take by this model."""
        events = weighed_events(counts, branches)
        return sum(self.weights[name].picoseconds * number for name, number in events.items())
