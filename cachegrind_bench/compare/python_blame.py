"""Which Python function made the difference between two profiles: the one whose change its callees do not explain.

The profiles are trees of call paths, with exact self costs and calls. The base predicts what each path of the candidate
costs; a function is blamed for what differs from that in its own code, and for what it calls more or less often:

    own(x)      = self(x) - usual self(x)
    called(x)   = sum over callees y of x of usual(y), what the calls of y usually cost - what x usually spends on callees
    blame(f)    = sum of own and called over all paths x that end in f

What is usual is explained below, in `usual`. So a function that is merely called more often gets no blame, but its caller does. What a function that is new itself
costs, and calls, is its caller's: below it, callees are predicted as if the caller called them. So it is with a function
known from elsewhere that was put between, and, the other way round, where what was between is gone. Any other path
that the base does not have is predicted by all paths of the base that end in the same function, those within itself
apart. All numbers are rounded so that the blames of all functions and of native code add up to the difference of the
totals exactly: recursion is paths like others, so it counts once. Must not know how any of this is shown.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import msgspec

from cachegrind_bench.compare.pairing import pair_functions
from cachegrind_bench.model.python_profile import TOP, PythonCost, PythonFunction, PythonProfile

Ratio = tuple[int, int]  # numerator and denominator

# What was between and is gone is searched no further where more paths than these would be looked at, for time's sake.
_DEEPER = 32
_BROADER = 1_000


class PythonDelta(msgspec.Struct, frozen=True, kw_only=True):
    """What a function cost on both sides, all zero where it is not there. Costs are in Ir.

    `own` is what its own code costs more than the base predicts, `blame` that and what it calls more often.
    """

    base: PythonCost
    candidate: PythonCost
    own: int
    blame: int

    @property
    def function(self) -> PythonFunction:
        """The function as in the candidate, or as in the base if it is gone."""
        return self.candidate.function

    @property
    def delta(self) -> int:
        """Candidate's self cost minus the base's."""
        return self.candidate.ir - self.base.ir

    @property
    def called(self) -> int:
        """The part of the blame that is for calling others more often, or less."""
        return self.blame - self.own


class PythonBlame(msgspec.Struct, frozen=True, kw_only=True):
    """Functions that differ, the most to blame first, the one to name first, if any, and the `rest`, which is not shown.

    The deltas of `rows`, `rest` and `native` add up to `total`. So do the blames, with `native_blame`: what native
    code under no function costs more, and calls more often. `cut`: a profile lacks the outer callers of some paths.
    """

    rows: tuple[PythonDelta, ...]
    rest: tuple[PythonDelta, ...]
    chief: PythonDelta | None
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


def blame(base: PythonProfile, candidate: PythonProfile, most: int = sys.maxsize) -> PythonBlame:
    """Compare two profiles, function by function; the first rows, at most `most`, are to be shown.

    `chief` is None if native code explains more, or nothing differs. A function that only calls one that differs gets no row.
    """
    numbers = pair_functions(base.functions, candidate.functions)
    own, called = _weighed(_Tree(base, numbers[0]), _Tree(candidate, numbers[1]))
    before, after = _costs(base, numbers[0]), _costs(candidate, numbers[1])
    rows: list[PythonDelta] = []
    for number in sorted(before.keys() | after.keys()):
        function = (after.get(number) or before[number]).function
        nothing = PythonCost(function=function, calls=0, ir=0, inclusive=0)
        row = PythonDelta(
            base=before.get(number, nothing),
            candidate=after.get(number, nothing),
            own=own[number],
            blame=own[number] + called[number],
        )
        rows += [row] if row.blame or row.delta else []
    rows.sort(key=lambda row: (-abs(row.blame), -abs(row.delta), row.function.name, row.function))
    native_blame, total = own[TOP] + called[TOP], candidate.total - base.total
    sign = (total > 0) - (total < 0)
    chief = max(rows, key=lambda row: row.blame * sign, default=None)  # of equal ones the first
    return PythonBlame(
        rows=tuple(rows[:most]),
        rest=tuple(rows[most:]),
        chief=chief if chief is not None and chief.blame * sign > max(native_blame * sign, 0) else None,
        base_native=base.native,
        candidate_native=candidate.native,
        native_blame=native_blame,
        base_total=base.total,
        candidate_total=candidate.total,
        cut=base.cut or candidate.cut,
    )


def _costs(profile: PythonProfile, numbers: Sequence[int]) -> dict[int, PythonCost]:
    number = dict(zip(profile.functions, numbers, strict=True))
    return {number[cost.function]: cost for cost in profile.costs()}


class _Tree:
    """The paths of a profile, from callers to callees, with the numbers that their functions have in the pairing."""

    def __init__(self, profile: PythonProfile, numbers: Sequence[int]) -> None:
        self.profile, self.paths = profile, profile.paths
        self.numbers = [numbers[path.function] for path in profile.paths]
        self.outermost = set(profile.outermost())
        self._callees = defaultdict[int, list[int]](list)
        self._by_function = defaultdict[tuple[int, bool], list[int]](list)
        self._anywhere: dict[tuple[int, bool], _Place] = {}
        for index, (path, number) in enumerate(zip(self.paths, self.numbers, strict=True)):
            self._callees[path.parent].append(index)
            self._by_function[number, index in self.outermost].append(index)
        self.functions = set(self.numbers)

    def callees(self, paths: Iterable[int]) -> dict[int, list[int]]:
        """Return the paths right below these, by function."""
        found = defaultdict[int, list[int]](list)
        for path in paths:
            for callee in self._callees[path]:
                found[self.numbers[callee]].append(callee)
        return found

    def calls(self, index: int, known: set[int]) -> dict[int, int]:
        """Return the known functions that a path calls, itself or through unknown ones, and how often."""
        found = defaultdict[int, int](int)
        waiting = [index]
        while waiting:
            for callee in self._callees[waiting.pop()]:
                if self.numbers[callee] in known:
                    found[self.numbers[callee]] += self.paths[callee].calls
                else:
                    waiting.append(callee)
        return found

    def anywhere(self, function: int, *, outermost: bool) -> _Place | None:
        """Take all paths that end in this function as one.

        Calls from within the function itself cost less than those that began it: each kind is predicted by its own.
        """
        for key in ((function, outermost), (function, not outermost)):
            if key in self._by_function:
                if key not in self._anywhere:
                    self._anywhere[key] = self.place(self._by_function[key])
                return self._anywhere[key]
        return None

    def own(self, index: int) -> int:
        """Return what a path, or TOP, costs itself."""
        return self.profile.native if index == TOP else self.paths[index].ir

    def whole(self, index: int) -> int:
        """Return what a path, or TOP, costs with all below it."""
        return self.profile.total if index == TOP else self.profile.inclusive[index]

    def place(self, paths: Sequence[int]) -> _Place:
        calls = sum(self.paths[path].calls for path in paths)
        return _Place(self, paths, calls, sum(self.profile.inclusive[path] for path in paths))


@dataclass(eq=False)
class _Place:
    """Some paths of the base taken as one: those that predict what one path of the candidate costs."""

    tree: _Tree
    paths: Sequence[int]
    calls: int
    inclusive: int

    @cached_property
    def children(self) -> dict[int, _Place]:
        """The places of the callees, by function."""
        return {function: self.tree.place(paths) for function, paths in self.tree.callees(self.paths).items()}


@dataclass(eq=False)
class _Frame:
    """A path of the candidate at work, predicted by `place`; `calls` are those of known functions, also from new ones.

    New functions below it count as its own code.
    """

    function: int
    place: _Place
    ratio: Ratio
    calls: dict[int, int]

    def misses(self, function: int) -> bool:
        """Return whether it should call this function, and does not, or less often."""
        place = self.place.children.get(function)
        if place is None:
            return False
        return function not in self.calls or self.calls[function] * self.ratio[1] < place.calls * self.ratio[0]

    def expected(self, function: int) -> _Place | None:
        """Return what predicts a call from here: the same call, or one through functions that are not between any more."""
        if function in self.place.children:
            return self.place.children[function]
        paths = self._below.get(function)
        return None if paths is None else self.place.tree.place(paths)

    @cached_property
    def _below(self) -> dict[int, list[int]]:
        """By function, the nearest paths below the callees that are called no more, or less often."""
        found: dict[int, list[int]] = {}
        missed = (place for function, place in self.place.children.items() if self.misses(function))
        level = list(islice((path for place in missed for path in place.paths), _BROADER + 1))
        searched = 0
        while level and searched < _DEEPER and len(level) <= _BROADER:
            searched += len(level)
            callees = self.place.tree.callees(level)
            found = callees | found
            level = [path for paths in callees.values() for path in paths]
        return found


def _weighed(base: _Tree, candidate: _Tree) -> tuple[dict[int, int], dict[int, int]]:
    """Hold each path of the candidate, callers first, against what the base predicts.

    Return what is blamed on each function, and on TOP: in its own code, and for its calls.
    """
    own, called = defaultdict[int, int](int), defaultdict[int, int](int)

    def held(index: int, function: int, place: _Place, ratio: Ratio) -> _Frame:
        """Blame a function for its own code, and give it credit for what it was predicted to call."""
        calls = ratio[1], ratio[0]
        before = {callee: below.inclusive for callee, below in place.children.items()}
        after = {callee: sum(map(candidate.whole, paths)) for callee, paths in candidate.callees((index,)).items()}
        callees = sum(usual(before.get(key, 0), after.get(key, 0), calls) for key in before.keys() | after.keys())
        own[function] += candidate.own(index) - (usual(place.inclusive, candidate.whole(index), calls) - callees)
        called[function] -= callees
        return _Frame(function, place, ratio, candidate.calls(index, base.functions))

    top_frame = held(TOP, TOP, _Place(base, (TOP,), 1, base.profile.total), (1, 1))
    frames: list[_Frame] = []
    for index, path in enumerate(candidate.paths):
        function = candidate.numbers[index]
        caller = top_frame if path.parent == TOP else frames[path.parent]
        place, ratio = _predicted(base, candidate, caller, index)
        if place is None:
            called[caller.function] += path.ir
            frames.append(caller)
            continue
        if place.calls and path.calls:  # else it was entered before counting began
            ratio = path.calls, place.calls
        called[caller.function] += usual(place.inclusive, candidate.whole(index), (ratio[1], ratio[0]))
        frames.append(held(index, function, place, ratio))
    return own, called


def _predicted(base: _Tree, candidate: _Tree, caller: _Frame, index: int) -> tuple[_Place | None, Ratio]:
    """Return what predicts a path, and how often if its calls do not say; no place if it counts as its caller's code."""
    function = candidate.numbers[index]
    if function not in base.functions:
        return None, caller.ratio
    place = caller.expected(function)
    if place is not None:
        return place, caller.ratio
    calls = candidate.calls(index, base.functions)
    if any(map(caller.misses, calls)):  # it was put between the caller and what that called before
        for callee, number in calls.items():
            caller.calls[callee] = caller.calls.get(callee, 0) + number
        return None, caller.ratio
    return base.anywhere(function, outermost=index in candidate.outermost), (0, 1)


def usual(base: int, candidate: int, calls: tuple[int, int]) -> int:
    """Return what the calls of the candidate would cost if each had cost as before; `calls` are those of base and candidate.

    Calls that only one side has count for what they cost there, but never for more than the difference: where there are more
    calls, and each costs less in the mean, the new ones are cheap ones.
    """
    before, after = calls
    if not before:
        return candidate
    if after > before:
        return base + max(0, min(candidate - base, scaled(candidate, (after - before, after))))
    return base - max(0, min(base - candidate, base - scaled(base, (after, before))))


def scaled(number: int, ratio: Ratio) -> int:
    """Return the whole number nearest to number * ratio; the ratio is not negative."""
    numerator, denominator = ratio
    return (2 * number * numerator + denominator) // (2 * denominator)
