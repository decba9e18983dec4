"""Line by line: which line of the base is which of the candidate, when only numbers and counts are known."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.compare.lines import line_deltas
from cachegrind_bench.model.metrics import EVENTS, ZERO, Counts, FunctionCost, LineCost, Profile, merge_profiles
from cachegrind_bench.vcs.diff import Span, moved_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cachegrind_bench.compare.lines import LineDelta

KEY = ("/build/main.c", "work")


def counts(ir: int, *, misses: int = 0) -> Counts:
    return Counts.of([ir, misses, 0, 0, 0, 0, 0, 0, 0])


def profile(lines: Mapping[int, int | Counts], key: tuple[str, str] = KEY) -> Profile:
    """Return one function whose lines cost so many instructions."""
    found = {line: cost if isinstance(cost, Counts) else counts(cost) for line, cost in lines.items()}
    rows = tuple(LineCost(*key, line, cost.as_tuple()) for line, cost in sorted(found.items()))
    functions = (FunctionCost(*key, sum(found.values(), ZERO).as_tuple()),)
    return Profile(events=EVENTS, functions=functions, lines=rows)


def moved(base: Profile, candidate: Profile, *keys: tuple[str, str]) -> list[tuple[int | None, int | None, int]]:
    """Return the lines that moved: both numbers, and the difference in instructions."""
    return [
        (found.base_line, found.candidate_line, found.delta.Ir)
        for found in line_deltas(base, candidate, keys or [KEY], keys or [KEY])
        if found.delta != ZERO
    ]


def paired(found: tuple[LineDelta, ...]) -> list[tuple[int | None, int | None]]:
    return [(delta.base_line, delta.candidate_line) for delta in found]


def test_a_line_that_costs_more_is_named() -> None:
    assert moved(profile({10: 5, 11: 70, 12: 30}), profile({10: 5, 11: 90, 12: 30})) == [(11, 11, 20)]


def test_lines_inserted_above_the_function_move_none_of_its_lines() -> None:
    base, candidate = profile({10: 5, 11: 70, 13: 30}), profile({15: 5, 16: 70, 18: 30})
    assert moved(base, candidate) == []
    assert paired(line_deltas(base, candidate, [KEY], [KEY])) == [(10, 15), (11, 16), (13, 18)]


def test_a_line_inserted_within_is_the_only_one_that_moved() -> None:
    assert moved(profile({10: 5, 11: 70, 12: 30}), profile({11: 5, 12: 8, 13: 70, 14: 30})) == [(None, 12, 8)]
    assert moved(profile({11: 5, 12: 8, 13: 70, 14: 30}), profile({10: 5, 11: 70, 12: 30})) == [(12, None, -8)]


def test_a_longer_loop_keeps_its_lines_in_their_order() -> None:
    base, candidate = profile({10: 5, 11: 70, 12: 30, 20: 2}), profile({12: 5, 13: 77, 14: 33, 22: 2})
    assert moved(base, candidate) == [(11, 13, 7), (12, 14, 3)]


def test_lines_replaced_one_by_one_leave_all_others_in_place() -> None:
    base = profile({8: 4, 9: 7, 10: 900, 11: 800, 13: 50, 16: 222_622, 17: 222_700, 19: 3})
    candidate = profile({8: 4, 9: 7, 10: 300, 11: 650, 13: 50, 17: 222_716, 19: 3})
    assert moved(base, candidate) == [(10, 10, -600), (11, 11, -150), (16, None, -222_622), (17, 17, 16)]
    assert moved(candidate, base) == [(10, 10, 600), (11, 11, 150), (None, 16, 222_622), (17, 17, -16)]


def test_a_line_far_off_that_costs_the_same_by_chance_is_another_line() -> None:
    base, candidate = profile({322: 30, 330: 29}), profile({72: 29, 322: 30})
    assert moved(base, candidate) == [(None, 72, 29), (330, None, -29)]
    base, candidate = profile({60: 1, 322: 30, 323: 40, 330: 29}), profile({60: 1, 72: 29, 322: 31, 323: 41})
    assert moved(base, candidate) == [(None, 72, 29), (322, 322, 1), (323, 323, 1), (330, None, -29)]


def test_if_both_guesses_leave_as_much_to_explain_no_line_moved() -> None:
    base, candidate = profile({10: 5, 11: 3}), profile({11: 5, 14: 3, 15: 4})
    assert moved(base, candidate) == [(None, 15, 4)]
    base, candidate = profile({10: 5, 12: 6}), profile({10: 6, 12: 5})
    assert moved(base, candidate) == [(10, 10, 1), (12, 12, -1)]


def test_lines_inserted_above_move_neither_a_changed_line_nor_one_that_is_gone() -> None:
    base, candidate = profile({10: 5, 11: 70, 12: 30, 14: 9, 15: 2}), profile({15: 5, 17: 44, 19: 9, 20: 2})
    assert moved(base, candidate) == [(11, None, -70), (12, 17, 14)]


def test_lines_around_an_insertion_move_with_the_anchor_of_their_side() -> None:
    base = profile({1: 50, 10: 700, 11: 300, 12: 600, 20: 20})
    candidate = profile({1: 50, 10: 710, 11: 80, 12: 90, 13: 310, 14: 620, 22: 20})
    # Line 12 of the base is also in its place as line 12 of the candidate, and the anchor before comes first.
    assert moved(base, candidate) == [(10, 10, 10), (11, 11, -220), (12, 12, -510), (None, 13, 310), (None, 14, 620)]
    base, candidate = profile({1: 50, 10: 700, 15: 300, 20: 20}), profile({1: 50, 10: 710, 12: 80, 17: 310, 22: 20})
    assert moved(base, candidate) == [(10, 10, 10), (None, 12, 80), (15, 17, 10)]


def test_between_anchors_the_order_is_kept() -> None:
    base = profile({1: 5, 10: 70, 12: 30, 20: 2})
    candidate = profile({1: 5, 11: 77, 12: 8, 13: 33, 21: 2})
    assert moved(base, candidate) == [(10, 11, 7), (12, 12, -22), (None, 13, 33)]
    base, candidate = profile({1: 50, 10: 7, 12: 6, 20: 20}), profile({1: 50, 12: 8, 15: 9, 25: 20})
    assert moved(base, candidate) == [(10, None, -7), (12, 12, 2), (None, 15, 9)]


def test_what_moved_with_neither_anchor_is_paired_by_order_if_as_many() -> None:
    base, candidate = profile({1: 50, 10: 70, 11: 60, 30: 20}), profile({1: 50, 20: 71, 22: 61, 35: 20})
    assert moved(base, candidate) == [(10, 20, 1), (11, 22, 1)]
    candidate = profile({1: 50, 20: 71, 22: 61, 24: 9, 35: 20})
    assert {found[:2] for found in moved(base, candidate)} == {
        (10, None),
        (11, None),
        (None, 20),
        (None, 22),
        (None, 24),
    }


def test_a_function_of_which_every_line_changed_may_have_moved_as_a_whole() -> None:
    assert moved(profile({10: 50, 11: 70}), profile({13: 51, 14: 72})) == [(10, 13, 1), (11, 14, 2)]


def test_misses_are_compared_but_are_no_reason_to_pair_others() -> None:
    base = profile({1: counts(9, misses=1), 2: counts(8), 3: counts(7)})
    candidate = profile({2: counts(9), 3: counts(8, misses=1), 4: counts(7)})
    found = line_deltas(base, candidate, [KEY], [KEY])
    assert paired(found) == [(1, 2), (2, 3), (3, 4)]
    assert [delta.delta.I1mr for delta in found] == [-1, 1, 0]


def test_what_has_no_line_is_compared_with_what_has_none() -> None:
    base, candidate = profile({0: 100, 5: 7}), profile({0: 90, 4: 100, 5: 7})
    assert moved(base, candidate) == [(0, 0, -10), (None, 4, 100)]
    assert moved(profile({5: 7}), candidate) == [(None, 0, 90), (None, 4, 100)]


def test_a_function_of_several_rows_is_one() -> None:
    parts = [profile({1: 5, 2: 10}, ("/build/main.c", name)) for name in ("work", "work.part.0")]
    base = merge_profiles(parts)
    candidate = profile({1: 10, 2: 21})
    found = line_deltas(base, candidate, [("/build/main.c", "work"), ("/build/main.c", "work.part.0")], [KEY])
    assert [(delta.base.Ir, delta.candidate.Ir) for delta in found] == [(10, 10), (20, 21)]


def test_other_functions_are_left_alone() -> None:
    others = [profile({1: 9, 2: 9}, key) for key in (("/build/main.c", "worj"), ("/build/main.c", "work2"))]
    base = merge_profiles([profile({1: 5}), *others])
    assert paired(line_deltas(base, base, [KEY], [KEY])) == [(1, 1)]
    assert line_deltas(base, base, [("/build/main.c", "absent")], []) == ()


def test_where_the_diff_is_known_lines_are_paired_by_it_and_not_by_what_they_cost() -> None:
    changed = [Span(gone_first=12, gone=0, first=13, new=2), Span(gone_first=20, gone=1, first=23, new=1)]
    back = [span.reverse for span in changed]

    def forth(line: int) -> int | None:
        return moved_line(line, changed)

    # Lines 13 and 14 are new; one of them costs what line 13 of the base did, which is line 15 now.
    base, candidate = profile({11: 5, 13: 70, 18: 4, 20: 1}), profile({11: 5, 13: 70, 15: 72, 23: 2})
    found = line_deltas(base, candidate, [KEY], [KEY], lambda _file: (forth, lambda line: moved_line(line, back)))
    assert [(row.base_line, row.candidate_line, row.delta.Ir) for row in found] == [
        (11, 11, 0),
        (None, 13, 70),
        (13, 15, 2),
        (18, 20, -4),
        (20, 23, 1),
    ]
    swapped = line_deltas(candidate, base, [KEY], [KEY], lambda _file: (lambda line: moved_line(line, back), forth))
    assert [(row.base_line, row.candidate_line) for row in swapped] == [
        (row.candidate_line, row.base_line) for row in found
    ]


def test_inlined_code_is_compared_file_by_file_wherever_it_was_built() -> None:
    base = merge_profiles([profile({7: 5}, ("/one/main.c", "f")), profile({7: 6, 8: 3}, ("/one/inline.h", "f"))])
    candidate = merge_profiles([profile({9: 5}, ("/two/main.c", "f")), profile({8: 3}, ("/two/inline.h", "f"))])
    keys = [[(row.file, row.name) for row in side.functions] for side in (base, candidate)]
    found = line_deltas(base, candidate, keys[0], keys[1])
    assert [(delta.base_file, delta.base_line, delta.candidate_file, delta.candidate_line) for delta in found] == [
        ("inline.h", 7, None, None),
        ("inline.h", 8, "inline.h", 8),
        ("main.c", 7, "main.c", 9),
    ]


def test_a_function_that_moved_to_another_file_is_compared_across() -> None:
    base, candidate = profile({7: 5, 8: 6}, ("/src/old.c", "f")), profile({1: 5, 2: 7}, ("/src/new.c", "f"))
    found = line_deltas(base, candidate, [("/src/old.c", "f")], [("/src/new.c", "f")])
    assert paired(found) == [(7, 1), (8, 2)]
    assert {(delta.base_file, delta.candidate_file) for delta in found} == {("/src/old.c", "/src/new.c")}


def test_a_new_function_is_all_new_lines() -> None:
    found = line_deltas(profile({1: 5}), profile({1: 5, 2: 3}), [], [KEY])
    assert paired(found) == [(None, 1), (None, 2)]
    assert sum((delta.delta for delta in found), ZERO) == counts(8)


def test_events_are_read_by_name() -> None:
    events = tuple(reversed(EVENTS))
    row = (0, 0, 0, 0, 0, 0, 0, 0, 7)
    base = Profile(events=events, functions=(FunctionCost(*KEY, row),), lines=(LineCost(*KEY, 3, row),))
    assert moved(base, profile({3: 9})) == [(3, 3, 2)]


def test_without_recorded_lines_there_is_no_answer() -> None:
    bare = Profile(events=EVENTS, functions=profile({1: 5}).functions)
    assert line_deltas(bare, profile({1: 5}), [KEY], [KEY]) == ()
    assert line_deltas(profile({1: 5}), bare, [KEY], [KEY]) == ()


SIZE = 5_000


@pytest.mark.parametrize(
    ("base", "candidate"),
    [
        # All alike but for the ends, all different but for what lies between them, and every second line changed.
        (dict.fromkeys(range(SIZE), 7), {0: 1, **dict.fromkeys(range(1, SIZE - 1), 7), SIZE - 1: 1}),
        ({line: line for line in range(SIZE)}, {0: 9, **{line: line for line in range(1, SIZE - 1)}, SIZE - 1: 9}),
        ({line: line for line in range(SIZE)}, {line: line + line % 2 * SIZE for line in range(SIZE)}),
    ],
)
def test_a_function_of_thousands_of_lines_does_not_take_long(base: dict[int, int], candidate: dict[int, int]) -> None:
    above, below = ({line + down: cost for line, cost in side.items()} for side, down in ((base, 1), (candidate, 4)))
    begin = time.process_time()
    found = line_deltas(profile(above), profile(below), [KEY], [KEY])
    assert time.process_time() - begin < 10
    assert paired(found) == [(line + 1, line + 4) for line in range(SIZE)]
