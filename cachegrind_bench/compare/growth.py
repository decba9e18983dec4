"""How the cost of benchmarks grows that differ in the size of their input: as a whole, and each function by itself.

Knows results and profiles; must not know the formats. What is beyond a bound is decided here, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from cachegrind_bench.model.growth import Fit, fit
from cachegrind_bench.model.metrics import CostModel, Counts, Profile
from cachegrind_bench.model.python_profile import PythonProfile
from cachegrind_bench.model.result import Benchmark
from cachegrind_bench.model.sizes import CLASSES, LEAST_SIZES, GrowthClass

_FURTHER = (1, 10, 100)  # times the largest size
_MATTERS = Fraction(1, 10)  # of the cost at the furthest of these, from where on a function's growth counts
_LEAST = Fraction(1, 500)  # of the cost at the largest size, below which a function is one of the rest
_FASTER = 4  # times as many misses for an instruction as before: the working set no longer fits
_MISSES = Fraction(1, 1000)  # for an instruction, below which they do not matter


class FunctionGrowth(msgspec.Struct, frozen=True, kw_only=True):
    """How the own cost of a function grows. `line` is 0 for a native one.

    `shares` are its parts of the whole cost at the largest size, and predicted at 10 and 100 times that; None beyond all measure.
    """

    file: str
    name: str
    line: int
    fit: Fit
    shares: tuple[Fraction, ...]


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """How the benchmarks of a group grow. `fits` are those of score, Ir and hits; None if there are too few sizes.

    `functions` are those that matter, by their part of the cost at the furthest size, and `rest` all others. `leaves` are the caches that are left
    from one size to the next, as (cache, size, next size).
    """

    id: str
    benchmarks: tuple[Benchmark, ...]
    fits: Mapping[str, Fit]
    functions: tuple[FunctionGrowth, ...] = ()
    rest: Fit | None = None
    leaves: tuple[tuple[str, int, int], ...] = ()

    def at(self, size: int) -> int | None:
        """Return the instructions that are predicted for a size; None beyond all measure.

        Functions know better than the whole where one of them grows so that the whole hardly shows it.
        """
        whole, worst = self.judged, self.worst
        fits = [item.fit for item in self.functions] + [self.rest] * (self.rest is not None)
        is_known = worst is not None and (worst.fit.clear or whole is None or worst.fit.least > whole.most)
        costs = [found.at(size) for found in (fits if is_known else [whole]) if found is not None]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that were measured, in ascending order."""
        return tuple(item.scale.size for item in self.benchmarks if item.scale is not None)

    @property
    def bound(self) -> GrowthClass | None:
        """The class that it must not exceed."""
        return self.benchmarks[0].scale.bound if self.benchmarks[0].scale is not None else None

    @property
    def predict(self) -> int | None:
        """The size that the user wants costs to be predicted for."""
        return self.benchmarks[0].scale.predict if self.benchmarks[0].scale is not None else None

    @property
    def judged(self) -> Fit | None:
        """The fit that counts: that of instructions, as caches make steps."""
        return self.fits.get("Ir")

    @property
    def dominant(self) -> tuple[FunctionGrowth, ...]:
        """The functions that are a tenth of the cost at least at the furthest size; the one that is sure to grow worst first."""
        found = [item for item in self.functions if item.shares[-1] >= _MATTERS]
        return tuple(sorted(found, key=lambda item: (-item.fit.least, -item.shares[-1], item.file, item.name)))

    @property
    def rank(self) -> int:
        """The place among all classes of what it is sure to grow with: the whole, or a function that will dominate it."""
        fits = [self.judged, *(item.fit for item in self.dominant)]
        return max((found.least for found in fits if found is not None), default=-1)

    @property
    def most(self) -> int:
        """The place of the fastest class that cannot be ruled out; functions that no class fits are left out."""
        fits = [self.judged, *(item.fit for item in self.dominant if item.fit.clear or item.fit.least)]
        return max((found.most for found in fits if found is not None), default=-1)

    @property
    def worst(self) -> FunctionGrowth | None:
        """The function to name: the one that grows worst of those that will dominate."""
        return self.dominant[0] if self.dominant else None

    @property
    def growth(self) -> GrowthClass | None:
        """The class that it is in, by all that is sure; None if nothing is."""
        whole = self.judged
        is_sure = whole is not None and (whole.clear or self.rank > whole.most)
        return CLASSES[self.rank] if is_sure else None


def growths(
    benchmarks: Iterable[Benchmark],
    profile: Callable[[str], Profile | None],
    python: Callable[[str], PythonProfile | None],
) -> dict[str, Growth]:
    """Return how each group among these benchmarks grows, by its name; profiles are asked for by the id of a benchmark."""
    groups = defaultdict[str, list[Benchmark]](list)
    for item in benchmarks:
        if item.scale is not None and item.counts is not None:
            groups[item.scale.group].append(item)
    return {name: _growth(name, some, profile, python) for name, some in groups.items()}


def _growth(
    name: str,
    benchmarks: Sequence[Benchmark],
    profile: Callable[[str], Profile | None],
    python: Callable[[str], PythonProfile | None],
) -> Growth:
    by_size = {item.scale.size: item for item in benchmarks if item.scale is not None}
    ordered = tuple(by_size[size] for size in sorted(by_size))
    if len(ordered) < LEAST_SIZES:
        return Growth(id=name, benchmarks=ordered, fits={})
    rows = {label: list(zip(sorted(by_size), counts, strict=True)) for label, counts in _counts(ordered).items()}
    functions, rest = _functions(sorted(by_size), _own_costs(ordered, profile, python))
    return Growth(
        id=name,
        benchmarks=ordered,
        fits={label: fit(row) for label, row in rows.items() if any(count for _, count in row)},
        functions=functions,
        rest=rest,
        leaves=_leaves(rows),
    )


_HITS: Mapping[str, Callable[[Counts], int]] = {
    "L1 hits": lambda counts: counts.l1_hits,
    "LL hits": lambda counts: counts.ll_hits,
    "RAM hits": lambda counts: counts.ram_hits,
}


def _counts(benchmarks: Sequence[Benchmark]) -> dict[str, list[int]]:
    known = [(item.counts, item.score) for item in benchmarks]
    sure = [
        (counts, CostModel.parse(score.model)) for counts, score in known if counts is not None and score is not None
    ]
    return {
        "Ir": [counts.Ir for counts, _ in sure],
        "score": [model.score(counts) for counts, model in sure],
    } | {
        name: [hits(counts) for counts, _ in sure]
        for name, hits in _HITS.items()
        if all(counts.with_caches for counts, _ in sure)
    }


_Own = Mapping[tuple[str, str, int], int]  # the instructions of functions, by file, name and line


def _own_costs(
    benchmarks: Sequence[Benchmark],
    profile: Callable[[str], Profile | None],
    python: Callable[[str], PythonProfile | None],
) -> list[_Own]:
    """Return what functions cost at each size, Python's if they are known; nothing where they are not known of all sizes."""
    found = [_of_python(costs) for item in benchmarks if (costs := python(item.id)) is not None]
    if len(found) < len(benchmarks):
        found = [_of_native(rows) for item in benchmarks if (rows := profile(item.id)) is not None]
    return found if len(found) == len(benchmarks) else []


def _of_native(profile: Profile) -> _Own:
    place = profile.events.index("Ir")
    return {(row.file, row.name, 0): row.counts[place] for row in profile.functions}


def _of_python(profile: PythonProfile) -> _Own:
    costs = {(cost.function.file, cost.function.name, cost.function.line): cost.ir for cost in profile.costs()}
    return costs | {("", "", 0): profile.native}


def _functions(sizes: Sequence[int], own: Sequence[_Own]) -> tuple[tuple[FunctionGrowth, ...], Fit | None]:
    """Return how functions grow, and all others as one; `own` are their costs at each size, or nothing."""
    if not own:
        return (), None
    totals = [sum(costs.values()) for costs in own]
    least = [max(1, int(total * _LEAST)) for total in totals]
    named = sorted(key for key, cost in own[-1].items() if cost >= least[-1] and key[1])
    rows = [[costs.get(key, 0) for costs in own] for key in named]
    rest = [total - sum(row[place] for row in rows) for place, total in enumerate(totals)]
    fits = [fit(list(zip(sizes, row, strict=True)), least) for row in [*rows, rest]]
    shares = [_shares(sizes[-1] * times, fits) for times in _FURTHER]
    found = [
        FunctionGrowth(file=file, name=name, line=line, fit=fits[place], shares=tuple(share[place] for share in shares))
        for place, (file, name, line) in enumerate(named)
    ]
    found.sort(key=lambda item: (-item.shares[-1], -item.shares[0], item.file, item.name))
    return tuple(found), fits[-1]


def _shares(size: int, fits: Sequence[Fit]) -> list[Fraction]:
    """Return each one's part of the cost that is predicted for a size; what is beyond all measure is all of it."""
    costs = [found.at(size) for found in fits]
    endless = costs.count(None)
    if endless:
        return [Fraction(cost is None, endless) for cost in costs]
    total = sum(cost for cost in costs if cost is not None)
    return [Fraction(cost or 0, max(total, 1)) for cost in costs]


def _leaves(rows: Mapping[str, Sequence[tuple[int, int]]]) -> tuple[tuple[str, int, int], ...]:
    """Return where misses start to grow much faster than instructions, if caches were simulated."""
    if "RAM hits" not in rows:
        return ()
    misses = {
        "first level": [ll[1] + ram[1] for ll, ram in zip(rows["LL hits"], rows["RAM hits"], strict=True)],
        "last level": [count for _, count in rows["RAM hits"]],
    }
    more = [(size, larger, after - before) for (size, before), (larger, after) in pairwise(rows["Ir"])]
    found: list[tuple[str, int, int]] = []
    for cache, counts in misses.items():
        before: list[Fraction] = []
        for (size, larger, instructions), (fewer, many) in zip(more, pairwise(counts), strict=True):
            rate = Fraction(many - fewer, instructions) if instructions > 0 else Fraction(0)
            if before and rate >= _MISSES and rate >= _FASTER * max(before):
                found.append((cache, size, larger))
                break
            before.append(rate)
    return tuple(found)


class GrowthChange(msgspec.Struct, frozen=True, kw_only=True):
    """A group on both sides. `base` is None where it is new, or was measured otherwise.

    `exceeds` is the class that the candidate must not exceed, and does: the bound, or without one that of the base.
    """

    base: Growth | None
    candidate: Growth
    exceeds: GrowthClass | None

    @property
    def improved(self) -> bool:
        """Whether it grows less than before, which is sure on both sides."""
        return self.base is not None and -1 < self.candidate.most < self.base.rank


def growth_change(base: Growth | None, candidate: Growth) -> GrowthChange:
    """Compare a group. Without a bound, growing worse than the base does is a regression where both are sure.

    Functions count only if both sides have profiles: without those of the base, it may have had the same function.
    """
    if base is not None and (base.rest is None) != (candidate.rest is None):
        base = replace(base, functions=(), rest=None)
        candidate = candidate if candidate.bound is not None else replace(candidate, functions=(), rest=None)
    exceeds = candidate.bound
    if exceeds is not None:
        is_beyond = candidate.rank > CLASSES.index(exceeds)
    elif base is None or base.judged is None or candidate.judged is None:
        is_beyond = False
    else:
        exceeds, before = CLASSES[base.most], {item.name: item.fit.most for item in base.functions}
        is_beyond = candidate.judged.least > base.most or any(
            item.fit.least > max(base.most, before.get(item.name, 0)) for item in candidate.dominant
        )
    return GrowthChange(base=base, candidate=candidate, exceeds=exceeds if is_beyond else None)
