"""Where in a source file its functions begin, by the qualified names that Python gives them.

Knows Python's rules for names (PEP 3155, PEP 709); must not know why anybody asks.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LOCALS = ".<locals>."
_DEFINITION = re.compile(r"([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+(\w+)")
_TAB = 8  # columns, as Python's own indentation


def first_lines(source: bytes) -> dict[str, int]:
    """Return the line of each function, class body, lambda and comprehension: that of `def`, whatever decorates it.

    Of several with one name (a property's getter and setter, the lambdas of a function) it is the first's. A file in a
    newer Python than this one is looked through line by line, which finds what `def` and `class` define.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the source, which is not ours
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        definitions = _by_indentation(source.decode("utf-8", "replace").splitlines())
    else:
        definitions = _by_syntax(tree)
    found = {"<module>": 1}
    for name, line in definitions:
        found[name] = min(line, found.get(name, line))
    return found


def _by_syntax(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Go through a file without recursion: expressions may be nested deeper than that goes."""
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, prefix = waiting.pop()
        inner: Iterable[ast.AST] = ()
        below = prefix
        match node:
            case ast.FunctionDef(name=name, body=inner) | ast.AsyncFunctionDef(name=name, body=inner):
                yield prefix + name, node.lineno
                below = prefix + name + _LOCALS
            case ast.ClassDef(name=name, body=inner):
                yield prefix + name, node.lineno
                below = f"{prefix}{name}."
            case ast.Lambda(body=body):
                yield f"{prefix}<lambda>", node.lineno
                inner, below = (body,), f"{prefix}<lambda>{_LOCALS}"
            case ast.GeneratorExp(generators=[first, *_]):
                yield f"{prefix}<genexpr>", node.lineno
                # The first iterable is evaluated outside; it is a child of `first`, so that is taken apart here.
                waiting.append((first.iter, prefix))
                below = f"{prefix}<genexpr>{_LOCALS}"
                inner = [child for child in _children_of_generator(node, first) if child is not first.iter]
                waiting += [(child, below) for child in inner]
                continue
            case ast.ListComp() | ast.SetComp() | ast.DictComp():
                # Since 3.12 most are part of the function around them, and what is inside is named after that.
                yield f"{prefix}<{type(node).__name__.lower()}>", node.lineno
            case _:
                pass
        own = {id(child) for child in inner}
        waiting += [(child, below if id(child) in own else prefix) for child in ast.iter_child_nodes(node)]


def _children_of_generator(node: ast.AST, first: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if child is first:
            yield from ast.iter_child_nodes(first)
        else:
            yield child


def _by_indentation(lines: Iterable[str]) -> Iterator[tuple[str, int]]:
    around: list[tuple[int, str]] = []  # the indentation of each definition around a line, and the prefix inside of it
    for number, line in enumerate(lines, 1):
        match = _DEFINITION.match(line)
        if match is None:
            continue
        indent, kind, name = match.groups()
        width = len(indent.expandtabs(_TAB))
        while around and around[-1][0] >= width:
            around.pop()
        full = (around[-1][1] if around else "") + name
        yield full, number
        around.append((width, f"{full}." if kind == "class" else full + _LOCALS))
