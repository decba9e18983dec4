"""From the parts of a Callgrind run to what a benchmark cost: its call, without the empty region around it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachegrind_bench.model.metrics import merge_profiles
from cachegrind_bench.model.subtraction import without
from cachegrind_bench.pytest_plugin import written
from cachegrind_bench.valgrind.callgrindfile import parse_callgrind
from cachegrind_bench.valgrind.processes import in_order, named
from cachegrind_bench.valgrind.runner import reading_out_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cachegrind_bench.model.metrics import Counts, Profile
    from cachegrind_bench.model.score import CostModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a benchmark cost: each of its last calls, and the profile of the one in the middle."""

    calls: tuple[Counts, ...]
    profile: Profile


def cost_of(out: Path, meter: Mapping[str, Any], model: CostModel) -> Cost:
    """Return what the calls of a meter's record cost beyond empty ones. MeasurementError if they cannot be read."""
    with reading_out_files():
        calls = [
            without(_profile(out, meter, call["body"][0]), _profile(out, meter, call["empty"][0]))
            for call in meter["calls"]
        ]
    counts = [call.counts() for call in calls]
    order = sorted(range(len(calls)), key=lambda place: (model.score(counts[place]), counts[place].Ir, place))
    return Cost(calls=tuple(counts), profile=calls[order[(len(calls) - 1) // 2]])


def kept(out: Path, meter: Mapping[str, Any], number: int) -> Path:
    """Return the file with this part of a meter's process."""
    return Path(written.kept(str(out), meter["name"], number))


def _profile(out: Path, meter: Mapping[str, Any], numbers: Sequence[int]) -> Profile:
    parts = [part for number in numbers for part in parse_callgrind(kept(out, meter, number))]
    return merge_profiles([in_order(named(part)) for part in parts])
