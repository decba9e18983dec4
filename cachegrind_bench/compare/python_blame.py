"""Which Python function made the difference between two profiles: the one whose change its callees do not explain.

The profiles are trees of call paths, with exact self costs and calls. The base predicts what each path of the candidate
costs; a function is blamed for what differs from that in its own code, and for what it calls more or less often:

    ratio(x)    = calls of path x in the candidate / its calls in the base
    own(x)      = self(x) - self_base(x) * ratio(x)
    called(x)   = sum over callees y of x:  inclusive_base(y) / calls_base(y) * (calls(y) - calls_base(y) * ratio(x))
    blame(f)    = sum of own and called over all paths x that end in f

So who is merely called more often gets no blame, but whoever calls it more often. What a function that is new itself
costs, and calls, is its caller's: below it, callees are predicted as if the caller called them. So it is with a function
known from elsewhere that was put between, and, the other way round, where what stood between is gone. Any other path
that the base does not have is predicted by all paths of the base that end in the same function, those within itself
apart. All numbers are rounded so that the blames of all functions and of native code add up to the difference of the
totals exactly: recursion is paths like others, so it counts once. Must not know how any of this is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.compare.python_pairs import pair_functions
from cachegrind_bench.compare.python_prediction import weigh
from cachegrind_bench.model.python_profile import TOP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.model.python_profile import PythonFunction, PythonProfile


class PythonSide(msgspec.Struct, frozen=True, kw_only=True):
    """What a function cost in one of the profiles; all zero where it is not there. Costs are in Ir."""

    calls: int = 0
    ir: int = 0
    inclusive: int = 0


class PythonDelta(msgspec.Struct, frozen=True, kw_only=True):
    """A function on both sides, named as in the candidate, or as in the base if it is gone. Costs are in Ir.

    `own` is what its own code costs more than the base predicts, `blame` that and what it calls more often.
    """

    function: PythonFunction
    base: PythonSide
    candidate: PythonSide
    own: int
    blame: int

    @property
    def delta(self) -> int:
        """Candidate's self cost minus the base's."""
        return self.candidate.ir - self.base.ir

    @property
    def called(self) -> int:
        """The part of the blame that is for calling others more often, or less."""
        return self.blame - self.own


class PythonTop(msgspec.Struct, frozen=True, kw_only=True):
    """The rows that matter most, the sums and the number of all others, and the function to name first, if any.

    The deltas of `rows`, `rest_delta` and `whole.native` add up to `whole.total`; so do the blames. `whole` has no rows.
    """

    whole: PythonBlame
    rows: tuple[PythonDelta, ...]
    chief: PythonDelta | None
    rest_own: int
    rest_blame: int
    rest_delta: int
    rest_functions: int


class PythonBlame(msgspec.Struct, frozen=True, kw_only=True):
    """All functions that differ, the most to blame first. With `native`, their deltas add up to that of the totals.

    So do the blames, with `native_blame`: what native code under no function costs more, and calls more often. `cut` tells
    that a profile lacks the outer callers of some paths.
    """

    rows: tuple[PythonDelta, ...]
    base_native: int
    candidate_native: int
    native_blame: int
    base_total: int
    candidate_total: int
    cut: bool

    @property
    def native(self) -> int:
        """The difference of native code under no Python function, in Ir."""
        return self.candidate_native - self.base_native

    @property
    def total(self) -> int:
        """The difference of the totals, in Ir."""
        return self.candidate_total - self.base_total

    @property
    def chief(self) -> PythonDelta | None:
        """The function that explains most of the difference; None if native code explains more, or nothing differs."""
        sign = (self.total > 0) - (self.total < 0)
        most = max(self.rows, key=lambda row: row.blame * sign, default=None)  # of equal ones the first
        return most if most is not None and most.blame * sign > max(self.native_blame * sign, 0) else None


def blame(base: PythonProfile, candidate: PythonProfile) -> PythonBlame:
    """Compare two profiles, function by function."""
    pairs = pair_functions(base.functions, candidate.functions)
    sums = weigh(base, candidate, pairs.base, pairs.candidate)
    sides = _sides(base, pairs.base), _sides(candidate, pairs.candidate)
    rows: list[PythonDelta] = []
    for key in sorted(sides[0].keys() | sides[1].keys()):
        function = (sides[1].get(key) or sides[0][key])[0]
        before, after = (side[key][1] if key in side else PythonSide() for side in sides)
        own, called = sums.own[key], sums.called[key]
        if before != after or own or called:
            rows.append(PythonDelta(function=function, base=before, candidate=after, own=own, blame=own + called))
    rows.sort(key=lambda row: (-abs(row.blame), -abs(row.delta), row.function.name, row.function))
    return PythonBlame(
        rows=tuple(rows),
        base_native=base.native,
        candidate_native=candidate.native,
        native_blame=sums.own[TOP] + sums.called[TOP],
        base_total=base.total,
        candidate_total=candidate.total,
        cut=base.cut or candidate.cut,
    )


def _sides(profile: PythonProfile, ids: Sequence[int]) -> dict[int, tuple[PythonFunction, PythonSide]]:
    """Return what each function cost, by its number in the pairing."""
    numbers = dict(zip(profile.functions, ids, strict=True))
    found: dict[int, tuple[PythonFunction, PythonSide]] = {}
    for cost in profile.costs():
        before = found.get(numbers[cost.function], (cost.function, PythonSide()))[1]
        found[numbers[cost.function]] = (
            cost.function,
            PythonSide(
                calls=before.calls + cost.calls,
                ir=before.ir + cost.ir,
                inclusive=before.inclusive + cost.inclusive,
            ),
        )
    return found


def top(found: PythonBlame, n: int) -> PythonTop:
    """Return the first n rows, and the sums of the others; who merely calls what differs is no row."""
    differing = tuple(row for row in found.rows if row.blame or row.delta)
    rows, rest = differing[: max(n, 0)], differing[max(n, 0) :]
    return PythonTop(
        whole=replace(found, rows=()),
        rows=rows,
        chief=found.chief,
        rest_own=sum(row.own for row in rest),
        rest_blame=sum(row.blame for row in rest),
        rest_delta=sum(row.delta for row in rest),
        rest_functions=len(rest),
    )
