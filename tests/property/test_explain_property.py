"""The algebra of explanations: they add up, mirror, and say nothing of what is equal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cachegrind_bench.compare.explain import Explanation, blamed, explain, ranked
from cachegrind_bench.compare.pairing import changed_objects, normalised
from cachegrind_bench.model.metrics import EVENTS, ZERO, Counts, FunctionCost, Profile
from cachegrind_bench.model.result import ObjectFile
from cachegrind_bench.model.symbols import folded

# Few of each, so that they meet: the same function in other files, other builds, under other suffixes.
files = st.one_of(
    st.builds(
        "{}/{}".format,
        st.sampled_from(["", "/a", "/b", "/a/src", "/b/src", ".", "/rustc/" + "a" * 40, "/rustc/" + "b" * 40]),
        st.sampled_from(["x.c", "y.c", "???", "../x.c", ""]),
    ),
    st.sampled_from(["???", "x.c", ""]),
    st.text(max_size=6),
)
names = st.one_of(
    st.builds(
        "{}{}".format,
        st.sampled_from(
            [
                "f",
                "g",
                "???",
                "main.f.func1",
                "_ZZ4mainENKUliE_clEi",
                "_ZZ4mainENKUliE0_clEi",
                "_ZN1a5apply17h5ec9d6b6b1836e08E",
            ]
        ),
        st.sampled_from(["", ".cold", ".part.0", ".constprop.0.isra.1", "@@V_1", ".1"]),
    ),
    st.text(max_size=6),
)
events = st.lists(st.integers(0, 3), min_size=9, max_size=9).map(tuple)
profiles = st.dictionaries(st.tuples(files, names), events, max_size=12).map(
    lambda rows: Profile(
        events=EVENTS, functions=tuple(FunctionCost(*names, counts) for names, counts in sorted(rows.items()))
    )
)


def ir(counts: Counts) -> int:
    return counts.Ir


def summed(explanation: Explanation) -> Counts:
    return sum((row.delta for row in explanation.functions), ZERO)


def total(profile: Profile) -> Counts:
    return profile.counts() if profile.functions else ZERO


@given(profiles, profiles)
def test_rows_always_add_up(base: Profile, candidate: Profile) -> None:
    found = explain(base, candidate)
    assert found.total == total(candidate) - total(base)
    assert summed(found) == found.total
    assert sum((row.delta for row in found.files), ZERO) == found.total
    assert all(row.base != row.candidate for row in (*found.functions, *found.files))


@given(profiles, profiles)
def test_every_row_of_a_profile_is_in_one_function_at_most(base: Profile, candidate: Profile) -> None:
    found = explain(base, candidate)
    for profile, keys in (
        (base, [key for row in found.functions for key in row.base_keys]),
        (candidate, [key for row in found.functions for key in row.candidate_keys]),
    ):
        assert len(keys) == len(set(keys))
        assert set(keys) <= {(row.file, row.name) for row in profile.functions}


@given(profiles, profiles)
def test_swapping_the_sides_mirrors_the_explanation(base: Profile, candidate: Profile) -> None:
    one, other = explain(base, candidate), explain(candidate, base)
    assert one.total == ZERO - other.total
    assert {(row.base, row.candidate, row.base_keys, row.candidate_keys) for row in one.functions} == {
        (row.candidate, row.base, row.candidate_keys, row.base_keys) for row in other.functions
    }
    assert {(row.name, row.base, row.candidate) for row in one.files} == {
        (row.name, row.candidate, row.base) for row in other.files
    }
    assert sorted((folded(row.name), row.base_file, row.candidate_file) for row in one.moved) == (
        sorted((folded(row.name), row.candidate_file, row.base_file) for row in other.moved)
    )


@given(profiles)
def test_a_profile_does_not_differ_from_itself(profile: Profile) -> None:
    found = explain(profile, profile)
    assert (found.total, found.functions, found.moved, found.files) == (ZERO, (), (), ())


@given(profiles, profiles)
def test_the_largest_rows_come_first_and_none_is_left_out(base: Profile, candidate: Profile) -> None:
    found = explain(base, candidate)
    best = ranked(found.functions, ir)
    assert sum((row.delta for row in best), ZERO) == found.total
    assert set(best) == set(found.functions)
    sizes = [abs(row.delta.Ir) for row in best]
    assert sizes == sorted(sizes, reverse=True)


@given(profiles, profiles)
def test_somebody_is_blamed_where_the_total_moved(base: Profile, candidate: Profile) -> None:
    found = explain(base, candidate)
    culprit = blamed(found, ir)
    assert culprit is not None or found.total.Ir == 0
    assert culprit is None or found.total.Ir == 0 or (culprit.delta.Ir > 0) == (found.total.Ir > 0)


@given(st.one_of(names, st.text(st.sampled_from("._@$#{}'019abZRNsC_func-"), max_size=30), st.text()))
def test_folding_twice_is_folding_once(name: str) -> None:
    assert folded(folded(name)) == folded(name)
    assert bool(folded(name)) == bool(name)


@given(st.one_of(files, st.text(st.sampled_from("./a"), max_size=12)))
def test_normalising_twice_is_normalising_once(path: str) -> None:
    assert normalised(normalised(path)) == normalised(path)


objects = st.lists(
    st.builds(
        ObjectFile,
        path=st.builds(
            "{}/{}".format, st.sampled_from(["/a", "/b"]), st.sampled_from(["p", "q", "l.so.1", "l.so.2", "m.so"])
        ),
        build_id=st.sampled_from("123"),
    ),
    max_size=6,
)


@given(objects, objects)
def test_changes_of_libraries_mirror_too(base: list[ObjectFile], candidate: list[ObjectFile]) -> None:
    assert changed_objects(base, base) == ()
    assert sorted((str(item.base), str(item.candidate)) for item in changed_objects(base, candidate)) == sorted(
        (str(item.candidate), str(item.base)) for item in changed_objects(candidate, base)
    )
