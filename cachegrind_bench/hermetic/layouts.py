"""Memory layouts: where the stack, the heap and the libraries of an execution lie, by number.

The work stays the same, the addresses do not, and with them which data share a set of a cache, or a bucket of a table
that is keyed by address. Knows the places only; `environment` moves the stack and Valgrind the rest.

Mytkowicz et al.: "Producing Wrong Data Without Doing Anything Obviously Wrong!", ASPLOS 2009; Curtsinger and Berger:
"STABILIZER: Statistically Sound Performance Evaluation", ASPLOS 2013.
"""

from __future__ import annotations

import msgspec

PAGE = 4096
LINE = 64  # one cache line: bits 6 to 11 of an address choose the set of the default L1
COUNT = PAGE // LINE  # so many places for the stack, as seen from L1
PAGES = 128  # as many as choose the set of the default LL, in bits 12 to 18

# Odd, so that no two layouts are alike, and near COUNT and PAGES times what spreads the first few widely.
_STACK_STRIDE = 27
_PAGE_STRIDE = 37


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """How far from its usual place something lies: the stack in bytes downwards, heap and libraries in pages upwards."""

    stack: int
    pages: int


def layout(number: int) -> Layout:
    """Return what layout `number` (from 0 to COUNT - 1) means; 0 is the usual one.

    Results are compared layout by layout, so these places are part of the result format: they must never change, nor
    depend on how many layouts are measured.
    """
    if not 0 <= number < COUNT:
        message = f"there is no memory layout {number}"
        raise ValueError(message)
    return Layout(stack=number * _STACK_STRIDE % COUNT * LINE, pages=number * _PAGE_STRIDE % PAGES)
