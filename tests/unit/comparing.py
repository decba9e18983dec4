"""Hand-made sides of a comparison: benchmarks with given counts, and the gates they are held to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cachegrind_bench.compare.verdict import DEFAULT_MAX_DROP, Gates, compare
from cachegrind_bench.model.metrics import Counts
from cachegrind_bench.model.result import Run
from cachegrind_bench.model.thresholds import percentage, percentages
from tests.unit.samples import benchmark, result

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cachegrind_bench.compare.verdict import Comparison, Difference
    from cachegrind_bench.model.result import Benchmark


def counts(ir: int = 1_000_000, *, ll: int = 0, ram: int = 0) -> Counts:
    """Return counts with so many instructions, LL hits and RAM hits; the score is Ir + 4·LL + 29·RAM."""
    return Counts(Ir=ir, I1mr=0, ILmr=0, Dr=0, D1mr=ll + ram, DLmr=ram, Dw=0, D1mw=0, DLmw=0)


def measured(name: str = "sieve", value: Counts | None = None, **changes: Any) -> Benchmark:
    """Return a benchmark with these counts, and `runs` (counts by layout) if given."""
    value = value or counts()
    runs: Iterable[tuple[int, Counts]] = changes.pop("runs", [(0, value)])
    listed = tuple(Run(layout=layout, counts=item) for layout, item in runs)
    return benchmark(id=name, counts=value, runs=listed, **changes)


def gates(**changes: Any) -> Gates:
    """Return the default gates, with thresholds given as text."""
    values: dict[str, Any] = {
        "threshold": percentages([changes.pop("threshold", "0.5%")], None, "--threshold"),
        "threshold_cache": percentage(changes.pop("threshold_cache", "2%"), "--threshold-cache"),
        "max_drop": percentages([changes.pop("max_drop", DEFAULT_MAX_DROP)], None, "--max-drop"),
    }
    if "threshold_ir" in changes:
        values["threshold_ir"] = percentages([changes.pop("threshold_ir")], None, "--threshold-ir")
    return Gates(**values, **changes)


def compared(base: Benchmark | list[Benchmark], candidate: Benchmark | list[Benchmark], **changes: Any) -> Comparison:
    """Compare benchmarks under these gates."""
    sides = [side if isinstance(side, list) else [side] for side in (base, candidate)]
    before, after = (result(*side) if side else result(measured(), benchmarks=()) for side in sides)
    return compare(before, after, gates(**changes))


def difference(base: Benchmark, candidate: Benchmark, **changes: Any) -> Difference:
    """Compare one benchmark under these gates."""
    (found,) = compared(base, candidate, **changes).differences
    return found
