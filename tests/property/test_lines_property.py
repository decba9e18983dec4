"""The lines of a function, made at random: nothing moves against itself, all adds up, and swapped sides mirror."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from cachegrind_bench.compare.lines import line_deltas
from cachegrind_bench.model.metrics import EVENTS, ZERO, Counts, FunctionCost, LineCost, Profile, merge_profiles

if TYPE_CHECKING:
    from cachegrind_bench.compare.lines import LineDelta

# Few values, so that equal lines are frequent.
COSTS = st.tuples(*[st.integers(0, 2)] * 9)
FILES = st.sampled_from(["/a/x.c", "/b/x.c", "x.c", "/a/y.h", "/b/y.h", "/b/c/y.h", "???", ""])
LINES = st.dictionaries(st.tuples(FILES, st.sampled_from(["f", "f.part.0"]), st.integers(0, 30)), COSTS, max_size=40)
ONE_FILE = st.dictionaries(st.integers(0, 30), COSTS, min_size=1)
Keys = set[tuple[str, str]]


def profile(lines: dict[tuple[str, str, int], tuple[int, ...]]) -> Profile:
    rows = [LineCost(*key, cost) for key, cost in lines.items()]
    single = [
        Profile(events=EVENTS, functions=(FunctionCost(row.file, row.name, row.counts),), lines=(row,)) for row in rows
    ]
    return merge_profiles([Profile(events=EVENTS, functions=()), Profile(events=EVENTS, functions=()), *single])


PROFILES = LINES.map(profile)


def keys(found: Profile) -> Keys:
    return {(row.file, row.name) for row in found.functions}


def cost(found: Profile, wanted: Keys) -> Counts:
    rows = (Counts.of(row.counts) for row in found.functions if (row.file, row.name) in wanted)
    return sum(rows, ZERO)


def work(counts: Counts) -> int:
    return abs(counts.Ir) + abs(counts.Dr) + abs(counts.Dw)


def mirrored(found: LineDelta) -> tuple[object, ...]:
    ours, theirs = (found.base_file, found.base_line, found.base), (found.candidate_file, found.candidate_line)
    return (*theirs, found.candidate, *ours)


def as_it_is(found: LineDelta) -> tuple[object, ...]:
    ours, theirs = (found.base_file, found.base_line, found.base), (found.candidate_file, found.candidate_line)
    return (*ours, *theirs, found.candidate)


@given(PROFILES, PROFILES, st.data())
def test_the_lines_add_up_to_the_function_and_each_is_there_once(
    base: Profile, candidate: Profile, data: st.DataObject
) -> None:
    ours = {key for key in sorted(keys(base)) if data.draw(st.booleans())}
    theirs = {key for key in sorted(keys(candidate)) if data.draw(st.booleans())}
    found = line_deltas(base, candidate, ours, theirs)
    assert sum((delta.base for delta in found), ZERO) == cost(base, ours)
    assert sum((delta.candidate for delta in found), ZERO) == cost(candidate, theirs)
    assert sum((delta.delta for delta in found), ZERO) == cost(candidate, theirs) - cost(base, ours)
    for side in ("base", "candidate"):
        places = [(getattr(delta, f"{side}_file"), getattr(delta, f"{side}_line")) for delta in found]
        known = [place for place in places if place[1] is not None]
        assert len(known) == len(set(known))


@given(PROFILES)
def test_nothing_moves_against_itself(found: Profile) -> None:
    deltas = line_deltas(found, found, keys(found), keys(found))
    assert all(delta.delta == ZERO and delta.base_line == delta.candidate_line for delta in deltas)


@given(PROFILES, PROFILES)
def test_swapped_sides_mirror(base: Profile, candidate: Profile) -> None:
    there = line_deltas(base, candidate, keys(base), keys(candidate))
    back = line_deltas(candidate, base, keys(candidate), keys(base))
    assert sorted(map(repr, map(as_it_is, there))) == sorted(map(repr, map(mirrored, back)))


@given(LINES, st.integers(1, 1000))
def test_a_function_that_only_moved_down_does_not_change(
    lines: dict[tuple[str, str, int], tuple[int, ...]], down: int
) -> None:
    below = {(file, name, line and line + down): counts for (file, name, line), counts in lines.items()}
    base, candidate = profile(lines), profile(below)
    deltas = line_deltas(base, candidate, keys(base), keys(candidate))
    assert all(delta.delta == ZERO for delta in deltas)


@given(PROFILES, PROFILES)
def test_a_pairing_keeps_the_order_and_what_has_no_line_apart(base: Profile, candidate: Profile) -> None:
    found = line_deltas(base, candidate, keys(base), keys(candidate))
    pairs: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for delta in found:
        if delta.base_line is not None and delta.candidate_line is not None:
            files = (delta.base_file or "", delta.candidate_file or "")
            pairs.setdefault(files, []).append((delta.base_line, delta.candidate_line))
            assert (delta.base_line == 0) == (delta.candidate_line == 0)
    for lines in pairs.values():
        assert sorted(lines) == lines
        assert sorted(other for _, other in lines) == [other for _, other in lines]


@given(ONE_FILE, ONE_FILE)
def test_no_more_work_is_left_as_a_difference_than_if_no_line_had_moved(
    ours: dict[int, tuple[int, ...]], theirs: dict[int, tuple[int, ...]]
) -> None:
    base, candidate = (profile({("x.c", "f", line): cost for line, cost in side.items()}) for side in (ours, theirs))
    in_place = (
        Counts.of(theirs.get(line, (0,) * 9)) - Counts.of(ours.get(line, (0,) * 9)) for line in {*ours, *theirs}
    )
    found = line_deltas(base, candidate, keys(base), keys(candidate))
    assert sum(work(delta.delta) for delta in found) <= sum(map(work, in_place))
