"""From the parts that Callgrind wrote at the marks of regions to what each region cost, the marks' own cost taken off.

The other side is `region.marks` (and cg_bench.h): what follows a mark in the parts of a process belongs to it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.model.metrics import EVENTS, Profile, merge_profiles, without
from cachegrind_bench.model.result import ProcessCost
from cachegrind_bench.valgrind.callgrind_file import parse_callgrind
from cachegrind_bench.valgrind.options import Tool
from cachegrind_bench.valgrind.out_format import decode
from cachegrind_bench.valgrind.processes import LAST, Accounts, in_order, named, out_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cachegrind_bench.hermetic.launch import Outcome
    from cachegrind_bench.valgrind.callgrind_file import CallgrindPart
    from cachegrind_bench.valgrind.processes import OutPath

_MARK = "Client Request: cg-bench:"
_REGION, EMPTY = "region:", "empty:"
_TOGGLER = "cg_bench_toggle_region"  # of cg_bench.h; Python's is code without a name, and the mark has its address
_NOTHING = Profile(events=EVENTS, functions=())


class Triggered(Protocol):
    """A part, and why it was written."""

    @property
    def trigger(self) -> str:
        """What Callgrind says."""
        ...


Part = TypeVar("Part", bound=Triggered)


@dataclass(slots=True)
class _Marked:
    """The parts of one process image that belong to one mark."""

    parts: Sequence[CallgrindPart]

    def profile(self) -> Profile:
        return merge_profiles([_NOTHING, *(in_order(named(part)) for part in self.parts)])

    def cost_of(self, toggler: str) -> int:
        """Return the instructions that were executed in the code of the marks themselves."""
        rows = (row for part in self.parts for row in _instructions(part) if _is_toggler(row[0], toggler))
        return sum(ir for _name, ir in rows)


def _instructions(part: CallgrindPart) -> list[tuple[str, int]]:
    """Return the raw name and the Ir of each row of a part."""
    place = part.events.index("Ir")
    return [(row.name, row.counts[place]) for row in part.profile.functions]


def _is_toggler(name: str, toggler: str) -> bool:
    if toggler.startswith("0x"):
        return name.startswith("0x") and name.removeprefix("0x").isalnum() and int(name, 16) == int(toggler, 16)
    return name == toggler


def region_accounts(out: Path, outcome: Outcome, command: Sequence[str]) -> dict[str, Accounts]:
    """Read all parts in this directory, and return what each region cost in all processes that entered it, by its name.

    MeasurementError where the counts of a region are not those of whole entries.
    """
    profiles: defaultdict[str, defaultdict[str, list[Profile]]] = defaultdict(lambda: defaultdict(list))
    calibration = _Calibration(_TOGGLER, _NOTHING, 1)
    files = sorted(out_files(Tool.CALLGRIND, out, outcome.images), key=_process)
    killed: list[str] = []
    for _image, group in groupby(files, key=_process):
        paths = list(group)
        parts = sorted((part for found in paths for part in parse_callgrind(found.path)), key=_number)
        executable = paths[-1].executable(parts[-1].command_line, command)
        marked, toggler = by_mark(parts)
        # A process that was forked inside of a region has no calibration of its own: its parent's holds for it.
        if EMPTY in marked:
            empty = _Marked(marked[EMPTY])
            calibration = _Calibration(toggler, empty.profile(), empty.cost_of(toggler))
        for name, region in regions_of(marked).items():
            profiles[name][executable].append(calibration.without_marks(_Marked(region), name))
        replaced = paths[-1].image is not None and paths[-1].image.replaced
        entered = any(part.trigger.startswith(_MARK + _REGION) for part in parts)
        if entered and not replaced and parts[-1].trigger != LAST:
            killed.append(f"a process of {executable} was killed, and its counts since its last mark are lost")
    doubts = [*_doubts(outcome), *killed]
    return {name: _accounts(by_program, doubts) for name, by_program in sorted(profiles.items())}


class _Calibration(msgspec.Struct, frozen=True):
    """What an empty region costs: in all, and in the code of the marks (its name, and its instructions)."""

    toggler: str
    empty: Profile
    once: int

    def without_marks(self, region: _Marked, name: str) -> Profile:
        entries, rest = divmod(region.cost_of(self.toggler), self.once) if self.once else (0, 1)
        if rest:
            raise MeasurementError(
                f"region {name!r} has counts that its marks do not explain",
                hint="it was entered or left in a way that Valgrind could not follow, as by longjmp or a killed thread",
            )
        return without(region.profile(), self.empty, entries)


def _accounts(by_program: Mapping[str, Sequence[Profile]], doubts: Sequence[str]) -> Accounts:
    merged = {program: merge_profiles(profiles) for program, profiles in by_program.items()}
    processes = [ProcessCost(executable=program, counts=profile.counts()) for program, profile in merged.items()]
    return Accounts(
        profile=merge_profiles(list(merged.values())),
        processes=tuple(sorted(processes, key=lambda process: (-process.counts.Ir, process.executable))),
        doubts=tuple(doubts),
        split_needed=False,
    )


def _doubts(outcome: Outcome) -> list[str]:
    """Name what may be missing: a region counts the thread that entered it."""
    threads = sum(image.threads for image in outcome.images or ())
    found: list[str] = []
    if threads:
        found.append(
            f"the program started {threads} thread(s): a region counts only what the thread that entered it did"
        )
    if outcome.leftover:
        found.append(f"{outcome.leftover} process(es) were killed after the command had ended; their counts are lost")
    return found


def _process(found: OutPath) -> tuple[int, int]:
    return found.pid, -1 if found.index is None else found.index


def _number(part: CallgrindPart) -> int:
    return part.part


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
    return {_decoded(mark): parts for mark, parts in marked.items() if mark.startswith(_REGION)}


def _decoded(mark: str) -> str:
    return decode(unquote_to_bytes(os.fsencode(mark.removeprefix(_REGION))))
