"""The state of one benchmark: each is told apart from the others, and from its neighbours at the threshold."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cachegrind_bench.compare.verdict import Cause, Metric, State, compare
from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.metrics import IR_MODEL
from cachegrind_bench.model.result import NO_CACHES
from cachegrind_bench.model.thresholds import Limit
from tests.unit.comparing import counts, difference, gates, measured
from tests.unit.samples import failed_benchmark, result

if TYPE_CHECKING:
    from cachegrind_bench.model.metrics import Counts


def state(base: int, candidate: int, **changes: object) -> State:
    return difference(measured(value=counts(base)), measured(value=counts(candidate)), **changes).state


def test_more_than_the_threshold_is_a_regression_and_exactly_the_threshold_is_not() -> None:
    assert state(1_000_000, 1_005_001) is State.REGRESSION
    assert state(1_000_000, 1_005_000) is State.UNCHANGED
    assert state(1_000_000, 1_000_000, threshold="0%") is State.UNCHANGED
    assert state(1_000_000, 1_000_001, threshold="0%") is State.REGRESSION


def test_an_improvement_is_what_would_be_a_regression_the_other_way_round() -> None:
    assert state(1_005_001, 1_000_000) is State.IMPROVEMENT
    assert state(1_005_000, 1_000_000) is State.UNCHANGED


def test_instructions_that_grow_beyond_the_threshold_are_a_regression_although_the_score_is_within_it() -> None:
    base = measured(value=replace(counts(1_000_000), Dr=600_000))
    worse = measured(value=replace(counts(1_006_000), Dr=600_000))
    found = difference(base, worse)
    assert (found.state, found.causes) == (State.REGRESSION, (Cause.IR,))
    assert difference(worse, base).state is State.IMPROVEMENT
    assert difference(base, worse, threshold="0.6%").state is State.UNCHANGED
    assert difference(base, worse, threshold_ir="1%").state is State.UNCHANGED


def test_instructions_that_move_against_the_score_do_not_decide() -> None:
    base = measured(value=replace(counts(1_000_000), Dr=600_000))
    traded = measured(value=replace(counts(1_006_000), Dr=593_000))
    assert difference(base, traded).state is State.UNCHANGED
    assert difference(traded, base).state is State.UNCHANGED


def test_losing_more_than_half_of_the_instructions_is_suspicious() -> None:
    assert state(1_000_000, 499_999) is State.SUSPICIOUS
    assert state(1_000_000, 500_000) is State.IMPROVEMENT
    assert state(1_000_000, 499_999, max_drop="60%") is State.IMPROVEMENT
    assert state(1_000_000, 999_999, max_drop="0%") is State.SUSPICIOUS


def test_a_score_that_moves_while_ir_stands_still_is_a_shift() -> None:
    base = measured(value=counts(1_000_000))
    found = difference(base, measured(value=counts(1_000_499, ram=400)))
    assert found.state is State.SHIFT
    assert difference(base, measured(value=counts(1_000_500, ram=400))).state is State.REGRESSION
    assert difference(measured(value=counts(1_000_499, ram=400)), base).state is State.SHIFT


def test_a_shift_beyond_its_own_threshold_is_a_regression_however_still_ir_is() -> None:
    base, worse = measured(value=counts(1_000_000)), measured(value=counts(1_000_000, ram=700))
    found = difference(base, worse)
    assert (found.state, found.causes) == (State.REGRESSION, (Cause.CACHE,))
    assert difference(worse, base).state is State.IMPROVEMENT
    assert difference(base, worse, threshold_cache="5%").state is State.SHIFT


def test_below_the_threshold_there_is_no_shift_to_speak_of() -> None:
    assert difference(measured(), measured(value=counts(ram=100))).state is State.UNCHANGED


def test_ir_that_did_not_move_at_all_stands_still_under_any_threshold() -> None:
    assert difference(measured(), measured(value=counts(ram=1)), threshold="0%").state is State.SHIFT


def test_a_threshold_below_what_counts_as_still_takes_small_changes_of_ir_seriously() -> None:
    assert state(1_000_000, 1_000_300, threshold="0.01%") is State.REGRESSION
    assert state(1_000_000, 1_000_300, threshold="0.05%") is State.UNCHANGED


def test_the_threshold_is_never_below_three_times_the_noise_within_a_layout() -> None:
    base = measured(runs=[(0, counts()), (0, counts(1_002_000))])
    found = difference(base, measured(value=counts(1_006_000)))
    assert (found.state, found.threshold) == (State.NOISY, Fraction(6, 1000))
    assert difference(base, measured(value=counts(1_006_001))).state is State.REGRESSION
    assert difference(base, measured(value=counts(1_003_001))).state is State.NOISY, "it may be beyond the threshold"
    assert difference(base, measured(value=counts(1_003_000))).state is State.UNCHANGED
    quiet = measured(runs=[(0, counts()), (0, counts(1_001_000))])
    assert difference(quiet, measured()).state is State.UNCHANGED


def test_noise_of_the_candidate_counts_as_well() -> None:
    noisy = measured(runs=[(0, counts(1_004_000)), (0, counts(1_006_000))])
    assert difference(measured(), noisy).state is State.NOISY


def test_the_range_of_many_calls_is_the_least_threshold_and_no_noise() -> None:
    base = measured(runs=[(0, counts(1_000_000 + 2_000 * number)) for number in range(-3, 4)])
    found = difference(base, measured(value=counts(1_011_000)))
    assert found.change is not None
    assert (found.state, found.threshold) == (State.UNCHANGED, found.change.score.spread)
    assert found.change.score.spread == Fraction(12_000, 994_000)
    assert difference(base, measured(value=counts(1_013_000))).state is State.REGRESSION


def test_four_calls_that_swing_are_many_since_counting_ends_there() -> None:
    swinging = measured(runs=[(0, counts(value)) for value in (1_002_000, 1_001_100, 1_000_000, 1_001_200)])
    found = difference(swinging, measured(value=counts(1_001_000)))
    assert found.state is State.UNCHANGED
    assert difference(swinging, measured(value=counts(1_010_000))).state is State.REGRESSION


def test_other_layouts_are_no_noise() -> None:
    layouts = [(0, counts()), (1, counts(ram=1000))]
    found = difference(measured(runs=layouts), measured(runs=layouts))
    assert found.state is State.UNCHANGED
    assert found.change is not None
    assert found.change.score.noise == 0


def test_the_median_of_the_pairwise_deltas_decides() -> None:
    base = measured(runs=[(number, counts(ram=100 * number)) for number in range(3)])
    candidate = measured(
        runs=[(0, counts(1_030_000)), (1, counts(1_010_000, ram=100)), (2, counts(1_011_000, ram=200))]
    )
    found = difference(base, candidate)
    assert found.state is State.REGRESSION
    assert found.change is not None
    assert found.change.score.relative == Fraction(11_000, 1_005_800)


def test_the_margin_is_half_of_what_layouts_runs_or_calls_differ_by() -> None:
    def margin(base: list[tuple[int, Counts]], candidate: list[tuple[int, Counts]]) -> Fraction:
        moved = difference(measured(runs=base), measured(runs=candidate)).change
        assert moved is not None
        return moved.ir.margin

    still = [(0, counts()), (1, counts(1_100_000))]
    assert margin(still, still) == 0
    assert margin(still, [(0, counts(1_004_000)), (1, counts(1_100_000))]) == Fraction(2, 1000)
    repeated = [(0, counts()), (0, counts(1_006_000))]
    assert margin(repeated, [(0, counts())]) == Fraction(3, 1000)
    assert margin([(0, counts(1_000_000 + 1_000 * number)) for number in range(9)], [(0, counts())]) == Fraction(
        4, 1000
    )


def test_mixed_signs_mean_a_shift() -> None:
    base = measured(runs=[(0, counts()), (1, counts()), (2, counts())])
    candidate = measured(runs=[(0, counts(1_010_000)), (1, counts(1_012_000)), (2, counts(990_000))])
    assert difference(base, candidate).state is State.SHIFT


def test_the_same_work_that_some_layouts_serve_better_and_others_worse_is_a_shift_however_far_it_moved() -> None:
    base = measured(runs=[(layout, counts(ram=1000)) for layout in range(3)])
    candidate = measured(runs=[(0, counts(ram=8000)), (1, counts(ram=9000)), (2, counts(ram=500))])
    found = difference(base, candidate)
    assert found.change is not None
    assert found.change.score.signed > Fraction(2, 100)
    assert found.state is State.SHIFT
    worse = measured(runs=[(0, counts(ram=8000)), (1, counts(ram=9000)), (2, counts(ram=7000))])
    assert difference(base, worse).state is State.REGRESSION


def test_layouts_of_one_side_only_are_left_out_and_without_a_common_one_nothing_compares() -> None:
    base = measured(runs=[(0, counts()), (1, counts())])
    found = difference(base, measured(runs=[(1, counts()), (2, counts(2_000_000))]))
    assert found.state is State.UNCHANGED
    assert found.change is not None
    assert (found.change.layouts, found.change.layouts_left_out) == (1, 2)
    assert difference(base, measured(runs=[(2, counts())])).state is State.NOT_COMPARABLE


def test_of_repetitions_in_a_layout_the_lower_median_is_compared() -> None:
    base = measured(runs=[(0, counts(value)) for value in (1_000_002, 1_000_000, 1_000_001, 1_000_003)])
    found = difference(base, measured(value=counts(1_000_001)))
    assert found.change is not None
    assert found.change.score.relative == 0


def test_by_ir_the_score_does_not_decide() -> None:
    base = measured()
    assert difference(base, measured(value=counts(ram=400)), metric=Metric.IR).state is State.SHIFT
    assert difference(base, measured(value=counts(1_002_000, ram=1000)), metric=Metric.IR).state is State.UNCHANGED
    far = difference(base, measured(value=counts(ram=1000)), metric=Metric.IR)
    assert (far.state, far.causes) == (State.REGRESSION, (Cause.CACHE,))
    assert state(1_000_000, 1_006_000, metric=Metric.IR) is State.REGRESSION
    assert state(1_000_000, 1_006_000, metric=Metric.IR, threshold_ir="1%") is State.UNCHANGED


def test_growth_of_ir_can_be_gated_beside_the_score() -> None:
    base, other = measured(value=counts(ram=1000)), measured(value=counts(1_004_000, ram=900))
    assert difference(base, other).state is State.UNCHANGED
    found = difference(base, other, threshold_ir="0.3%")
    assert (found.state, found.causes) == (State.REGRESSION, (Cause.IR,))
    worse = difference(measured(), measured(value=counts(1_010_000)), threshold_ir="0.3%")
    assert worse.causes == (Cause.THRESHOLD, Cause.IR)


def test_a_limit_makes_a_regression_of_anything_that_was_measured() -> None:
    limits = (Limit(pattern="sie*", name="Ir", value=999_999),)
    found = difference(measured(), measured(), limits=limits)
    assert (found.state, found.causes, found.broken[0].value) == (State.REGRESSION, (Cause.LIMIT,), 1_000_000)
    assert difference(measured(), measured(value=counts(999_999)), limits=limits).state is State.UNCHANGED
    assert difference(measured(), measured(key="other"), limits=limits).state is State.REGRESSION
    assert difference(measured(), failed_benchmark(), limits=limits).state is State.FAILED
    assert difference(failed_benchmark(), measured(), limits=limits).state is State.REGRESSION


@pytest.mark.parametrize("failed_first", [True, False])
def test_a_failure_on_either_side_is_one(failed_first: bool) -> None:
    sides = [failed_benchmark(), measured()]
    before, after = sides if failed_first else reversed(sides)
    assert difference(before, after).state is State.FAILED


def test_differing_keys_are_not_compared_unless_forced_and_the_fields_are_named() -> None:
    base = measured(key_fields={"libc": "abc", "tool": "cachegrind"})
    other = measured(key="other", key_fields={"libc": "def", "tool": "cachegrind", "extra": "1"})
    found = difference(base, other)
    assert (found.state, found.change, found.forced) == (State.NOT_COMPARABLE, None, False)
    assert [(field.name, field.base, field.candidate) for field in found.fields] == [
        ("extra", None, "1"),
        ("libc", "abc", "def"),
    ]
    forced = difference(base, other, force=True)
    assert (forced.state, forced.forced) == (State.UNCHANGED, True)
    assert not difference(base, base, force=True).forced


def test_results_without_caches_are_compared_by_ir_with_those_that_have_them() -> None:
    full, only_ir = measured(value=counts(1_000_000, ram=900)), measured(value=counts(1_000_000), key="of ir")
    before, after = result(full), result(only_ir)
    after = replace(after, env=replace(after.env, fields={**after.env.fields, "geometry": NO_CACHES}))
    for base, candidate in ((before, after), (after, before)):
        found = compare(base, candidate, gates())
        assert (found.verdict, found.model) == (State.UNCHANGED, IR_MODEL)
        assert found.remarks == (
            f"compared by Ir: no caches were simulated for the {'candidate' if base is before else 'base'}",
        )
    slower = replace(after, benchmarks=(measured(value=counts(1_006_000), key="of ir"),))
    assert compare(before, slower, gates()).verdict is State.REGRESSION
    other = replace(after, benchmarks=(measured(value=counts(), key="other", key_fields={"libc": "another"}),))
    assert compare(before, other, gates()).verdict is State.NOT_COMPARABLE


def test_a_limit_of_what_only_caches_tell_is_an_error_without_them() -> None:
    limit = Limit(pattern="*", name="RAM", value=1)
    with pytest.raises(UsageError, match=r"the limit of RAM for '\*' needs simulated caches"):
        difference(measured(), measured(), limits=(limit,))
