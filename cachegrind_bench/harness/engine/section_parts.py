"""From the parts that Callgrind wrote where a framework starts and stops its clock to what its iterations cost."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from operator import add, attrgetter, sub
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.harness.engine.loop import Sections, triggers
from cachegrind_bench.model.call_graph import every, of_system
from cachegrind_bench.model.metrics import FunctionCost, LineCost, Profile
from cachegrind_bench.model.result import PER_ITERATIONS, ProcessCost
from cachegrind_bench.valgrind.callgrind_file import parse_callgrind
from cachegrind_bench.valgrind.code_log import read_code
from cachegrind_bench.valgrind.options import Tool
from cachegrind_bench.valgrind.processes import Accounts, OutPath, accounts_of, in_order, named, out_files
from cachegrind_bench.valgrind.python_contexts import PartHead, part_head

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.hermetic.launch import Outcome
    from cachegrind_bench.model.call_graph import CallGraph


class SectionAccounts(NamedTuple):
    """What this number of sections cost, and what is to be subtracted of that."""

    accounts: Accounts
    number: int
    before: Accounts | None


def section_accounts(
    out: Path,
    outcome: Outcome,
    command: Sequence[str],
    sections: Sections,
    *,
    lines: bool = False,
    calls: bool = False,
    child: int | None = None,
) -> SectionAccounts:
    """Read the parts in this directory that belong to sections, with their source `lines` if asked.

    With `calls` they have all calls, else those of functions of the system. `child` is the only process that counts.

    MeasurementError if no part belongs to a section, or they are not in their order.
    """
    counted, before = _Sum(), _Sum()
    number, order = 0, ""
    written = (file for file in out_files(Tool.CALLGRIND, out, outcome.images) if child in (None, file.pid))
    for _, group in groupby(sorted(written, key=_process), key=_process):
        files = list(group)
        heads = sorted((part_head(file.path) for file in files), key=lambda head: head.part)
        other = sections.other
        if other is not None and _begins(other, heads) and not _begins(sections, heads):  # no process that it started
            sections = other
        found = sections_of(heads, sections)
        number, order = number + len(found.sections), order + found.order
        code = read_code(out, files[0].pid)
        for into, heads_of in ((counted, found.sections), (before, found.before if sections.differs else ())):
            for head in chain.from_iterable(heads_of):
                for part in parse_callgrind(head.path, lines=lines, calls=every if calls else of_system, code=code):
                    into.graphs += [] if part.calls is None else [part.calls]
                    into.profiles[files[0].executable(part.command_line, command)].append(in_order(named(part)))
    if not number or not re.fullmatch(sections.order or ".*", order):
        raise MeasurementError(
            f"no iterations could be counted: the benchmark's clock was {'not seen' if not order else 'read in an unknown way'}",
            hint=sections.odd if order else sections.unseen,
        )
    less = accounts_of(before.profiles, (), calls=before.graphs) if before.profiles else None
    return SectionAccounts(accounts_of(counted.profiles, (), calls=counted.graphs), number, less)


class _Sum:
    """The costs of parts, by executables, and their calls."""

    def __init__(self) -> None:
        self.profiles: defaultdict[str, list[Profile]] = defaultdict(list)
        self.graphs: list[CallGraph] = []


class SectionParts(msgspec.Struct, kw_only=True):
    """The parts of each section that counts, and of those `before` the last reset, and what happened, by first letters."""

    sections: list[list[PartHead]] = msgspec.field(default_factory=list[list[PartHead]])
    before: list[list[PartHead]] = msgspec.field(default_factory=list[list[PartHead]])
    order: str = ""


def sections_of(heads: Iterable[PartHead], sections: Sections) -> SectionParts:
    """Return the parts of one process that belong to sections, given in their order; none if they cannot be shared out."""
    places = {name: triggers(getattr(sections, name)) for name in ("begin", "end", "finish", "reset", "settle")}
    found, finished = SectionParts(), False
    current: list[PartHead] | None = None  # what belongs to the section that has begun
    settled = True
    for head in heads:
        if current is not None:
            current.append(head)
        events = {name for name, known in places.items() if head.trigger in known}
        found.order += "".join(sorted(name[0] for name in events))
        if "reset" in events:
            found.before, found.sections, finished = found.sections, [], False
        if "end" in events and current is not None:
            found.sections.append(current)
            current = None
        if "begin" in events and not finished:
            current, settled = [], False
        elif "settle" in events and current is not None and not settled:
            current, settled = [], True
        if "finish" in events:
            current, finished = None, True
    place, shares = sections.share
    each, rest = divmod(len(found.sections), shares)
    found.sections = [] if rest else found.sections[place * each : (place + 1) * each][sections.skip :]
    return found


def _begins(sections: Sections, heads: Iterable[PartHead]) -> bool:
    return not {head.trigger for head in heads}.isdisjoint(triggers(sections.begin))


def _process(file: OutPath) -> tuple[int, int]:
    return file.pid, -1 if file.index is None else file.index


def scaled(accounts: Accounts, iterations: int) -> Accounts:
    """Return what `PER_ITERATIONS` cost, from what this number did; exact where it divides that."""

    def share(counts: Iterable[int]) -> tuple[int, ...]:
        return tuple(count * PER_ITERATIONS // iterations for count in counts)

    whole = accounts.profile
    lines: list[LineCost] = []
    for _, rows in groupby(whole.lines, key=attrgetter("file", "name")):
        before = (0,) * len(whole.events)
        for row in rows:  # those of a function add up to it, whatever is rounded
            after = tuple(map(add, before, row.counts))
            lines.append(LineCost(row.file, row.name, row.line, tuple(map(sub, share(after), share(before)))))
            before = after
    profile = Profile(
        events=whole.events,
        functions=tuple(FunctionCost(row.file, row.name, share(row.counts)) for row in whole.functions),
        lines=tuple(lines),
    )
    total = profile.counts()
    (first, *_others) = accounts.processes
    processes = (ProcessCost(executable=first.executable, counts=total),)
    calls = accounts.calls and accounts.calls.scaled(PER_ITERATIONS, iterations)
    return replace(accounts, profile=profile, processes=processes, calls=calls)
