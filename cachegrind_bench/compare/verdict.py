"""What a comparison is held to, and the verdict on one benchmark: its state, and why. Must not know profiles."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.compare.change import NOISE_FACTOR, change
from cachegrind_bench.model.result import Status
from cachegrind_bench.model.thresholds import Limit, Rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cachegrind_bench.compare.change import Change, Shift
    from cachegrind_bench.model.metrics import CostModel, Counts
    from cachegrind_bench.model.result import Benchmark

# Ir that moved less than this did not move: what then moved the score is where things lie in memory.
STILL = Fraction(5, 10_000)
DEFAULT_THRESHOLD, DEFAULT_THRESHOLD_CACHE, DEFAULT_MAX_DROP = "0.5%", "2%", "50%"


class Metric(StrEnum):
    """The number that decides."""

    SCORE = "score"
    IR = "Ir"


class FailOn(StrEnum):
    """Which states shall end in exit code 1."""

    REGRESSION = "regression"
    ANY_CHANGE = "any-change"
    NEVER = "never"


class Gates(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that turns differences into verdicts. Thresholds are shares: 1/200 is 0.5 %."""

    threshold: Rules[Fraction]
    threshold_cache: Fraction
    max_drop: Rules[Fraction]
    threshold_ir: Rules[Fraction] = Rules(())
    metric: Metric = Metric.SCORE
    limits: tuple[Limit, ...] = ()
    fail_on: FailOn = FailOn.REGRESSION
    force: bool = False
    model: CostModel | None = None

    def patterns(self) -> list[tuple[str, str]]:
        """Return each gate that was typed for some benchmarks only, in words, and its pattern."""
        options = (
            ("--threshold", self.threshold),
            ("--threshold-ir", self.threshold_ir),
            ("--max-drop", self.max_drop),
        )
        found = [(f"{option} {pattern}=…", pattern) for option, rules in options for pattern, _ in rules.rules]
        found += [(f"--limit {limit.pattern}:{limit.name}=…", limit.pattern) for limit in self.limits if not limit.own]
        return [(text, pattern) for text, pattern in found if pattern != "*"]


class State(StrEnum):
    """What became of a benchmark, worst first."""

    REGRESSION = "regression"
    FAILED = "failed"
    SUSPICIOUS = "suspicious drop"
    NOT_COMPARABLE = "not comparable"
    MISSING = "missing"
    NOISY = "noisy"
    IMPROVEMENT = "improvement"
    NEW = "new"
    SHIFT = "unchanged (layout)"
    UNCHANGED = "unchanged"


SEVERITY = {state: place for place, state in enumerate(State)}
# The states in which a function is named: in all others nothing happened that one could be blamed for.
BLAMING = frozenset({State.REGRESSION, State.SUSPICIOUS, State.IMPROVEMENT})


class Cause(StrEnum):
    """Which gate made a regression (or, the other way round, an improvement)."""

    THRESHOLD = "threshold"
    IR = "threshold-ir"
    CACHE = "threshold-cache"
    LIMIT = "limit"


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that was exceeded."""

    limit: Limit
    value: int


class FieldDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A field of the comparability key with both values; None where a side has no such field."""

    name: str
    base: str | None
    candidate: str | None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark of a comparison. `base` or `candidate` is None where the benchmark is new or missing.

    `threshold` is what the metric was held to, noise included; `fields` are those whose values differ, which makes the
    two sides not comparable unless `forced`.
    """

    id: str
    state: State
    base: Benchmark | None
    candidate: Benchmark | None
    change: Change | None = None
    threshold: Fraction = Fraction(0)
    causes: tuple[Cause, ...] = ()
    broken: tuple[Broken, ...] = ()
    fields: tuple[FieldDifference, ...] = ()
    forced: bool = False


def judge(
    benchmark_id: str,
    base: Benchmark | None,
    candidate: Benchmark | None,
    fields: tuple[FieldDifference, ...],
    *,
    gates: Gates,
    model: CostModel,
) -> Difference:
    """Compare one benchmark, of which at least one side is given. `fields` are the key's fields that differ."""
    state, moved, threshold, same = State.NEW, None, Fraction(0), True
    causes: tuple[Cause, ...] = ()
    if candidate is None:
        state = State.MISSING
    elif candidate.status is not Status.OK or (base is not None and base.status is not Status.OK):
        state = State.FAILED
    elif base is not None:
        same = base.key == candidate.key and not fields
        moved = change(base, candidate, model) if gates.force or same else None
        state = State.NOT_COMPARABLE
        if moved is not None:
            threshold = deciding(moved, gates).floor(_wanted(benchmark_id, gates))
            state, causes = _state(moved, benchmark_id, gates)
    counts = None if candidate is None else candidate.counts
    broken = tuple(
        Broken(limit=limit, value=value)
        for limit in gates.limits
        if counts is not None
        and limit.holds_for(benchmark_id)
        and (value := limit.measured(counts, model)) > limit.value
    )
    return Difference(
        id=benchmark_id,
        state=State.REGRESSION if broken else state,
        base=base,
        candidate=candidate,
        change=moved,
        threshold=threshold,
        causes=(*causes, Cause.LIMIT) if broken else causes,
        broken=broken,
        fields=fields,
        forced=moved is not None and not same,
    )


def but_for_layout(item: Difference, counts: Counts, gates: Gates, model: CostModel) -> Difference:
    """Return this difference as `SHIFT` if it is no change with these counts, which are the candidate's but for layout."""
    if item.base is None or item.candidate is None:
        return item
    rest = change(replace(item.base, runs=()), replace(item.candidate, counts=counts, runs=()), model)
    changed = rest is None or _state(rest, item.id, gates)[0] in BLAMING
    return item if changed else replace(item, state=State.SHIFT, causes=())


def field_differences(base: Mapping[str, str], candidate: Mapping[str, str]) -> tuple[FieldDifference, ...]:
    """Return the fields of two keys that differ, by name."""
    return tuple(
        FieldDifference(name=name, base=base.get(name), candidate=candidate.get(name))
        for name in sorted(base.keys() | candidate.keys())
        if base.get(name) != candidate.get(name)
    )


def _wanted(benchmark_id: str, gates: Gates) -> Fraction:
    """Return the threshold for the metric, as the user set it."""
    own = gates.threshold_ir.get(benchmark_id) if gates.metric is Metric.IR else None
    return own if own is not None else gates.threshold.get(benchmark_id) or Fraction(0)


def _state(moved: Change, benchmark_id: str, gates: Gates) -> tuple[State, tuple[Cause, ...]]:
    max_drop, ir = gates.max_drop.get(benchmark_id), moved.ir
    if max_drop is not None and moved.candidate.Ir < moved.base.Ir * (1 - max_drop):
        return State.SUSPICIOUS, ()
    threshold, threshold_ir = _wanted(benchmark_id, gates), gates.threshold_ir.get(benchmark_id)
    state, causes = _by_metric(moved, threshold, gates)
    if gates.metric is Metric.IR:
        return state, causes
    if threshold_ir is not None and ir.signed > ir.floor(threshold_ir):
        return State.REGRESSION, (*(causes if state is State.REGRESSION else ()), Cause.IR)
    # Where the score is within the threshold, instructions are held to the same one, unless the score went the other way:
    # those that neither read nor write are a smaller part of it. A loop added to a Python function moved the score by 0.55
    # to 0.72 of what it moved Ir by.
    agree = not ir.mixed and ir.signed * moved.score.signed > 0
    if state is State.UNCHANGED and threshold_ir is None and agree and abs(ir.signed) > ir.floor(threshold):
        return (State.REGRESSION if ir.signed > 0 else State.IMPROVEMENT), (Cause.IR,)
    return state, causes


def _by_metric(moved: Change, threshold: Fraction, gates: Gates) -> tuple[State, tuple[Cause, ...]]:
    shift = deciding(moved, gates)
    # A threshold below `STILL` says that smaller changes of Ir matter here.
    still = not moved.ir.signed or abs(moved.ir.signed) < min(STILL, threshold)
    if gates.metric is Metric.IR and still:
        shift = moved.score  # what the caches do does not move Ir, and is reported all the same
    if abs(shift.signed) <= shift.floor(threshold):
        return (State.NOISY if NOISE_FACTOR * shift.noise > threshold else State.UNCHANGED), ()
    cause = Cause.THRESHOLD
    if still or shift.mixed:
        # The same work, better served in one layout and worse in another, is a matter of place however far it moved.
        if (still and shift.mixed) or abs(shift.signed) <= gates.threshold_cache:
            return State.SHIFT, ()
        cause = Cause.CACHE
    return (State.REGRESSION if shift.signed > 0 else State.IMPROVEMENT), (cause,)


def deciding(moved: Change, gates: Gates) -> Shift:
    """Return how the number moved that the gates hold to the threshold."""
    return moved.ir if gates.metric is Metric.IR else moved.score
