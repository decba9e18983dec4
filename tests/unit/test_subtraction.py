"""The empty region is subtracted row by row, and what is left adds up."""

from __future__ import annotations

from cachegrind_bench.model.metrics import EVENTS, Counts, FunctionCost, Profile, without


def _profile(rows: dict[str, tuple[int, ...]]) -> Profile:
    return Profile(events=EVENTS, functions=tuple(FunctionCost("f.c", name, rows[name]) for name in sorted(rows)))


def _counts(**events: int) -> tuple[int, ...]:
    return tuple(events.get(name, 0) for name in EVENTS)


def test_what_both_have_cancels() -> None:
    body = _profile({"call": _counts(Ir=10, Dr=3), "work": _counts(Ir=90, Dr=20)})
    left = without(body, _profile({"call": _counts(Ir=10, Dr=3)}))
    assert left == _profile({"work": _counts(Ir=90, Dr=20)})


def test_an_equal_region_leaves_nothing_even_where_misses_differ() -> None:
    body = _profile({"call": _counts(Ir=10, Dr=3, D1mr=2)})
    assert without(body, _profile({"call": _counts(Ir=10, Dr=3)})).counts() == Counts.of([0] * 9)


def test_what_a_row_lacks_is_taken_from_the_largest_row() -> None:
    body = _profile({"call": _counts(Ir=8), "small": _counts(Ir=5), "work": _counts(Ir=90)})
    left = without(body, _profile({"call": _counts(Ir=10)}))
    assert left == _profile({"small": _counts(Ir=5), "work": _counts(Ir=88)})


def test_a_write_that_is_missing_was_booked_as_a_read() -> None:
    left = without(_profile({"call": _counts(Ir=9, Dr=9)}), _profile({"call": _counts(Ir=5, Dr=3, Dw=2)}))
    assert left.counts().as_dict() | {"Ir": 0} == Counts.of(_counts(Dr=4)).as_dict()


def test_a_function_that_only_measured_has_no_misses_left() -> None:
    body = _profile({"call": _counts(Ir=10, I1mr=3, Dr=3, D1mr=2), "work": _counts(Ir=5)})
    left = without(body, _profile({"call": _counts(Ir=10, Dr=3)}))
    assert left == _profile({"work": _counts(Ir=5)})
