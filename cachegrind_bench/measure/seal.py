"""How well an execution was sealed: one state for each part, with the reason where a part could not be pinned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.execution import NOT_ASKED
from cachegrind_bench.model.result import SealPart, SealState

# What each part means, for reports and the doctor.
PARTS: Mapping[str, str] = {
    "aslr": "addresses are not randomised",
    "environment": "allow-listed variables, padded to a constant size",
    "randomness": "getrandom, AT_RANDOM, free memory and load never change",
    "random_devices": "/dev/urandom and /dev/random give fixed bytes",
    "copies": "glibc copies and clears by vectors, not by instructions that are counted once for each byte",
    "files": "the loader's list of libraries has one size, and directories are listed by name",
    "cpu": "all threads on one CPU",
    "scheduling": "a thread runs until it waits, whatever else the machine does",
    "limits": "stack and open files",
    "output": "stdout and stderr are pipes",
    "place": "the project is seen at a constant path",
    "tmpdir": "an empty TMPDIR of its own, always of the same name",
    "guest_chase": "only instructions that ran are counted",
    "clock": "programs read the real time",
}


def seal_parts(
    unsealed: Mapping[str, str],
    *,
    supervised: bool,
    guest_chase_off: bool,
    clock_pinned: bool,
    one_thread: bool = False,
) -> dict[str, SealPart]:
    """Return the state of every part, given the reasons of those that the launcher could not pin.

    With `one_thread`, nothing chooses which runs next.
    """
    reasons = dict(unsealed)
    if one_thread:
        reasons.pop("scheduling", None)
    if not supervised:
        reasons.setdefault("randomness", "no seccomp")
        reasons["random_devices"] = reasons["files"] = reasons["clock"] = reasons["randomness"]
    if not guest_chase_off:
        reasons["guest_chase"] = "this Valgrind does not know --vex-guest-chase=no"
    pinned = SealPart(state=SealState.PINNED)
    missing = {part: SealPart(state=SealState.UNAVAILABLE, why=reason) for part, reason in reasons.items()}
    parts = {part: missing.get(part, pinned) for part in PARTS}
    if reasons.get("scheduling") == NOT_ASKED:
        parts["scheduling"] = SealPart(state=SealState.KEPT, why=reasons["scheduling"])
    if "place" in reasons:  # nothing is wrong with such a run, as long as the project stays where it is
        parts["place"] = SealPart(state=SealState.KEPT, why=reasons["place"])
    if not clock_pinned:
        parts["clock"] = SealPart(state=SealState.KEPT, why="the real clock; --pin-clock replaces it")
    return parts


def with_copies(seal: Mapping[str, SealPart], *, tunable: bool) -> dict[str, SealPart]:
    """Return the seal of a program whose C library takes orders on how to copy, or, if not `tunable`, has its own way."""
    own = SealPart(
        state=SealState.KEPT, why="the program's C library is not a glibc from 2.32 on, and copies in its own way"
    )
    return {**seal, **({} if tunable else {"copies": own})}


def weakest(seals: Sequence[Mapping[str, SealPart]]) -> dict[str, SealPart]:
    """Return the worst state of each part in any of these executions (at least one)."""
    worse = list(SealState).index
    return {part: max((seal[part] for seal in seals), key=lambda found: worse(found.state)) for part in seals[0]}


def require_sealed(seal: Mapping[str, SealPart]) -> None:
    """Raise MeasurementError unless every part could be pinned."""
    missing = [f"{name} ({part.why})" for name, part in seal.items() if part.state is SealState.UNAVAILABLE]
    if missing:
        raise MeasurementError(
            f"not fully sealed, as --require-sealed demands: {', '.join(missing)}",
            hint="'cg-bench doctor' says how to fix each part",
        )
