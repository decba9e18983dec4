"""What Valgrind counts of a command next to what the hardware and the clock say, as text."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from cachegrind_bench.measure.hardware import EXECUTIONS, Native
from cachegrind_bench.model.metrics import estimate, weighed_events
from cachegrind_bench.model.text import change, grouped
from cachegrind_bench.render.table import Report, Row, Section
from cachegrind_bench.render.time_models import about, no_branches

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.model.time_model import TimeModel

_NONE = "no counters of the hardware here ({}), as on most virtual machines and in containers: only estimate and clock are compared"
_SHORT_PS, _SHORT = (
    50 * 10**9,
    "in so short a program, most of the time is what the kernel takes to start it, which no count knows",
)
_WHY = (
    "counts differ, as the hardware has another branch predictor and prefetches, and libraries choose other code on another CPU; none "
    "of what the hardware says is stored"
)


def report(result: Result, native: Native, model: TimeModel | None) -> Report:
    """Return the comparison for the one benchmark of this result. UsageError where branches were not counted."""
    benchmark = result.benchmarks[0]
    if benchmark.counts is None or benchmark.branches is None:
        raise no_branches()
    counted = weighed_events(benchmark.counts, benchmark.branches)
    rows: list[Row] = [
        (name, grouped(counted[name]), grouped(found), _apart(counted[name], found))
        for name, found in native.events.items()
    ]
    time = about(native.picoseconds)
    if model is None:
        points = estimate(benchmark.counts, benchmark.branches)
        rows.append(("estimate", grouped(points), time, f"{about(native.picoseconds // (points or 1))} for each point"))
    else:
        expected = model.picoseconds(benchmark.counts, benchmark.branches)
        rows.append((f"time by {model.name}", about(expected), time, _apart(expected, native.picoseconds, 2)))
    columns = ("", "Valgrind", "hardware" if native.events else "clock", "difference")
    return Report(
        title=f"{benchmark.id}: the least of {EXECUTIONS} executions without Valgrind",
        sections=(Section(columns=columns, rows=tuple(rows)),),
        warnings=(
            _NONE.format(native.why_none) if native.why_none else _WHY,
            *((_SHORT,) if native.picoseconds < _SHORT_PS else ()),
        ),
    )


def _apart(counted: int, found: int, digits: int = 3) -> str:
    return change(Fraction(found - counted, counted), digits) if counted else ""
