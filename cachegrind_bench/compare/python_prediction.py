"""Holds each path of calls of one Python profile against what another one predicts of it.

Knows the trees and the formula of `python_blame`; must not know what becomes of the sums.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING

from cachegrind_bench.model.python_profile import TOP

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cachegrind_bench.model.python_profile import PythonProfile

_Ratio = tuple[int, int]  # numerator and denominator
# What stood between and is gone is searched no further where more paths than these would be looked at, for time's sake.
_DEEPER = 32
_BROADER = 1_000


class Sums:
    """What is blamed on each function, by its number in the pairing, and on TOP: in its own code, and for its calls."""

    def __init__(self) -> None:
        self.own = defaultdict[int, int](int)
        self.called = defaultdict[int, int](int)


class _Place:
    """Some paths of the base taken as one: those that predict what one path of the candidate costs."""

    __slots__ = ("_children", "calls", "inclusive", "paths", "tree")

    def __init__(self, tree: _Tree, paths: Sequence[int], calls: int, inclusive: int) -> None:
        self.tree, self.paths = tree, paths
        self.calls, self.inclusive = calls, inclusive
        self._children: dict[int, _Place] | None = None

    def children(self) -> dict[int, _Place]:
        """Return the places of the callees, by function."""
        if self._children is None:
            found = self.tree.callees_of(self.paths)
            self._children = {function: self.tree.place(paths) for function, paths in found.items()}
        return self._children


class _Tree:
    """The paths of the base, from callers to callees and by function."""

    def __init__(self, profile: PythonProfile, ids: Sequence[int]) -> None:
        self._profile, self._ids = profile, ids
        self._callees = _callees(profile)
        self._by_function = defaultdict[tuple[int, bool], list[int]](list)
        self._anywhere: dict[tuple[int, bool], _Place] = {}
        outermost = set(profile.outermost())
        for index, path in enumerate(profile.paths):
            self._by_function[ids[path.function], index in outermost].append(index)
        self.functions = {function for function, _ in self._by_function}
        self.top = _Place(self, (TOP,), 1, profile.total)

    def callees_of(self, paths: Iterable[int]) -> dict[int, list[int]]:
        """Return the paths right below these, by function."""
        found = defaultdict[int, list[int]](list)
        for path in paths:
            for child in self._callees[path]:
                found[self._ids[self._profile.paths[child].function]].append(child)
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

    def place(self, paths: Sequence[int]) -> _Place:
        """Take paths as one."""
        profile = self._profile
        calls = sum(profile.paths[path].calls for path in paths)
        return _Place(self, paths, calls, sum(profile.inclusive[path] for path in paths))


class _Frame:
    """A path of the candidate at work, with what it is predicted to call; what is new below it works in its name."""

    __slots__ = ("_below", "calls", "function", "place", "ratio")

    def __init__(self, function: int, place: _Place, ratio: _Ratio, calls: dict[int, int]) -> None:
        self.function, self.place, self.ratio = function, place, ratio
        self.calls = calls  # of the candidate, by function; also from new functions
        self._below: dict[int, list[int]] | None = None

    def misses(self, function: int) -> bool:
        """Tell whether it should call this function, and does not, or less often."""
        place = self.place.children().get(function)
        if place is None:
            return False
        return function not in self.calls or self.calls[function] * self.ratio[1] < place.calls * self.ratio[0]

    def expected(self, function: int) -> _Place | None:
        """Return what predicts a call from here: the same call, or one through functions that are not between any more."""
        place = self.place.children().get(function)
        if place is not None:
            return place
        if self._below is None:
            self._below = self._beneath_what_is_missed()
        paths = self._below.get(function)
        return None if paths is None else self.place.tree.place(paths)

    def _beneath_what_is_missed(self) -> dict[int, list[int]]:
        """Return, by function, the nearest paths below the callees that are called no more, or less often."""
        found: dict[int, list[int]] = {}
        missed = (place for function, place in self.place.children().items() if self.misses(function))
        level = list(islice((path for place in missed for path in place.paths), _BROADER + 1))
        searched = 0
        while level and searched < _DEEPER and len(level) <= _BROADER:
            searched += len(level)
            callees = self.place.tree.callees_of(level)
            found = callees | found
            level = [path for paths in callees.values() for path in paths]
        return found


class _Weighing:
    """Goes through the candidate's paths from callers to callees."""

    def __init__(self, tree: _Tree, candidate: PythonProfile, ids: Sequence[int]) -> None:
        self.sums = Sums()
        self._tree, self._paths = tree, candidate.paths
        self._ids = [ids[path.function] for path in candidate.paths]
        self._callees = _callees(candidate)
        self._outermost = set(candidate.outermost())
        self._top = self._held(TOP, TOP, tree.top, candidate.native, (1, 1))

    def go(self) -> None:
        """Hold each path against what the base predicts."""
        frames: list[_Frame] = []
        for index, path in enumerate(self._paths):
            function = self._ids[index]
            caller = self._top if path.parent == TOP else frames[path.parent]
            place, ratio = self._predicted(caller, index)
            if place is None:
                self.sums.called[caller.function] += path.ir
                frames.append(caller)
                continue
            if place.calls and path.calls:  # else it was entered before counting began
                ratio = path.calls, place.calls
            self.sums.called[caller.function] += _scaled(place.inclusive, ratio)
            frames.append(self._held(index, function, place, path.ir, ratio))

    def _predicted(self, caller: _Frame, index: int) -> tuple[_Place | None, _Ratio]:
        """Return what predicts a path, and how often if its calls do not tell; no place if it works in its caller's name."""
        function = self._ids[index]
        if function not in self._tree.functions:
            return None, caller.ratio
        place = caller.expected(function)
        if place is not None:
            return place, caller.ratio
        calls = self._calls(index)
        if any(map(caller.misses, calls)):  # it was put between the caller and what that called before
            for callee, number in calls.items():
                caller.calls[callee] = caller.calls.get(callee, 0) + number
            return None, caller.ratio
        return self._tree.anywhere(function, outermost=index in self._outermost), (0, 1)

    def _calls(self, index: int) -> dict[int, int]:
        """Return the functions that a path calls, itself or through new ones, and how often."""
        found = defaultdict[int, int](int)
        waiting = [index]
        while waiting:
            for callee in self._callees[waiting.pop()]:
                if self._ids[callee] in self._tree.functions:
                    found[self._ids[callee]] += self._paths[callee].calls
                else:
                    waiting.append(callee)
        return found

    def _held(self, index: int, function: int, place: _Place, ir: int, ratio: _Ratio) -> _Frame:
        """Blame a function for its own code, and give it credit for what it was predicted to call."""
        calls = sum(_scaled(callee.inclusive, ratio) for callee in place.children().values())
        self.sums.own[function] += ir - (_scaled(place.inclusive, ratio) - calls)
        self.sums.called[function] -= calls
        return _Frame(function, place, ratio, self._calls(index))


def weigh(base: PythonProfile, candidate: PythonProfile, base_ids: Sequence[int], candidate_ids: Sequence[int]) -> Sums:
    """Go through the candidate's paths from callers to callees, and hold each against what the base predicts."""
    weighing = _Weighing(_Tree(base, base_ids), candidate, candidate_ids)
    weighing.go()
    return weighing.sums


def _callees(profile: PythonProfile) -> dict[int, list[int]]:
    """Return the paths below each path, and below TOP."""
    found = defaultdict[int, list[int]](list)
    for index, path in enumerate(profile.paths):
        found[path.parent].append(index)
    return found


def _scaled(number: int, ratio: _Ratio) -> int:
    """Return the whole number nearest to number * ratio; the ratio is not negative."""
    numerator, denominator = ratio
    return (2 * number * numerator + denominator) // (2 * denominator)
