"""From the out files of a run's processes to one exact profile: who ran what, and whether anything was lost or copied.

A forked child's Cachegrind file begins with a copy of its parent's counts, and an exec throws away what was counted
before it. Callgrind, when it has to write out its counts at the entry of fork and exec functions, keeps both apart.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import FileFormatError, MeasurementError
from cachegrind_bench.model.metrics import (
    EVENTS,
    EVERY_EVENT,
    FunctionCost,
    LineCost,
    Profile,
    merge_profiles,
)
from cachegrind_bench.model.result import ProcessCost
from cachegrind_bench.model.symbols import UNKNOWN
from cachegrind_bench.model.text import printable
from cachegrind_bench.valgrind.options import EXECS, FORKS, OUTER_FORK, THREADS, Tool
from cachegrind_bench.valgrind.out_file import parse_cachegrind
from cachegrind_bench.valgrind.out_format import CUT_HINT, DAMAGED_HINT, UNNAMED

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cachegrind_bench.hermetic.execution import Image
    from cachegrind_bench.hermetic.launch import Outcome
    from cachegrind_bench.model.call_graph import CallGraph
    from cachegrind_bench.valgrind.callgrind_file import CallgrindPart

LAST = "Program termination"
_LAST_BLOCK = (UNKNOWN, "(last block of a thread)")
_AT_ONCE = 50  # profiles that are kept before they are added up
_NAME = re.compile(r"(?:image(?P<image>\d+)\.\d+\.)?out\.(?P<pid>\d+)(?:\.(?P<part>\d+))?")


class Accounts(msgspec.Struct, frozen=True, kw_only=True):
    """What all processes of a run cost together. `doubts` says what was lost or counted twice; empty when exact.

    `split_needed` is set when Cachegrind cannot separate the processes and Callgrind should be used.
    """

    profile: Profile
    processes: tuple[ProcessCost, ...]
    doubts: tuple[str, ...]
    split_needed: bool
    calls: CallGraph | None = None


@dataclass(slots=True)
class _Piece:
    """One out file, or one part of it, and the image it belongs to (None where no image is known)."""

    image: int | None
    pid: int
    trigger: str


def account(
    tool: Tool, out: Path, outcome: Outcome, command: Sequence[str], *, lines: bool = False, calls: bool = False
) -> Accounts:
    """Read all out files in this directory and add them up, with their source lines if asked.

    Callgrind's have calls, those of functions of the system or, with `calls`, all.

    MeasurementError where there is no out file.
    """
    pieces: list[_Piece] = []
    by_executable: dict[str, list[Profile]] = defaultdict(list)
    graphs: list[CallGraph] = []
    for piece, executable, profile, graph in _read(tool, out, outcome, command, lines=lines, calls=calls):
        pieces.append(piece)
        own = by_executable[executable]
        own.append(profile)
        # There may be thousands of processes, whose profiles would not fit into memory all at once.
        if len(own) == _AT_ONCE:
            own[:] = [merge_profiles(own)]
        if graph is not None:
            graphs.append(graph)
            if len(graphs) == _AT_ONCE:
                graphs[:] = [_merged_calls(graphs)]
    if not pieces:
        raise MeasurementError(
            "Valgrind wrote no out file",
            hint="the command may have changed its user (setuid), who may not write there, or have ended without Valgrind's "
            "noticing, or the disk is full",
        )
    doubts = _doubts(tool, pieces, outcome)
    split_needed = tool is Tool.CACHEGRIND and bool(doubts)
    return accounts_of(by_executable, doubts, split_needed=split_needed, calls=graphs)


def accounts_of(
    by_executable: Mapping[str, Sequence[Profile]],
    doubts: Sequence[str],
    *,
    split_needed: bool = False,
    calls: Sequence[CallGraph] = (),
) -> Accounts:
    """Add up the profiles of each executable, and the calls of all."""
    merged = {executable: merge_profiles(profiles) for executable, profiles in by_executable.items()}
    processes = [ProcessCost(executable=executable, counts=profile.counts()) for executable, profile in merged.items()]
    return Accounts(
        profile=merge_profiles(list(merged.values())),
        processes=tuple(sorted(processes, key=lambda process: (-process.counts.Ir, process.executable))),
        doubts=tuple(doubts),
        split_needed=split_needed,
        calls=_all_calls(calls) if calls else None,
    )


def _all_calls(graphs: Iterable[CallGraph]) -> CallGraph:
    from cachegrind_bench.model.call_graph import named_graph

    return named_graph(_merged_calls(graphs))


def _merged_calls(graphs: Iterable[CallGraph]) -> CallGraph:
    from cachegrind_bench.model.call_graph import merge_graphs

    return merge_graphs(graphs)


def _read(
    tool: Tool, out: Path, outcome: Outcome, command: Sequence[str], *, lines: bool, calls: bool
) -> Iterator[tuple[_Piece, str, Profile, CallGraph | None]]:
    """Read the out files one after the other: each part of one, its executable, its profile and its calls.

    One that is cut off is left out for each process that was killed in the end, which was writing it; but not the command's own.
    """
    cut = 0
    for found in out_files(tool, out, outcome.images):
        try:
            read = _read_one(tool, found, command, lines=lines, calls=calls)
        except FileFormatError as error:
            cut += 1
            if (
                outcome.images
                and found.index != 0
                and cut <= outcome.leftover
                and error.hint in {CUT_HINT, DAMAGED_HINT}
            ):
                continue
            raise
        for trigger, profile, command_line, graph in read:
            yield _Piece(found.index, found.pid, trigger), found.executable(command_line, command), profile, graph


def _read_one(
    tool: Tool, found: OutPath, command: Sequence[str], *, lines: bool, calls: bool
) -> list[tuple[str, Profile, str, CallGraph | None]]:
    """Return of each part of an out file its trigger, its profile, the command line in it and its calls."""
    if tool is Tool.CACHEGRIND:
        argv = [os.fsencode(argument) for argument in (found.image.argv if found.image else command)]
        file = parse_cachegrind(found.path, command=argv, lines=lines)
        return [("", in_order(file.profile), file.command_line, None)]
    from cachegrind_bench.model.call_graph import every, of_system
    from cachegrind_bench.valgrind.callgrind_file import parse_callgrind  # one of both parsers is enough
    from cachegrind_bench.valgrind.code_log import read_code

    code = read_code(found.path.parent, found.pid)
    parts = parse_callgrind(found.path, lines=lines, calls=every if calls else of_system, code=code)
    return [
        (part.trigger, in_cachegrinds_terms(part, lines=lines), part.command_line, _whole_calls(part)) for part in parts
    ]


class OutPath(msgspec.Struct, frozen=True, kw_only=True):
    """An out file, its process, and the image that wrote it: its `index` among those of the run, None if unknown."""

    path: Path
    pid: int
    index: int | None
    image: Image | None

    def executable(self, command_line: str, command: Sequence[str]) -> str:
        """Return the program's path, or without its image the first word of the command line in the file."""
        return printable(self.image.path if self.image else "") or _first_word(command_line, command)


def out_files(tool: Tool, out: Path, images: Sequence[Image] | None) -> Iterator[OutPath]:
    """Find the out files in this directory, in the order of their names."""
    last_of = {image.pid: index for index, image in enumerate(images or ())}
    for path in sorted(out.iterdir()):
        match = _NAME.fullmatch(path.name)
        # Callgrind makes its last file at the start; it stays empty if the process does not come to its end.
        if match is None or (tool is Tool.CALLGRIND and not path.stat().st_size):
            continue
        pid = int(match["pid"])
        index = int(match["image"]) if match["image"] else last_of.get(pid)
        yield OutPath(path=path, pid=pid, index=index, image=images[index] if images and index is not None else None)


def in_cachegrinds_terms(part: CallgrindPart, *, lines: bool = False) -> Profile:
    """Return the part's rows in Cachegrind's terms, with a row for what Callgrind counted and booked nowhere.

    Its `totals:` lack the last block of each thread, the one that ends in the exit; its header's `summary:` has it.
    """
    booked_nowhere = Profile(events=part.events, functions=())
    rest = _booked_nowhere(part)
    if rest:
        of_line = (LineCost(*_LAST_BLOCK, 0, rest),) if lines else ()
        booked_nowhere = Profile(events=part.events, functions=(FunctionCost(*_LAST_BLOCK, rest),), lines=of_line)
    return in_order(merge_profiles([named(part), booked_nowhere]))


def _booked_nowhere(part: CallgrindPart) -> tuple[int, ...]:
    rest = tuple(map(int.__sub__, part.header_summary or part.summary, part.summary))
    return rest if min(rest) >= 0 and any(rest) else ()


def _whole_calls(part: CallgrindPart) -> CallGraph | None:
    """Return the calls of the part, with what Callgrind booked nowhere as in its profile."""
    rest = _booked_nowhere(part)
    if part.calls is None or not part.calls.own or not rest:
        return part.calls
    from cachegrind_bench.model.call_graph import CallGraph, Code, merge_graphs

    return merge_graphs([part.calls, CallGraph({Code(UNKNOWN, *_LAST_BLOCK): rest[part.events.index("Ir")]}, {})])


def named(part: CallgrindPart) -> Profile:
    """Return the part's rows, those without a name under the one that Cachegrind gives them: one row for each file."""
    profile = Profile(
        events=part.events,
        functions=tuple(FunctionCost(row.file, _name(row.name), row.counts) for row in part.profile.functions),
        lines=tuple(LineCost(row.file, _name(row.name), row.line, row.counts) for row in part.profile.lines),
    )
    return merge_profiles([profile, Profile(events=part.events, functions=())])  # one row of those that became equal


def _name(name: str) -> str:
    return "???" if UNNAMED.fullmatch(name) else name


def _first_word(command_line: str, command: Sequence[str]) -> str:
    """Return the program of an unquoted command line: ours if it begins so, else the text up to a space."""
    ours = printable(command[0])
    return ours if f"{command_line} ".startswith(f"{ours} ") else command_line.split(" ", maxsplit=1)[0]


def in_order(profile: Profile) -> Profile:
    """Return the profile with the nine events in their usual order (Callgrind has another), and branches after them, if counted.

    Where no caches were simulated, Valgrind counts instructions alone, and all else is 0.
    """
    if profile.events == EVENTS[:1]:
        return _with_zeros(profile)
    if missing := [event for event in EVENTS if event not in profile.events]:
        raise MeasurementError(f"Valgrind's out file has no counts of {missing[0]}", hint=DAMAGED_HINT)
    events = EVERY_EVENT if set(EVERY_EVENT) <= set(profile.events) else EVENTS
    if profile.events == events:
        return profile
    ordered = itemgetter(*(profile.events.index(event) for event in events))
    return Profile(
        events=events,
        functions=tuple(FunctionCost(row.file, row.name, ordered(row.counts)) for row in profile.functions),
        lines=tuple(LineCost(row.file, row.name, row.line, ordered(row.counts)) for row in profile.lines),
    )


def _with_zeros(profile: Profile) -> Profile:
    zeros = (0,) * (len(EVENTS) - 1)
    return Profile(
        events=EVENTS,
        functions=tuple(FunctionCost(row.file, row.name, row.counts + zeros) for row in profile.functions),
        lines=tuple(LineCost(row.file, row.name, row.line, row.counts + zeros) for row in profile.lines),
    )


def _doubts(tool: Tool, pieces: Sequence[_Piece], outcome: Outcome) -> list[str]:
    doubts: list[str] = []
    if outcome.leftover:
        doubts.append(
            f"{outcome.leftover} process(es) still ran {'' if outcome.images is None else 'long '}after the command had "
            "ended; they were killed, and their counts are lost"
        )
    if outcome.images is None:
        if len({piece.pid for piece in pieces}) > 1:
            doubts.append("processes were started, and without seccomp it is not known whether all were counted apart")
        return doubts
    by_image: dict[int | None, list[_Piece]] = defaultdict(list)
    for piece in pieces:
        by_image[piece.image].append(piece)
    for index, image in enumerate(outcome.images):
        doubts += _image_doubts(tool, image, by_image[index])
    unmet = sum(image.forks - image.forked for image in outcome.images)
    if unmet > 0 and not doubts:
        doubts.append(f"{unmet} child process(es) were killed or left no trace, and their counts are lost")
    strangers = {piece.pid for piece in by_image[None]}
    if strangers and tool is Tool.CACHEGRIND:
        doubts.append(f"{len(strangers)} forked process(es) began with a copy of another's counts")
    return doubts


def _image_doubts(tool: Tool, image: Image, own: Sequence[_Piece]) -> list[str]:
    name = image.path or "a program"
    if tool is Tool.CACHEGRIND:
        if image.replaced:
            return [f"what {name} did before it executed another program is lost"]
        return [f"a forked process of {name} began with a copy of its parent's counts"] if image.forked else []
    triggers = [piece.trigger.removeprefix("--dump-before=") for piece in own]
    found: list[str] = []
    if image.replaced:
        if not set(EXECS).intersection(triggers):
            found.append(f"what {name} did before it executed another program is lost")
    elif LAST not in triggers:
        found.append(f"a process of {name} was killed, and the counts since its last fork are lost")
    inner = sum(triggers.count(function) for function in FORKS)
    clones = sum(triggers.count(function) for function in THREADS)
    if max(inner + max(0, clones - image.threads), triggers.count(OUTER_FORK)) < image.forks:
        found.append(f"{name} forked in a way that could not be seen, so counts may be in it twice")
    return found
