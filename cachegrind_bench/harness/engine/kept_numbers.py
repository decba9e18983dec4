"""Keeps the number of iterations that an earlier result has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.harness.engine.loop import MOST_KEPT_IR

if TYPE_CHECKING:
    from cachegrind_bench.harness.engine.loop import Loop


def keeping(loop: Loop, number: int | None) -> Loop:
    """Return the loop with the number of an earlier result, unless an iteration costs very much more now."""
    kept = min((known for known in loop.words if number and known >= number), default=None)
    if kept == loop.kept:
        return loop
    if kept is None or loop.clock is None or not loop.clock.hook:
        return replace(loop, kept=kept)
    from cachegrind_bench.harness.engine.jumping_clock import Jumps  # few loops have such a clock

    jumps = Jumps(*loop.clock.data)
    each = [
        (most * MOST_KEPT_IR // loop.most_ir if number <= kept else -1, later)
        for number, (most, later) in zip(loop.words, jumps.each, strict=True)
    ]
    return replace(loop, kept=kept, clock=loop.clock._replace(data=jumps._replace(each=tuple(each))))
