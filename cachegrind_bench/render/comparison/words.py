"""A comparison in words: the remarks on one benchmark, and the verdict in one line."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING

from cachegrind_bench.compare.change import NOISE_FACTOR
from cachegrind_bench.compare.verdict import BLAMING, STILL, Cause, State, deciding
from cachegrind_bench.model.result import Status
from cachegrind_bench.model.text import change as change_text
from cachegrind_bench.model.text import counted, exact_percent, grouped, percent
from cachegrind_bench.render.comparison import pythons

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from cachegrind_bench.compare.change import Change
    from cachegrind_bench.compare.comparison import Comparison
    from cachegrind_bench.compare.details import Details
    from cachegrind_bench.compare.pairing import ObjectChange
    from cachegrind_bench.compare.verdict import Difference, FieldDifference, Gates
    from cachegrind_bench.model.result import Benchmark

_BUILD_ID = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{24,56}\b")

MARKS = {
    State.REGRESSION: "✗",
    State.FAILED: "!",
    State.SUSPICIOUS: "?",
    State.NOT_COMPARABLE: "≠",
    State.MISSING: "–",
    State.NOISY: "~",
    State.SHIFT: "≈",
    State.IMPROVEMENT: "✓",
    State.NEW: "+",
    State.UNCHANGED: "=",
}


_PLURALS = {
    State.REGRESSION: "regressions",
    State.SUSPICIOUS: "suspicious drops",
    State.IMPROVEMENT: "improvements",
}


def numbered(counts: Mapping[State, int]) -> str:
    """Return how many benchmarks are in each state, worst first, as in `2 regressions, 1 new`."""
    return ", ".join(
        f"{grouped(number)} {_PLURALS.get(state, state.value) if number > 1 else state.value}"
        for state in State
        if (number := counts.get(state, 0))
    )


def remarks(difference: Difference, gates: Gates) -> list[str]:
    """Return what there is to say about one benchmark beside its numbers."""
    return [
        *_state_remarks(difference, gates),
        *_gate_remarks(difference, gates),
        *_measured_remarks(difference, gates),
        *_object_remarks(difference),
    ]


def _state_remarks(difference: Difference, gates: Gates) -> list[str]:
    state, moved = difference.state, difference.change
    if state is State.FAILED:
        sides = (("base", difference.base), ("candidate", difference.candidate))
        return [_failure(name, side) for name, side in sides if side is not None and side.status is not Status.OK]
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
        share = percent(-moved.ir.relative)
        return f"{share} fewer instructions: does it still do its work? (--max-drop accepts more)"
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
        noise = _noise(moved, gates)
        return (
            f"repeated runs differ by {percent(noise)}: changes up to {percent(NOISE_FACTOR * noise)} cannot be distinguished "
            "from that; 'cg-bench verify' finds the cause"
        )
    return None


def _failure(side: str, benchmark: Benchmark) -> str:
    what = (benchmark.error or benchmark.status.value).partition("\n")[0]  # what follows is advice to who measures
    return f"the {side} failed: {what}"


def _not_comparable(difference: Difference) -> str:
    if difference.fields:
        return f"measured differently: {fields_text(difference.fields)}"
    base, candidate = difference.base, difference.candidate
    if base is not None and candidate is not None and base.key != candidate.key:
        return f"measured differently: their keys are {base.key} and {candidate.key}"
    return "base and candidate have no memory layout in common"


def fields_text(fields: tuple[FieldDifference, ...]) -> str:
    """Return fields of the key with what differs of both values; build-ids are cut to what tells them apart."""
    return ", ".join(f"{field.name} {' → '.join(_values(field))}" for field in fields)


def _values(field: FieldDifference) -> tuple[str, str]:
    base, candidate = (value or "unknown" for value in (field.base, field.candidate))
    words = [value.split() for value in (base, candidate)]
    if len(words[0]) == len(words[1]):  # as in a cache geometry: only the caches that differ
        differing = [pair for pair in zip(*words, strict=True) if pair[0] != pair[1]]
        base, candidate = (" ".join(side) for side in zip(*differing, strict=True)) if differing else (base, candidate)
    short = _BUILD_ID.sub(r"\1", base), _BUILD_ID.sub(r"\1", candidate)
    return short if short[0] != short[1] else (base, candidate)


def _gate_remarks(difference: Difference, gates: Gates) -> list[str]:
    found = [
        f"{item.limit.name}{' hits' if item.limit.name in {'L1', 'LL', 'RAM'} else ''} {grouped(item.value)} exceeds the "
        f"limit of {grouped(item.limit.value)}"
        for item in difference.broken
    ]
    moved = difference.change
    if moved is None:
        return found
    if Cause.IR in difference.causes:
        wanted = gates.threshold_ir.get(difference.id)
        option = (
            f"--threshold {exact_percent(difference.threshold)}"
            if wanted is None
            else f"--threshold-ir {exact_percent(wanted)}"
        )
        found.append(f"Ir {change_text(moved.ir.relative)} exceeds {option}")
    if Cause.CACHE in difference.causes:
        found.append(_cache_remark(moved, gates))
    return found


def _cache_remark(moved: Change, gates: Gates) -> str:
    beyond = f"by more than --threshold-cache {exact_percent(gates.threshold_cache)}"
    if moved.score.mixed:
        return f"up in some memory layouts and down in others, in their median {beyond}"
    served = "worse" if moved.score.signed > 0 else "better"
    return f"the work is the same (Ir {change_text(moved.ir.relative)}), but the caches serve it {served}, {beyond}"


def _measured_remarks(difference: Difference, gates: Gates) -> list[str]:
    moved = difference.change
    if moved is None:
        return []
    found: list[str] = []
    noise = _noise(moved, gates)
    if noise and difference.state is not State.NOISY:
        found.append(f"repeated runs differ by {percent(noise)}")
    spread = deciding(moved, gates).spread
    if spread and spread >= difference.threshold:
        found.append(f"its calls differ by {percent(spread)}: smaller changes cannot be distinguished from that")
    if moved.layouts > 1:
        found.append(f"median of {moved.layouts} memory layouts, pair by pair")
    if moved.layouts_left_out:
        found.append(f"{moved.layouts_left_out} memory layouts were measured on one side only")
    if difference.forced:
        found.append("compared by force")
    base, candidate = difference.base, difference.candidate
    if base is not None and candidate is not None and _words(base) != _words(candidate):
        found.append(f"another command: {shlex.join(base.command)} → {shlex.join(candidate.command)}")
    sides = (("base", base), ("candidate", candidate))
    found += [
        f"the {name} counted some processes inexactly" for name, side in sides if side and not side.processes_exact
    ]
    return found


def _words(side: Benchmark) -> list[str]:
    """Return a command without the folders of its paths, which differ between two checkouts."""
    return [os.path.basename(word) for word in side.command]


def _noise(moved: Change, gates: Gates) -> Fraction:
    return deciding(moved, gates).noise


def _object_remarks(difference: Difference) -> list[str]:
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
    return f"{name} ({_short(item.base)} → {_short(item.candidate)})"


def _short(build_id: str) -> str:
    return build_id.removeprefix("sha256:")[:8]


def interpreted(difference: Difference) -> str | None:
    """Return the name of the interpreter whose functions a profile's rows are, None for a program of its own."""
    side = difference.candidate or difference.base
    if side is None or side.key_fields.get("interpreter", "none") == "none":
        return None
    from cachegrind_bench.compare.pairing import is_library

    programs = [os.path.basename(item.path) for item in side.objects if not is_library(item.path)]
    return programs[0] if programs else "the interpreter"


def headline(comparison: Comparison, details: Mapping[str, Details]) -> str:
    """Return the verdict in one line: the worst benchmark's state, what it is about, and how the others fared."""
    total = len(comparison.differences)
    if not total:
        return "not comparable: neither side has a benchmark to compare"
    if comparison.without_base and comparison.verdict is State.NEW:
        return f"no baseline: nothing was compared, {counted(total, 'benchmark')} measured"
    worst = comparison.differences[0]
    parts = [_about(worst, comparison, details)]
    if total > 1:
        parts.append(numbered(comparison.count()))
    if not comparison.compared and comparison.verdict is not State.FAILED:
        parts.append("nothing was compared")
    if any(item.forced for item in comparison.differences):
        parts.append("compared by force")
    return f"{comparison.verdict.value}: {'; '.join(parts)}"


def _about(worst: Difference, comparison: Comparison, details: Mapping[str, Details]) -> str:
    moved, gates = worst.change, comparison.gates
    if worst.state is State.UNCHANGED and len(comparison.differences) > 1:
        return "every benchmark is within its threshold"
    if moved is None:
        return f"{worst.id} ({remarks(worst, gates)[0]})"
    shift = deciding(moved, gates)
    if moved.base == moved.candidate and worst.state is State.UNCHANGED:
        return f"all nine counts of {worst.id} are the same"
    text = f"{worst.id} {gates.metric.value} {change_text(shift.relative)}"
    if Cause.THRESHOLD in worst.causes or worst.state is State.UNCHANGED:
        text += "" if worst.state is State.IMPROVEMENT else f" (threshold {exact_percent(worst.threshold)})"
    reasons = [*_state_remarks(worst, gates), *_gate_remarks(worst, gates)]
    text = ", ".join([text, *reasons])
    culprit = pythons.verdict(details.get(worst.id))
    if culprit and worst.state in BLAMING:
        text += f", {culprit}"
    return "; ".join([text, *_object_remarks(worst)])
