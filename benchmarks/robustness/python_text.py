"""Finds functions and their first statements in the text of Python modules."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Find all functions with their qualified names, as code objects have them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield prefix + node.name, node
            yield from functions(node, f"{prefix}{node.name}.<locals>.")
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        else:
            yield from functions(node, prefix)


def after_docstring(node: ast.AST) -> ast.stmt | None:
    """Return the first statement of a body of its own lines that is not its docstring."""
    body: list[ast.stmt] = getattr(node, "body", [])
    if not body or body[0].lineno == getattr(node, "lineno", 0):
        return None
    start = 1 if ast.get_docstring(node, clean=False) is not None else 0  # type: ignore[arg-type]
    if start >= len(body) or first_line(body[start]) == getattr(body[start - 1], "end_lineno", 0):
        return None
    return body[start]


def first_line(node: ast.stmt) -> int:
    """Return the line of a statement with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min(node.lineno, *(item.lineno for item in decorators)) if decorators else node.lineno
