"""Where the functions of Python profiles are: their files as the reader of a report wants them, and the lines they begin in.

Reads source files; knows Python's rules for names (PEP 3155, PEP 709), and must not know where profiles come from.
"""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic import files
from cachegrind_bench.model.python_profile import PythonFunction, PythonProfile, PythonRow, profile_of
from cachegrind_bench.vcs.git import Git, top_folder


class Places:
    """The places of functions of programs that ran in one directory; each source is read once."""

    def __init__(
        self, cwd: Path, environ: Mapping[str, str], *, read: Callable[[str], bytes | None] | None = None
    ) -> None:
        """`environ` is git's; `read` gets an absolute path and returns the source there, None if there is none."""
        self._environ = environ
        self._named, self._cwd = str(cwd), os.path.realpath(cwd)
        # As pull requests name files, wherever in the repository a benchmark runs.
        self._base = str(top_folder(Path(self._cwd)) or self._cwd)
        self._read = read or _source
        self._files: dict[str, tuple[str, dict[str, int]]] = {}  # what is known of each

    def located(self, profile: PythonProfile) -> PythonProfile:
        """Return the profile with the lines of functions (0: not known), and with files relative to the repository.

        Outside of one they are relative to the directory; what lies elsewhere keeps its whole path. An installed copy of a
        file of the repository is named as that file.
        """
        moved: dict[PythonFunction, PythonFunction] = {}
        for function in profile.functions:
            if function.file not in self._files:
                self._files[function.file] = self._looked_at(function.file)
            file, lines = self._files[function.file]
            moved[function] = PythonFunction(file, function.name, lines.get(function.name, 0))
        rows = tuple(
            PythonRow(path.parent, moved[profile.functions[path.function]], path.calls, path.ir)
            for path in profile.paths
        )
        return profile_of(rows, total=profile.total, cut=profile.cut, parts=profile.parts)

    def _looked_at(self, file: str) -> tuple[str, dict[str, int]]:
        """Return what a file is called in reports, and where its functions begin."""
        if file.startswith("<"):  # <string>, <frozen importlib._bootstrap> and the like are not files
            return file, {}
        absolute = self._absolute(file)
        source = self._read(absolute)
        name = os.path.relpath(absolute, self._base) if _is_below(absolute, self._base) else file
        lines = {} if source is None else first_lines(source)
        return (source and self._original(absolute, name, source)) or name, lines

    def _original(self, path: str, name: str, source: bytes) -> str | None:
        """Return the only file that git tracks with this content and module name; None if there is none, or it is this one."""
        names = self._tracked.get(os.path.basename(path), ())
        if name in names:
            return None
        places = ((other, os.path.join(self._base, other)) for other in names)
        same = [other for other, at in places if _module(at) == _module(path) and self._read(at) == source]
        return same[0] if len(same) == 1 else None

    @cached_property
    def _tracked(self) -> Mapping[str, Collection[str]]:
        """The files that git tracks, from the top of the repository, by the last part of their names."""
        found = defaultdict[str, list[str]](list)
        with suppress(MeasurementError):  # there need be neither git nor a repository
            listed = Git(Path(self._base), self._environ).run("ls-files", "-z", "--", "*.py").stdout
            for name in map(os.fsdecode, listed.split(b"\0")):
                found[os.path.basename(name)].append(name)
        return found

    def _absolute(self, file: str) -> str:
        path = os.path.normpath(os.path.join(self._cwd, file))
        return self._cwd + path[len(self._named) :] if _is_below(path, self._named) else path


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep) and folder != os.sep


def _module(path: str) -> str:
    """Return the part of a path that is a module's name, from the outermost package on."""
    folder, name = os.path.split(path)
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        name = f"{package}/{name}"
    return name


def _source(path: str) -> bytes | None:
    """Return a source file; None if it cannot be read, or was a pipe, as /dev/stdin."""
    if not os.path.isfile(path):
        return None
    try:
        with files.opened(path) as descriptor, open(descriptor, "rb", closefd=False) as stream:
            return stream.read()
    except OSError:
        return None


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
                children = (*ast.iter_child_nodes(node), *ast.iter_child_nodes(first))
                waiting += [(child, below) for child in children if child not in (first, first.iter)]
                continue
            case ast.ListComp() | ast.SetComp() | ast.DictComp():
                # Since 3.12 most are part of the function around them, and what is inside is named after that.
                yield f"{prefix}<{type(node).__name__.lower()}>", node.lineno
            case _:
                pass
        own = {id(child) for child in inner}
        waiting += [(child, below if id(child) in own else prefix) for child in ast.iter_child_nodes(node)]


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
