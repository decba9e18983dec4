"""What a model of the time says, as text: itself, and the time of a benchmark or of both sides of a comparison."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cachegrind_bench.compare.verdict import Comparison, State
from cachegrind_bench.errors import NotComparableError, UsageError
from cachegrind_bench.model.result import Benchmark, Result
from cachegrind_bench.model.text import grouped
from cachegrind_bench.render.table import Report, Row, Section

if TYPE_CHECKING:
    from cachegrind_bench.model.time_model import TimeModel

_UNITS = ((10**12, "s"), (10**9, "ms"), (10**6, "µs"), (10**3, "ns"), (1, "ps"))


def report(model: TimeModel) -> Report:
    """Return what events take by a model, and what it was made from."""
    rows = [
        (name, about(weight.picoseconds), f"{about(weight.low)} to {about(weight.high)}")
        for name, weight in model.weights.items()
    ]
    made: list[Row] = [
        ("kernels", grouped(model.kernels)),
        *_worth(model),
        ("starts", f"differ by {model.starts_ppm / 10_000:.1f} % in the median of the kernels"),
        ("CPU", model.cpu),
        ("compiler", model.compiler),
        ("caches", f"simulated: {model.geometry}"),
    ]
    return Report(
        title=f"model {model.name}, made {model.created_at}",
        sections=(Section(columns=("each of the", "takes", "range"), rows=tuple(rows)), Section(rows=tuple(made))),
        warnings=model.warnings,
    )


def time_section(result: Result, benchmarks: Iterable[Benchmark], model: TimeModel) -> Section:
    """Return the time of these benchmarks by a model. UsageError or NotComparableError if it cannot tell any."""
    check_caches(_caches(result), model)
    rows = [(item.id, f"about {text}") for item in benchmarks if (text := _time(item, model)) is not None]
    if not rows:
        raise no_branches()
    return Section(title=f"time by model {model.name}", rows=(*rows, *_worth(model)))


def time_remarks(comparison: Comparison, model: TimeModel) -> list[str]:
    """Return the times of both sides of what changed. UsageError or NotComparableError if the model cannot tell any."""
    for result in (comparison.base, comparison.candidate):
        check_caches(_caches(result), model)
    paired = [item for item in comparison.differences if item.change is not None]
    both = [
        (item, before, after)
        for item in paired
        if (before := _time(item.base, model)) is not None and (after := _time(item.candidate, model)) is not None
    ]
    if paired and not both:
        raise no_branches()
    return [
        f"{item.id}: about {before} → {after} by model {model.name}"
        for item, before, after in both
        if item.state is not State.UNCHANGED
    ]


def no_branches() -> UsageError:
    """Return what to raise where nothing was measured with an estimate."""
    return UsageError("a model of the time needs counts of branches", hint="measure with 'cg-bench run --estimate'")


def check_caches(caches: str | None, model: TimeModel) -> None:
    """NotComparableError if these caches, as far as they are known, are others than the model's."""
    if caches not in {None, model.geometry}:
        raise NotComparableError(
            f"model {model.name} was made for caches of {model.geometry}, not of {caches}",
            hint="make one with the same --I1, --D1 and --LL: cg-bench calibrate NAME",
        )


def about(picoseconds: int) -> str:
    """Return a time with two digits: a model has no more."""
    value = float(f"{picoseconds:.2g}")
    size, unit = next(((size, unit) for size, unit in _UNITS if value >= size), _UNITS[-1])
    return f"{value / size:.{1 if value < 10 * size and size > 1 else 0}f} {unit}"


def _caches(result: Result) -> str | None:
    return result.env.fields.get("geometry")


def _time(benchmark: Benchmark | None, model: TimeModel) -> str | None:
    if benchmark is None or benchmark.counts is None or benchmark.branches is None:
        return None
    return about(model.picoseconds(benchmark.counts, benchmark.branches))


def _worth(model: TimeModel) -> tuple[Row, ...]:
    half, most = (f"{low / 1000:.2g} to {high / 1000:.2g}" for low, high in (model.half, model.most))
    return ("", f"half of its kernels took {half} times what it says,"), ("", f"nine of ten {most} times")
