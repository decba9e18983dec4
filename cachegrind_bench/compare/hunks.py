"""Which hunks of a change are in the functions that explain a difference.

What calls say of a function (its own code, and what is called from it more or less often) is of the hunks in it. A line outside of
functions, such as a constant or a macro, has no instructions of its own: of it nothing is said. Where a function ends is read
from its source text; where that is in doubt, only recorded lines say that a hunk is in it. What compilers inlined from another
file is known by recorded lines, and is then whole functions.
A hunk of comments and of how code is laid out changes nothing. Must not know where text and hunks come from.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from io import StringIO
from itertools import accumulate
from tokenize import COMMENT, TokenError, generate_tokens
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from cachegrind_bench.model.text import below

if TYPE_CHECKING:
    from cachegrind_bench.vcs.diff import Hunk

_LINES = 20
_PYTHON = (".py", ".pyi")
_MODULE = "<module>"
_INSTALLED = re.compile(r"/(?:site|dist)-packages/")
_FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef
_DOCUMENTED = (*_FUNCTIONS, ast.ClassDef)
_BRACES = re.compile(r"\.(?:c|cc|cpp|cxx|c\+\+|go|h|hh|hpp|hxx|h\+\+|inc|inl|ipp|rs|tcc|tpp)$")
_SPACES = {ord(" "): "\0", ord("\t"): "\1"}  # in strings, where they count
# What has no end goes to that of the file: each further beginning would be looked at to there.
_NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|(?P<text>(?P<endless>/\*.*|\"(?:\\.|[^\"\\])*+\\?\Z)|\"(?:\\.|[^\"\\])*+\"|'(?:\\.|[^'\\\n])')",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)  # and attributes of Rust
_WORDS = r"(?:(?:export|inline|default|unsafe|pub(?:\([^()]*\))?)\s+)*"
# One `template` is enough, as what is in < > may be others: several would be read in exponentially many ways.
_CONTAINER = re.compile(
    rf"\s*{_WORDS}(?:template\s*<[^{{}}]*>\s+{_WORDS})?(?:(?:namespace|class|impl|mod|trait)\b|(?P<data>struct|union|enum|extern)\b)"
)
# What is executed, if at all, by the compiler.
_BY_COMPILERS = re.compile(r"\b(?:constexpr|consteval|const\s+fn|macro_rules)\b")
_ALTERNATIVE = re.compile(r"^[ \t]*#[ \t]*el", re.MULTILINE)  # #else and #elif may have braces of their own


Lines = Mapping[str, Collection[int]]  # by file


class Blamed(NamedTuple):
    """A function by where it begins, and the part of the difference that is its doing. `lines` are those of its code, if recorded."""

    file: str
    line: int
    name: str
    ir: int
    lines: Lines


class Touched(msgspec.Struct, frozen=True, kw_only=True):
    """A function that is to blame for a part of the difference, with the hunks in it, at least one, and their first lines."""

    function: Blamed
    hunks: tuple[Hunk, ...]
    texts: tuple[str, ...]


class HunkSplit(msgspec.Struct, frozen=True, kw_only=True):
    """The functions that the change touches, the most to blame first; `others` are the hunks in none of them.

    Where they explain less than half, `through` is a function that has hunks and calls what explains most of the difference: the
    innermost such one.
    `idle` is whether nothing that changed was executed, as far as that is certain.
    """

    touched: tuple[Touched, ...]
    others: tuple[Hunk, ...]
    total: int
    through: Touched | None = None
    idle: bool = False

    @property
    def ir(self) -> int:
        """The part of the difference that is of these functions."""
        return sum(row.function.ir for row in self.touched)

    @property
    def shown(self) -> tuple[Touched, ...]:
        """What the change touches: the function that calls what explains most, if it is known, and these functions."""
        if self.through is None:
            return self.touched
        return self.through, *(row for row in self.touched if row.hunks != self.through.hunks)

    @property
    def chief(self) -> Hunk | None:
        """The first hunk of a function that explains most of the difference, or calls what does."""
        row = next(iter(self.shown), None)
        return row.hunks[0] if row is not None and 2 * abs(row.function.ir) > abs(self.total) else None


Text = Callable[[str], str | None]  # of a file, by its path in the repository


class Side(NamedTuple):
    """The lines of one side that the other does not have, its text, and where it executed: Python's functions, others' lines."""

    hunks: Sequence[Hunk]
    text: Text
    executed: Lines


def hunk_split(
    base: Side, candidate: Side, blamed: Collection[Blamed], total: int, *, way: Collection[Blamed] = (), root: str
) -> HunkSplit:
    """Attribute the change to these functions of the candidate, whose files are below `root`, or to one on the `way` to them."""
    same = _with_equal_code(base, candidate)

    def touched(functions: Collection[Blamed]) -> Iterator[Touched]:
        for function in functions:
            found = _inside(function, candidate, root) if function.ir else ()
            inside = tuple(hunk for hunk in found if hunk not in same[1])
            if inside:
                texts = tuple(_excerpt(candidate.text(hunk.file) or "", hunk) for hunk in inside)
                yield Touched(function=function, hunks=inside, texts=texts)

    rows = tuple(touched(sorted(blamed, key=lambda item: (-abs(item.ir), item[:-1]))))
    through = next(touched(way), None) if 2 * abs(sum(row.function.ir for row in rows)) < abs(total) else None
    known = {hunk for row in (*rows, through) if row is not None for hunk in row.hunks}
    return HunkSplit(
        touched=rows,
        others=tuple(hunk for hunk in candidate.hunks if hunk not in known),
        total=total,
        through=through,
        idle=all(
            hunk in equal or _is_idle(hunk, side, root)
            for side, equal in zip((base, candidate), same, strict=True)
            for hunk in side.hunks
        ),
    )


def _with_equal_code(base: Side, candidate: Side) -> tuple[set[Hunk], set[Hunk]]:
    """Return the hunks of both sides that are the same code, in other lines or with other comments."""

    @cache
    def lines(side: int, file: str) -> list[str] | None:
        text = (base, candidate)[side].text(file)
        return None if text is None else _code(text, file)

    def code(side: int, hunk: Hunk) -> str | None:
        found = lines(side, hunk.file)
        inside = () if hunk.only_gone or found is None else found[hunk.first - 1 : hunk.last]
        if hunk.file.endswith(_PYTHON):  # where a line begins matters
            return "\n".join(line.rstrip() for line in inside if line.strip())
        return "".join("".join(inside).split()) if _BRACES.search(hunk.file) else None

    pairs = zip(base.hunks, candidate.hunks, strict=False)  # those of one diff, read from either side
    equal = [pair for pair in pairs if (old := code(0, pair[0])) is not None and old == code(1, pair[1])]
    return {old for old, _ in equal}, {new for _, new in equal}


def _code(text: str, file: str) -> list[str]:
    """Return the lines of a file without comments, and without docstrings; that of a module may be read by its program."""
    if not file.endswith(_PYTHON):
        return _NOT_CODE.sub(_without_comment, text).split("\n")
    lines = text.split("\n")
    try:
        comments = [token.start for token in generate_tokens(StringIO(text).readline) if token.type == COMMENT]
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, TokenError):
        return lines
    for line, column in comments:
        lines[line - 1] = lines[line - 1][:column]
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            first, *_ = node.body
            last = first.end_lineno or first.lineno
            before, behind = lines[first.lineno - 1].encode(), lines[last - 1].encode()
            code = before[: first.col_offset] + behind[first.end_col_offset :]
            if not code.strip():
                lines[first.lineno - 1 : last] = [""] * (last - first.lineno + 1)
    return lines


def _without_comment(match: re.Match[str]) -> str:
    return match["text"].translate(_SPACES) if match["text"] else "\n" * match[0].count("\n")


def _inside(function: Blamed, side: Side, root: str) -> Iterator[Hunk]:
    """Yield the hunks in the body of a function, and those whose lines are in its code."""
    file = below(function.file, root) if function.line else ""
    spans: dict[str, list[tuple[int, int]]] = {}
    for hunk in side.hunks:
        if hunk.file not in spans:
            own, recorded = is_same_file(file, hunk.file), _known(function.lines, hunk.file, root)
            text = side.text(hunk.file) if own or recorded else None
            found = [] if text is None or not own else _spans(text, hunk.file, function)
            inlined = [] if text is None or own else _around(recorded, text, python=hunk.file.endswith(_PYTHON))
            spans[hunk.file] = [*found, *inlined, *((line, line) for line in recorded)]
        if any(hunk.first <= last and hunk.last >= first for first, last in spans[hunk.file]):
            yield hunk


def _excerpt(text: str, hunk: Hunk) -> str:
    return "\n".join(_lines(text)[hunk.first - 1 : min(hunk.last, hunk.first + _LINES - 1)])


@lru_cache(maxsize=8)  # as those of functions
def _lines(text: str) -> list[str]:
    return text.split("\n")


def is_same_file(path: str, file: str) -> bool:
    """Return whether a path, which may be relative to any folder, is this file of the repository."""
    return path == file or (not path.startswith("/") and path != "" and file.endswith(f"/{path}"))


def _known(lines: Lines, file: str, root: str) -> set[int]:
    """Return those of a file of the repository."""
    return {line for path, found in lines.items() if is_same_file(below(path, root), file) for line in found}


def _is_idle(hunk: Hunk, side: Side, root: str) -> bool:
    """Return whether a hunk is within the body of a function, and neither that nor one inside of it was executed."""
    python = hunk.file.endswith(_PYTHON)
    lines = _known(side.executed, hunk.file, root)
    if not (lines or (python and any(path.endswith(_PYTHON) for path in side.executed))):
        return False
    if any(
        is_same_file(_INSTALLED.split(path, maxsplit=1)[-1], hunk.file)
        for path in side.executed
        if _INSTALLED.search(path)
    ):
        return False  # its copy may have another content
    source = side.text(hunk.file) or ""
    spans = _functions(source, python=python)
    outermost = next((span for span in spans if span[1] <= hunk.first and hunk.last <= span[2]), None)
    if outermost is None or any(outermost[0] <= line <= outermost[2] for line in lines):
        return False
    return python or not _BY_COMPILERS.search("\n".join(_lines(source)[outermost[0] - 1 : outermost[2]]))


def _around(lines: Collection[int], text: str, *, python: bool) -> list[tuple[int, int]]:
    """Return the first and the last line of the functions that have some of these lines."""
    spans = {(first, last) for first, _, last in _functions(text, python=python)}
    return [span for span in spans if any(span[0] <= line <= span[1] for line in lines)]


def _spans(text: str, file: str, function: Blamed) -> list[tuple[int, int]]:
    """Return the first and the last line of the function that begins where this one does, or a few lines above it."""
    line = function.line
    python = file.endswith(_PYTHON)
    if not python:
        return [(first, last) for first, _, last in _functions(text, python=python) if first <= line <= last][:1]
    found = sorted(_functions(text, python=python))
    if function.name == _MODULE:  # what is between its functions
        ends = [0, *accumulate((last for *_, last in found), max)]
        return [(before + 1, first - 1) for before, (first, *_) in zip(ends, [*found, (len(text) + 1,)], strict=True)]
    return [(first, last) for first, body, last in found if first <= line < max(body, first + 1)][-1:]


@lru_cache(maxsize=8)  # each hunk and each function asks for those of its file
def _functions(text: str, *, python: bool) -> list[tuple[int, int, int]]:
    """Return the first line of each function, that of its body, and its last; outer ones come first."""
    return [*_python_functions(text)] if python else _functions_in_braces(text)


def _python_functions(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield the first line of each function, that of its body, and its last; outer ones come first."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            first = min(node.lineno, *(item.lineno for item in node.decorator_list), node.lineno)
            yield first, node.body[0].lineno, node.end_lineno or node.lineno


def _functions_in_braces(text: str) -> list[tuple[int, int, int]]:
    """Return the first line of each outermost function of C, C++ or Rust, that of its body, and its last; none where braces do not match."""
    if any(match["endless"] for match in _NOT_CODE.finditer(text)):
        return []  # or it is a raw string, which has other ends
    code = text
    for pattern in (_NOT_CODE, _DIRECTIVE):
        code = pattern.sub(lambda match: "\n" * match[0].count("\n"), code)
    found: list[tuple[int, int, int]] = []
    # Where what is before each brace begins, the brace, and whether functions may be inside.
    opened: list[tuple[int, int, bool]] = []
    end, lines, bodies = 0, _lines(text), 0
    starts = [0, *accumulate(len(line) + 1 for line in code.split("\n"))]
    for match in re.finditer(r"[{};]", code):
        head, end = code[end : match.start()], match.end()
        if match[0] == "{":
            opened.append((match.start() - len(head.lstrip()), match.start(), _holds_functions(head)))
            bodies += not opened[-1][-1]
        elif match[0] == "}":
            if not opened:
                return []
            begin, brace, holds = opened.pop()
            bodies -= not holds
            if not holds and not bodies:
                first, head_end, last = (bisect_right(starts, at) for at in (begin, brace, match.start()))
                found += [(first, head_end + 1, last)] * (not _ALTERNATIVE.search("\n".join(lines[first - 1 : last])))
    return [] if opened else found


def _holds_functions(head: str) -> bool:
    """Return whether what is before a brace is of a namespace, class or module; not of a function that returns a struct."""
    match = _CONTAINER.match(head)
    return match is not None and (match["data"] is None or not {"(", ")"} & set(head[match.end() :]))
