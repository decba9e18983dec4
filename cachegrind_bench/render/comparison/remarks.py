"""Remarks on one benchmark: its state, what it was held to, how it was measured, and which libraries changed."""

from __future__ import annotations

import os
import re
import shlex
from fractions import Fraction
from typing import TYPE_CHECKING

from cachegrind_bench.compare.change import NOISE_FACTOR, Change
from cachegrind_bench.compare.verdict import STILL, Cause, Difference, FieldDifference, Gates, State, deciding
from cachegrind_bench.model.result import Status
from cachegrind_bench.model.text import change, exact_percent, grouped, percent
from cachegrind_bench.render.comparison.allocations import allocations_text
from cachegrind_bench.render.comparison.estimates import estimate_remarks

if TYPE_CHECKING:
    from cachegrind_bench.compare.pairing import ObjectChange

_ADVICE = "\n"  # what follows is advice for the person who measures
_BUILD_ID = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{24,56}\b")


def remarks(difference: Difference, gates: Gates, root: str = "") -> list[str]:
    """Return remarks on one benchmark, in addition to its numbers; files below `root` are shown relative to it."""
    if difference.growth is not None:
        from cachegrind_bench.render.growth import change_remarks

        return change_remarks(difference.growth, root)
    return [
        *state_remarks(difference, gates),
        *gate_remarks(difference, gates),
        *estimate_remarks(difference),
        *_measured_remarks(difference, gates),
        *object_remarks(difference),
    ]


def state_remarks(difference: Difference, gates: Gates) -> list[str]:
    """Say what its state means, where that needs words."""
    state, moved = difference.state, difference.change
    if state is State.FAILED:
        return [
            f"the {name} failed: {(side.error or side.status.value).partition(_ADVICE)[0]}"
            for name, side in (("base", difference.base), ("candidate", difference.candidate))
            if side is not None and side.status is not Status.OK
        ]
    if moved is not None:
        return [remark for remark in [_change_remark(state, moved, gates)] if remark]
    texts = {
        State.MISSING: "the base has it, the candidate does not",
        State.NEW: "only the candidate has it",
        State.NOT_COMPARABLE: _not_comparable(difference),
    }
    return [texts[state]] if state in texts else []


def _change_remark(state: State, moved: Change, gates: Gates) -> str | None:
    if state is State.SUSPICIOUS:
        fewer = percent(-(moved.ir.relative or Fraction(0)))
        return f"{fewer} fewer instructions: does it still do its work? (--max-drop accepts more)"
    if state is State.SHIFT and moved.score.mixed:
        return "up in some memory layouts and down in others: the memory layout matters more than the change"
    if state is State.SHIFT and abs(moved.ir.signed) >= STILL:
        return (
            "the same work, but CPython's method cache, whose entries depend on addresses, "
            f"missed {'more' if moved.ir.signed > 0 else 'less'} often"
        )
    if state is State.SHIFT:
        return (
            f"the same work (Ir moved by less than {exact_percent(STILL)}) at other addresses; "
            f"a regression beyond --threshold-cache {exact_percent(gates.threshold_cache)}"
        )
    if state is State.NOISY:
        noise = deciding(moved, gates).noise
        return (
            f"repeated runs differ by {percent(noise)}: changes up to {percent(NOISE_FACTOR * noise)} cannot be distinguished "
            "from that; 'cg-bench verify' finds the cause"
        )
    return None


def _not_comparable(difference: Difference) -> str:
    if {field.name for field in difference.fields} == {"measured"}:
        counted = [side and side.iterations for side in (difference.base, difference.candidate)]
        if all(counted) and counted[0] != counted[1]:
            before, here = (grouped(number or 0) for number in counted)
            return (
                f"of the base {before} iterations were counted, and {here} here, and iterations need not be alike: "
                "'cg-bench check --base FILE' counts as many as the base"
            )
    if difference.fields:
        return f"measured differently: {fields_text(difference.fields)}"
    base, candidate = difference.base, difference.candidate
    if base is not None and candidate is not None and base.key != candidate.key:
        return f"measured differently: their keys are {base.key} and {candidate.key}"
    return "base and candidate have no memory layout in common"


def fields_text(fields: tuple[FieldDifference, ...]) -> str:
    """Return fields of the key with what differs of both values; build-ids are cut to where they differ."""
    return ", ".join(f"{field.name} {' → '.join(_values(field))}" for field in fields)


def _values(field: FieldDifference) -> tuple[str, str]:
    base, candidate = (value or "unknown" for value in (field.base, field.candidate))
    words = [value.split() for value in (base, candidate)]
    if len(words[0]) == len(words[1]):  # as in a cache geometry: only the caches that differ
        differing = [pair for pair in zip(*words, strict=True) if pair[0] != pair[1]]
        base, candidate = (" ".join(side) for side in zip(*differing, strict=True)) if differing else (base, candidate)
    short = _BUILD_ID.sub(r"\1", base), _BUILD_ID.sub(r"\1", candidate)
    return short if short[0] != short[1] else (base, candidate)


def gate_remarks(difference: Difference, gates: Gates) -> list[str]:
    """Say which limits and thresholds it exceeds."""
    found = [
        f"{item.name}{' hits' if item.name in {'L1', 'LL', 'RAM'} else ''} {grouped(item.value)} exceeds the "
        f"limit of {grouped(item.limit)}"
        for item in difference.broken
    ]
    found += _allocation_gates(difference, gates)
    moved = difference.change
    if moved is None:
        return found
    if Cause.IR in difference.causes:
        wanted = gates.threshold_ir.get(difference.id)
        limit = (
            f"the threshold of {exact_percent(difference.threshold)}"
            if wanted is None
            else f"--threshold-ir {exact_percent(wanted)}"
        )
        found.append(f"Ir {change(moved.ir.relative)} exceeds {limit}")
    if Cause.CACHE in difference.causes:
        how = "up in some memory layouts and down in others, in their median"
        if not moved.score.mixed:
            served = "worse" if moved.score.signed > 0 else "better"
            how = f"the work is the same (Ir {change(moved.ir.relative)}), but the caches serve it {served},"
        found.append(f"{how} by more than --threshold-cache {exact_percent(gates.threshold_cache)}")
    return found


def _allocation_gates(difference: Difference, gates: Gates) -> list[str]:
    """Say what is wrong with allocations and who makes them, or that they could not be counted."""
    if difference.uncounted:
        sides = " and ".join(difference.uncounted)
        return [f"allocations are not compared: no calls are recorded of the {sides} (run --call-tree)"]
    said = None if difference.allocations is None else allocations_text(difference.allocations)
    wanted = gates.threshold_allocations.get(difference.id)
    if said is None or Cause.ALLOCATIONS not in difference.causes or wanted is None:
        return [said] if said else []
    return [f"{said}; --threshold-allocations is {exact_percent(wanted)}"]


def _measured_remarks(difference: Difference, gates: Gates) -> list[str]:
    moved = difference.change
    if moved is None:
        return []
    found: list[str] = []
    shift = deciding(moved, gates)
    if shift.noise and difference.state is not State.NOISY:
        found.append(f"repeated runs differ by {percent(shift.noise)}")
    if shift.spread and shift.spread >= difference.threshold:
        found.append(f"its calls differ by {percent(shift.spread)}: smaller changes cannot be distinguished from that")
    if moved.layouts > 1:
        found.append(f"median of {moved.layouts} memory layouts, pair by pair")
    if moved.layouts_left_out:
        found.append(f"{moved.layouts_left_out} memory layouts were measured on one side only")
    if difference.forced:
        found.append("compared by force")
    base, candidate = difference.base, difference.candidate
    if base is not None and candidate is not None:
        # Without the folders of its paths, which differ between two checkouts.
        before, after = ([os.path.basename(word) for word in side.command] for side in (base, candidate))
        if before != after:
            found.append(f"another command: {shlex.join(base.command)} → {shlex.join(candidate.command)}")
    sides = (("base", base), ("candidate", candidate))
    found += [
        f"the {name} counted some processes inexactly" for name, side in sides if side and not side.processes_exact
    ]
    return found


def object_remarks(difference: Difference) -> list[str]:
    """Name libraries that changed: an upgrade of one must not look like a change of the program's own code."""
    base, candidate = difference.base, difference.candidate
    if difference.change is None or base is None or candidate is None or base.objects == candidate.objects:
        return []
    from cachegrind_bench.compare.pairing import changed_objects

    changed = changed_objects(base.objects, candidate.objects)
    libraries = [item for item in changed if not item.is_executable]
    if not libraries:
        return []
    same = "; the executable is the same" if len(libraries) == len(changed) else ""
    return [f"libraries changed: {', '.join(map(_library, libraries))}{same}"]


def _library(item: ObjectChange) -> str:
    name = os.path.basename(item.path)
    if item.base is None or item.candidate is None:
        return f"{name} {'added' if item.base is None else 'gone'}"
    before, after = (build_id.removeprefix("sha256:")[:8] for build_id in (item.base, item.candidate))
    return f"{name} ({before} → {after})"
