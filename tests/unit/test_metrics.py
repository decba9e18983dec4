"""Counts, what is derived from them, and profiles that add up."""

from __future__ import annotations

import pytest

from cachegrind_bench.model.metrics import EVENTS, ZERO, Counts, FunctionCost, LineCost, Profile, merge_profiles
from tests.unit.samples import VECTOR, profile_of, times


def test_the_hits_of_the_reference_vector_are_those_of_the_design() -> None:
    assert (VECTOR.l1_hits, VECTOR.ll_hits, VECTOR.ram_hits) == (1778, 10, 53)


def test_hits_add_up_to_all_accesses() -> None:
    assert VECTOR.l1_hits + VECTOR.ll_hits + VECTOR.ram_hits == VECTOR.Ir + VECTOR.Dr + VECTOR.Dw


def test_events_stand_in_cachegrinds_order() -> None:
    assert EVENTS == ("Ir", "I1mr", "ILmr", "Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw")
    assert list(VECTOR.as_dict()) == list(EVENTS)
    assert Counts.of(VECTOR.as_tuple()) == VECTOR


def test_counts_are_taken_by_name_and_other_events_left_out() -> None:
    assert Counts.from_mapping({"Bc": 9, **VECTOR.as_dict()}) == VECTOR
    with pytest.raises(KeyError, match="DLmw"):
        Counts.from_mapping(dict.fromkeys(EVENTS[:-1], 1))


def test_nine_values_are_needed_no_fewer_and_no_more() -> None:
    with pytest.raises(ValueError):
        Counts.of([1] * 8)
    with pytest.raises(ValueError):
        Counts.of([1] * 10)


def test_counts_add() -> None:
    assert VECTOR + ZERO == VECTOR
    assert times(VECTOR, 2) == VECTOR + VECTOR


def test_a_profile_adds_up_its_rows() -> None:
    profile = profile_of(a=VECTOR, b=times(VECTOR, 2))
    assert profile.counts() == times(VECTOR, 3)


def test_an_empty_profile_adds_up_to_zero() -> None:
    assert Profile(events=EVENTS, functions=()).counts() == ZERO


def test_merging_adds_rows_of_the_same_function_and_sorts_the_rest() -> None:
    merged = merge_profiles([profile_of(b=VECTOR, c=VECTOR), profile_of(a=VECTOR, b=VECTOR)])
    assert [(row.name, row.counts[0]) for row in merged.functions] == [("a", 1353), ("b", 2706), ("c", 1353)]


def test_merging_one_profile_is_that_profile() -> None:
    profile = profile_of(b=VECTOR)
    assert merge_profiles([profile]) is profile


def test_equal_names_in_different_files_stay_apart() -> None:
    rows = tuple(FunctionCost(file, "main", VECTOR.as_tuple()) for file in ("a.c", "b.c"))
    merged = merge_profiles([Profile(events=EVENTS, functions=rows), profile_of()])
    assert merged.functions == rows


def test_profiles_of_different_events_do_not_merge() -> None:
    with pytest.raises(ValueError, match="different events"):
        merge_profiles([profile_of(), Profile(events=("Ir",), functions=())])


def lined(*lines: tuple[str, int, Counts]) -> Profile:
    """Return a profile of these functions, of one line each."""
    rows = tuple(LineCost("main.c", name, line, counts.as_tuple()) for name, line, counts in lines)
    return Profile(
        events=EVENTS, functions=profile_of(**{name: counts for name, _, counts in lines}).functions, lines=rows
    )


def test_merging_adds_source_lines_up_as_it_does_functions() -> None:
    merged = merge_profiles(
        [lined(("b", 2, VECTOR), ("c", 1, VECTOR)), lined(("a", 1, VECTOR), ("b", 2, VECTOR)), profile_of()]
    )
    assert [(row.name, row.line, row.counts[0]) for row in merged.lines] == [
        ("a", 1, 1353),
        ("b", 2, 2706),
        ("c", 1, 1353),
    ]
    apart = merge_profiles([lined(("b", 2, VECTOR)), lined(("b", 10, VECTOR))])
    assert [(row.line, row.counts[0]) for row in apart.lines] == [(2, 1353), (10, 1353)]


def test_profiles_with_source_lines_and_without_do_not_merge() -> None:
    with pytest.raises(ValueError, match="would no longer add up"):
        merge_profiles([lined(("b", 2, VECTOR)), profile_of(b=VECTOR)])
