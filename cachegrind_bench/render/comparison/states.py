"""How each state looks, and how many benchmarks are in each."""

from __future__ import annotations

from collections.abc import Mapping

from cachegrind_bench.compare.verdict import State
from cachegrind_bench.model.text import grouped

# Of each state: its mark in text, its sign in Markdown, and the level of its annotations on GitHub, if it has any.
LOOKS = {
    State.REGRESSION: ("✗", "❌", "error"),
    State.FAILED: ("!", "💥", "error"),
    State.SUSPICIOUS: ("?", "❓", "warning"),
    State.NOT_COMPARABLE: ("≠", "🚫", "warning"),
    State.MISSING: ("–", "❓", "warning"),
    State.NOISY: ("~", "🌊", "notice"),
    State.SHIFT: ("≈", "↔️", "notice"),
    State.IMPROVEMENT: ("✓", "✅", "notice"),
    State.NEW: ("+", "🆕", "notice"),
    State.UNCHANGED: ("=", "✔️", None),
}


_PLURALS = {State.REGRESSION: "regressions", State.SUSPICIOUS: "suspicious drops", State.IMPROVEMENT: "improvements"}


def numbered(counts: Mapping[State, int]) -> str:
    """Return how many benchmarks are in each state, worst first, as in `2 regressions, 1 new`."""
    return ", ".join(
        f"{grouped(number)} {_PLURALS.get(state, state.value) if number > 1 else state.value}"
        for state in State
        if (number := counts.get(state, 0))
    )
