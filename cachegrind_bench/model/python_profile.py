"""What each Python function of a program cost, call path by call path, in instructions (Ir).

Values only: how they are counted is in `valgrind.python_contexts`, how they are written in `codec`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

TOP = -1  # the parent of what native code called
NATIVE = "native code not under any Python function"


class PythonFunction(msgspec.Struct, frozen=True, order=True):
    """A function as Python names it: `name` is its qualified name, `line` the first of its definition, 0 if unknown.

    `file` is relative to the repository, outside of one to the working directory, where it lies below that.
    """

    file: str
    name: str
    line: int

    @property
    def place(self) -> str:
        """Where it is, as `src/pkg/rows.py:42`."""
        return f"{self.file}:{self.line}" if self.line else self.file


class PythonPath(msgspec.Struct, frozen=True):
    """A function on one path of calls: `parent` is the index of its caller's path, TOP if no Python function called it.

    `calls` counts entries (each resumption of a generator or coroutine is one), `ir` the instructions of the function
    itself and of the native code it ran, without the Python functions that it called.
    """

    parent: int
    function: int
    calls: int
    ir: int


class NativePart(msgspec.Struct, frozen=True):
    """A native function that the Python function of a path ran, or that another part did: the index of that `parent`, or TOP.

    `calls` counts those from there, `ir` its instructions with all native code that has no part of its own. They are among
    those of the path.
    """

    path: int
    parent: int
    name: str
    calls: int
    ir: int


class PythonCost(msgspec.Struct, frozen=True, kw_only=True):
    """What one function cost over all its paths. `inclusive` counts recursion once; `ir` is self cost.

    `entries` are the calls that are not within another one of the same function.
    """

    function: PythonFunction
    calls: int
    ir: int
    inclusive: int
    entries: int = 0


class PythonProfile(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A tree of paths, parents before children, and the `total` that it explains, in Ir.

    What is left of the total is `native`: code not under any Python function. `cut` is set where some paths were deeper
    than could be followed: their self costs and calls are exact, and what they cost their outer callers is missing. `parts`
    say, as far as that was recorded, which native functions ran on which path, parents before what they called.
    """

    total: int
    functions: tuple[PythonFunction, ...]
    paths: tuple[PythonPath, ...]
    cut: bool = False
    parts: tuple[NativePart, ...] = ()

    @property
    def native(self) -> int:
        """Instructions that were executed under no Python function."""
        return self.total - sum(path.ir for path in self.paths)

    @cached_property
    def children(self) -> Mapping[int, Sequence[int]]:
        """The paths that each path calls, in their order; TOP has those that native code calls."""
        found = defaultdict[int, list[int]](list)
        for index, path in enumerate(self.paths):
            found[path.parent].append(index)
        return found

    @cached_property
    def inclusive(self) -> tuple[int, ...]:
        """What each path cost with everything below it, in the order of `paths`."""
        sums = [path.ir for path in self.paths]
        for index in range(len(sums) - 1, -1, -1):
            parent = self.paths[index].parent
            if parent != TOP:
                sums[parent] += sums[index]
        return tuple(sums)

    def costs(self) -> tuple[PythonCost, ...]:
        """Return the functions with what they cost, the dearest by itself first."""
        calls, own, inclusive, entries = (defaultdict[int, int](int) for _ in range(4))
        for path in self.paths:
            calls[path.function] += path.calls
            own[path.function] += path.ir
        for index in self.outermost():
            inclusive[self.paths[index].function] += self.inclusive[index]
            entries[self.paths[index].function] += self.paths[index].calls
        found = (
            PythonCost(
                function=self.functions[key],
                calls=calls[key],
                ir=own[key],
                inclusive=inclusive[key],
                entries=entries[key],
            )
            for key in calls
        )
        return tuple(sorted(found, key=lambda cost: (-cost.ir, -cost.inclusive, cost.function)))

    def outermost(self) -> Iterator[int]:
        """Go through the paths whose function is not among their callers. Linear, however deep they are."""
        running = defaultdict[int, int](int)  # how often each function is among the callers
        waiting = [*self.children[TOP]]
        while waiting:
            index = waiting.pop()
            if index < 0:  # everything below was seen
                running[self.paths[~index].function] -= 1
                continue
            function = self.paths[index].function
            if not running[function]:
                yield index
            running[function] += 1
            waiting += [~index, *self.children[index]]


class PythonRow(NamedTuple):
    """A path while a profile is being made: `parent` is the place of an earlier row, or TOP."""

    parent: int
    function: PythonFunction
    calls: int
    ir: int


def profile_of(rows: Sequence[PythonRow], *, total: int, cut: bool, parts: Sequence[NativePart] = ()) -> PythonProfile:
    """Return the profile of these paths; each comes after its parent. Paths of `parts` are rows, which have their instructions.

    Rows of one path are added up, paths without any cost left out, and the rest put in the order of files and names: it
    does not matter in which order they were found.
    """
    places: dict[tuple[int, PythonFunction], int] = {}
    own: list[list[int]] = []  # calls and Ir
    moved: list[int] = []
    for row in rows:
        parent = TOP if row.parent == TOP else moved[row.parent]
        place = places.setdefault((parent, row.function), len(own))
        if place == len(own):
            own.append([0, 0])
        moved.append(place)
        own[place][0] += row.calls
        own[place][1] += row.ir
    children: defaultdict[int, list[tuple[PythonFunction, int]]] = defaultdict(list)
    alive = [any(numbers) for numbers in own]
    for (parent, function), place in reversed(places.items()):
        if alive[place]:
            children[parent].append((function, place))
            if parent != TOP:
                alive[parent] = True
    functions = {
        function: index for index, function in enumerate(sorted({key[1] for key in places if alive[places[key]]}))
    }
    paths: list[PythonPath] = []
    found: dict[int, int] = {}  # paths by their places
    waiting = [(TOP, function, place) for function, place in sorted(children[TOP], reverse=True)]
    while waiting:
        parent, function, place = waiting.pop()
        paths.append(PythonPath(parent, functions[function], *own[place]))
        here = found[place] = len(paths) - 1
        waiting += [(here, inner, below) for inner, below in sorted(children[place], reverse=True)]
    below = tuple(_parts_on(parts, [found.get(place, TOP) for place in moved]))
    return PythonProfile(total=total, functions=tuple(functions), paths=tuple(paths), cut=cut, parts=below)


def _parts_on(parts: Sequence[NativePart], moved: Sequence[int]) -> Iterator[NativePart]:
    """Yield the parts that cost anything with those below them, on the paths that their rows became, in the order of their names."""
    below = defaultdict[tuple[int, int], list[int]](list)
    costs = [part.ir for part in parts]
    for index in range(len(parts) - 1, -1, -1):
        part = parts[index]
        below[moved[part.path] if part.parent == TOP else -1, part.parent].append(index)
        if part.parent != TOP:
            costs[part.parent] += costs[index]
    count = 0
    waiting = [
        (index, TOP) for key in sorted(below, reverse=True) if key[1] == TOP for index in _by_name(below[key], parts)
    ]
    while waiting:
        index, parent = waiting.pop()
        part = parts[index]
        if costs[index]:
            yield NativePart(moved[part.path], parent, part.name, part.calls, part.ir)
            waiting += [(inner, count) for inner in _by_name(below.get((-1, index), []), parts)]
            count += 1


def _by_name(indexes: Sequence[int], parts: Sequence[NativePart]) -> list[int]:
    return sorted(indexes, key=lambda index: parts[index].name, reverse=True)
