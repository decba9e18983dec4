"""The algebra of comparing: nothing differs from itself, and both directions tell the same story."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from cachegrind_bench.compare.explain import details
from cachegrind_bench.compare.verdict import Conclusion, State, compare
from cachegrind_bench.model.metrics import EVENTS, ZERO, Counts, FunctionCost, Profile
from tests.unit.comparing import gates, measured
from tests.unit.samples import failed_benchmark, result

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Benchmark

# Every other state is its own mirror image.
MIRRORED = {
    State.REGRESSION: {State.IMPROVEMENT},
    State.IMPROVEMENT: {State.REGRESSION},
    State.NEW: {State.MISSING},
    State.MISSING: {State.NEW, State.FAILED},  # whatever it was that is missing
    State.FAILED: {State.FAILED, State.MISSING},
}

NAMES = st.sampled_from(["parse", "_ZN5parse4line17h0123456789abcdefE", "f.constprop.0", "f", "malloc", "???"])
FILES = st.sampled_from(["/a/x.c", "/b/x.c", "/a/y.c", "???"])


@st.composite
def counts(draw: st.DrawFn) -> Counts:
    ir = draw(st.one_of(st.integers(1, 3000), st.integers(990_000, 1_010_000)))
    reads, writes = draw(st.integers(0, 500)), draw(st.integers(0, 500))
    i1, dr, dw = draw(st.integers(0, ir)), draw(st.integers(0, reads)), draw(st.integers(0, writes))
    last = [draw(st.integers(0, first)) for first in (i1, dr, dw)]
    return Counts(Ir=ir, I1mr=i1, ILmr=last[0], Dr=reads, D1mr=dr, DLmr=last[1], Dw=writes, D1mw=dw, DLmw=last[2])


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    keys = draw(st.lists(st.tuples(FILES, NAMES), min_size=1, max_size=6, unique=True))
    rows = tuple(FunctionCost(file, name, draw(counts()).as_tuple()) for file, name in sorted(keys))
    return Profile(events=EVENTS, functions=rows)


@st.composite
def benchmarks(draw: st.DrawFn, name: str) -> Benchmark:
    if not draw(st.integers(0, 7)):
        return failed_benchmark(id=name)
    profile = draw(profiles())
    runs = draw(st.lists(st.tuples(st.integers(0, 2), counts()), max_size=4))
    key = draw(st.sampled_from(["0123456789ab", "0123456789ab", "0123456789ab", "other"]))
    return measured(name, profile.counts(), runs=runs, key=key, profile=profile)


@st.composite
def sides(draw: st.DrawFn) -> list[Benchmark]:
    names = draw(st.lists(st.sampled_from("abcd"), unique=True))
    return [draw(benchmarks(name)) for name in names]


THRESHOLDS = st.sampled_from(["0%", "0.01%", "0.5%", "10%"])


@given(side=sides(), threshold=THRESHOLDS)
def test_nothing_differs_from_itself(side: list[Benchmark], threshold: str) -> None:
    whole = result(*side) if side else result(measured(), benchmarks=())
    found = compare(whole, whole, gates(threshold=threshold))
    assert {item.state for item in found.differences} <= {State.UNCHANGED, State.NOISY, State.FAILED}
    for item in found.differences:
        if item.change is not None:
            assert item.change.score.relative == item.change.ir.relative == 0
            assert item.base is not None
            assert item.base.profile is not None
            why = details(item.base.profile, item.base.profile, found)
            assert (why.rows, why.moved, why.blamed) == ((), (), None)


@given(base=sides(), candidate=sides(), threshold=THRESHOLDS)
def test_the_other_direction_is_the_mirror_image(
    base: list[Benchmark], candidate: list[Benchmark], threshold: str
) -> None:
    before, after = (result(*side) if side else result(measured(), benchmarks=()) for side in (base, candidate))
    held = gates(threshold=threshold, max_drop="100%")  # a suspicious drop is no mirror image of anything
    there = {item.id: item for item in compare(before, after, held).differences}
    back = {item.id: item for item in compare(after, before, held).differences}
    assert there.keys() == back.keys()
    for name, one in there.items():
        other = back[name]
        assert other.state in MIRRORED.get(one.state, {one.state}), (one.state, other.state)
        assert [(field.name, field.base) for field in one.fields] == [(f.name, f.candidate) for f in other.fields]
        if one.change is not None:
            assert other.change is not None
            assert one.change.score.signed == -other.change.score.signed
            assert one.change.ir.signed == -other.change.ir.signed
            assert one.change.score.noise == other.change.score.noise
            assert one.threshold == other.threshold


@given(base=profiles(), candidate=profiles(), rows=st.integers(0, 8), by_file=st.booleans())
def test_rows_and_everything_else_always_add_up(base: Profile, candidate: Profile, rows: int, by_file: bool) -> None:
    before, after = result(measured(profile=base)), result(measured(profile=candidate))
    why = details(base, candidate, compare(before, after, gates()), rows=rows, by_file=by_file)
    assert len(why.rows) <= rows
    assert sum((row.delta for row in (*why.rows, *why.rest)), ZERO) == why.total == candidate.counts() - base.counts()


@given(base=sides(), candidate=sides())
def test_green_means_that_something_was_compared_and_nothing_is_worse(
    base: list[Benchmark], candidate: list[Benchmark]
) -> None:
    before, after = (result(*side) if side else result(measured(), benchmarks=()) for side in (base, candidate))
    found = compare(before, after, gates())
    if found.conclusion() is Conclusion.FINE:
        assert found.compared
        assert {item.state for item in found.differences} <= {
            State.NOISY,
            State.SHIFT,
            State.IMPROVEMENT,
            State.NEW,
            State.UNCHANGED,
        }
    assert all(item.threshold >= Fraction(0) for item in found.differences)
