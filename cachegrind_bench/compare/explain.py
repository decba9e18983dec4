"""Why one benchmark moved: its functions or files, rows that add up to the difference exactly, and source lines.

Rows of the two builds are matched by what stays the same across rebuilds, and every one of them ends up in exactly
one function. Swapping base and candidate gives the same explanation, negated. Must not know how it is shown.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
from msgspec.structs import replace

from cachegrind_bench.compare.change import Delta
from cachegrind_bench.compare.lines import LineDelta, Moves, line_deltas
from cachegrind_bench.compare.pairing import Source, is_included, pair_sources
from cachegrind_bench.compare.python_blame import PythonBlame, blame
from cachegrind_bench.model.described import doc
from cachegrind_bench.model.metrics import EVENTS, ZERO, Counts, FunctionCost, Profile
from cachegrind_bench.model.python_profile import PythonProfile
from cachegrind_bench.model.symbols import MANGLED, UNKNOWN, Symbol, folded

if TYPE_CHECKING:
    from cachegrind_bench.compare.allocations import Allocations
    from cachegrind_bench.compare.call_split import CallCause, CallSplit, Label, Sides
    from cachegrind_bench.compare.hunks import HunkSplit
    from cachegrind_bench.compare.verdict import Comparison
    from cachegrind_bench.model.call_graph import CallGraph

Key = TypeVar("Key")
_Row = tuple[str, str, tuple[int, ...]]  # file, name and the nine counts
_Both = tuple[list[_Row], list[_Row]]  # rows of base and candidate that are compared as one

LOADER = "ld.so, which loads libraries"
_OF_LOADER = re.compile(r"(?:^|/)(?:elf|ldso|sysdeps/\S*)/(?:dl-|do-rel|rtld|dynlink)[^/]*$")  # of glibc and musl
_MOST_MOVED = 20
_MOST_LINES = 5
_FEWEST_LONELY = 4
_LOCAL = re.compile(r"_GLOBAL__N_|_ZL|L[0-9]")  # anonymous namespaces, and static functions


class FunctionDelta(Delta, frozen=True, kw_only=True):
    """What one function costs on either side.

    `name` is raw and `file` the one to show, both the candidate's where it is there. The keys are the (file, name) pairs
    of the rows that are this function, as the profiles spell them; rows of whole files have none. Code that was inlined
    from elsewhere belongs to it; where none of that differs, the counts are without it.
    """

    name: str
    file: str
    base_keys: tuple[tuple[str, str], ...] = ()
    candidate_keys: tuple[tuple[str, str], ...] = ()


class MovedFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function that costs the same, in another file."""

    name: Annotated[Symbol, doc("name, demangled")] = msgspec.field(name="function")
    base_file: Annotated[str, doc("its file in the base")] = msgspec.field(name="from")
    candidate_file: Annotated[str, doc("its file in the candidate")] = msgspec.field(name="to")


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """All functions whose counts differ, and all files; the deltas of either add up to `total`, candidate minus base."""

    total: Counts
    functions: tuple[FunctionDelta, ...]
    moved: tuple[MovedFunction, ...]
    files: tuple[FunctionDelta, ...] = ()


class Details(msgspec.Struct, frozen=True, kw_only=True):
    """The `rows` that matter most and the `rest` add up to `total`, exactly. `moved` is cut, `moved_count` is not.

    The rows are functions, or (`by_file`) files. `lines` are those that moved most, with their function's name; None where
    they were not asked for, or a profile was recorded without them (`lines_missing`). `blamed_share` is the part that the
    blamed function explains of what decides, 0 where nothing moved, above 1 where others went the other way. `python` is
    None unless both sides have such a profile, and `calls` unless both have recorded them; `python_calls` are those of
    Python's functions, and `user` is who called the blamed function of a system library. `hunks` are those of the change
    between the commits, where both are known, `allocations` are counted by calls. `build_files` are those of the build that changed,
    `only_build_files` where no source file did. `lonely` is set where functions of the base alone, and of the candidate alone, have
    most of the cost: how many these are. Then none is to blame.
    """

    total: Counts
    rows: tuple[FunctionDelta, ...]
    rest: tuple[FunctionDelta, ...]
    blamed: FunctionDelta | None
    blamed_share: Fraction
    moved: tuple[MovedFunction, ...]
    moved_count: int
    lines: tuple[tuple[str, LineDelta], ...] | None
    lines_missing: bool
    by_file: bool
    python: PythonBlame | None = None
    calls: CallSplit | None = None
    python_calls: CallSplit | None = None
    user: Label | None = None
    hunks: HunkSplit | None = None
    allocations: Allocations | None = None
    build_files: tuple[str, ...] = ()
    only_build_files: bool = False
    lonely: tuple[int, int] | None = None

    @property
    def cause(self) -> CallCause | None:
        """What explains most, by calls: of Python's functions where one of them is to blame, else of the program's."""
        if self.lonely is not None:
            return None
        if self.python is not None and self.python.chief is not None:
            return None if self.python_calls is None else self.python_calls.cause
        return None if self.calls is None else self.calls.cause

    @property
    def rest_delta(self) -> Counts:
        """What all of the `rest` adds to the total."""
        return sum((row.delta for row in self.rest), ZERO)


def details(
    base: Profile,
    candidate: Profile,
    comparison: Comparison,
    *,
    rows: int = 10,
    by_file: bool = False,
    lines: bool = False,
    python: tuple[PythonProfile, PythonProfile] | None = None,
    calls: tuple[CallGraph, CallGraph] | None = None,
    moves: Moves = lambda _file: None,
) -> Details:
    """Explain the difference of two profiles by at most this many rows, of two profiles of Python functions, and of calls.

    `moves` says where the lines of a file are now, if that is known.
    """
    weigh = comparison.weigh
    found = explain(base, candidate)
    functions = ranked(found.functions, weigh)
    shown = ranked(found.files, weigh) if by_file else functions
    missing = lines and not (base.lines and candidate.lines)
    lonely = _lonely(base, candidate, found, weigh) if python is None else None
    most, moved = None if lonely else blamed(found, weigh), weigh(found.total)
    blames = None if python is None else blame(*python, rows)
    if blames is not None and blames.total * moved < 0:  # instructions went the other way than what decides
        blames = replace(blames, chief=None)
    split, user, allocated = (None, None, None) if calls is None else _native_calls(*calls, most, moved, rows=rows)
    return Details(
        total=found.total,
        rows=shown[:rows],
        rest=shown[rows:],
        blamed=most,
        blamed_share=Fraction(weigh(most.delta), moved) if most is not None and moved else Fraction(0),
        moved=found.moved[:_MOST_MOVED],
        moved_count=len(found.moved),
        lines=tuple(_lines((base, candidate), functions[:rows], weigh, abs(moved), moves))
        if lines and not missing
        else None,
        lines_missing=missing,
        by_file=by_file,
        python=blames,
        calls=split,
        user=user,
        allocations=allocated,
        lonely=lonely,
        python_calls=None if python is None or blames is None else _python_calls(*python, blames, moved, rows=rows),
    )


def _native_calls(
    base: CallGraph, candidate: CallGraph, most: FunctionDelta | None, moved: int, *, rows: int
) -> tuple[CallSplit | None, Label | None, Allocations | None]:
    """Return what calls say: the difference where all are recorded, and how many are allocations.

    In between is who called the function that moved most, if that is the system's.
    """
    from cachegrind_bench.compare.allocations import allocations
    from cachegrind_bench.compare.call_pairs import native_sides
    from cachegrind_bench.compare.call_split import user_of

    graphs = base, candidate
    whole = all(graph.is_whole for graph in graphs)
    called = {code.name for graph in graphs for pair in graph.calls for code in pair if code.is_system}
    name = most.name if most is not None and most.name in called else None
    if not whole and name is None:
        return None, None, None
    sides = native_sides(*graphs)
    user = None if name is None else user_of(sides, name)
    return (_split(sides, moved, rows=rows), user, allocations(sides)) if whole else (None, user, None)


def _split(sides: Sides, moved: int, *, rows: int, culprit: int | None = None) -> CallSplit:
    from cachegrind_bench.compare.call_split import split

    found = split(sides, rows=rows, culprit=culprit)
    # No cause where instructions went the other way than what decides.
    return replace(found, cause=None) if found.total * moved < 0 else found


def _python_calls(
    base: PythonProfile, candidate: PythonProfile, found: PythonBlame, moved: int, *, rows: int
) -> CallSplit | None:
    if found.chief is None:
        return None
    from cachegrind_bench.compare.call_pairs import python_sides

    sides = python_sides(base, candidate)
    function = found.chief.function
    place = function.file, function.name, function.line
    known = (number for number, label in sides[2].items() if (label.file, label.name, label.line) == place)
    return _split(sides, moved, rows=rows, culprit=next(known))


def _lines(
    profiles: tuple[Profile, Profile],
    rows: Iterable[FunctionDelta],
    weigh: Callable[[Counts], int],
    whole: int,
    moves: Moves,
) -> Iterator[tuple[str, LineDelta]]:
    """Yield the lines of each function that matter: those of at least a hundredth of the whole difference."""

    def place(line: LineDelta) -> tuple[int, int, int]:
        return -abs(weigh(line.delta)), line.candidate_line or 0, line.base_line or 0

    for row in rows:
        found = line_deltas(*profiles, row.base_keys, row.candidate_keys, moves)
        large = (line for line in found if line.base != line.candidate and abs(weigh(line.delta)) * 100 >= whole)
        yield from ((row.name, line) for line in sorted(large, key=place)[:_MOST_LINES])


def explain(base: Profile, candidate: Profile) -> Explanation:
    """Match the functions of two profiles, and return those whose counts differ."""
    whole = ours, theirs = _rows(base), _rows(candidate)
    base_sources, candidate_sources = pair_sources({row[0] for row in ours}, {row[0] for row in theirs})
    by_source = _grouped(whole, lambda row: base_sources[row[0]], lambda row: candidate_sources[row[0]])
    functions, files, moved = list[FunctionDelta](), list[FunctionDelta](), list[MovedFunction]()
    unmatched = defaultdict[str, dict[Source, _Both]](dict)
    for source, found in by_source.items():
        if [row[1:] for row in found[0]] == [row[1:] for row in found[1]]:
            continue  # the usual file: no name in it needs to be demangled
        files += _differing(found, source.shown, name=source.shown)
        for name, both in _grouped(found, _folded_name, _folded_name).items():
            if all(both):
                functions += _differing(both, source.shown)
            else:
                unmatched[name][source] = both
    for name, places in unmatched.items():
        if name != UNKNOWN:
            functions += _take_unknown_files(places)
            moved += _take_moved(places)
        for source, both in places.items():
            functions += _differing(both, source.shown)
    # What is the same on both sides once the pieces of functions are put together is not a difference.
    rows = (row for row in _joined(functions, whole) if row.base != row.candidate)
    return Explanation(
        total=Counts.of(_sum(theirs)) - Counts.of(_sum(ours)),
        functions=tuple(sorted(rows, key=_place)),
        moved=tuple(sorted(moved, key=lambda item: (item.name, item.base_file, item.candidate_file))),
        files=tuple(sorted(files, key=_place)),
    )


def whole_functions(profile: Profile) -> Profile:
    """Return the profile as a comparison shows it: the pieces of each function, and the loader, as one row."""
    rows = explain(Profile(events=profile.events, functions=()), profile).functions
    functions = [FunctionCost(row.file, row.name, row.candidate.as_tuple()) for row in rows]
    return Profile(events=EVENTS, functions=tuple(functions))


def ranked(rows: Iterable[FunctionDelta], weigh: Callable[[Counts], int]) -> tuple[FunctionDelta, ...]:
    """Return the rows that weigh most first, whatever their sign."""
    return tuple(sorted(rows, key=lambda row: (-abs(weigh(row.delta)), *_place(row))))


def blamed(explanation: Explanation, weigh: Callable[[Counts], int]) -> FunctionDelta | None:
    """Return the function that explains most: the largest in the direction of the total, or at all where that is 0."""
    total = weigh(explanation.total)
    sign = (total > 0) - (total < 0)

    def share(row: FunctionDelta) -> int:
        return weigh(row.delta) * sign if sign else abs(weigh(row.delta))

    most = min(explanation.functions, key=lambda row: (-share(row), *_place(row)), default=None)
    return None if most is None or share(most) <= 0 else most


def _lonely(
    base: Profile, candidate: Profile, found: Explanation, weigh: Callable[[Counts], int]
) -> tuple[int, int] | None:
    """Return how many functions are gone, and new, where they have most of the cost of either side; one renamed is not many."""
    gone = [row for row in found.functions if row.candidate == ZERO and row.base_keys]
    new = [row for row in found.functions if row.base == ZERO and row.candidate_keys]
    sides = (gone, weigh(base.counts()), "base"), (new, weigh(candidate.counts()), "candidate")
    most = all(2 * sum(weigh(getattr(row, side)) for row in rows) > whole for rows, whole, side in sides)
    return (len(gone), len(new)) if most and len(gone) + len(new) >= _FEWEST_LONELY else None


def _place(row: FunctionDelta) -> tuple[str, str]:
    return row.name, row.file


def _rows(profile: Profile) -> list[_Row]:
    """Return the rows with the nine counts in their order, which need not be the profile's."""
    if profile.events == EVENTS:
        return [(row.file, row.name, row.counts) for row in profile.functions]
    at = [{event: place for place, event in enumerate(profile.events)}[event] for event in EVENTS]
    return [(row.file, row.name, tuple([row.counts[place] for place in at])) for row in profile.functions]


def _grouped(both: _Both, *keys: Callable[[_Row], Key]) -> dict[Key, _Both]:
    """Group the rows of base and candidate, each by its own key."""
    found = defaultdict[Key, _Both](lambda: ([], []))
    for side, key in enumerate(keys):
        for row in both[side]:
            found[key(row)][side].append(row)
    return found


def _folded_name(row: _Row) -> str:
    return folded(row[1])


def _take_unknown_files(places: dict[Source, _Both]) -> Iterator[FunctionDelta]:
    """Match a function that one build has debug information for, and perhaps in several files, and the other has not."""
    unknown = next((source for source in places if UNKNOWN in {source.base, source.candidate}), None)
    if unknown is None or len(places) == 1:
        return
    known = {source: both for source, both in places.items() if source is not unknown}
    if any(bool(both[0]) == bool(places[unknown][0]) for both in known.values()):
        return  # the build without names for files has one for this function after all: too little is certain
    shown = max(known, key=lambda source: (_sum(known[source][0] or known[source][1]), source.shown)).shown
    base, candidate = ([row for both in places.values() for row in both[side]] for side in (0, 1))
    places.clear()
    yield from _differing((base, candidate), shown)


def _take_moved(places: dict[Source, _Both]) -> Iterator[MovedFunction]:
    """Match what costs the same in one file of the base and in another one of the candidate."""
    left, right = defaultdict[tuple[int, ...], list[Source]](list), defaultdict[tuple[int, ...], list[Source]](list)
    for source, both in sorted(places.items(), key=lambda item: (item[0].shown, item[0].base or item[0].candidate)):
        (left if both[0] else right)[_sum(both[0] or both[1])].append(source)
    for counts, sources in left.items():
        if not any(counts):
            continue
        for old, new in zip(sources, right[counts], strict=False):
            name = _name(places[new][1])
            del places[old], places[new]
            yield MovedFunction(name=Symbol(name), base_file=old.shown, candidate_file=new.shown)


def _differing(rows: _Both, file: str, name: str | None = None) -> Iterator[FunctionDelta]:
    """Compare rows as one: a function, or a whole file of this `name`."""
    base, candidate = map(_sum, rows)
    if base != candidate:
        base_keys, candidate_keys = (tuple(sorted(row[:2] for row in side)) if name is None else () for side in rows)
        yield FunctionDelta(
            name=_name(rows[1] or rows[0]) if name is None else name,
            file=file,
            base=Counts.of(base),
            candidate=Counts.of(candidate),
            base_keys=base_keys,
            candidate_keys=candidate_keys,
        )


def _name(rows: Sequence[_Row]) -> str:
    """Return the name under which most was spent."""
    return max(rows, key=lambda row: (row[2], row[1]))[1]


def _sum(rows: Iterable[_Row]) -> tuple[int, ...]:
    return tuple([sum(column) for column in zip(*(row[2] for row in rows), strict=True)]) or ZERO.as_tuple()


def _joined(functions: Sequence[FunctionDelta], whole: _Both) -> list[FunctionDelta]:
    """Return the functions with the pieces of each as one, inlined code with its caller; their sum stays the same.

    Those of the loader are one row as well: nobody changes them, but what they load. `whole` is all rows of the profiles:
    a name that is local to a file need not be unique, so only they show whether two rows of one name are two functions.
    Mangled names that are not local are unique.
    """
    pieces = defaultdict[str, list["FunctionDelta"]](list)
    for row in functions:
        pieces[folded(row.name)].append(row)
    several = {name: rows for name, rows in pieces.items() if len(rows) > 1 and name != UNKNOWN}
    names = {key[1] for rows in several.values() for row in rows for key in (*row.base_keys, *row.candidate_keys)}
    homes = [_homes(side, names) for side in whole]
    found: list[FunctionDelta] = []
    for name, rows in pieces.items():
        unique = all(row.name.startswith(MANGLED) and not _LOCAL.search(row.name) for row in rows)
        is_one = name in several and (unique or all(len(side.get(name, ())) <= 1 for side in homes))
        found += [_one(rows)] if is_one else rows
    loader = [row for row in found if _OF_LOADER.search(row.file)]
    rest = [row for row in found if not _OF_LOADER.search(row.file)]
    return [*rest, replace(_one(loader), name=LOADER)] if loader else rest


def _homes(rows: Iterable[_Row], names: set[str]) -> Mapping[str, set[str]]:
    """Return the files in which functions of these names are defined, by folded name: those nobody includes."""
    homes = defaultdict[str, set[str]](set)
    for file, name, _ in rows:
        if name in names and file != UNKNOWN and not is_included(file):
            homes[folded(name)].add(file)
    return homes


def _one(rows: Sequence[FunctionDelta]) -> FunctionDelta:
    """Add the pieces up, under the file where most is spent of those that are not included."""

    def importance(row: FunctionDelta) -> tuple[bool, bool, int, str]:
        return not is_included(row.file), bool(row.candidate_keys), row.base.Ir + row.candidate.Ir, row.file

    return replace(
        max(rows, key=importance),
        base=sum((row.base for row in rows), ZERO),
        candidate=sum((row.candidate for row in rows), ZERO),
        base_keys=tuple(sorted(key for row in rows for key in row.base_keys)),
        candidate_keys=tuple(sorted(key for row in rows for key in row.candidate_keys)),
    )
