"""Two results compared, benchmark by benchmark; the verdict is that of the worst, never an average."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.compare.change import but_for_misses
from cachegrind_bench.compare.verdict import (
    BLAMING,
    SEVERITY,
    Difference,
    FailOn,
    FieldDifference,
    Metric,
    State,
    but_for_layout,
    deciding,
    field_differences,
    judge,
)
from cachegrind_bench.model.metrics import DEFAULT_MODEL, IR_MODEL, CostModel
from cachegrind_bench.model.result import Status
from cachegrind_bench.model.text import matches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cachegrind_bench.compare.verdict import Gates
    from cachegrind_bench.model.metrics import Counts, Profile
    from cachegrind_bench.model.result import Result

_CHANGES = frozenset(State) - {State.UNCHANGED, State.SHIFT, State.NOISY, State.FAILED, State.NOT_COMPARABLE}


class Conclusion(StrEnum):
    """What a comparison comes to; the command line makes an exit code of it."""

    FINE = "fine"
    REGRESSION = "regression"
    FAILED = "failed"
    INCOMPLETE = "incomplete"  # something was missing, suspicious or not comparable, or nothing was compared


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a comparison found, worst first.

    `rescored` names the cost models that were replaced by `model`, `unused` the gates whose pattern fits no benchmark;
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
    def compared(self) -> int:
        """How many benchmarks really were compared."""
        return sum(item.change is not None for item in self.differences)

    @property
    def forced(self) -> tuple[FieldDifference, ...]:
        """The fields in spite of which benchmarks were compared, as their user insisted; empty if none."""
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
    before = {item.id: item for item in base.benchmarks if wanted(item.id)}
    after = {item.id: item for item in candidate.benchmarks if wanted(item.id)}
    # The base's cost model before the candidate's: a candidate does not choose its judge.
    scores = [item.score.model for item in (*before.values(), *after.values()) if item.score is not None]
    model = gates.model or (CostModel.parse(scores[0]) if scores else DEFAULT_MODEL)
    differences: list[Difference] = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        fields: tuple[FieldDifference, ...] = ()
        if old is not None and new is not None:
            fields = field_differences(
                {**base.env.fields, **old.key_fields}, {**candidate.env.fields, **new.key_fields}
            )
        differences.append(judge(name, old, new, fields, gates=gates, model=model))
    return Comparison(
        base=base,
        candidate=candidate,
        gates=gates,
        model=model,
        differences=_worst_first(differences, gates),
        rescored=tuple(sorted(set(scores) - {model.name})),
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

    def settled(item: Difference) -> Difference:
        if item.state not in BLAMING or item.broken:
            return item
        before, after = base(item.id), candidate(item.id)
        counts = but_for_misses(before, after) if before is not None and after is not None else None
        return item if counts is None else but_for_layout(item, counts, comparison.gates, comparison.model)

    return replace(comparison, differences=_worst_first(map(settled, comparison.differences), comparison.gates))


def _worst_first(differences: Iterable[Difference], gates: Gates) -> tuple[Difference, ...]:
    """Order by state, then by how far the metric moved (the largest loss first, also among improvements), then by id."""

    def place(item: Difference) -> tuple[int, Fraction, str]:
        share = Fraction(0) if item.change is None else deciding(item.change, gates).signed
        return SEVERITY[item.state], -abs(share) if item.state is State.IMPROVEMENT else -share, item.id

    return tuple(sorted(differences, key=place))
