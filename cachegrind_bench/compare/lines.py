"""Compares one function line by line, without its source text: which line of the base is which of the candidate.

Knows line numbers and counts only. Lines move when others are inserted, so those whose instructions, reads and writes
are the same on both sides are the anchors (misses are not: they change without a reason in the source), and what lies
between two anchors is paired by place. Swapping base and candidate gives the same pairs, swapped.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import TYPE_CHECKING

from cachegrind_bench.compare.sources import pair_sources
from cachegrind_bench.model.metrics import ZERO, Counts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from cachegrind_bench.compare.sources import Source
    from cachegrind_bench.model.metrics import Profile

    _Key = tuple[str, str]
    _Line = tuple[int, Counts]
    _Pair = tuple[_Line | None, _Line | None]
    _Work = tuple[int, int, int]  # instructions, reads, writes

# SequenceMatcher looks at all lines, and at all pairs of equal ones, for each anchor that it finds: in the worst case
# this often, which takes about a second. Beyond it, a function of thousands of lines, places have to do.
_MOST_STEPS = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LineDelta:
    """One source line on both sides; file and line are None on a side that does not have it. Line 0 is "unknown".

    The files are as `Source.shown` has them: the same on both sides, unless the function moved.
    """

    base_file: str | None
    base_line: int | None
    base: Counts
    candidate_file: str | None
    candidate_line: int | None
    candidate: Counts

    @property
    def delta(self) -> Counts:
        """The candidate's counts less the base's."""
        return self.candidate - self.base


def line_deltas(
    base: Profile, candidate: Profile, base_keys: Collection[_Key], candidate_keys: Collection[_Key]
) -> tuple[LineDelta, ...]:
    """Compare one function, given by the (file, name) pairs that it consists of on each side, file by file.

    Every line of both sides is in the answer once, unchanged ones too, so the deltas add up to that of the function.
    There is no answer where a profile was recorded without lines.
    """
    if any(profile.functions and not profile.lines for profile in (base, candidate)):
        return ()
    found: list[LineDelta] = []
    sources = pair_sources((file for file, _ in base_keys), (file for file, _ in candidate_keys))
    ours = _by_source(base, base_keys, sources.base)
    theirs = _by_source(candidate, candidate_keys, sources.candidate)
    for old_source, new_source in _paired_sources(ours.keys(), theirs.keys()):
        pairs = _paired_lines(ours.get(old_source, []), theirs.get(new_source, []))
        found += [_line_delta(old_source.shown, new_source.shown, *pair) for pair in pairs]
    return tuple(found)


def _line_delta(base_file: str, candidate_file: str, old: _Line | None, new: _Line | None) -> LineDelta:
    return LineDelta(
        base_file=base_file if old else None,
        base_line=old[0] if old else None,
        base=old[1] if old else ZERO,
        candidate_file=candidate_file if new else None,
        candidate_line=new[0] if new else None,
        candidate=new[1] if new else ZERO,
    )


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
    pairs = [(source, source) for source in {*ours, *theirs}]
    if len(removed) == len(added) == 1:
        pairs = [pair for pair in pairs if pair[0] not in removed | added]
        pairs += zip(removed, added, strict=True)
    return sorted(pairs, key=lambda pair: (pair[0].shown, pair[1].shown))


def _paired_lines(old: Sequence[_Line], new: Sequence[_Line]) -> Iterator[_Pair]:
    """Pair the lines of one file, each once, in their order."""
    unknown, old = _without_unknown(old)
    unknown_too, new = _without_unknown(new)
    if unknown or unknown_too:
        yield unknown, unknown_too
    begin, other_begin = 0, 0
    for index, other in _anchors([_work(line) for line in old], [_work(line) for line in new]):
        yield from _by_place(old[begin:index], new[other_begin:other])
        yield old[index], new[other]
        begin, other_begin = index + 1, other + 1
    yield from _by_place(old[begin:], new[other_begin:])


def _without_unknown(lines: Sequence[_Line]) -> tuple[_Line | None, Sequence[_Line]]:
    """Take off what has no line number: it stands first, as line 0, and has no place among the others."""
    return (lines[0], lines[1:]) if lines and lines[0][0] == 0 else (None, lines)


def _work(line: _Line) -> _Work:
    return line[1].Ir, line[1].Dr, line[1].Dw


def _anchors(ours: list[_Work], theirs: list[_Work]) -> list[tuple[int, int]]:
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


def _by_place(old: Sequence[_Line], new: Sequence[_Line]) -> Iterator[_Pair]:
    """Pair lines between two anchors: one by one if they are as many, else those as far from the first of their side."""
    if len(old) == len(new):
        yield from zip(old, new, strict=True)
        return
    ours = {line[0] - old[0][0]: line for line in old}
    theirs = {line[0] - new[0][0]: line for line in new}
    for distance in sorted({*ours, *theirs}):
        yield ours.get(distance), theirs.get(distance)
