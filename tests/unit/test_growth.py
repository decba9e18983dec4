"""How costs grow with the size of the input: sizes and classes as they are written, fits of exact counts, and what is beyond a bound."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachegrind_bench.compare.growth import Growth, growth_change, growths
from cachegrind_bench.compare.verdict import State, compare, with_growth
from cachegrind_bench.errors import UsageError
from cachegrind_bench.history.findings import find
from cachegrind_bench.history.growth import EXPONENT, LIMITS
from cachegrind_bench.history.series import series_set
from cachegrind_bench.history.trend import trend
from cachegrind_bench.history.values import Kind, Provenance
from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.growth import fit, log2
from cachegrind_bench.model.metrics import Profile
from cachegrind_bench.model.result import Benchmark, Commit, Point, Scale, Snapshot
from cachegrind_bench.model.sizes import CLASSES, GrowthClass, class_of, sizes_of
from cachegrind_bench.render.growth import change_remarks, report
from cachegrind_bench.render.table import render
from cachegrind_bench.render.trend.html import page
from tests.unit.comparing import counts, gates
from tests.unit.samples import benchmark, profile_of, result

SIZES = (1000, 2000, 4000, 8000, 16000)
START = 150_000


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("1000..16000x2", SIZES),
        ("1000 .. 16000 x2", SIZES),
        ("1000..20000*2", SIZES),
        ("10..25+5", (10, 15, 20, 25)),
        ("1_000, 2_000,4000,8000", SIZES[:4]),
    ],
)
def test_sizes_are_a_range_or_a_list(text: str, sizes: Sequence[int]) -> None:
    assert sizes_of(text, "--sizes") == sizes


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("1000,500,250,125", "must ascend"),
        ("1000,2000,4000", "4 to 64 numbers, not 3"),
        ("1..100+1", "4 to 64 numbers, not 65"),
        ("-1,2,3,4", "from 1 to"),
        ("0..100x2", "from 1 to 1,000,000,000,000,000, not 0"),
        ("10..100x1", "never gets"),
        ("many", "are not sizes"),
        ("1__0..100x2", "are not sizes"),
        (1000, "a range or a list"),
        ([1, 2, 3, True], "whole numbers"),
    ],
)
def test_what_are_not_sizes_is_refused_in_one_sentence(given: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        sizes_of(given, "--sizes")


@pytest.mark.parametrize("text", ["n log n", "O(n log n)", "n*log(n)", "n log2 n", " n  log n "])
def test_classes_are_written_as_people_write_them(text: str) -> None:
    assert class_of(text, "--bound") == "n log n"


def test_what_is_not_a_class_is_refused_with_those_that_there_are() -> None:
    assert [class_of(name, "growth") for name in CLASSES] == list(CLASSES)
    assert class_of("n^2", "growth") == "n²"
    with pytest.raises(UsageError, match="is not a class") as caught:
        class_of("n!", "growth")
    assert "n log n" in str(caught.value.hint)


@given(st.integers(1, 2**70))
def test_logarithms_are_right_to_the_last_bit(number: int) -> None:
    found = log2(number)
    assert abs(found - Fraction(math.log2(number))) < Fraction(1, 2**40)
    assert found.denominator <= 2**64
    assert log2(2 * number) == found + 1


FUNCTIONS: dict[GrowthClass, Callable[[int], float]] = {
    "1": lambda _n: 0,
    "log n": lambda n: 9000 * math.log2(n),
    "n": lambda n: 31 * n,
    "n log n": lambda n: 7 * n * math.log2(n),
    "n^1.5": lambda n: 3 * n**1.5,
    "n²": lambda n: n * n / 4,
    "n² log n": lambda n: n * n * math.log2(n),
    "n³": lambda n: n**3,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_class_is_found_whatever_the_start_costs(name: GrowthClass) -> None:
    for start in (1, START, 3_000_000):
        found = fit([(size, start + round(FUNCTIONS[name](size))) for size in SIZES])
        assert (found.growth, found.clear) == (name, True)
        if name != "1":
            assert abs(found.constant - start) <= max(start, 2000) / 100


def test_an_exponential_class_has_its_base() -> None:
    found = fit([(size, START + round(10 * 1.618**size)) for size in range(14, 26, 2)])
    assert (found.growth, found.name, found.clear) == ("2^n", "1.62^n", True)
    assert found.at(201) is None


def test_a_quadratic_part_is_seen_below_a_linear_one() -> None:
    found = fit([(size, START + 1000 * size + size * size // 50) for size in SIZES])
    assert (found.growth, found.clear) == ("n²", True)
    assert found.at(160_000) == pytest.approx(START + 160_000_000 + 160_000**2 / 50, rel=1e-3)


def test_a_fit_is_the_same_to_the_last_digit() -> None:
    found = fit([(size, START + 7 * size * size.bit_length()) for size in SIZES])
    assert (found.growth, found.better, found.exponents) == ("n log n", None, (1138, 1126, 1115, 1107))
    digest = hashlib.sha256(f"{found.constant} {found.lower} {found.factor}".encode()).hexdigest()
    assert digest[:16] == "944100247b5aa081"


def test_ties_are_broken_by_the_class_that_grows_least() -> None:
    found = fit([(size, 5) for size in SIZES])
    assert (found.growth, found.other, found.better) == ("1", "log n", None)


def test_what_no_class_fits_is_in_doubt() -> None:
    assert not fit(list(zip(SIZES, (200_000, 210_000, 500_000, 510_000, 1_500_000), strict=True))).clear


def sized(size: int, work: int, helper: int, **scale: object) -> Benchmark:
    profile = profile_of(main=counts(START), work=counts(work), helper=counts(helper))
    place = Scale(**{"group": "sort", "size": size, **scale})  # type: ignore[arg-type]
    return benchmark(id=f"sort[size={size}]", counts=profile.counts(), profile=profile, scale=place)


def group(helper: Callable[[int], int], **scale: object) -> list[Benchmark]:
    return [sized(size, 1000 * size, helper(size), **scale) for size in SIZES]


def grown(benchmarks: Sequence[Benchmark]) -> Growth:
    profiles: dict[str, Profile | None] = {item.id: item.profile for item in benchmarks}
    return growths(benchmarks, profiles.__getitem__, lambda _id: None)["sort"]


def linear(size: int) -> int:
    return 20 * size


def quadratic(size: int) -> int:
    return size * size // 800


def test_the_function_that_will_dominate_is_named_while_the_whole_hardly_shows_it() -> None:
    found = grown(group(quadratic))
    assert found.worst is not None
    assert (found.worst.name, found.worst.fit.growth, found.growth) == ("helper", "n²", "n²")
    assert found.worst.shares[0] < Fraction(1, 40)
    assert found.worst.shares[2] > Fraction(1, 2)
    assert sum(item.shares[1] for item in found.functions) <= 1


def test_growing_worse_than_the_base_is_a_regression_and_a_bound_goes_before_it() -> None:
    before, after = grown(group(linear)), grown(group(quadratic))
    assert growth_change(before, after).exceeds == "n"
    assert growth_change(before, before).exceeds is None
    assert growth_change(after, before).improved
    assert growth_change(None, after).exceeds is None
    bounded = grown(group(quadratic, bound="n log n"))
    assert growth_change(None, bounded).exceeds == "n log n"
    assert growth_change(before, grown(group(quadratic, bound="n²"))).exceeds is None
    assert "helper (main.c) grows with n²" in " ".join(change_remarks(growth_change(before, after)))


# A Python function that got a loop with `row = row[1:]`: longer lists come from another allocator than short ones.
CUT_OFF = {48: 190_281, 96: 385_627, 192: 811_955, 384: 1_798_637, 768: 4_235_538}


def test_what_is_in_doubt_between_two_classes_is_a_regression_if_both_are_beyond_the_base() -> None:
    found = fit(list(CUT_OFF.items()))
    assert (found.growth, found.clear, CLASSES[found.least], CLASSES[found.most]) == ("n²", False, "n²", "n² log n")
    before = grown([sized(size, 30_000 * size, 3300 * size) for size in CUT_OFF])
    after = grown([sized(size, 30_000 * size, helper) for size, helper in CUT_OFF.items()])
    change = growth_change(before, after)
    assert (change.exceeds, after.growth) == ("n", "n²")
    assert "helper (main.c) grows with n² or n² log n" in " ".join(change_remarks(change))
    assert growth_change(after, before).improved
    # In the base it may have been either: that it now is sure to be the worse one is no regression.
    worse = grown([sized(size, 30_000 * size, round(FUNCTIONS["n² log n"](size))) for size in CUT_OFF])
    assert growth_change(after, worse).exceeds is None


def test_a_function_is_no_regression_if_the_base_has_no_profile_that_could_show_it() -> None:
    bare = growths(group(quadratic), lambda _id: None, lambda _id: None)["sort"]
    after = grown(group(quadratic))
    for sides in ((bare, after), (after, bare)):
        change = growth_change(*sides)
        assert (change.exceeds, change.improved) == (None, False)
        assert "only the whole is compared" in " ".join(change_remarks(change))
    assert "whole" not in " ".join(change_remarks(growth_change(after, after)))
    assert growth_change(bare, grown(group(quadratic, bound="n"))).exceeds == "n"


def test_a_group_has_a_difference_of_its_own_and_the_worst_state_holds() -> None:
    base, candidate = result(benchmarks=tuple(group(linear))), result(benchmarks=tuple(group(quadratic)))
    plain = compare(base, candidate, gates(threshold="50%"))
    found = with_growth(plain, {"sort": grown(base.benchmarks)}, {"sort": grown(candidate.benchmarks)})
    assert found.verdict is State.REGRESSION
    assert [item.id for item in found.differences if item.state is State.REGRESSION] == ["sort (growth)"]
    same = with_growth(plain, {"sort": grown(base.benchmarks)}, {"sort": grown(base.benchmarks)})
    assert same.verdict is State.UNCHANGED


def test_a_group_of_which_too_few_sizes_were_chosen_is_not_compared() -> None:
    (base,), (candidate,) = group(linear)[:1], group(quadratic)[:1]
    plain = compare(result(benchmarks=(base,)), result(benchmarks=(candidate,)), gates(threshold="1%"))
    whole = grown(group(linear))
    for before in (grown([base]), whole):
        assert with_growth(plain, {"sort": before}, {"sort": grown([candidate])}) == plain


def test_three_sizes_say_nothing_and_the_report_says_so() -> None:
    found = grown(group(linear)[:3])
    assert (found.growth, found.judged) == (None, None)
    assert "only 3 sizes" in render(report(found))


def test_the_report_advises_which_sizes_to_add() -> None:
    close = [sized(size, 1000 * size + (size % 7) * 9000, 1) for size in (1000, 1100, 1200, 1300)]
    text = render(report(grown(close)))
    assert "in doubt" in text
    assert "add sizes up to 16,000" in text


def test_where_the_working_set_leaves_a_cache_is_reported() -> None:
    def one(size: int) -> Benchmark:
        ram = 10 * size if size > 4000 else 20
        return benchmark(
            id=f"sort[size={size}]", counts=counts(START + 1000 * size, ram=ram), scale=Scale(group="sort", size=size)
        )

    text = render(report(growths(map(one, SIZES), lambda _id: None, lambda _id: None)["sort"]))
    assert "leaves the first level and last level between 4,000 and 8,000" in text


def test_a_result_file_keeps_sizes_and_refuses_what_are_none() -> None:
    whole = result(benchmarks=tuple(group(linear, bound="n", predict=10**6)))
    data = encode(whole)
    assert decode(data, "r.json").benchmarks[0].scale == Scale(group="sort", size=1000, bound="n", predict=10**6)
    for wrong in (data.replace(b'"bound":"n"', b'"bound":"n!"'), data.replace(b'"size":1000', b'"size":0')):
        with pytest.raises(UsageError, match="scale"):
            decode(wrong, "r.json")


def stored(number: int, helper: Callable[[int], int], sizes: int = len(SIZES)) -> Snapshot:
    """Return the run of a commit, as a history has it."""
    points = [
        Point(id=item.id, key=item.key, status=item.status, counts=item.counts, score=item.score, scale=item.scale)
        for item in group(helper)[:sizes]
    ]
    at = f"2026-01-{number + 1:02}T00:00:00Z"
    commit = Commit(sha=f"{number:040x}", parent=None, branch="main", dirty=False, committed_at=at)
    return Snapshot(
        uid=f"{number:016x}",
        tool_version="1",
        created_at=at,
        commit=commit,
        env_key="0123456789ab",
        points=tuple(points),
    )


def test_the_exponent_is_a_series_whose_step_is_found_and_drawn_with_both_sides() -> None:
    found = series_set([stored(number, linear if number < 4 else lambda size: size * size // 2) for number in range(8)])
    series = next(item for item in found.series if item.id == "sort (growth)")
    assert (series.model, [reading.value for reading in series.readings][3:5]) == (EXPONENT, [1000, 1848])
    (finding,) = find(series, found.line, options=LIMITS)
    assert (finding.kind, finding.index) == (Kind.REGRESSION, 4)
    made = Provenance(title="p", created_at="2026-01-09T00:00:00Z", tool_version="1", store="file:x")
    text = page(trend(found, [finding], made))
    assert text.count('<figure class="curves">') == 1
    assert "now, 000000000000: n²" in text
    assert "before, 000000000000: n<" in text


def test_fewer_than_four_sizes_are_no_series() -> None:
    found = series_set([stored(0, linear, sizes=3)])
    assert [item.id for item in found.series if item.model == EXPONENT] == []
