"""How often two executions allocate memory, and who does it more or less often, from their calls.

An allocation is a call of malloc and its like, or of C++'s operator new, from anything else than these: what one of them
calls in turn is the same allocation. What the compiler inlined, or a program allocates without them, is not known.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cachegrind_bench.compare.call_split import Label, Sides

# Of 64- and 32-bit C++ the operators new and new[], which are written with the type of a size.
_ALLOCATES = re.compile(
    r"(?:__libc_|__GI_)?(?:(?:c|re)?alloc|malloc|reallocarray|memalign|posix_memalign|aligned_alloc)(?:@|$)|_Zn[aw][mj]"
)


class Allocations(msgspec.Struct, frozen=True, kw_only=True):
    """The number of allocations on both sides, and by how many the caller differs that differs most."""

    base: int
    candidate: int
    caller: Label
    more: int


def allocations(sides: Sides) -> Allocations | None:
    """Count the allocations of two sides; None where each function allocates as often as before."""
    labels, numbers = sides[2], ([0], [0])
    more = defaultdict[int, int](int)
    for side, sign, number in zip(sides[:2], (-1, 1), numbers, strict=True):
        for (caller, callee), calls in side.calls.items():
            if _ALLOCATES.match(labels[callee].name) and not _ALLOCATES.match(labels[caller].name):
                number[0] += calls.number
                more[caller] += sign * calls.number
    if not any(more.values()):
        return None
    most = max(more, key=lambda number: (abs(more[number]), labels[number]))
    return Allocations(base=numbers[0][0], candidate=numbers[1][0], caller=labels[most], more=more[most])
