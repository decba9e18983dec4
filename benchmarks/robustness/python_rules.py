"""Innocent edits of Python modules, by `ast` and positions: what a reviewer would never ask a benchmark about."""

from __future__ import annotations

import ast
import itertools
import subprocess
import sys
from typing import TYPE_CHECKING

from benchmarks.robustness.edit import Edit, Source, insert, replace_spans
from benchmarks.robustness.python_text import Function, after_docstring, first_line, functions

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from benchmarks.robustness.edit import Rule

# Small, of pure Python, and of no use to any of the packages.
DEPENDENCIES = ("colorama==0.4.6", "toolz==1.0.0", "itsdangerous==2.2.0")
OLD, NEW = "certifi==2024.2.2", "certifi==2025.1.31"
_UNUSED_MODULES = ("colorsys", "sched", "filecmp", "fractions", "graphlib", "plistlib", "quopri", "wave", "statistics")


def _modules(source: Source, rng: random.Random) -> Iterator[tuple[str, str, ast.Module]]:
    for name in source.files(rng):
        text = source.text(name)
        yield name, text, ast.parse(text)


def _executed(source: Source, rng: random.Random) -> Iterator[tuple[str, str, str, Function]]:
    """Functions that the benchmarks execute, from all modules in turn."""
    found = [
        (name, text, qualname, node)
        for name, text, tree in _modules(source, rng)
        for qualname, node in functions(tree)
        if qualname in source.executed[name]
    ]
    rng.shuffle(found)
    yield from found


def _renamable(function: Function) -> list[str]:
    """Names that are only this function's: stored in it, and neither declared nor looked up by their text anywhere in it."""
    stored: set[str] = set()
    refused: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored.add(node.id)
        elif isinstance(node, ast.arg):
            refused.add(node.arg)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            refused.update(node.names)
        elif isinstance(node, ast.alias):
            refused.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            refused.add(node.name or "")
        elif isinstance(node, ast.JoinedStr):  # before Python 3.12 positions within are wrong
            refused.update(inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))
        elif node is not function and isinstance(node, Function | ast.ClassDef):
            refused.add(node.name)
            refused.update(inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))
    named = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    if named & {"locals", "vars", "eval", "exec", "dir"}:
        return []
    return sorted(name for name in stored - refused if not name.startswith("__"))


def rename_local(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Give a local variable of an executed function another name."""
    for name, text, qualname, function in _executed(source, rng):
        for old in _renamable(function)[:2]:
            new = f"{old}_{rng.choice(('value', 'item', 'here', 'x'))}"
            if new in text:
                continue
            spans = [
                (node.lineno, node.col_offset, node.end_col_offset or 0)
                for node in ast.walk(function)
                if isinstance(node, ast.Name) and node.id == old
            ]
            changed = replace_spans(text, spans, new)
            yield Edit(what=f"{old} is now {new} in {name}:{qualname}", files={name: changed})


def comment(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Add a comment of some lines at the start of an executed function."""
    for name, text, qualname, function in _executed(source, rng):
        if first := after_docstring(function):
            lines = (" " * first.col_offset + "# A word on what follows.\n") * rng.randint(1, 4)
            yield Edit(what=f"comment in {name}:{qualname}", files={name: insert(text, first_line(first), lines)})


def header(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Add a licence at the top of a module: every line number moves."""
    for name, text, _tree in _modules(source, rng):
        lines = "".join(f"# Line {number} of a licence that nobody reads.\n" for number in range(rng.randint(3, 20)))
        yield Edit(what=f"licence in {name}", files={name: insert(text, 2 if text.startswith("#!") else 1, lines)})


def docstring(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Add a docstring to an executed function, or a sentence to the one that is there."""
    for name, text, qualname, function in _executed(source, rng):
        first = function.body[0]
        words = rng.choice(("See the manual.", "This is explained in the manual, at some length.", "Internal."))
        if ast.get_docstring(function, clean=False) is None:
            if first.lineno > function.lineno and (start := after_docstring(function)):
                line = f'{" " * start.col_offset}"""{words}"""\n'
                changed = insert(text, first_line(start), line)
                yield Edit(what=f"docstring of {name}:{qualname}", files={name: changed})
        elif isinstance(first, ast.Expr) and first.end_lineno and first.end_col_offset:
            span = (first.end_lineno, first.end_col_offset - 3, first.end_col_offset - 3)
            changed = replace_spans(text, [span], f" {words} ")
            yield Edit(what=f"longer docstring of {name}:{qualname}", files={name: changed})


def reorder(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Swap two functions or methods that follow each other."""
    for name, text, tree in _modules(source, rng):
        bodies = [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]
        pairs = [
            (one, two)
            for body in bodies
            for one, two in itertools.pairwise(body)
            if isinstance(one, Function) and isinstance(two, Function) and one.name != two.name
            if not one.decorator_list and not two.decorator_list
        ]
        rng.shuffle(pairs)
        lines = text.splitlines(keepends=True)
        for one, two in pairs:
            if not one.end_lineno or not two.end_lineno:
                continue
            a, b, c, d = one.lineno - 1, one.end_lineno, two.lineno - 1, two.end_lineno
            changed = "".join(lines[:a] + lines[c:d] + lines[b:c] + lines[a:b] + lines[d:])
            yield Edit(what=f"{one.name} and {two.name} swapped in {name}", files={name: changed})


_BODY = '''{0}def {1}({2}values, limit=10):
{0}    """Nothing calls this."""
{0}    found = []
{0}    for value in values:
{0}        if len(found) < limit and value not in found:
{0}            found.append(value)
{0}    return {{"found": found, "limit": limit}}

'''


def unused_function(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Add a function that nothing calls, before one of a module's functions or classes."""
    for name, text, tree in _modules(source, rng):
        places = [node for node in tree.body if isinstance(node, Function | ast.ClassDef)]
        if places:
            node = rng.choice(places)
            added = _BODY.format("", f"_unused_{rng.randint(10, 99)}", "")
            yield Edit(
                what=f"a function before {node.name} in {name}", files={name: insert(text, first_line(node), added)}
            )


def unused_method(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Add a method that nothing calls to a class."""
    for name, text, tree in _modules(source, rng):
        classes = [
            (node, inner)
            for node in tree.body
            if isinstance(node, ast.ClassDef)
            for inner in node.body[1:]
            if isinstance(inner, Function)
        ]
        if classes:
            node, inner = rng.choice(classes)
            added = _BODY.format(" " * inner.col_offset, f"_unused_{rng.randint(10, 99)}", "self, ")
            yield Edit(what=f"a method in {name}:{node.name}", files={name: insert(text, first_line(inner), added)})


def unused_import(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Import a module of the standard library that nothing needs."""
    for name, text, tree in _modules(source, rng):
        places = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        places = [node for node in places if getattr(node, "module", "") != "__future__"]
        if places:
            module = rng.choice(_UNUSED_MODULES)
            changed = insert(text, places[0].lineno, f"import {module} as _unused_import\n")
            yield Edit(what=f"import {module} in {name}", files={name: changed})


def string(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Give the message of an exception another length."""
    for name, text, tree in _modules(source, rng):
        messages = [
            node
            for raised in ast.walk(tree)
            if isinstance(raised, ast.Raise) and isinstance(raised.exc, ast.Call)
            for node in raised.exc.args
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.lineno == node.end_lineno
        ]
        if messages:
            node = rng.choice(messages)
            more = rng.choice((" (see the manual)", ".", " Please read what the manual says about it, and try again."))
            span = (node.lineno, node.col_offset, node.end_col_offset or 0)
            changed = replace_spans(text, [span], repr(str(node.value) + more))
            yield Edit(what=f"message in {name}:{node.lineno}", files={name: changed})


def constant(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Add a table at the end of a module that nothing reads."""
    for name, text, _tree in _modules(source, rng):
        table = {f"key-{rng.randint(0, 999)}": list(range(rng.randint(1, 6))) for _ in range(rng.randint(3, 30))}
        yield Edit(what=f"a table in {name}", files={name: f"{text.rstrip()}\n\n_UNUSED_TABLE = {table!r}\n"})


def new_file(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Add a module to the package that nothing imports."""
    for name in source.files(rng):
        folder = name.rpartition("/")[0]
        added = f"{folder}/unused_{rng.randint(10, 99)}.py".lstrip("/")
        yield Edit(
            what=f"new file {added}", files={added: '"""Nothing imports this."""\n\n' + _BODY.format("", "f", "")}
        )


def reformat(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Format a module with ruff, at a line length that the package does not have."""
    for name, text, _tree in _modules(source, rng):
        command = [sys.executable, "-m", "ruff", "format", "--isolated", f"--line-length={rng.choice((60, 140))}"]
        done = subprocess.run([*command, "-"], input=text, capture_output=True, text=True, check=True)
        if done.stdout != text:
            yield Edit(what=f"{name} formatted", files={name: done.stdout})


def annotate(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Annotate the parameters of an executed function."""
    for name, text, qualname, function in _executed(source, rng):
        spans = [
            (item.lineno, item.end_col_offset, item.end_col_offset)
            for item in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            if item.annotation is None and item.arg not in {"self", "cls"} and item.end_col_offset
        ]
        if spans:
            changed = replace_spans(text, [(a, b or 0, c or 0) for a, b, c in spans], ": object")
            yield Edit(what=f"annotations of {name}:{qualname}", files={name: changed})


def dependency(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Install another distribution beside the package."""
    del source
    requirement = rng.choice(DEPENDENCIES)
    yield Edit(what=f"{requirement} installed", requirements=(requirement,))


def upgrade(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Upgrade a distribution that the package does not use."""
    del source, rng
    yield Edit(what=f"{OLD} upgraded to {NEW}", requirements=(NEW,))


# How often each is applied to a package: what people do most is tried most.
RULES: dict[str, tuple[Rule, int]] = {
    "rename-local": (rename_local, 3),
    "comment": (comment, 1),
    "header": (header, 1),
    "docstring": (docstring, 2),
    "reorder": (reorder, 2),
    "unused-function": (unused_function, 2),
    "unused-method": (unused_method, 1),
    "unused-import": (unused_import, 1),
    "string": (string, 2),
    "constant": (constant, 1),
    "new-file": (new_file, 1),
    "reformat": (reformat, 1),
    "annotate": (annotate, 2),
    "dependency": (dependency, 1),
    "upgrade": (upgrade, 1),
}
