"""Called more often, or costing more in each call: how calls explain the difference of two executions, in exact numbers.

    expected(e)  = what the calls e = (x, y) would cost if each had cost as before: see `usual`
    blame(x)     = self(x) + expected(what x calls) - expected(calls of x)
    own(x)       = self(x) - usual self(x)                                     the part that is for its own code,
    part(x, y)   = expected(x, y) - usual cost(x, y), for the calls of x       and for calling y more or less often

Calls that only one side has are priced as they are there, and never above what was measured: a price of the base for them would be
a guess, as eight calls at the start may be dear ones. The calls that both have cost more or less by what each of them does.

Each call is in the sum of blames once as what its caller expects and once as what its callee was to cost, so that sum is
the difference of the totals, whatever the graphs are. Functions that call each other in a circle are one x: what calls
within it cost contains one another. A new function costs what it costs, which is its caller's doing. What was running
when counting began has no caller. Must not know how any of this is shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, NamedTuple

import msgspec
from msgspec.structs import asdict, replace

from cachegrind_bench.compare.python_blame import scaled, usual
from cachegrind_bench.model.call_graph import Calls, Code
from cachegrind_bench.model.described import Instructions, InstructionsMore, doc
from cachegrind_bench.model.symbols import ALLOCATES, FREES, UNKNOWN, Symbol

Pair = tuple[int, int]  # caller and callee
_NONE = Calls(0, 0)
_MOST_CALLERS = 5
_MOST_SHARES = 100


class Label(msgspec.Struct, frozen=True):
    """A function: its name, and where it is."""

    name: Annotated[Symbol, doc("name, demangled")] = msgspec.field(name="function")
    file: Annotated[str, doc("its source file; empty if unknown")]
    line: Annotated[int, doc("number of its first line; 0 if unknown")]
    object: Annotated[str, doc("the program or library it is in; empty if unknown")]

    @property
    def rank(self) -> tuple[str, str, str, int]:
        """The order of functions that are equal otherwise."""
        return self.object, self.file, self.name, self.line

    @property
    def label(self) -> Label:
        """The function alone, without what is known of its calls."""
        return Label(self.name, self.file, self.line, self.object)

    @property
    def code(self) -> Code:
        """The function of a program that it is."""
        return Code(self.object, self.file, self.name)

    @property
    def place(self) -> str:
        """Where it is, as `src/rows.py:42`; empty if unknown."""
        if self.file in {"", UNKNOWN}:
            return ""
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass
class Side:
    """The graph of one side, its functions as the numbers that they have in the pairing."""

    own: dict[int, int] = field(default_factory=lambda: defaultdict[int, int](int))
    calls: dict[Pair, Calls] = field(default_factory=dict[Pair, Calls])


Sides = tuple[Side, Side, dict[int, Label]]  # and what the numbers are called, rather in the candidate


class Caller(Label, frozen=True, kw_only=True):
    """A caller of a function."""

    base: Annotated[Calls, doc("its calls in the base")]
    candidate: Annotated[Calls, doc("its calls in the candidate")]


class CallDelta(Label, frozen=True, kw_only=True):
    """A function, or several that call each other, with all calls from outside."""

    members: Annotated[int, doc("number of functions that call each other, 1 for one alone")]
    # What was running from the start on is one call. The difference of the costs is `by_calls` and `by_cost`.
    base: Annotated[Calls, doc("its calls in the base, with all they cost")]
    candidate: Annotated[Calls, doc("its calls in the candidate, with all they cost")]
    base_own: Annotated[Instructions, doc("cost of its own code in the base")]
    candidate_own: Annotated[Instructions, doc("cost of its own code in the candidate")]
    by_calls: Annotated[InstructionsMore, doc("part that is for more or fewer calls")]
    by_cost: Annotated[InstructionsMore, doc("part that is for what each call costs")]
    own: Annotated[InstructionsMore, doc("part of the blame that is for its own code")]
    blame: Annotated[InstructionsMore, doc("part of the difference that it is to blame for")]
    callers: Annotated[tuple[Caller, ...], doc("who calls it")]


class Kind(StrEnum):
    """What happened."""

    CALLED = "called"  # it is called more or less often
    OWN = "own"  # each call costs more or less, in the function itself
    INCLUSIVE = "inclusive"  # each call costs more or less, with what it calls


class CallCause(msgspec.Struct, frozen=True, kw_only=True):
    """The one sentence: what happened to the `function`, and the `ir` that this explains. `culprit` is whose code did it.

    `base` and `candidate` are all its calls, with its own cost or (INCLUSIVE) all. `caller` is who calls it more often, or
    (OWN) who called the function of a system library. `members` is how many functions call each other with it, at least 1.
    `whole` are (OWN) its calls with all they cost, on both sides; None within a recursion, where they contain one another.
    Allocating and freeing memory is one thing: called more often from one function, it is named by what allocates.
    """

    kind: Kind
    culprit: Label
    function: Label
    base: Calls
    candidate: Calls
    caller: Caller | None
    members: int
    ir: int
    whole: tuple[Calls, Calls] | None = None


class CallSplit(msgspec.Struct, frozen=True, kw_only=True):
    """The functions that matter, first the one that matters most. Their blames, `rest` and `top` add up to `total`.

    `top` is what was running from the start on, and is new. `shares` are what functions of the rows are to blame for one by one,
    the largest of several: for the cost of their code, and for calls. `way` are the functions from which at least half of the
    difference is called, the innermost first, with how much that is.
    """

    rows: tuple[CallDelta, ...]
    shares: tuple[tuple[Label, int], ...]
    rest: int
    top: int
    total: int
    cause: CallCause | None
    way: tuple[tuple[Label, int], ...]


def split(sides: Sides, *, rows: int, culprit: int | None = None) -> CallSplit:
    """Compare two graphs, by at most this many rows. The cause is that of the `culprit` if one is known already."""
    base, candidate, labels = sides
    found = _Comparison(base, candidate, labels)
    ranked = sorted(found.units, key=lambda unit: (*found.weight(unit), labels[unit.main].rank))
    units = [unit for unit in ranked if found.is_different(unit)][:rows]
    shown = [found.row(unit) for unit in units]
    total = sum(candidate.own.values()) - sum(base.own.values())
    top = sum(unit.deficits[1] for unit in found.units if unit.is_new)
    return CallSplit(
        rows=tuple(shown),
        shares=tuple(share for unit in units for share in found.shares(unit)),
        rest=total - top - sum(row.blame for row in shown),
        top=top,
        total=total,
        cause=found.cause(total, top, culprit),
        way=tuple(found.way(total)),
    )


def costs(side: Side, labels: dict[int, Label]) -> list[CallDelta]:
    """Return the functions of one execution, the dearest by itself first, as if it were compared with itself."""
    found = _Comparison(side, side, labels)
    return [found.row(unit) for unit in sorted(found.units, key=lambda unit: (-unit.own[0], labels[unit.main].rank))]


def user_of(sides: Sides, name: str) -> Label | None:
    """Return the nearest caller, outside system libraries, of their function of this name; None where that is not clear."""
    numbers = (number for number, label in sides[2].items() if label.name == name and label.code.is_system)
    function = next(numbers, None)
    user = None if function is None else _Comparison(*sides).user(function)
    return None if user is None else sides[2][user]


def passes_on(calls: tuple[int, int], times: tuple[int, int]) -> bool:
    """Return whether at least nine tenths of a change in calls come with those of the caller (`times`, on both sides)."""
    if not times[0]:
        return True  # it is new, which is its caller's doing
    expected = scaled(calls[0], (times[1], times[0]))
    return times[0] != times[1] and 10 * abs(calls[1] - expected) <= abs(calls[1] - calls[0])


@dataclass(eq=False)
class _Unit:
    """Functions that call each other, mostly a single one; pairs are base and candidate."""

    members: list[int]
    main: int = -1
    is_new: bool = True
    own: list[int] = field(default_factory=lambda: [0, 0])
    entries: list[int] = field(default_factory=lambda: [0, 0])
    inclusive: list[int] = field(default_factory=lambda: [0, 0])
    # What it cost beyond what the calls of it did: it was running when counting began.
    deficits: list[int] = field(default_factory=lambda: [0, 0])
    into: list[Pair] = field(default_factory=list[Pair])
    out_of: list[Pair] = field(default_factory=list[Pair])

    def usual(self, base: int, candidate: int) -> int:
        return usual(base, candidate, (self.entries[0], self.entries[1]))


class _Part(NamedTuple):
    """A part of a blame: calls of the `function` by the `caller`, or its own cost in calls from anywhere (None)."""

    ir: int
    kind: Kind
    function: int
    caller: int | None


class _Comparison:
    def __init__(self, base: Side, candidate: Side, labels: Mapping[int, Label]) -> None:
        self._sides, self._labels = (base, candidate), labels
        self._pairs = sorted(base.calls.keys() | candidate.calls.keys())
        self._callers = defaultdict[int, list[int]](list)
        for caller, callee in self._pairs:
            self._callers[callee].append(caller)
        self._of = {member: unit for unit in self._made() for member in unit.members}
        self.units = list(dict.fromkeys(self._of.values()))
        known = base.own.keys() | {number for pair in base.calls for number in pair}
        self._known = known
        for pair in self._pairs:
            from_unit, into_unit = (self._of[number] for number in pair)
            if from_unit is not into_unit:
                from_unit.out_of.append(pair)
                into_unit.into.append(pair)
        for unit in self.units:
            self._fill(unit)
        self._expected = {pair: self._expect(pair) for unit in self.units for pair in unit.into}

    def _made(self) -> Iterator[_Unit]:
        numbers = {number for side in self._sides for number in side.own} | {n for pair in self._pairs for n in pair}
        callees = defaultdict[int, list[int]](list)
        for caller, callee in self._pairs:
            callees[caller].append(callee)
        return (_Unit(members) for members in circles(sorted(numbers), callees))

    def _calls(self, side: int, pair: Pair) -> Calls:
        return self._sides[side].calls.get(pair, _NONE)

    def _fill(self, unit: _Unit) -> None:
        unit.is_new = not any(member in self._known for member in unit.members)
        for side in (0, 1):
            unit.own[side] = sum(self._sides[side].own.get(member, 0) for member in unit.members)
            calls = [self._calls(side, pair) for pair in unit.into]
            unit.inclusive[side] = unit.own[side] + sum(self._calls(side, pair).ir for pair in unit.out_of)
            unit.deficits[side] = unit.inclusive[side] - sum(found.ir for found in calls)
            number = sum(found.number for found in calls)
            unit.entries[side] = number or int(unit.inclusive[side] != 0)
        ways: dict[int, int] = defaultdict(int)
        for pair in unit.into:
            ways[pair[1]] += max(self._calls(side, pair).ir for side in (0, 1))
        unit.main = max(unit.members, key=lambda member: (ways[member], self._own(member), -member))

    def _own(self, member: int) -> int:
        return max(side.own.get(member, 0) for side in self._sides)

    def _expect(self, pair: Pair) -> int:
        """Return what these calls of the candidate would have cost in the base."""
        now, then = (self._calls(side, pair) for side in (1, 0))
        if not now.number and not then.number:  # it began before counting did
            return then.ir if pair in self._sides[0].calls else now.ir
        found = usual(then.ir, now.ir, (then.number, now.number))
        more = now.number - then.number
        lost, gained = self._moved_calls(pair[1]) if more > 0 else (_NONE, _NONE)
        if not lost.number:
            return found
        # As many of these calls as others make no more are those, from here: at the price that they had there.
        known = min(lost.number, gained.number)
        own = scaled(found - then.ir, (known, gained.number))
        return min(now.ir, found - own + scaled(scaled(lost.ir, (known, lost.number)), (more, gained.number)))

    def _moved_calls(self, function: int) -> tuple[Calls, Calls]:
        """Return the calls from outside that callers of this function do less often, and those they do more often."""
        lost, gained = _NONE, _NONE
        for pair in self._of[function].into:
            then, now = (self._calls(side, pair) for side in (0, 1))
            if pair[1] == function and now.number != then.number:
                delta = usual(then.ir, now.ir, (then.number, now.number)) - then.ir
                if now.number < then.number:
                    lost = lost.plus(Calls(then.number - now.number, -delta))
                else:
                    gained = gained.plus(Calls(now.number - then.number, delta))
        return lost, gained

    def _blame(self, unit: _Unit) -> int:
        expected = sum(self._expected[pair] for pair in unit.out_of) - sum(self._expected[pair] for pair in unit.into)
        return unit.own[1] + expected - unit.deficits[int(unit.is_new)]

    def weight(self, unit: _Unit) -> tuple[int, int]:
        """Rank it by how much of the difference it has to do with, as what is called more often or first as whose code did it."""
        parts = (abs(self._part(self._of[pair[0]], pair)) for pair in unit.into)
        blame = abs(self._blame(unit))
        return -max(blame, *parts, 0), -blame

    def is_different(self, unit: _Unit) -> bool:
        """Return whether it has anything to do with the difference, and is not only among the callers of what has."""
        moved = self._blame(unit) or unit.inclusive[0] != unit.inclusive[1] or unit.entries[0] != unit.entries[1]
        return bool(moved and any(self.weight(unit)))

    def _part(self, unit: _Unit, pair: Pair) -> int:
        return self._expected[pair] - unit.usual(*(self._calls(side, pair).ir for side in (0, 1)))

    def row(self, unit: _Unit) -> CallDelta:
        """Return the row of a unit."""
        base, candidate = (Calls(unit.entries[side], unit.inclusive[side]) for side in (0, 1))
        sums = dict[int, Caller]()
        for pair in unit.into:
            caller, seen = self._caller(pair), sums.get(pair[0])
            if seen is not None:
                caller = replace(
                    seen, base=seen.base.plus(caller.base), candidate=seen.candidate.plus(caller.candidate)
                )
            sums[pair[0]] = caller
        callers = sorted(
            sums.values(),
            key=lambda caller: (-abs(caller.candidate.number - caller.base.number), caller.rank),
        )
        by_calls = unit.usual(base.ir, candidate.ir) - base.ir
        return CallDelta(
            **asdict(self._labels[unit.main]),
            members=len(unit.members),
            base=base,
            candidate=candidate,
            base_own=unit.own[0],
            candidate_own=unit.own[1],
            by_calls=by_calls,
            by_cost=candidate.ir - base.ir - by_calls,
            own=unit.own[1] - unit.usual(*unit.own),
            blame=self._blame(unit),
            callers=tuple(callers[:_MOST_CALLERS]),
        )

    def shares(self, unit: _Unit) -> Iterator[tuple[Label, int]]:
        """Yield what its functions are to blame for, the largest part first."""
        sums = defaultdict[int, int](int)
        for part in self._traced(unit) if len(unit.members) > 1 else ():
            sums[part.function if part.caller is None else part.caller] += part.ir
        sums[unit.main] += self._blame(unit) - sum(sums.values())  # all of one, and what rounding leaves
        shares = ((self._labels[member], ir) for member, ir in sums.items() if ir)
        yield from sorted(shares, key=lambda share: (-abs(share[1]), share[0].rank))[:_MOST_SHARES]

    def way(self, total: int) -> Iterator[tuple[Label, int]]:
        """Yield what at least half of this difference is called from, the innermost first: each costs more than what it calls."""
        for unit in sorted(self.units, key=lambda unit: (max(unit.inclusive), self._labels[unit.main].rank)):
            part = unit.inclusive[1] - unit.inclusive[0]
            if total and total * total <= 2 * part * total <= 3 * total * total:
                yield self._labels[unit.main], part

    def _caller(self, pair: Pair) -> Caller:
        base, candidate = (self._calls(side, pair) for side in (0, 1))
        return Caller(**asdict(self._labels[pair[0]]), base=base, candidate=candidate)

    def cause(self, total: int, top: int, culprit: int | None) -> CallCause | None:
        """Return what explains most of the difference, or of what this culprit did to it; None if nothing does."""
        sign = (total > 0) - (total < 0)
        if culprit is None:
            unit = max(self.units, key=lambda unit: (self._blame(unit) * sign, -unit.main), default=None)
            if unit is None or self._blame(unit) * sign <= max(top * sign, 0):
                return None
        else:
            unit = self._of[culprit]
        parts = [*self._traced(unit)] if culprit is None else [*self._parts(unit)]
        parts = self._with_allocations(part for part in parts if culprit in {None, part.function, part.caller})
        blame = self._blame(unit)
        best = max(parts, key=lambda part: (part.ir * sign, part.kind is Kind.CALLED, -part.function), default=None)
        # Parts may undo each other, as where a function was inlined: then it is the whole of it that says something.
        if best is None or not 0 < 2 * best.ir * sign <= 3 * blame * sign:
            best = _Part(blame, Kind.INCLUSIVE, unit.main, None)
        return self._cause_of(unit, best) if best.ir * sign > 0 else None

    def _parts(self, unit: _Unit) -> Iterator[_Part]:
        for pair in unit.out_of:
            yield _Part(self._part(unit, pair), Kind.CALLED, pair[1], pair[0])
        for member in unit.members:
            base, candidate = (self._all_calls(side, member) for side in (0, 1))
            of_entries = unit.usual(base.ir, candidate.ir)
            often = usual(base.ir, candidate.ir, (base.number, candidate.number))
            if often != of_entries:  # within a recursion
                yield _Part(often - of_entries, Kind.CALLED, member, self._chief_caller(member))
            yield _Part(candidate.ir - often, Kind.OWN, member, None)

    def _traced(self, unit: _Unit) -> Iterator[_Part]:
        """Yield the parts, those of a circle for more calls where these begin."""
        if len(unit.members) == 1:
            yield from self._parts(unit)
            return
        sums = defaultdict[tuple[Kind, int, int | None], int](int)
        for part in self._parts(unit):
            way = (
                (part.function, part.caller) if part.caller is None else self._origin(unit, part.function, part.caller)
            )
            sums[part.kind, *way] += part.ir
        yield from (_Part(ir, *key) for key, ir in sums.items())

    def _with_allocations(self, parts: Iterable[_Part]) -> list[_Part]:
        """Return the parts with the allocations of a caller, and what it frees, as one."""
        found, chiefs = list[_Part](), dict[int | None, int]()
        for part in sorted(parts, key=lambda part: not ALLOCATES.match(self._labels[part.function].name)):
            name = self._labels[part.function].name
            if part.kind is not Kind.CALLED or not (ALLOCATES.match(name) or FREES.match(name)):
                found.append(part)
            elif part.caller in chiefs:
                chief = found[chiefs[part.caller]]
                found[chiefs[part.caller]] = chief._replace(ir=chief.ir + part.ir)
            else:
                chiefs[part.caller] = len(found)
                found.append(part)
        return found

    def _origin(self, unit: _Unit, function: int, caller: int) -> tuple[int, int]:
        """Return which call of a circle is the first of a chain that leads to this one: in it each only passes on being called more."""
        found, seen = (function, caller), {function}
        while found[1] in unit.members and found[1] not in seen and self._passes_on(*found):
            seen.add(found[1])
            found = found[1], self._chief_caller(found[1])
        return (function, caller) if found[1] in seen else found

    def _passes_on(self, function: int, caller: int) -> bool:
        """Return whether it is called from there more often because the caller is."""
        calls = [self._calls(side, (caller, function)).number for side in (0, 1)]
        times = [self._all_calls(side, caller).number for side in (0, 1)]
        return passes_on((calls[0], calls[1]), (times[0], times[1]))

    def _all_calls(self, side: int, member: int) -> Calls:
        """Return all calls of a function, those within a recursion too, with its own cost."""
        number = sum(self._calls(side, (caller, member)).number for caller in self._callers[member])
        own = self._sides[side].own.get(member, 0)
        return Calls(number or int(own != 0), own)

    def _chief_caller(self, member: int) -> int:
        def more(caller: int) -> int:
            base, candidate = (self._calls(side, (caller, member)).number for side in (0, 1))
            return abs(candidate - base)

        return max(self._callers[member], key=lambda caller: (more(caller), -caller), default=member)

    def _cause_of(self, unit: _Unit, part: _Part) -> CallCause:
        base, candidate = (self._all_calls(side, part.function) for side in (0, 1))
        if part.kind is Kind.INCLUSIVE:
            base, candidate = (Calls(unit.entries[side], unit.inclusive[side]) for side in (0, 1))
        user = self.user(part.function) if part.kind is Kind.OWN else part.caller
        return CallCause(
            kind=part.kind,
            culprit=self._labels[part.function if part.caller is None else part.caller],
            function=self._labels[part.function],
            base=base,
            candidate=candidate,
            caller=None if user is None else self._caller((user, part.function)),
            members=len(self._of[part.function].members),
            ir=part.ir,
            whole=self._whole(unit) if part.kind is Kind.OWN else None,
        )

    def _whole(self, unit: _Unit) -> tuple[Calls, Calls] | None:
        if len(unit.members) > 1 or (unit.main, unit.main) in self._pairs:
            return None
        base, candidate = (Calls(unit.entries[side], unit.inclusive[side]) for side in (0, 1))
        return base, candidate

    def user(self, function: int) -> int | None:
        """Return who called this function of a system library: the nearest one that is not of such, where that is clear."""
        seen, at = {function}, function
        while self._labels[at].code.is_system:
            moved = {caller: self._moved(caller, at) for caller in self._callers[at]}
            most = max(moved, key=lambda caller: (moved[caller], -caller), default=at)
            if most in seen or 2 * moved[most] <= sum(moved.values()):
                return None
            seen.add(most)
            at = most
        return None if at == function else at

    def _moved(self, caller: int, callee: int) -> int:
        base, candidate = (self._calls(side, (caller, callee)).ir for side in (0, 1))
        return abs(candidate - base)


def circles(numbers: Sequence[int], callees: Mapping[int, Sequence[int]]) -> Iterator[list[int]]:
    """Yield the numbers, those from which one comes back to each other together (R. Tarjan, 1972), however deep they are."""
    index, low = dict[int, int](), dict[int, int]()
    stack, waiting = list[int](), set[int]()
    for start in numbers:
        work = [] if start in index else [(start, iter(callees.get(start, ())))]
        if work:
            index[start] = low[start] = len(index)
            stack.append(start)
            waiting.add(start)
        while work:
            at, further = work[-1]
            callee = next((item for item in further if item not in index or item in waiting), None)
            if callee is not None and callee not in index:
                index[callee] = low[callee] = len(index)
                stack.append(callee)
                waiting.add(callee)
                work.append((callee, iter(callees.get(callee, ()))))
            elif callee is not None:
                low[at] = min(low[at], index[callee])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == index[at]:
                    found = [stack.pop()]
                    while found[-1] != at:
                        found.append(stack.pop())
                    waiting.difference_update(found)
                    yield sorted(found)
