"""A profile less the empty one: rows add up, nothing is negative, and nothing is lost where nothing was owed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cachegrind_bench.model.metrics import EVENTS, FunctionCost, Profile, merge_profiles, without

NAMES = st.sampled_from(["parse", "read", "???", "harness"])


def _levels(accesses: int) -> st.SearchStrategy[tuple[int, int, int]]:
    """Return accesses with no more misses than there are of them, and of these no more than that at the last level."""
    return st.integers(0, accesses).flatmap(
        lambda first: st.tuples(st.just(accesses), st.just(first), st.integers(0, first))
    )


LEVELS = st.integers(0, 50).flatmap(_levels)
COUNTS = st.tuples(LEVELS, LEVELS, LEVELS).map(lambda three: (*three[0], *three[1], *three[2]))
PROFILES = st.dictionaries(NAMES, COUNTS, max_size=4).map(
    lambda rows: Profile(
        events=EVENTS, functions=tuple(FunctionCost("f.c", name, counts) for name, counts in sorted(rows.items()))
    )
)


@given(PROFILES, PROFILES, st.integers(1, 5))
def test_what_was_added_is_taken_off_again_exactly(measured: Profile, empty: Profile, times: int) -> None:
    whole = merge_profiles([measured, *[empty] * times])
    rows = tuple(row for row in measured.functions if any(row.counts))
    assert without(whole, empty, times) == Profile(events=EVENTS, functions=rows)


@given(PROFILES, PROFILES)
def test_no_count_is_negative_and_accesses_are_exact_where_there_are_enough(measured: Profile, empty: Profile) -> None:
    left = without(measured, empty)
    assert all(count >= 0 for row in left.functions for count in row.counts)
    assert all(row.counts[0] >= row.counts[1] >= row.counts[2] for row in left.functions)
    got = dict(zip(EVENTS, left.totals(), strict=True))
    have, owed = (dict(zip(EVENTS, profile.totals(), strict=True)) for profile in (measured, empty))
    assert got["Ir"] == max(0, have["Ir"] - owed["Ir"])
    if all(have[event] >= owed[event] for event in ("Dr", "Dw")):
        # A row may have been short of reads and rich in writes: their sum is what holds.
        assert got["Dr"] + got["Dw"] == have["Dr"] + have["Dw"] - owed["Dr"] - owed["Dw"]


@given(PROFILES)
def test_a_profile_less_itself_is_nothing(profile: Profile) -> None:
    assert without(profile, profile) == Profile(events=EVENTS, functions=())
