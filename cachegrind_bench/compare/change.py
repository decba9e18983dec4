"""How far two benchmarks are apart: by layout, with the noise of each, and what chance in CPython's method cache explains.

Exact numbers, no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from statistics import median, median_low

import msgspec

from cachegrind_bench.model.metrics import IR_MODEL, ZERO, CostModel, Counts, Profile
from cachegrind_bench.model.result import Benchmark

NOISE_FACTOR = 3  # how many times the noise a difference must be
# From here on the range is wide enough by itself: of four normal ones it is 2.1 standard deviations, which is 2.6 times what the
# difference of two such medians varies by; of two runs it is 1.1.
MANY_RUNS = 4


class Shift(msgspec.Struct, frozen=True, kw_only=True):
    """How one number moved. Shares are fractions of one.

    `relative` is (candidate - base) / base, None where a base is 0 and the candidate is not. `signed` divides by the smaller of the two instead, so that it only changes
    its sign when base and candidate change places: an improvement is what would be a regression the other way round.
    Both are the median over the layouts, pair by pair. `noise` is the largest (max - min) / min of a few runs of one layout,
    `spread` that of many, such as the calls of a benchmark that does not settle. `sway` is how far, from one layout to
    another, `relative` differs.
    """

    relative: Fraction | None
    signed: Fraction
    noise: Fraction
    spread: Fraction
    sway: Fraction
    mixed: bool  # up in one layout, down in another

    @property
    def margin(self) -> Fraction:
        """Half of what layouts, repeated runs or calls differ by, whichever is most: `relative` is known up to that."""
        return max(self.sway, self.noise, self.spread) / 2

    def floor(self, threshold: Fraction) -> Fraction:
        """Return what the number must move by to count: the threshold, but never less than three times the noise or the spread."""
        return max(threshold, NOISE_FACTOR * self.noise, self.spread)


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of base and candidate; all zero on a side that does not have what is counted."""

    base: Counts
    candidate: Counts

    @property
    def delta(self) -> Counts:
        """Candidate minus base."""
        return self.candidate - self.base


class Change(Delta, frozen=True, kw_only=True):
    """Base and candidate of one benchmark, both measured. The counts are those of the run each side reports."""

    score: Shift
    ir: Shift
    layouts: int
    layouts_left_out: int


def change(base: Benchmark, candidate: Benchmark, model: CostModel) -> Change | None:
    """Compare two benchmarks; None if no layout was measured on both sides."""
    before, after = _by_layout(base), _by_layout(candidate)
    common = sorted(before.keys() & after.keys())
    if not common or base.counts is None or candidate.counts is None:
        return None

    def widest(weigh: Callable[[Counts], int], *, many: bool) -> Fraction:
        groups = (side[layout] for side in (before, after) for layout in common)
        scores = (sorted(map(weigh, runs)) for runs in groups if (len(runs) >= MANY_RUNS) is many)
        return max((Fraction(runs[-1] - runs[0], max(runs[0], 1)) for runs in scores), default=Fraction(0))

    def shift(weigh: Callable[[Counts], int]) -> Shift:
        pairs = [tuple(median_low(map(weigh, side[layout])) for side in (before, after)) for layout in common]
        signs = {(new > old) - (new < old) for old, new in pairs}
        shares = [Fraction(new - old, max(old, 1)) for old, new in pairs]
        from_nothing = any(new and not old for old, new in pairs)
        return Shift(
            relative=None
            if from_nothing
            else median(shares),  # of two in the middle their mean: the same seen from either side
            signed=median([Fraction(new - old, max(min(old, new), 1)) for old, new in pairs]),
            noise=widest(weigh, many=False),
            spread=widest(weigh, many=True),
            sway=Fraction(0) if from_nothing else max(shares) - min(shares),
            mixed=signs >= {1, -1},
        )

    return Change(
        base=base.counts,
        candidate=candidate.counts,
        score=shift(model.score),
        ir=shift(IR_MODEL.score),
        layouts=len(common),
        layouts_left_out=len(before.keys() ^ after.keys()),
    )


def _by_layout(benchmark: Benchmark) -> Mapping[int, list[Counts]]:
    return benchmark.by_layout() or {0: [benchmark.counts] if benchmark.counts is not None else []}


# Objects/typeobject.c and dictobject.c, CPython 3.11 to 3.14: what a miss executes, and what does nothing else but that.
_MISS = "find_name_in_mro"
_ITS_CALLEES = frozenset({
    "_PyType_Lookup", "_PyType_LookupRef", "assign_version_tag", "_PyDict_GetItem_KnownHash", "_PyDict_GetItemRef_KnownHash",
    "_Py_dict_lookup", "unicodekeys_lookup_unicode", "unicodekeys_lookup_generic", "PyErr_Occurred",
})  # fmt: skip
# Instructions of all of these for one of `_MISS`: 4.3 to 6.3 on 3.11. Dictionaries that are used for more than misses
# execute others.
_MOST_FOR_A_MISS = 8
# What gives types new versions: misses come from the code itself where it does so more often.
_INVALIDATES = frozenset({"PyType_Modified", "PyType_Modified_Unlocked", "type_modified_unlocked"})
_MOST = Fraction(1, 10)


def but_for_misses(base: Profile, candidate: Profile) -> Counts | None:
    """Return what the candidate would have cost with as many misses as the base; None where they explain nothing."""
    before, after = _costs(base), _costs(candidate)
    misses = after.pop(_MISS, ZERO) - before.pop(_MISS, ZERO)
    if any(after.get(name, ZERO).Ir > before.get(name, ZERO).Ir for name in _INVALIDATES):
        return None
    names = _ITS_CALLEES & (before.keys() | after.keys())
    explained = sum((after.get(name, ZERO) - before.get(name, ZERO) for name in names), misses)
    whole = base.counts()
    if not 0 < Fraction(explained.Ir, misses.Ir or 1) <= _MOST_FOR_A_MISS or abs(explained.Ir) > whole.Ir * _MOST:
        return None
    return candidate.counts() - explained


def _costs(profile: Profile) -> dict[str, Counts]:
    found: dict[str, Counts] = {}
    for row in profile.functions:
        name = row.name.partition(".")[0]  # compilers append .isra.0 and the like
        if name == _MISS or name in _ITS_CALLEES or name in _INVALIDATES:
            cost = Counts.from_mapping(dict(zip(profile.events, row.counts, strict=True)))
            found[name] = found.get(name, ZERO) + cost
    return found
