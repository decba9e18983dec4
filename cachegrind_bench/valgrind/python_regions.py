"""What each path of Python calls cost inside of regions, without what the marks of the regions cost.

Knows the parts that Callgrind wrote at marks, and the functions of the harness (`region`): a `with` calls its `__enter__`,
and that `Marks.enter`, which turns the collection on. Must not know where files and maps come from.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.model.python_profile import TOP, PythonRow, profile_of
from cachegrind_bench.valgrind.python_contexts import PathReader, part_head
from cachegrind_bench.valgrind.region_parts import EMPTY, by_mark, regions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cachegrind_bench.model.python_profile import PythonFunction, PythonProfile
    from cachegrind_bench.valgrind.perf_map import Trampolines
    from cachegrind_bench.valgrind.processes import OutPath
    from cachegrind_bench.valgrind.python_contexts import PartHead

_ENTER = "Marks.enter"


class _Empty(msgspec.Struct, frozen=True):
    """What an empty region costs, in Ir: in all, and in the function that holds its `with`."""

    total: int = 0
    around: int = 0


@dataclass(slots=True)
class _Found:
    """What was read of one region so far."""

    rows: list[PythonRow] = field(default_factory=list[PythonRow])
    total: int = 0


class RegionReader:
    """The paths of each region, which grow with each process."""

    def __init__(self, *, depth: int | None = None) -> None:
        self.cut = False
        self._depth = depth
        self._empty = _Empty()
        self._found: defaultdict[str, _Found] = defaultdict(_Found)

    def profiles(self) -> dict[str, PythonProfile]:
        """Return what was read so far, by the names of the regions."""
        return {
            name: profile_of(found.rows, total=max(found.total, sum(row.ir for row in found.rows)), cut=self.cut)
            for name, found in sorted(self._found.items())
        }

    def read_all(self, files: Iterable[OutPath], trampolines: Callable[[int], Trampolines]) -> None:
        """Add the out files of all processes of an execution, each with the trampolines of its own."""
        for (pid, _), group in groupby(sorted(files, key=_process), key=_process):
            heads = [part_head(file.path) for file in group]
            self._read(sorted(heads, key=lambda head: head.part), trampolines(pid))

    def _read(self, heads: list[PartHead], trampolines: Trampolines) -> None:
        marked, toggler = by_mark(heads)
        counter = int(toggler, 16) if toggler.startswith("0x") else -1  # that of a C program has no address

        def paths(parts: Iterable[PartHead]) -> PythonProfile:
            reader = PathReader(depth=self._depth)
            for part in parts:
                reader.read(part.path, trampolines, counter)
            self.cut = self.cut or reader.cut
            return reader.profile()

        # A process that was forked inside of a region has no calibration of its own: its parent's holds for it.
        if EMPTY in marked:
            empty = paths(marked[EMPTY])
            self._empty = _Empty(empty.total, sum(empty.paths[index].ir for index, _ in _entries(empty)))
        for name, parts in regions_of(marked).items():
            self._add(self._found[name], paths(parts))

    def _add(self, found: _Found, profile: PythonProfile) -> None:
        """Add the paths of a region without those of the harness, and without what the marks cost their callers."""
        own = [path.ir for path in profile.paths]
        times = 0
        for index, entries in _entries(profile):
            own[index] = max(0, own[index] - entries * self._empty.around)
            times += entries
        found.total += profile.total - times * self._empty.total
        places: list[int] = []
        for ir, path in zip(own, profile.paths, strict=True):
            parent = TOP if path.parent == TOP else places[path.parent]
            if is_harness(profile.functions[path.function]):
                places.append(parent)
            else:
                places.append(len(found.rows))
                found.rows.append(PythonRow(parent, profile.functions[path.function], path.calls, ir))


def is_harness(function: PythonFunction, package: str = "region") -> bool:
    """Tell whether a function is our own, of this package (else of the marks), and so no part of what is measured."""
    return ("cachegrind_bench", package) in pairwise(PurePath(function.file).parts[:-1])


def _entries(profile: PythonProfile) -> list[tuple[int, int]]:
    """Return the paths that entered the region, those with its `with`, and how often each did."""
    found: list[tuple[int, int]] = []
    for path in profile.paths:
        function = profile.functions[path.function]
        above = TOP if path.parent == TOP else profile.paths[path.parent].parent
        if path.calls and function.name == _ENTER and is_harness(function) and above != TOP:
            found.append((above, path.calls))
    return found


def _process(file: OutPath) -> tuple[int, int]:
    return file.pid, -1 if file.index is None else file.index
