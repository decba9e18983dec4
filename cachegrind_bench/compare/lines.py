"""Compares one function line by line, without its source text: which line of the base is which of the candidate.

Where the commits are known, the diff between them says it. Else there are line numbers and counts only, so there are two
guesses, and the one that leaves less to explain is the answer:
no line moved; or lines were inserted and removed, and those whose instructions, reads and writes are the same on both
sides show how far (misses do not: they change without a reason in the source). Swapping base and candidate gives the
same pairs, swapped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import repeat, takewhile

from cachegrind_bench.compare.change import Delta
from cachegrind_bench.compare.pairing import Source, pair_sources
from cachegrind_bench.model.metrics import ZERO, Counts, Profile

_Key = tuple[str, str]
_Line = tuple[int, Counts]
_Pair = tuple[_Line | None, _Line | None]
_Work = tuple[int, int, int]  # instructions, reads, writes
_Place = tuple[int, int]  # the indexes of a pair

Way = Callable[[int], int | None]  # from a line of one side to that of the other
Ways = tuple[Way, Way]  # from base to candidate, and back
Moves = Callable[[str], Ways | None]

# SequenceMatcher looks at all lines, and at all pairs of equal ones, for each anchor that it finds: in the worst case
# this often, which takes about a second. Beyond it, a function of thousands of lines, places have to do.
_MOST_STEPS = 20_000_000


class LineDelta(Delta, frozen=True, kw_only=True):
    """One source line on both sides; file and line are None on a side that does not have it. Line 0 is "unknown".

    The files are as `Source.shown` has them: the same on both sides, unless the function moved.
    """

    base_file: str | None
    base_line: int | None
    candidate_file: str | None
    candidate_line: int | None


def line_deltas(
    base: Profile,
    candidate: Profile,
    base_keys: Collection[_Key],
    candidate_keys: Collection[_Key],
    moves: Moves = lambda _file: None,
) -> tuple[LineDelta, ...]:
    """Compare one function, given by the (file, name) pairs that it consists of on each side, file by file.

    `moves` says of a file of the candidate where the lines of the base are now, if that is known.
    Every line of both sides is in the answer once, unchanged ones too, so the deltas add up to that of the function.
    There is no answer where a profile was recorded without lines.
    """
    if any(profile.functions and not profile.lines for profile in (base, candidate)):
        return ()
    found: list[LineDelta] = []
    base_sources, candidate_sources = pair_sources((key[0] for key in base_keys), (key[0] for key in candidate_keys))
    ours = _by_source(base, base_keys, base_sources)
    theirs = _by_source(candidate, candidate_keys, candidate_sources)
    for old_source, new_source in _paired_sources(ours.keys(), theirs.keys()):
        found += [
            LineDelta(
                base_file=old_source.shown if old else None,
                base_line=old[0] if old else None,
                base=old[1] if old else ZERO,
                candidate_file=new_source.shown if new else None,
                candidate_line=new[0] if new else None,
                candidate=new[1] if new else ZERO,
            )
            for old, new in _paired_lines(
                ours.get(old_source, []),
                theirs.get(new_source, []),
                moves(new_source.candidate) if new_source.candidate else None,
            )
        ]
    return tuple(found)


def _by_source(profile: Profile, keys: Collection[_Key], sources: Mapping[str, Source]) -> dict[Source, list[_Line]]:
    """Return the function's lines in each of its files, sorted; lines of one number are one."""
    wanted, names = set(keys), {name for _, name in keys}
    found: dict[Source, dict[int, Counts]] = {}
    for row in profile.lines:
        if row.name in names and (row.file, row.name) in wanted:  # most rows stop at the first, which builds nothing
            lines = found.setdefault(sources[row.file], {})
            counts = Counts.from_mapping(dict(zip(profile.events, row.counts, strict=True)))
            lines[row.line] = lines.get(row.line, ZERO) + counts
    return {source: sorted(lines.items(), key=lambda line: line[0]) for source, lines in found.items()}


def _paired_sources(ours: Collection[Source], theirs: Collection[Source]) -> list[tuple[Source, Source]]:
    """Pair equal sources, and a file on the one side only with one on the other: the function moved there."""
    removed, added = set(ours) - set(theirs), set(theirs) - set(ours)
    moved = len(removed) == len(added) == 1
    pairs = [(source, source) for source in (set(ours) & set(theirs) if moved else {*ours, *theirs})]
    pairs += zip(removed, added, strict=True) if moved else ()
    return sorted(pairs, key=lambda pair: (pair[0].shown, pair[1].shown))


def _paired_lines(old: Sequence[_Line], new: Sequence[_Line], ways: Ways | None) -> list[_Pair]:
    """Pair the lines of one file, each once, in their order."""
    # What has no line number comes first, as line 0, and has no place among the others.
    unknown = tuple(lines[0] if lines and not lines[0][0] else None for lines in (old, new))
    old, new = (lines[1:] if lines and not lines[0][0] else lines for lines in (old, new))
    first: list[_Pair] = [(unknown[0], unknown[1])] if any(unknown) else []
    if ways is not None:
        return first + _by_diff(old, new, *ways)
    return first + min(_by_number(old, new), _by_anchors(old, new), key=_cost)  # the first of equals


def _by_diff(old: Sequence[_Line], new: Sequence[_Line], forth: Way, back: Way) -> list[_Pair]:
    """Pair lines as the source says. One without instructions on a side is there all the same, unless it is new or gone."""
    ours, theirs = dict(old), dict(new)
    places = {(line, forth(line)) for line in ours} | {(back(line), line) for line in theirs}

    def side(line: int | None, counts: Mapping[int, Counts]) -> _Line | None:
        return None if line is None else (line, counts.get(line, ZERO))

    def order(place: tuple[int | None, int | None]) -> tuple[int, int]:
        return (place[1] if place[1] is not None else place[0]) or 0, place[0] or 0

    return [(side(before, ours), side(after, theirs)) for before, after in sorted(places, key=order)]


def _work(line: _Line) -> _Work:
    return line[1].Ir, line[1].Dr, line[1].Dw


def _cost(pairs: Iterable[_Pair]) -> tuple[int, int]:
    """Return how much work a pairing leaves as a difference, and how many lines without another."""
    cost, alone = 0, 0  # the second decides where lines without any work belong
    for old, new in pairs:
        ours, theirs = (_work(line) if line else (0, 0, 0) for line in (old, new))
        cost += sum(abs(count - other) for count, other in zip(ours, theirs, strict=True))
        alone += old is None or new is None
    return cost, alone


def _by_number(old: Sequence[_Line], new: Sequence[_Line]) -> list[_Pair]:
    """Pair lines as if none had moved."""
    ours, theirs = {line[0]: line for line in old}, {line[0]: line for line in new}
    return [(ours.get(number), theirs.get(number)) for number in sorted({*ours, *theirs})]


def _by_anchors(old: Sequence[_Line], new: Sequence[_Line]) -> list[_Pair]:
    """Pair the lines that are the same, and those between them by how far the one before and the one behind moved."""
    if not old or not new:
        return _by_number(old, new)
    anchors = _anchors([_work(line) for line in old], [_work(line) for line in new])
    # Where no line is the same, all may have moved as the first did: that none has moved is the other guess already.
    shifts = [new[other][0] - old[index][0] for index, other in anchors or [(0, 0)]]
    around = zip([shifts[0], *shifts], [*shifts, shifts[-1]], strict=True)
    return list(_around(old, new, anchors, list(around)))


def _around(
    old: Sequence[_Line], new: Sequence[_Line], places: Sequence[_Place], shifts: Iterable[Sequence[int]]
) -> Iterator[_Pair]:
    """Pair the lines at these places, and those before, between and behind them by the shifts that are given for each."""
    ends = [*places, (len(old), len(new))]
    begin, other_begin = 0, 0
    # Without a place there is one block only, whatever the number of its shifts.
    for (end, other_end), tried in zip(ends, shifts, strict=False):
        yield from _by_shift(old[begin:end], new[other_begin:other_end], tried)
        if end < len(old):
            yield old[end], new[other_end]
        begin, other_begin = end + 1, other_end + 1


def _by_shift(old: Sequence[_Line], new: Sequence[_Line], shifts: Sequence[int]) -> Iterator[_Pair]:
    """Pair lines that moved by the first shift, those between them by the next, then by order if they are as many."""
    if shifts:
        indexes = {line[0] - shifts[0]: other for other, line in enumerate(new)}
        places = [(index, indexes[line[0]]) for index, line in enumerate(old) if line[0] in indexes]
        yield from _around(old, new, places, repeat(shifts[1:]))
    elif len(old) == len(new):
        yield from zip(old, new, strict=True)
    else:
        yield from ((line, None) for line in old)
        yield from ((None, line) for line in new)


def _anchors(ours: list[_Work], theirs: list[_Work]) -> list[_Place]:
    """Return the indexes of lines that are the same, in order: those at begin and end, and what difflib finds between."""
    if theirs < ours:  # difflib prefers its first side
        return [(index, other) for other, index in _anchors(theirs, ours)]
    head = _equal(zip(ours, theirs, strict=False))
    tail = _equal(zip(reversed(ours[head:]), reversed(theirs[head:]), strict=False))
    middle, other_middle = ours[head : len(ours) - tail], theirs[head : len(theirs) - tail]
    found = [(index, index) for index in range(head)]
    if _steps(middle, other_middle) <= _MOST_STEPS:
        matcher = SequenceMatcher(None, middle, other_middle, autojunk=False)
        for block in matcher.get_matching_blocks():
            found += [(head + block.a + step, head + block.b + step) for step in range(block.size)]
    return found + [(len(ours) - step, len(theirs) - step) for step in range(tail, 0, -1)]


def _equal(pairs: Iterable[tuple[_Work, _Work]]) -> int:
    """Count the equal pairs up to the first that is not."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _steps(ours: list[_Work], theirs: list[_Work]) -> int:
    """Bound the work of SequenceMatcher: its anchors are at most the lines in common."""
    counts, others = Counter(ours), Counter(theirs)
    pairs = sum(count * others[work] for work, count in counts.items())
    return (len(ours) + len(theirs) + pairs) * (counts & others).total()
