"""The call paths of one execution, or of two as one tree: what a flame graph draws.

Those of Python's functions were recorded. Those of a program are put together from its calls: what a function cost is shared
out among its callers by what their calls of it cost, and functions that call each other in a circle are one. Either way, the
own costs of all frames add up to the total. Must not know how any of this is shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from heapq import heappop, heappush
from itertools import count
from operator import add
from typing import NamedTuple, TypeVar

import msgspec

from cachegrind_bench.compare.call_pairs import native_sides, python_labels
from cachegrind_bench.compare.call_split import Label, circles
from cachegrind_bench.compare.pairing import pair_functions
from cachegrind_bench.model.call_graph import CallGraph, Calls
from cachegrind_bench.model.python_profile import TOP, PythonProfile
from cachegrind_bench.model.symbols import Symbol

# What is in a frame that is not a function: everything, code under no function of Python, and narrow paths together.
ALL, OUTSIDE, OTHERS = -1, -2, -3
_NARROWEST = 20_000  # a frame is at least this part of the total
MOST = 12_000  # frames of a graph, so that its page stays near a megabyte
# Calls of frames, far more than any program has on paths that are drawn; a made-up graph may have thousands on each.
_MOST_LOOKED = 1_000_000
_State = TypeVar("_State")  # what a tree needs to find the callees of a frame
_Numbers = tuple[int, ...]  # of base and candidate, or of the only side


class Frame(NamedTuple):
    """A function on one path; `parent` is the index of its caller's frame, -1 for the first, which is ALL.

    `own` is its cost in Ir without what it called, of each side. `merged` is how many paths an OTHERS has.
    """

    parent: int
    function: int
    own: _Numbers
    calls: _Numbers
    merged: int = 0


class Kind(StrEnum):
    """Whose functions the frames are."""

    PYTHON = "Python functions"
    NATIVE = "native functions"
    BOTH = "Python and native functions"


class CallPaths(msgspec.Struct, frozen=True, kw_only=True):
    """The frames, callers before callees and wide callees before narrow ones, and what their functions are called.

    `circles` are how many others call each other with a function, in the same frame; `recorded` is whether the paths are, or only which function called which. `cut`: some lack their outer callers.
    """

    kind: Kind
    frames: tuple[Frame, ...]
    labels: dict[int, Label]
    recorded: bool
    cut: bool = False
    circles: Mapping[int, int] = {}


class _Callee(NamedTuple):
    function: int
    inclusive: _Numbers
    calls: _Numbers
    state: object


def all_paths(
    pythons: Sequence[PythonProfile | None], graphs: Sequence[CallGraph | None], most: int = MOST
) -> Iterator[CallPaths]:
    """Yield the paths of Python's functions, and those of the program's, as far as each side has them."""
    profiles = [profile for profile in pythons if profile is not None]
    if len(profiles) == len(pythons):
        yield python_paths(*profiles, most=most)
    whole = [graph for graph in graphs if graph is not None and graph.is_whole]
    if len(whole) == len(graphs):
        yield native_paths(*whole, most=most)


def python_paths(*profiles: PythonProfile, most: int = MOST) -> CallPaths:
    """Return the paths of Python's functions in one profile, or in two."""
    numbers = pair_functions(profiles[0].functions, profiles[-1].functions)[: len(profiles)]
    sides = [*zip(profiles, numbers, strict=True)]
    labels = python_labels(profiles, numbers)
    natives = _Natives(profiles, first=len(labels))
    labels |= natives.labels

    def callees(state: tuple[bool, list[list[int]]]) -> Iterable[_Callee]:
        is_native, paths = state
        yield from natives.callees(paths, is_native=is_native)
        if is_native:
            return
        found = defaultdict[int, list[list[int]]](lambda: [[] for _ in sides])
        for side, (profile, number) in enumerate(sides):
            for index in (child for path in paths[side] for child in profile.children[path]):
                found[number[profile.paths[index].function]][side].append(index)
        for function, rows in found.items():
            pairs = [*zip(profiles, rows, strict=True)]
            inclusive = tuple(sum(profile.inclusive[index] for index in row) for profile, row in pairs)
            calls = tuple(sum(profile.paths[index].calls for index in row) for profile, row in pairs)
            yield _Callee(function, inclusive, calls, (False, rows))

    start = False, [[TOP] for _ in sides]
    first, *others = _frames(tuple(profile.total for profile in profiles), start, callees, most)
    if any(first.own):
        nothing = (0,) * len(sides)
        others.append(Frame(0, OUTSIDE, first.own, nothing))
        first = first._replace(own=nothing)
    labels[OUTSIDE] = Label(Symbol("native code"), "", 0, "")
    return CallPaths(
        kind=Kind.BOTH if natives.labels else Kind.PYTHON,
        frames=(first, *others),
        labels=labels,
        recorded=True,
        cut=any(profile.cut for profile in profiles),
    )


class _Natives:
    """The native functions that ran on the paths of one profile, or of two: of one name, one function.

    Those that were counted separately on one side only are parts of what ran them: they would look new, or gone.
    """

    def __init__(self, profiles: Sequence[PythonProfile], first: int) -> None:
        self._profiles = profiles
        base, candidate = ({part.name for part in profile.parts} for profile in (profiles[0], profiles[-1]))
        names = sorted(base & candidate)
        self._numbers = {name: first + place for place, name in enumerate(names)}
        self.labels = {number: Label(Symbol(name), "", 0, "native code") for name, number in self._numbers.items()}
        self._below = [defaultdict[tuple[int, int], list[int]](list) for _ in profiles]  # by path, or by part
        self._inclusive = [[part.ir for part in profile.parts] for profile in profiles]
        for profile, below, inclusive in zip(profiles, self._below, self._inclusive, strict=True):
            nearest = list[int]()  # of each, itself or the next caller that is a frame
            callers = list[int]()
            for index, part in enumerate(profile.parts):
                callers.append(TOP if part.parent == TOP else nearest[part.parent])
                nearest.append(index if part.name in self._numbers else callers[index])
            for index, part in reversed([*enumerate(profile.parts)]):
                caller = callers[index]
                if caller != TOP:
                    inclusive[caller] += inclusive[index]
                if nearest[index] == index:
                    below[(part.path, TOP) if caller == TOP else (TOP, caller)].append(index)

    def callees(self, places: list[list[int]], *, is_native: bool) -> Iterator[_Callee]:
        """Yield what these paths, or these native parts, ran."""
        found = defaultdict[int, list[list[int]]](lambda: [[] for _ in places])
        for side, (profile, below) in enumerate(zip(self._profiles, self._below, strict=True)):
            for place in places[side]:
                for index in below.get((TOP, place) if is_native else (place, TOP), ()):
                    found[self._numbers[profile.parts[index].name]][side].append(index)
        for function, rows in found.items():
            sides = [*zip(self._profiles, self._inclusive, rows, strict=True)]
            ir = tuple(sum(inclusive[index] for index in row) for _profile, inclusive, row in sides)
            calls = tuple(sum(profile.parts[index].calls for index in row) for profile, _inclusive, row in sides)
            yield _Callee(function, ir, calls, (True, rows))


def native_paths(*graphs: CallGraph, most: int = MOST) -> CallPaths:
    """Return the paths of a program's functions in one graph of calls, or in two."""
    *both, labels = native_sides(graphs[0], graphs[-1])
    sides = both[: len(graphs)]
    pairs = sorted({pair for side in sides for pair in side.calls})
    below = defaultdict[int, list[int]](list)
    for caller, callee in pairs:
        below[caller].append(callee)
    units = [*circles(sorted(labels), below)]  # callees before their callers
    of = {number: unit for unit, members in enumerate(units) for number in members}
    calls = defaultdict[int, dict[int, list[Calls]]](dict)
    known = [[0 for _ in sides] for _ in units]  # what the calls of each cost
    for caller, callee in pairs:
        here, there = of[caller], of[callee]
        for at, side in enumerate(sides if here != there else ()):
            found = side.calls.get((caller, callee), Calls(0, 0))
            sums = calls[here].setdefault(there, [Calls(0, 0) for _ in sides])
            sums[at] = sums[at].plus(found)
            known[there][at] += found.ir
    inclusive = [[sum(side.own.get(number, 0) for number in members) for side in sides] for members in units]
    began = list[list[int]]()  # what no call explains: it was running when counting began
    for unit in range(len(units)):
        for callee, sums in calls[unit].items():
            for at, found in enumerate(sums):
                # Calls may cost more than their callees are known to.
                share = found.ir * min(inclusive[callee][at], known[callee][at]) // (known[callee][at] or 1)
                sums[at] = Calls(found.number, share)
                inclusive[unit][at] += share
                began[callee][at] -= share
        began.append([*inclusive[unit]])

    def callees(state: tuple[int | None, _Numbers]) -> Iterable[_Callee]:
        unit, cost = state
        if unit is None:
            for number, whole in enumerate(began):
                yield _Callee(number, tuple(whole), tuple(map(int, map(bool, whole))), (number, tuple(whole)))
            return
        for callee, sums in calls[unit].items():
            parts = [*zip(sums, cost, inclusive[unit], strict=True)]
            ir = tuple(found.ir * part // (whole or 1) for found, part, whole in parts)
            yield _Callee(
                callee, ir, tuple(found.number * part // (whole or 1) for found, part, whole in parts), (callee, ir)
            )

    frames = _frames(tuple(sum(side.own.values()) for side in sides), (None, ()), callees, most)
    own = sides[-1].own
    chiefs = [max(members, key=lambda number: (own.get(number, 0), -number)) for members in units]
    return CallPaths(
        kind=Kind.NATIVE,
        frames=tuple(frames),
        labels={unit: labels[chief] for unit, chief in enumerate(chiefs)},
        recorded=False,
        circles={unit: len(members) - 1 for unit, members in enumerate(units) if len(members) > 1},
    )


def _frames(total: _Numbers, start: _State, callees: Callable[[_State], Iterable[_Callee]], most: int) -> list[Frame]:
    """Return the frames of a tree, the widest ones first, at most `most` and those of merged paths."""
    least, order, nothing = max(max(total) // _NARROWEST, 1), count(), (0,) * len(total)
    found, narrow = list[tuple[int, _Callee]](), dict[int, Frame]()

    def merge(parent: int, item: _Callee) -> None:
        known = narrow.get(parent, Frame(parent, OTHERS, nothing, nothing))
        own, calls = _sums(known.own, item.inclusive), _sums(known.calls, item.calls)
        narrow[parent] = known._replace(own=own, calls=calls, merged=known.merged + 1)

    waiting = [(-max(total), next(order), -1, _Callee(ALL, total, nothing, start))]
    looked = 0
    while waiting and len(found) <= most and looked < _MOST_LOOKED:
        _width, _order, parent, item = heappop(waiting)
        place = len(found)
        found.append((parent, item))
        for callee in sorted(callees(item.state), key=lambda callee: callee.function):  # type: ignore[arg-type]
            looked += 1
            if max(callee.inclusive) >= least:
                heappush(waiting, (-max(callee.inclusive), next(order), place, callee))
            elif any(callee.inclusive):
                merge(place, callee)
    for _width, _order, parent, item in waiting:
        merge(parent, item)
    own = [[*item.inclusive] for _parent, item in found]
    for parent, inclusive in (
        *((parent, item.inclusive) for parent, item in found[1:]),
        *((frame.parent, frame.own) for frame in narrow.values()),
    ):
        for side, ir in enumerate(inclusive):
            own[parent][side] -= ir
    frames = [
        Frame(parent, item.function, tuple(ir), item.calls) for (parent, item), ir in zip(found, own, strict=True)
    ]
    return [*frames, *(frame for _parent, frame in sorted(narrow.items()))]


def _sums(one: _Numbers, other: _Numbers) -> _Numbers:
    return tuple(map(add, one, other))
