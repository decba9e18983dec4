"""Changes that come from misses of CPython's method cache alone are recognised as such."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cachegrind_bench.compare.verdict import Conclusion, State, recognise_layout
from cachegrind_bench.model.thresholds import limit
from tests.unit.comparing import compared, counts, measured
from tests.unit.samples import profile_of

if TYPE_CHECKING:
    from typing import Any

    from cachegrind_bench.compare.verdict import Comparison

# Instructions of two runs of one benchmark of pyparsing, rounded: more look-ups share entries in the second one.
BEFORE = {
    "_PyEval_EvalFrameDefault": 995_000,
    "find_name_in_mro": 11_000,
    "_PyType_Lookup.lto_priv.0": 126_000,
    "_Py_dict_lookup": 73_000,
    "unicodekeys_lookup_unicode": 150_000,
    "_PyDict_GetItem_KnownHash": 21_000,
    "memcpy": 1_945_000,
}
MORE_MISSES = {
    "find_name_in_mro": 35_000,
    "_PyType_Lookup.lto_priv.0": 130_000,
    "_Py_dict_lookup": 114_000,
    "unicodekeys_lookup_unicode": 206_000,
    "_PyDict_GetItem_KnownHash": 31_000,
}


def recognised(changes: dict[str, int], *, base: dict[str, int] = BEFORE, **gates: Any) -> Comparison:
    """Compare a run with one in which these functions took so many instructions."""
    profiles = [profile_of(**{name: counts(ir) for name, ir in side.items()}) for side in (base, {**base, **changes})]
    sides = [measured(value=profile.counts()) for profile in profiles]
    before, after = ({side.id: profile} for side, profile in zip(sides, profiles, strict=True))
    return recognise_layout(compared(sides[0], sides[1], **gates), before.get, after.get)


def test_more_misses_are_no_regression_and_fewer_no_improvement() -> None:
    found = recognised(MORE_MISSES)
    assert found.verdict is State.SHIFT
    assert found.conclusion() is Conclusion.FINE
    assert recognised(BEFORE, base={**BEFORE, **MORE_MISSES}).verdict is State.SHIFT


@pytest.mark.parametrize(
    "changes",
    [
        {**MORE_MISSES, "_PyEval_EvalFrameDefault": 1_040_000},  # it does more beside them
        {"_Py_dict_lookup": 114_000, "unicodekeys_lookup_unicode": 206_000},  # dictionaries that no miss looks into
        {**MORE_MISSES, "unicodekeys_lookup_unicode": 400_000},  # and far more than that
        {**MORE_MISSES, "PyType_Modified": 500},  # the code empties the cache
        {"memcpy": 2_000_000},
    ],
)
def test_what_misses_do_not_explain_is_a_regression(changes: dict[str, int]) -> None:
    assert recognised(changes).verdict is State.REGRESSION


def test_misses_beyond_a_tenth_are_a_regression() -> None:
    assert recognised({name: ir * 10 for name, ir in MORE_MISSES.items()}).verdict is State.REGRESSION


def test_an_absolute_limit_holds_whatever_the_reason() -> None:
    assert recognised(MORE_MISSES, limits=(limit("sieve:Ir=3_400_000"),)).verdict is State.REGRESSION


def test_without_profiles_nothing_is_recognised() -> None:
    base, candidate = measured(value=counts(1_000_000)), measured(value=counts(1_030_000))
    comparison = compared(base, replace(candidate, profile=None))
    assert recognise_layout(comparison, lambda _: None, lambda _: None) == comparison
