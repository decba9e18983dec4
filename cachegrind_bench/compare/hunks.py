"""Which hunks of a change are in the functions that explain a difference.

What calls say of a function (its own code, and what is called from it more or less often) is of the hunks in it. A line outside of
functions, such as a constant or a macro, has no instructions of its own: of it nothing is said. Where a function ends is read
from its source text; a function where that is in doubt has no hunks. Must not know where text and hunks come from.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from cachegrind_bench.model.text import below

if TYPE_CHECKING:
    from cachegrind_bench.vcs.diff import Hunk

_LINES = 20
_PYTHON = (".py", ".pyi")
_NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\\n])'", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)  # and attributes of Rust
_CONTAINER = re.compile(
    r"\s*(?:(?:export|inline|default|unsafe|pub(?:\([^)]*\))?|template\s*<[^{}]*>)\s+)*"
    r"(?:(?:namespace|class|impl|mod|trait)\b|(?:struct|union|enum|extern)\b[^()]*$)"
)
_ALTERNATIVE = re.compile(r"^[ \t]*#[ \t]*el", re.MULTILINE)  # #else and #elif may have braces of their own


class Blamed(NamedTuple):
    """A function by where it begins, and the part of the difference that is its doing."""

    file: str
    line: int
    name: str
    ir: int


class Touched(msgspec.Struct, frozen=True, kw_only=True):
    """A function that is to blame for a part of the difference, with the hunks in it, at least one, and their first lines."""

    function: Blamed
    hunks: tuple[Hunk, ...]
    texts: tuple[str, ...]


class HunkSplit(msgspec.Struct, frozen=True, kw_only=True):
    """The functions that the change touches, the most to blame first; `others` are the hunks in none of them.

    `idle` is whether nothing that changed was executed, as far as that is certain.
    """

    touched: tuple[Touched, ...]
    others: tuple[Hunk, ...]
    total: int
    idle: bool = False

    @property
    def ir(self) -> int:
        """The part of the difference that is of these functions."""
        return sum(row.function.ir for row in self.touched)

    @property
    def chief(self) -> Hunk | None:
        """The first hunk of a function that explains most of the difference."""
        row = self.touched[0] if self.touched else None
        return row.hunks[0] if row is not None and 2 * abs(row.function.ir) > abs(self.total) else None


Text = Callable[[str], str | None]  # of a file, by its path in the repository


class Side(NamedTuple):
    """The lines of one side that the other does not have, its text, and file and line of all functions of Python it executed."""

    hunks: Sequence[Hunk]
    text: Text
    executed: Collection[tuple[str, int]]


def hunk_split(base: Side, candidate: Side, blamed: Collection[Blamed], total: int, *, root: str) -> HunkSplit:
    """Attribute the change to these functions of the candidate, whose files are below `root`."""
    by_file: dict[str, list[Hunk]] = {}
    for hunk in candidate.hunks:
        by_file.setdefault(hunk.file, []).append(hunk)
    rows: list[Touched] = []
    for function in sorted(blamed, key=lambda item: (-abs(item.ir), item)):
        path = below(function.file, root)
        file = next((file for file in by_file if _is_same(path, file)), None) if function.line and function.ir else None
        source = None if file is None else candidate.text(file)
        if file is None or source is None:
            continue
        first, last = _span(source, file, function.line) or (1, 0)
        inside = tuple(hunk for hunk in by_file[file] if hunk.first <= last and hunk.last >= first)
        if inside:
            lines = source.split("\n")
            texts = tuple("\n".join(lines[hunk.first - 1 : min(hunk.last, hunk.first + _LINES)]) for hunk in inside)
            rows.append(Touched(function=function, hunks=inside, texts=texts))
    known = {hunk for row in rows for hunk in row.hunks}
    return HunkSplit(
        touched=tuple(rows),
        others=tuple(hunk for hunk in candidate.hunks if hunk not in known),
        total=total,
        idle=all(_is_idle(hunk, side, root) for side in (base, candidate) for hunk in side.hunks),
    )


def _is_same(path: str, file: str) -> bool:
    return path == file or (not path.startswith("/") and file.endswith(f"/{path}"))


def _is_idle(hunk: Hunk, side: Side, root: str) -> bool:
    """Return whether a hunk is within the body of a function of Python, and neither that nor one inside of it was executed."""
    source = side.text(hunk.file) if side.executed and hunk.file.endswith(_PYTHON) else None
    lines = {line for file, line in side.executed if _is_same(below(file, root), hunk.file)}
    bodies = () if source is None else _python_functions(source)
    outermost = next((span for span in bodies if span[1] <= hunk.first and hunk.last <= span[2]), None)
    return outermost is not None and not any(outermost[0] <= line <= outermost[2] for line in lines)


def _span(text: str, file: str, line: int) -> tuple[int, int] | None:
    """Return the first and the last line of the function that begins at this one, or a few lines above it."""
    if not file.endswith(_PYTHON):
        return next((span for span in _functions_in_braces(text) if span[0] <= line <= span[1]), None)
    found = [(first, last) for first, body, last in _python_functions(text) if first <= line < max(body, first + 1)]
    return found[-1] if found else None


def _python_functions(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield the first line of each function, that of its body, and its last; outer ones come first."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min(node.lineno, *(item.lineno for item in node.decorator_list), node.lineno)
            yield first, node.body[0].lineno, node.end_lineno or node.lineno


def _functions_in_braces(text: str) -> list[tuple[int, int]]:
    """Return the first and the last line of each outermost function of C, C++ or Rust; none where braces do not match."""
    code = text
    for pattern in (_NOT_CODE, _DIRECTIVE):
        code = pattern.sub(lambda match: "\n" * match[0].count("\n"), code)
    found: list[tuple[int, int]] = []
    opened: list[tuple[int, bool]] = []  # where what is before each brace begins, and whether functions may be inside
    end = 0
    for match in re.finditer(r"[{};]", code):
        head, end = code[end : match.start()], match.end()
        if match[0] == "{":
            opened.append((match.start() - len(head.lstrip()), _CONTAINER.match(head) is not None))
        elif match[0] == "}":
            if not opened:
                return []
            begin, holds = opened.pop()
            if not holds and all(outer for _, outer in opened):
                first, last = (code.count("\n", 0, at) + 1 for at in (begin, match.start()))
                found += [(first, last)] * (not _ALTERNATIVE.search("\n".join(text.split("\n")[first - 1 : last])))
    return [] if opened else found
