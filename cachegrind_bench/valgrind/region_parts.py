"""From the parts that Callgrind wrote at the marks of regions to what each region cost, the marks' own cost taken off.

The other side is `region.marks` (and cg_bench.h): what follows a mark in the parts of a process belongs to it. In Python, a
`with` calls the `__enter__` of the region, and that `Marks.enter`, which turns the collection on.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.model.call_graph import NO_CALLS, CallGraph, every, graph_without, merge_graphs, of_system
from cachegrind_bench.model.metrics import EVENTS, Profile, merge_profiles, without
from cachegrind_bench.model.python_profile import TOP, PythonFunction, PythonProfile, PythonRow, profile_of
from cachegrind_bench.valgrind.callgrind_file import CallgrindPart, parse_callgrind
from cachegrind_bench.valgrind.options import Tool
from cachegrind_bench.valgrind.out_format import decode
from cachegrind_bench.valgrind.processes import LAST, Accounts, OutPath, accounts_of, in_order, named, out_files
from cachegrind_bench.valgrind.python_contexts import PartHead, PathReader, part_head

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.launch import Outcome
    from cachegrind_bench.valgrind.perf_map import Trampolines

_MARK = "Client Request: cg-bench:"
_REGION, EMPTY = "region:", "empty:"
_TOGGLER = "cg_bench_toggle_region"  # of cg_bench.h; Python's is code without a name, and the mark has its address
_NOTHING = Profile(events=EVENTS, functions=())


Part = TypeVar("Part", "CallgrindPart", "PartHead")


def _profile(parts: Sequence[CallgrindPart]) -> Profile:
    return merge_profiles([in_order(named(part)) for part in parts] or [_NOTHING])


def _graph(parts: Sequence[CallgrindPart]) -> CallGraph:
    return merge_graphs(part.calls for part in parts if part.calls is not None)


def _cost_of_marks(parts: Sequence[CallgrindPart], toggler: str) -> int:
    """Return the instructions that were executed in the code of the marks themselves."""
    rows = ((row, part.events.index("Ir")) for part in parts for row in part.profile.functions)
    return sum(row.counts[place] for row, place in rows if _is_toggler(row.name, toggler))


def _is_toggler(name: str, toggler: str) -> bool:
    if toggler.startswith("0x"):
        return name.startswith("0x") and name.removeprefix("0x").isalnum() and int(name, 16) == int(toggler, 16)
    return name == toggler


def region_accounts(out: Path, outcome: Outcome, command: Sequence[str], *, calls: bool = False) -> dict[str, Accounts]:
    """Read all parts in this directory, and return what each region cost in all processes that entered it, by its name.

    With `calls`, all calls are kept, else those of functions of the system.

    MeasurementError where the counts of a region are not those of whole entries.
    """
    profiles: defaultdict[str, defaultdict[str, list[Profile]]] = defaultdict(lambda: defaultdict(list))
    graphs: defaultdict[str, list[CallGraph]] = defaultdict(list)
    calibration = _Calibration(_TOGGLER, _NOTHING, 1, NO_CALLS)
    files = sorted(out_files(Tool.CALLGRIND, out, outcome.images), key=_process)
    wanted, killed = every if calls else of_system, list[str]()
    for _image, group in groupby(files, key=_process):
        paths = list(group)
        parts = sorted(
            (part for found in paths for part in parse_callgrind(found.path, calls=wanted)), key=attrgetter("part")
        )
        executable = paths[-1].executable(parts[-1].command_line, command)
        # What was forked inside of a region did not enter it, may leave it, and begins with its mark. Until it enters another
        # region, it has no calibration of its own: its parent's holds for it.
        marks = ((number, part.trigger) for number, part in enumerate(parts) if part.trigger.startswith(_MARK))
        own = next((number for number, mark in marks if not mark.startswith(_MARK + _REGION)), len(parts))
        # The part that was written at a mark has the counts before it.
        for some, is_inherited in ((parts[: own + 1], True), (parts[own:], False)):
            marked, toggler = by_mark(some)
            if EMPTY in marked:
                empty = marked[EMPTY]
                calibration = _Calibration(toggler, _profile(empty), _cost_of_marks(empty, toggler), _graph(empty))
            for name, region in regions_of(marked).items():
                profile, graph = calibration.without_marks(region, name, is_inherited=is_inherited)
                profiles[name][executable].append(profile)
                graphs[name].append(graph)
        replaced = paths[-1].image is not None and paths[-1].image.replaced
        entered = any(part.trigger.startswith(_MARK + _REGION) for part in parts)
        if entered and not replaced and parts[-1].trigger != LAST:
            killed.append(f"a process of {executable} was killed, and its counts since its last mark are lost")
    doubts = [*_doubts(outcome), *killed]
    return {name: accounts_of(by_program, doubts, calls=graphs[name]) for name, by_program in sorted(profiles.items())}


class _Calibration(msgspec.Struct, frozen=True):
    """What an empty region costs: in all, and in the code of the marks (its name, and its instructions); and its calls."""

    toggler: str
    empty: Profile
    once: int
    calls: CallGraph

    def without_marks(
        self, region: Sequence[CallgrindPart], name: str, *, is_inherited: bool
    ) -> tuple[Profile, CallGraph]:
        entries, rest = divmod(_cost_of_marks(region, self.toggler), self.once) if self.once else (0, 1)
        if rest and not is_inherited:
            raise MeasurementError(
                f"region {name!r} has counts that its marks do not explain",
                hint="it was not left, or in a way that Valgrind could not follow, as by longjmp or a killed thread",
            )
        profile = without(_profile(region), self.empty, entries)
        return profile, graph_without(_graph(region), self.calls, entries, profile.counts().Ir)


def _doubts(outcome: Outcome) -> list[str]:
    """Name what may be missing: a region counts the thread that entered it."""
    threads = sum(image.threads for image in outcome.images or ())
    started = f"the program started {threads} thread(s): a region counts only what the thread that entered it did"
    killed = f"{outcome.leftover} process(es) were killed after the command had ended; their counts are lost"
    return [*([started] if threads else ()), *([killed] if outcome.leftover else ())]


def _process(found: OutPath) -> tuple[int, int]:
    return found.pid, -1 if found.index is None else found.index


def by_mark(parts: Sequence[Part]) -> tuple[dict[str, list[Part]], str]:
    """Give each part of a process to the mark before it; also return what the code of the marks is called."""
    marked: dict[str, list[Part]] = {}
    current, toggler = "", _TOGGLER
    for part in parts:
        marked.setdefault(current, []).append(part)
        if part.trigger.startswith(_MARK):
            current = part.trigger.removeprefix(_MARK)
            if current.startswith(EMPTY):
                own = current.removeprefix(EMPTY)
                toggler = own if own.startswith("0x") else _TOGGLER
                current = EMPTY
                marked.pop(current, None)  # a process that forked calibrates again
    return marked, toggler


def regions_of(marked: Mapping[str, list[Part]]) -> dict[str, list[Part]]:
    """Return the parts of the regions among these marks, by their names."""
    found = {mark.removeprefix(_REGION): parts for mark, parts in marked.items() if mark.startswith(_REGION)}
    return {decode(unquote_to_bytes(os.fsencode(name))): parts for name, parts in found.items()}


_ENTER = "Marks.enter"


class RegionReader:
    """The paths of each region, which grow with each process."""

    def __init__(self, *, depth: int | None = None) -> None:
        self.cut = False
        self._depth = depth
        # What an empty region costs, in Ir: in all, and in the function that holds its `with`.
        self._empty, self._around_empty = 0, 0
        self._rows: defaultdict[str, list[PythonRow]] = defaultdict(list)
        self._totals: Counter[str] = Counter()

    def profiles(self) -> dict[str, PythonProfile]:
        """Return what was read so far, by the names of the regions."""
        return {
            name: profile_of(rows, total=max(self._totals[name], sum(row.ir for row in rows)), cut=self.cut)
            for name, rows in sorted(self._rows.items())
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
            self._empty = empty.total
            self._around_empty = sum(empty.paths[index].ir for index, _ in _entries(empty))
        for name, parts in regions_of(marked).items():
            self._add(name, paths(parts))

    def _add(self, name: str, profile: PythonProfile) -> None:
        """Add the paths of a region without those of the harness, and without what the marks cost their callers."""
        own = [path.ir for path in profile.paths]
        times = 0
        for index, entries in _entries(profile):
            own[index] = max(0, own[index] - entries * self._around_empty)
            times += entries
        self._totals[name] += profile.total - times * self._empty
        rows = self._rows[name]
        places: list[int] = []
        for ir, path in zip(own, profile.paths, strict=True):
            parent = TOP if path.parent == TOP else places[path.parent]
            if is_harness(profile.functions[path.function]):
                places.append(parent)
            else:
                places.append(len(rows))
                rows.append(PythonRow(parent, profile.functions[path.function], path.calls, ir))


def is_harness(function: PythonFunction, package: str = "region") -> bool:
    """Return whether a function is our own, of this package (else of the marks), and so no part of what is measured."""
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
