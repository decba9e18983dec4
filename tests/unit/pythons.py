"""Hand-made profiles of Python functions: trees of (calls, self cost, callees), by name or by `name@file:line`."""

from __future__ import annotations

from typing import Any

from cachegrind_bench.model.python_profile import TOP, PythonFunction, PythonPath, PythonProfile

FILE = "src/pkg/rows.py"
Tree = dict[str, tuple[Any, ...]]


def function(text: str) -> PythonFunction:
    """Return the function of `name`, `name:line` or `name@file:line`."""
    rest, _, line = text.rpartition(":") if text.rpartition(":")[2].isdigit() else (text, "", "0")
    name, _, file = rest.partition("@")
    return PythonFunction(file=file or FILE, name=name, line=int(line))


def python_profile(tree: Tree, *, native: int = 0, cut: bool = False) -> PythonProfile:
    """Return the profile of a tree, in which a node is (calls, ir) or (calls, ir, its callees)."""
    functions: dict[PythonFunction, int] = {}
    paths: list[PythonPath] = []

    waiting = [(tree, TOP)]
    while waiting:  # a loop, as trees are deep
        nodes, parent = waiting.pop()
        for text, (calls, ir, *callees) in nodes.items():
            key = functions.setdefault(function(text), len(functions))
            paths.append(PythonPath(parent=parent, function=key, calls=calls, ir=ir))
            waiting += [(found, len(paths) - 1) for found in callees]
    total = native + sum(path.ir for path in paths)
    return PythonProfile(total=total, functions=tuple(functions), paths=tuple(paths), cut=cut)


def chain(depth: int, ir: int = 10, name: str = "f:1") -> Tree:
    """Return one call of a function that calls itself until it is so deep."""
    found: Tree = {}
    for _ in range(depth):
        found = {name: (1, ir, found)}
    return found
