"""What became of each part of the seal."""

from __future__ import annotations

import pytest

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.execution import NOT_ASKED, SHARED, STARVED
from cachegrind_bench.measure.seal import PARTS, require_sealed, seal_parts, weakest, with_copies
from cachegrind_bench.model.result import SealPart, SealState

PINNED = SealPart(state=SealState.PINNED)


def test_all_is_pinned_where_nothing_was_refused() -> None:
    seal = seal_parts({}, supervised=True, guest_chase_off=True, clock_pinned=True)
    assert seal == dict.fromkeys(PARTS, PINNED)
    require_sealed(seal)


def test_a_real_clock_is_kept_and_no_failing() -> None:
    seal = seal_parts({}, supervised=True, guest_chase_off=True, clock_pinned=False)
    assert seal["clock"].state is SealState.KEPT
    require_sealed(seal)


def test_a_c_library_that_copies_in_its_own_way_is_kept_and_no_failing() -> None:
    seal = seal_parts({}, supervised=True, guest_chase_off=True, clock_pinned=True)
    assert with_copies(seal, tunable=True) == seal
    kept = with_copies(seal, tunable=False)
    assert (kept["copies"].state, {**kept, "copies": PINNED}) == (SealState.KEPT, seal)
    require_sealed(kept)


def test_a_refused_part_says_why() -> None:
    seal = seal_parts({"aslr": "EPERM"}, supervised=True, guest_chase_off=True, clock_pinned=True)
    assert seal["aslr"] == SealPart(state=SealState.UNAVAILABLE, why="EPERM")
    assert seal["randomness"] == PINNED


def test_of_several_executions_the_one_that_was_sealed_worst_counts() -> None:
    given = [{"scheduling": NOT_ASKED}, {}, {"scheduling": "no right", "cpu": "EPERM"}]
    seals = [seal_parts(reasons, supervised=True, guest_chase_off=True, clock_pinned=True) for reasons in given]
    for seals_of_it in (seals, seals[::-1]):
        assert weakest(seals_of_it) == {**seals[1], "scheduling": seals[2]["scheduling"], "cpu": seals[2]["cpu"]}
    assert weakest(seals[:2])["scheduling"].state is SealState.KEPT


@pytest.mark.parametrize("why", [SHARED, STARVED])
def test_a_run_that_had_to_share_its_cpu_is_not_fully_sealed(why: str) -> None:
    seal = seal_parts({"scheduling": why}, supervised=True, guest_chase_off=True, clock_pinned=True)
    assert seal["scheduling"] == SealPart(state=SealState.UNAVAILABLE, why=why)


@pytest.mark.parametrize(("reasons", "why"), [({}, "no seccomp"), ({"randomness": "EBUSY"}, "EBUSY")])
def test_without_a_supervisor_neither_randomness_nor_files_are_pinned(reasons: dict[str, str], why: str) -> None:
    seal = seal_parts(reasons, supervised=False, guest_chase_off=True, clock_pinned=False)
    for part in ("randomness", "random_devices", "files"):
        assert seal[part] == SealPart(state=SealState.UNAVAILABLE, why=why)


def test_without_a_supervisor_a_pinned_clock_is_not_pinned_either() -> None:
    seal = seal_parts({}, supervised=False, guest_chase_off=True, clock_pinned=True)
    assert seal["clock"].state is SealState.UNAVAILABLE


@pytest.mark.parametrize(("one_thread", "state"), [(True, SealState.PINNED), (False, SealState.UNAVAILABLE)])
def test_scheduling_is_missing_only_where_there_is_a_choice_of_who_runs_next(
    one_thread: bool, state: SealState
) -> None:
    seal = seal_parts(
        {"scheduling": "no right"}, supervised=True, guest_chase_off=True, clock_pinned=True, one_thread=one_thread
    )
    assert seal["scheduling"].state is state


def test_an_old_valgrind_leaves_guest_chasing_on() -> None:
    seal = seal_parts({}, supervised=True, guest_chase_off=False, clock_pinned=True)
    assert seal["guest_chase"].state is SealState.UNAVAILABLE


def test_the_demand_for_a_full_seal_names_each_part_that_is_missing() -> None:
    seal = seal_parts({"cpu": "EINVAL", "aslr": "EPERM"}, supervised=True, guest_chase_off=True, clock_pinned=True)
    with pytest.raises(MeasurementError) as caught:
        require_sealed(seal)
    assert str(caught.value) == "not fully sealed, as --require-sealed demands: aslr (EPERM), cpu (EINVAL)"
    assert "doctor" in (caught.value.hint or "")
