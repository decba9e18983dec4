"""Finds parts of the seal that move counts and differ between base and candidate, although no key tells them apart."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from cachegrind_bench.model.result import SealState
from cachegrind_bench.model.text import some

if TYPE_CHECKING:
    from cachegrind_bench.compare.verdict import Comparison

_NAMED = 3


def unlike_seals(comparison: Comparison) -> tuple[str, ...]:
    """Return remarks on threads that were not scheduled alike, and on projects that were at paths of different lengths."""
    found = defaultdict[str, list[str]](list)
    for item in comparison.differences:
        if item.base is None or item.candidate is None:
            continue
        for name, benchmark in (("base", item.base), ("candidate", item.candidate)):
            part = benchmark.seal.get("scheduling")
            if part is not None and part.state is SealState.UNAVAILABLE:
                text = f"its threads were not scheduled as in every run in the {name} ({part.why}), so its counts vary"
                found[text].append(item.id)
        places = [benchmark.seal.get("place") for benchmark in (item.base, item.candidate)]
        for part, other in (places, places[::-1]):
            if part and other and (part.state, other.state) == (SealState.KEPT, SealState.PINNED):
                found[f"its project was at its real path in one run only ({part.why}), which moves counts"].append(
                    item.id
                )
    return tuple(f"{some(ids, _NAMED)}: {text}" for text, ids in found.items())
