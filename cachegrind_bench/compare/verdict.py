"""Two results compared: what they are held to, and the verdict on each benchmark; that of the worst holds for all.

Never an average. Must not know what functions cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec.structs import replace

from cachegrind_bench.compare.change import NOISE_FACTOR, Change, Shift, but_for_misses, change
from cachegrind_bench.model.described import doc
from cachegrind_bench.model.metrics import DEFAULT_MODEL, IR_MODEL, CostModel, Counts, Profile
from cachegrind_bench.model.result import Benchmark, Result, Status
from cachegrind_bench.model.text import matches
from cachegrind_bench.model.thresholds import ALLOCATIONS, Limit, Rules

if TYPE_CHECKING:
    from cachegrind_bench.compare.allocations import Allocations
    from cachegrind_bench.compare.growth import Growth, GrowthChange
    from cachegrind_bench.model.call_graph import CallGraph

# Ir that moved less than this did not move: what then moved the score is the memory layout.
STILL = Fraction(5, 10_000)
DEFAULT_THRESHOLD, DEFAULT_THRESHOLD_CACHE, DEFAULT_MAX_DROP = "0.5%", "2%", "50%"


class Metric(StrEnum):
    """The number that decides whether a benchmark regressed."""

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
    threshold_allocations: Rules[Fraction] = Rules(())
    metric: Metric = Metric.SCORE
    limits: tuple[Limit, ...] = ()
    fail_on: FailOn = FailOn.REGRESSION
    force: bool = False
    model: CostModel | None = None

    def patterns(self) -> list[tuple[str, str]]:
        """Return each gate that was typed for some benchmarks only, in words, and its pattern."""
        options = {"--threshold": self.threshold, "--threshold-ir": self.threshold_ir, "--max-drop": self.max_drop}
        options |= {"--threshold-allocations": self.threshold_allocations}
        found = [(f"{option} {pattern}=…", pattern) for option, rules in options.items() for pattern, _ in rules.rules]
        found += [(f"--limit {limit.pattern}:{limit.name}=…", limit.pattern) for limit in self.limits if not limit.own]
        return [(text, pattern) for text, pattern in found if pattern != "*"]

    @property
    def counts_allocations(self) -> bool:
        """Whether the allocations of any benchmark are held to something."""
        return bool(self.threshold_allocations.rules) or any(limit.name == ALLOCATIONS for limit in self.limits)

    def needs_calls(self, benchmark_id: str) -> bool:
        """Return whether the allocations of this benchmark are held to something, for which its calls must be known."""
        limits = (limit for limit in self.limits if limit.name == ALLOCATIONS)
        limited = any(limit.holds_for(benchmark_id) for limit in limits)
        return limited or self.threshold_allocations.get(benchmark_id) is not None


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


_SEVERITY = {state: place for place, state in enumerate(State)}
# The states in which a function is named: in all others nothing happened that one could be blamed for.
BLAMING = frozenset({State.REGRESSION, State.SUSPICIOUS, State.IMPROVEMENT})


class Cause(StrEnum):
    """Which gate made a regression (or, the other way round, an improvement)."""

    THRESHOLD = "threshold"
    IR = "threshold-ir"
    CACHE = "threshold-cache"
    ALLOCATIONS = "threshold-allocations"
    LIMIT = "limit"


class ExceededLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that was exceeded."""

    name: Annotated[str, doc("`score`, an event, `L1`, `LL` or `RAM`")]
    limit: Annotated[int, doc("the limit, in points or events")]
    value: Annotated[int, doc("the candidate's value")]


class FieldDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A field of the comparability key with both values."""

    name: Annotated[str, doc("name of the field")]
    base: Annotated[str | None, doc("its value in the base; null if it has no such field")]
    candidate: Annotated[str | None, doc("its value in the candidate; null if it has no such field")]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark of a comparison. `base` or `candidate` is None where the benchmark is new or missing.

    `threshold` is what the metric was held to, noise included; `fields` are those whose values differ, which makes the
    two sides not comparable unless `forced`. With `growth` it is not one benchmark, but how several grow with their size.
    `allocations` are known where they are held to something; `uncounted` are the sides without calls to count them by.
    """

    id: str
    state: State
    base: Benchmark | None
    candidate: Benchmark | None
    change: Change | None = None
    threshold: Fraction = Fraction(0)
    causes: tuple[Cause, ...] = ()
    broken: tuple[ExceededLimit, ...] = ()
    fields: tuple[FieldDifference, ...] = ()
    forced: bool = False
    growth: GrowthChange | None = None
    allocations: Allocations | None = None
    uncounted: tuple[str, ...] = ()

    @property
    def moved(self) -> bool:
        """Whether both sides have counts, and these differ."""
        return self.change is not None and self.change.base != self.change.candidate


# For `FailOn.ANY_CHANGE`.
_CHANGES = frozenset(State) - {State.UNCHANGED, State.SHIFT, State.NOISY, State.FAILED, State.NOT_COMPARABLE}


class Conclusion(StrEnum):
    """What a comparison comes to; the command line makes an exit code of it."""

    FINE = "fine"
    REGRESSION = "regression"
    FAILED = "failed"
    INCOMPLETE = "incomplete"  # something was missing, suspicious or not comparable, or nothing was compared


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a comparison found, worst first.

    `rescored` names the cost models that were replaced by `model`, `unused` the gates whose pattern does not match any benchmark;
    `remarks` say where base and candidate come from; `without_base`: a base was searched and not found.
    """

    base: Result
    candidate: Result
    gates: Gates
    model: CostModel
    differences: tuple[Difference, ...]
    rescored: tuple[str, ...]
    unused: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    without_base: bool = False

    @property
    def verdict(self) -> State:
        """The state of the worst benchmark."""
        return self.differences[0].state if self.differences else State.NOT_COMPARABLE

    @property
    def with_caches(self) -> bool:
        """Whether both sides simulated caches. If not, Ir alone is compared."""
        return self.base.env.with_caches and self.candidate.env.with_caches

    @property
    def compared(self) -> int:
        """How many benchmarks really were compared."""
        return sum(item.change is not None for item in self.differences)

    @property
    def forced(self) -> tuple[FieldDifference, ...]:
        """Fields that differ in benchmarks that were compared all the same, because the user insisted; empty if none."""
        return tuple(dict.fromkeys(field for item in self.differences if item.forced for field in item.fields))

    def weigh(self, counts: Counts) -> int:
        """Return the number that decides, by which rows are ordered."""
        return (IR_MODEL if self.gates.metric is Metric.IR else self.model).score(counts)

    def count(self) -> Mapping[State, int]:
        """Return how many benchmarks are in each state."""
        return Counter(item.state for item in self.differences)

    def conclusion(self) -> Conclusion:
        """Weigh the states: a regression first, then a failed candidate, then whatever was not compared."""
        fail_on = self.gates.fail_on
        failing = {FailOn.REGRESSION: {State.REGRESSION}, FailOn.ANY_CHANGE: _CHANGES, FailOn.NEVER: set[State]()}
        states = {item.state for item in self.differences}
        if states & failing[fail_on]:
            return Conclusion.REGRESSION
        if any(item.candidate is not None and item.candidate.status is not Status.OK for item in self.differences):
            return Conclusion.FAILED
        unsure = {State.FAILED, State.SUSPICIOUS, State.NOT_COMPARABLE, State.MISSING}
        if not self.compared or (fail_on is not FailOn.NEVER and states & unsure):
            return Conclusion.INCOMPLETE
        return Conclusion.FINE


def compare(
    base: Result, candidate: Result, gates: Gates, *, wanted: Callable[[str], bool] = lambda _id: True
) -> Comparison:
    """Compare two results, matching benchmarks by id; `wanted` picks ids. Profiles are not looked at."""
    # Where caches were simulated on one side only, or on none, Ir is all that can be compared.
    only_ir = [name for name, side in (("base", base), ("candidate", candidate)) if not side.env.with_caches]
    mixed = len(only_ir) == 1
    before, after = (
        {item.id: item.without_caches() if mixed else item for item in side.benchmarks if wanted(item.id)}
        for side in (base, candidate)
    )
    # The base's cost model before the candidate's: a candidate does not choose its judge.
    scores = [item.score.model for item in (*before.values(), *after.values()) if item.score is not None]
    model = gates.model or (CostModel.parse(scores[0]) if scores else DEFAULT_MODEL)
    model = IR_MODEL if only_ir else model
    differences: list[Difference] = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        fields: tuple[FieldDifference, ...] = ()
        if old is not None and new is not None:
            ours, theirs = {**base.env.fields, **old.key_fields}, {**candidate.env.fields, **new.key_fields}
            fields = field_differences(ours, theirs)
            if mixed:
                fields = tuple(field for field in fields if field.name != "geometry")
        differences.append(judge(name, old, new, fields, gates=gates, model=model, by_ir=mixed))
    return Comparison(
        base=base,
        candidate=candidate,
        gates=gates,
        model=model,
        differences=_worst_first(differences, gates),
        rescored=tuple(sorted(set(scores) - {model.name})),
        remarks=tuple(f"compared by Ir: no caches were simulated for the {name}" for name in only_ir if mixed),
        unused=tuple(
            text
            for text, pattern in gates.patterns()
            if not any(matches(item.id, pattern) for side in (base, candidate) for item in side.benchmarks)
        ),
    )


def recognise_layout(
    comparison: Comparison, base: Callable[[str], Profile | None], candidate: Callable[[str], Profile | None]
) -> Comparison:
    """Return the comparison without the changes that come from where things lie in memory, as the profiles by id show."""
    gates = comparison.gates

    def settled(item: Difference) -> Difference:
        if item.state not in BLAMING or item.broken or item.base is None or item.candidate is None:
            return item
        before, after = base(item.id), candidate(item.id)
        counts = but_for_misses(before, after) if before is not None and after is not None else None
        if counts is None:
            return item
        rest = change(replace(item.base, runs=()), replace(item.candidate, counts=counts, runs=()), comparison.model)
        changed = rest is None or _state(rest, item.id, gates)[0] in BLAMING
        return item if changed else replace(item, state=State.SHIFT, causes=())

    return replace(comparison, differences=_worst_first(map(settled, comparison.differences), gates))


def with_allocations(
    comparison: Comparison, base: Callable[[str], CallGraph | None], candidate: Callable[[str], CallGraph | None]
) -> Comparison:
    """Return the comparison with the verdicts on allocations that the gates ask for, as the calls by id show."""
    gates = comparison.gates

    def held(item: Difference) -> Difference:
        if not gates.needs_calls(item.id) or (new := item.candidate) is None or new.status is not Status.OK:
            return item
        from cachegrind_bench.compare.allocations import counted

        # Where all nine counts are the same, so are the allocations.
        threshold = gates.threshold_allocations.get(item.id) if item.moved else None
        limits = [limit for limit in gates.limits if limit.name == ALLOCATIONS and limit.holds_for(item.id)]
        if threshold is None and not limits:
            return item
        before, after = (_whole(side(item.id)) for side in (base, candidate))
        known = {"base": threshold is None or before is not None, "candidate": after is not None}
        item = replace(item, uncounted=tuple(name for name, is_known in known.items() if not is_known))
        if after is None:
            return item
        found = counted(before, after)
        made = found.made.candidate
        more = threshold is not None and before is not None and made > found.made.base * (1 + threshold)
        over = exceeded(limits, new, comparison.model, made)
        if not more and not over:
            return item
        # An earlier cause stays only where that was a regression, too.
        causes = [cause for cause in item.causes if item.state is State.REGRESSION]
        causes += [Cause.ALLOCATIONS] * more + [Cause.LIMIT] * (bool(over) and not item.broken)
        broken = (*item.broken, *over)
        compared = None if before is None else found
        return replace(item, state=State.REGRESSION, causes=tuple(causes), broken=broken, allocations=compared)

    return replace(comparison, differences=_worst_first(map(held, comparison.differences), gates))


def _whole(calls: CallGraph | None) -> CallGraph | None:
    return calls if calls is not None and calls.is_whole else None


def with_growth(comparison: Comparison, base: Mapping[str, Growth], candidate: Mapping[str, Growth]) -> Comparison:
    """Return the comparison with a difference for each group of the candidate: how it grows is compared where all of it is."""
    if not candidate:
        return comparison
    from cachegrind_bench.compare.growth import growth_change

    compared = {item.id for item in comparison.differences if item.change is not None}
    found: list[Difference] = []
    for name, grown in candidate.items():
        if grown.judged is None:  # too few sizes were measured or chosen to judge it
            continue
        old = base.get(name)
        same = old is not None and all(item.id in compared for item in grown.benchmarks)
        change = growth_change(old if same else None, grown)
        state = State.NEW if old is None else State.UNCHANGED if same else State.NOT_COMPARABLE
        if change.exceeds is not None or change.improved:
            state = State.REGRESSION if change.exceeds is not None else State.IMPROVEMENT
        found.append(Difference(id=f"{name} (growth)", state=state, base=None, candidate=None, growth=change))
    return replace(comparison, differences=_worst_first((*comparison.differences, *found), comparison.gates))


def _worst_first(differences: Iterable[Difference], gates: Gates) -> tuple[Difference, ...]:
    """Order by state, then by how far the metric moved (the largest loss first, also among improvements), then by id."""

    def place(item: Difference) -> tuple[int, Fraction, str]:
        share = Fraction(0) if item.change is None else deciding(item.change, gates).signed
        return _SEVERITY[item.state], -abs(share) if item.state is State.IMPROVEMENT else -share, item.id

    return tuple(sorted(differences, key=place))


def judge(
    benchmark_id: str,
    base: Benchmark | None,
    candidate: Benchmark | None,
    fields: tuple[FieldDifference, ...],
    *,
    gates: Gates,
    model: CostModel,
    by_ir: bool = False,
) -> Difference:
    """Compare one benchmark; at least one side is given. `fields` are the key's fields that differ.

    `by_ir`: the keys differ in the geometry of the caches, which does not matter.
    """
    state, moved, threshold, same = State.NEW, None, Fraction(0), True
    causes: tuple[Cause, ...] = ()
    if candidate is None:
        state = State.MISSING
    elif candidate.status is not Status.OK or (base is not None and base.status is not Status.OK):
        state = State.FAILED
    elif base is not None:
        same = (by_ir or base.key == candidate.key) and not fields
        moved = change(base, candidate, model) if gates.force or same else None
        state = State.NOT_COMPARABLE
        if moved is not None:
            threshold = deciding(moved, gates).floor(_wanted(benchmark_id, gates))
            state, causes = _state(moved, benchmark_id, gates)
    broken = () if candidate is None else exceeded(gates.limits, candidate, model)
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


def exceeded(
    limits: Iterable[Limit], item: Benchmark, model: CostModel, allocations: int | None = None
) -> tuple[ExceededLimit, ...]:
    """Return which of the limits the counts of a benchmark exceed, or its allocations if these are known."""
    if item.counts is None:
        return ()
    measured = [(one, one.measured(item.counts, model, allocations)) for one in limits if one.holds_for(item.id)]
    return tuple(
        ExceededLimit(name=one.name, limit=one.value, value=value)
        for one, value in measured
        if value is not None and value > one.value
    )


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
        # Where repeated runs cannot show a change of the threshold, what is within it by more than they differ is still unchanged.
        noisy = NOISE_FACTOR * shift.noise > threshold < abs(shift.signed) + shift.noise
        return (State.NOISY if noisy else State.UNCHANGED), ()
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
