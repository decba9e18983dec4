"""How well an execution was sealed: one state for each part, with the reason where a part could not be pinned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.model.result import SealPart, SealState

if TYPE_CHECKING:
    from collections.abc import Mapping

# What each part means, for reports and the doctor.
PARTS: Mapping[str, str] = {
    "aslr": "addresses are not randomised",
    "environment": "allow-listed variables, padded to a constant size",
    "randomness": "getrandom, AT_RANDOM, free memory and load never change",
    "random_devices": "/dev/urandom and /dev/random give fixed bytes",
    "cpu": "all threads on one CPU",
    "limits": "stack and open files",
    "output": "stdout and stderr are pipes",
    "tmpdir": "an empty TMPDIR of its own, always of the same name",
    "guest_chase": "only instructions that ran are counted",
    "clock": "programs read the real time",
}


def seal_parts(
    unsealed: Mapping[str, str], *, supervised: bool, guest_chase_off: bool, clock_pinned: bool
) -> dict[str, SealPart]:
    """Return the state of every part, given the reasons of those that the launcher could not pin."""
    reasons = dict(unsealed)
    if not supervised:
        reasons.setdefault("randomness", "no seccomp")
        reasons["random_devices"] = reasons["clock"] = reasons["randomness"]
    if not guest_chase_off:
        reasons["guest_chase"] = "this Valgrind does not know --vex-guest-chase=no"
    parts = {part: _part(reasons.get(part)) for part in PARTS}
    if not clock_pinned:
        parts["clock"] = SealPart(state=SealState.KEPT, why="the real clock; --pin-clock replaces it")
    return parts


def _part(reason: str | None) -> SealPart:
    if reason is None:
        return SealPart(state=SealState.PINNED)
    return SealPart(state=SealState.UNAVAILABLE, why=reason)


def require_sealed(seal: Mapping[str, SealPart]) -> None:
    """Raise MeasurementError unless every part could be pinned."""
    missing = [f"{name} ({part.why})" for name, part in seal.items() if part.state is SealState.UNAVAILABLE]
    if missing:
        raise MeasurementError(
            f"not fully sealed, as --require-sealed demands: {', '.join(missing)}",
            hint="'cg-bench doctor' tells how to mend each part",
        )
