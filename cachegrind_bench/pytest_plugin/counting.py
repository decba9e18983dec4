"""From the parts of a Callgrind run to what a benchmark cost: its call, without the empty region around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.place import NOWHERE
from cachegrind_bench.model.metrics import merge_profiles, without
from cachegrind_bench.pytest_plugin import written
from cachegrind_bench.valgrind.callgrind_file import parse_callgrind_bytes
from cachegrind_bench.valgrind.processes import in_order, named
from cachegrind_bench.valgrind.runner import reading_out_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cachegrind_bench.hermetic.place import Translation
    from cachegrind_bench.model.metrics import Counts, Profile
    from cachegrind_bench.model.score import CostModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a benchmark cost in one memory layout: each of its last calls, and the profile of the one in the middle.

    `settled` tells whether these agreed, `starts_processes` whether Callgrind wrote a part in the middle of a call, as it
    does before a fork. `wall_ms` is what all of it took.
    """

    calls: tuple[Counts, ...]
    settled: bool
    profile: Profile
    starts_processes: bool
    wall_ms: int

    @property
    def runs(self) -> tuple[Counts, ...]:
        """The calls that are stored for comparisons: all, or only the middle one if the benchmark settled."""
        return (self.profile.counts(),) if self.settled else self.calls


def cost_of(out: Path, report: Mapping[str, Any], model: CostModel, places: Translation = NOWHERE) -> Cost:
    """Return what the calls of a reported benchmark cost beyond empty ones. MeasurementError if they cannot be read.

    `places` are the paths that the measured process saw; when it has ended, its files have the real ones.
    """
    meter = report["meter"]
    with reading_out_files():
        pairs = parts_of(out, meter)
        calls = [without(_profile(body, places), _profile(empty, places)) for empty, body in pairs]
    counts = [call.counts() for call in calls]
    order = sorted(range(len(calls)), key=lambda place: (model.score(counts[place]), counts[place].Ir, place))
    return Cost(
        calls=tuple(counts),
        settled=meter["settled"],
        profile=calls[order[(len(calls) - 1) // 2]],
        starts_processes=any(len(body) > 1 for _, body in pairs),
        wall_ms=report["wall_ms"],
    )


def parts_of(out: Path, meter: Mapping[str, Any]) -> list[tuple[list[Path], list[Path]]]:
    """Return the files of each call in a meter's record: of the empty one before it, and its own."""
    prefix = written.kept_as(meter["name"])
    pairs = written.calls(str(out), prefix, meter["calls"])
    if len(pairs) < meter["calls"]:
        raise MeasurementError("some of what Callgrind wrote is missing: is the disk full?")

    def files(region: written.Region) -> list[Path]:
        return [out / f"{prefix}{number}" for number in region[0]]

    return [(files(empty), files(body)) for empty, body in pairs]


def _profile(files: Sequence[Path], places: Translation) -> Profile:
    texts = [(places.real_bytes(file.read_bytes()), str(file)) for file in files]
    parts = [part for text in texts for part in parse_callgrind_bytes(*text)]
    return merge_profiles([in_order(named(part)) for part in parts])
