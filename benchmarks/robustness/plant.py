"""A slowdown of a known size: an empty loop at the start of a function that the benchmark executes.

It runs over a list of None: a `range` allocates its integers, and what that costs depends on the state of the allocator.
"""

from __future__ import annotations

import ast

from benchmarks.robustness.edit import insert
from benchmarks.robustness.python_text import after_docstring, first_line, functions


def python_loop(text: str, qualname: str, rounds: int) -> str:
    """Put the loop into the one function of this name."""
    nodes = [node for name, node in functions(ast.parse(text)) if name == qualname]
    first = after_docstring(nodes[0])
    assert len(nodes) == 1
    assert first is not None
    loop = f"{' ' * first.col_offset}for _planted in [None] * {rounds}:\n{' ' * first.col_offset}    pass\n"
    return insert(text, first_line(first), loop)


def can_hold(text: str, qualname: str) -> bool:
    """Tell whether the loop can be put there: one function of this name, with a body of its own lines."""
    nodes = [node for name, node in functions(ast.parse(text)) if name == qualname]
    return len(nodes) == 1 and after_docstring(nodes[0]) is not None
