"""The verdict in one line."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from cachegrind_bench.compare.verdict import BLAMING, Cause, Comparison, Difference, State, deciding
from cachegrind_bench.model.text import change, counted, exact_percent, factor, grouped, percent
from cachegrind_bench.render.comparison.blame import found_culprit
from cachegrind_bench.render.comparison.builds import build_file_remarks, build_remarks, lonely_remarks, other_build
from cachegrind_bench.render.comparison.calls import cause_text, explained_part
from cachegrind_bench.render.comparison.remarks import gate_remarks, object_remarks, remarks, state_remarks
from cachegrind_bench.render.comparison.states import numbered

if TYPE_CHECKING:
    from cachegrind_bench.compare.explain import Details

_MOST = Fraction(1, 2)
_MUCH = Fraction(1, 5)  # from here on, how many times the work it is says more


def verdict_line(comparison: Comparison, details: Mapping[str, Details]) -> str:
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
        return f"all {'nine ' if comparison.with_caches else ''}counts of {worst.id} are the same"
    moves = f"{gates.metric.value} {change(shift.relative)}"
    if shift.relative is None:
        moves += f" to {grouped(comparison.weigh(moved.candidate))}"
    held = Cause.THRESHOLD in worst.causes or worst.state is State.UNCHANGED
    threshold = f"threshold {exact_percent(worst.threshold)}" * (held and worst.state is not State.IMPROVEMENT)
    if Cause.THRESHOLD in worst.causes and shift.relative is not None and abs(shift.relative) >= _MUCH:
        within = ", ".join(filter(None, (moves, threshold)))
        text = f"{worst.id} does {factor(1 + shift.relative)} times the work of the base ({within})"
    else:
        text = f"{worst.id} {moves}{threshold and f' ({threshold})'}"
    reasons = [*state_remarks(worst, gates), *gate_remarks(worst, gates)]
    text = ", ".join([text, *reasons])
    found = found_culprit(details.get(worst.id))
    by_allocations = {*worst.causes} == {Cause.ALLOCATIONS}  # who makes them has been said
    known = details.get(worst.id)
    built = [] if worst.state is State.UNCHANGED else [*build_remarks(worst), *build_file_remarks(known)]
    text = "; ".join([text, *lonely_remarks(known)]) if worst.state in BLAMING else text
    if worst.state in BLAMING and other_build(worst, known):
        return "; ".join([*built, text, *object_remarks(worst)])
    if found is not None and worst.state in BLAMING and not by_allocations:
        name, where, part = found
        at = f" ({where})" if where else ""
        said = cause_text(details[worst.id])
        if said is not None:
            part = abs(explained_part(details[worst.id]))
            text += f": {said}" if part > _MOST else f"; largest share, {percent(part)}: {said}"
        else:
            text += f", most of it in {name}{at}" if part > _MOST else f", largest share: {name}{at}, {percent(part)}"
    return "; ".join([*built, text, *object_remarks(worst)])
