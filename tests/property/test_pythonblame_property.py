"""The arithmetic of blame: whatever the trees of calls, all deltas and all blames add up."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from cachegrind_bench.compare.python_blame import blame
from cachegrind_bench.model.python_profile import TOP, PythonFunction, PythonPath, PythonProfile, PythonRow, profile_of

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from cachegrind_bench.compare.python_blame import PythonBlame

_NEW = PythonFunction("wrappers.py", "timed.<locals>.wrapper", 7)
_FUNCTIONS = st.builds(
    PythonFunction,
    file=st.sampled_from(["a.py", "/x/a.py", "/y/a.py", "b.py"]),
    name=st.sampled_from(["f", "g", "C.h"]),
    line=st.integers(0, 3),
)


@st.composite
def python_profiles(draw: st.DrawFn) -> PythonProfile:
    """Return any tree of up to twelve paths: with recursion, siblings of one function, and paths without calls."""
    functions = draw(st.lists(_FUNCTIONS, min_size=1, max_size=5, unique=True))
    paths = [
        PythonPath(
            parent=draw(st.integers(TOP, index - 1)),
            function=draw(st.integers(0, len(functions) - 1)),
            calls=draw(st.integers(0, 7)),
            ir=draw(st.integers(0, 10**6)),
        )
        for index in range(draw(st.integers(0, 12)))
    ]
    total = draw(st.integers(0, 1000)) + sum(path.ir for path in paths)
    return PythonProfile(total=total, functions=tuple(functions), paths=tuple(paths), cut=draw(st.booleans()))


@given(base=python_profiles(), candidate=python_profiles())
def test_deltas_and_blames_add_up_to_the_difference_of_the_totals(
    base: PythonProfile, candidate: PythonProfile
) -> None:
    found = blame(base, candidate)
    assert found.total == candidate.total - base.total
    assert sum(row.delta for row in found.rows) + found.native == found.total
    assert sum(row.blame for row in found.rows) + found.native_blame == found.total
    assert found == blame(base, candidate)


@given(profile=python_profiles(), other=python_profiles())
def test_both_directions_report_of_the_same_self_costs(profile: PythonProfile, other: PythonProfile) -> None:
    there, back = blame(profile, other), blame(other, profile)
    assert sorted(row.delta for row in there.rows if row.delta) == sorted(-row.delta for row in back.rows if row.delta)


@given(profile=python_profiles(), extra=st.integers(1, 10**6), data=st.data())
def test_one_path_that_got_slower_is_to_be_blamed_on_its_function(
    profile: PythonProfile, extra: int, data: st.DataObject
) -> None:
    if not profile.paths:
        return
    slow = data.draw(st.integers(0, len(profile.paths) - 1))
    paths = [PythonPath(parent=path.parent, function=path.function, calls=1, ir=path.ir) for path in profile.paths]
    base = PythonProfile(total=profile.total, functions=profile.functions, paths=tuple(paths))
    old = paths[slow]
    paths[slow] = PythonPath(parent=old.parent, function=old.function, calls=1, ir=old.ir + extra)
    if len({(path.parent, path.function) for path in paths}) < len(paths):
        return  # paths that are one path have one expectation
    candidate = PythonProfile(total=profile.total + extra, functions=profile.functions, paths=tuple(paths))
    found = blame(base, candidate)
    assert [(row.function, row.own, row.blame) for row in found.rows if row.blame] == [
        (profile.functions[old.function], extra, extra)
    ]
    assert found.chief is not None


def wrapped(profile: PythonProfile, above: AbstractSet[int], function: PythonFunction, ir: int) -> PythonProfile:
    """Return the profile with a call of a function of this cost between each of these paths and its caller."""
    rows: list[PythonRow] = []
    moved: dict[int, int] = {TOP: TOP}
    for index, path in enumerate(profile.paths):
        parent = moved[path.parent]
        if index in above:
            rows.append(PythonRow(parent, function, path.calls, ir))
            parent = len(rows) - 1
        moved[index] = len(rows)
        rows.append(PythonRow(parent, profile.functions[path.function], path.calls, path.ir + 1))
    return profile_of(rows, total=profile.native + sum(row.ir for row in rows), cut=False)


def blames(found: PythonBlame) -> dict[PythonFunction | None, int]:
    """Return all blames but zeros; native code's is under None."""
    rows: dict[PythonFunction | None, int] = {row.function: row.blame for row in found.rows if row.blame}
    return rows | ({None: found.native_blame} if found.native_blame else {})


def callers(profile: PythonProfile, above: AbstractSet[int], ir: int) -> Counter[PythonFunction | None]:
    """Return what each function that calls one of these paths calls on top, if calls of them cost so much more."""
    found = Counter[PythonFunction | None]()
    for index in above:
        parent = profile.paths[index].parent
        found[None if parent == TOP else profile.functions[profile.paths[parent].function]] += ir
    return found


@given(profile=python_profiles(), extra=st.integers(1, 10**6), data=st.data())
def test_new_functions_put_between_old_ones_anywhere_are_their_callers_business_alone(
    profile: PythonProfile, extra: int, data: st.DataObject
) -> None:
    profile = wrapped(profile, frozenset(), _NEW, 0)  # each path once
    above = data.draw(st.frozensets(st.integers(0, max(len(profile.paths) - 1, 0)), max_size=len(profile.paths)))
    expected = callers(profile, above, extra)
    plain, longer = wrapped(profile, frozenset(), _NEW, 0), wrapped(profile, above, _NEW, extra)
    assert blames(blame(plain, longer)) == expected
    assert blames(blame(longer, plain)) == {caller: -ir for caller, ir in expected.items()}


@given(profile=python_profiles(), extra=st.integers(1, 10**6), data=st.data())
def test_a_function_known_from_elsewhere_put_between_two_others_is_their_callers_business_alone(
    profile: PythonProfile, extra: int, data: st.DataObject
) -> None:
    profile = wrapped(profile, frozenset(), _NEW, 0)
    if not profile.paths:
        return
    index = data.draw(st.integers(0, len(profile.paths) - 1))
    function = data.draw(st.integers(0, len(profile.functions) - 1))
    ambiguous = {path.function for path in profile.paths if path.parent == profile.paths[index].parent}
    below = {index}
    for place, path in enumerate(profile.paths):  # a tree in which it stands below already may be any other change
        if path.parent in below:
            below.add(place)
            ambiguous.add(path.function)
    if function in ambiguous:
        return
    known, above = profile.functions[function], frozenset({index})
    plain, longer = wrapped(profile, frozenset(), known, 0), wrapped(profile, above, known, extra)
    assert blames(blame(plain, longer)) == callers(profile, above, extra)
