"""Evidence on what regressed: its calls, and the costs of its Python functions, from further executions of both sides.

Counts repeat exactly, so what a second execution records explains the first; where it does not repeat them, that is said.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.compare.verdict import State, compare
from cachegrind_bench.measure.run import RECORDED, other_instructions
from cachegrind_bench.usecases.comparison import InMemory, Side

if TYPE_CHECKING:
    from cachegrind_bench.compare.verdict import Gates
    from cachegrind_bench.model.result import Benchmark, Result

# What 'run' records it with.
WORDS = ("-q", "--call-tree", "--python-profile", "--python-optional")


class Evidence(StrEnum):
    """Of which benchmarks evidence is collected."""

    REGRESSIONS = "regressions"
    ALWAYS = "always"
    NEVER = "never"

    def wants(self, base: Result, candidate: Result, gates: Gates) -> tuple[str, ...]:
        """Return the ids of the benchmarks that need evidence: where nothing moved, there is nothing to explain."""
        if self is Evidence.NEVER:
            return ()
        always = self is Evidence.ALWAYS
        found = (item for item in compare(base, candidate, gates).differences if item.moved)
        return tuple(item.id for item in found if always or item.state is State.REGRESSION)


def is_explained(benchmark: Benchmark) -> bool:
    """Return whether all of its calls are recorded."""
    return benchmark.calls is not None and benchmark.calls.is_whole


def with_evidence(side: Side, recorded: Side) -> Side:
    """Return the side with what was recorded, and a remark where that is of another execution than the one that counted."""
    known = {item.id: item for item in recorded.file.whole().benchmarks}
    remarks: list[str] = []

    def explained(benchmark: Benchmark) -> Benchmark:
        found = known.get(benchmark.id)
        if found is None or benchmark.counts is None:
            return benchmark
        if found.counts is None:
            remarks.append(
                f"{benchmark.id} failed when its calls were recorded: {found.error or 'it was not measured'}"
            )
            return benchmark
        if found.counts.Ir != benchmark.counts.Ir:
            remarks.append(f"{benchmark.id} of {side.name}: {other_instructions(benchmark.counts.Ir, found.counts.Ir)}")
        remarks.extend(f"{benchmark.id} of {side.name}: {text}" for text in found.warnings if text.startswith(RECORDED))
        return replace(benchmark, calls=found.calls, python=found.python)

    whole = side.file.whole()
    file = InMemory(replace(whole, benchmarks=tuple(map(explained, whole.benchmarks))))
    return replace(side, file=file, remarks=(*side.remarks, *remarks))
