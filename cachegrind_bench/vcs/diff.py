"""What a change of the source consists of: the hunks between two commits, as git's diff has them, and the text behind them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.vcs.git import COMMIT_ID, Git

_DIFF = (
    "-c", "core.quotePath=false", "diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-relative",
    "--src-prefix=a/", "--dst-prefix=b/",
)  # fmt: skip
_SPAN = re.compile(r"@@ -(?P<gone_first>[0-9]+)(?:,(?P<gone>[0-9]+))? \+(?P<first>[0-9]+)(?:,(?P<new>[0-9]+))? @@")
# What says how a program is built, and with which libraries.
_BUILD_FILE = re.compile(
    r"(?:^|/)(?:(?:GNU)?[Mm]akefile(?:\.\w+)?|CMakeLists\.txt|CMakePresets\.json|meson\.build|meson_options\.txt|configure(?:\.ac)?|SConstruct|SConscript"
    r"|BUILD(?:\.bazel)?|WORKSPACE|MODULE\.bazel|build\.(?:ninja|sh|gradle(?:\.kts)?|zig|rs)|Cargo\.(?:toml|lock)|rust-toolchain(?:\.toml)?|\.cargo/config(?:\.toml)?"
    r"|go\.(?:mod|sum|work)|package(?:-lock)?\.json|yarn\.lock|pnpm-lock\.yaml|pom\.xml|gradle\.properties|pyproject\.toml|setup\.(?:py|cfg)"
    r"|requirements[\w-]*\.txt|uv\.lock|poetry\.lock|Dockerfile|conanfile\.(?:txt|py)|vcpkg\.json|cg-bench\.toml|[^/]+\.(?:mk|am|cmake|pri|pro|bzl))$"
)
_SOURCE = re.compile(
    r"\.(?:[chsS]|cc|cpp|cxx|c\+\+|hh|hpp|hxx|h\+\+|inc|inl|ipp|tcc|tpp|def|asm|rs|go|pyx?|pxd|pyi|java|kt|scala|m?js|[mc]?ts|jsx|tsx|zig|d|f90|f|swift|ml|hs|cu)$"
)
_TIMEOUT_S = 30.0  # years of a large repository; a partial clone has to fetch what differs


class Hunk(NamedTuple):
    """The lines of a file, counted in the newer commit, that are new there. Where lines are only gone, it is the one before them."""

    file: str
    first: int
    last: int
    only_gone: bool = False

    @property
    def place(self) -> str:
        """Where it is, as `src/words.c:7-9`."""
        return f"{self.file}:{self.first}" + (f"-{self.last}" if self.last > self.first else "")


class Span(NamedTuple):
    """Lines that are replaced by others, as Git counts them: where there are none, `first` is the line before."""

    gone_first: int
    gone: int
    first: int
    new: int

    @property
    def reverse(self) -> Span:
        """The same from the other side."""
        return Span(self.first, self.new, self.gone_first, self.gone)


def spans(git: Git, base: str, candidate: str) -> dict[str, list[Span]] | None:
    """Return which lines of each file differ between two commits; None where git cannot say."""
    found = _diff(git, base, candidate)
    if found is None:
        return None
    by_file: dict[str, list[Span]] = {}
    for file, span in found:
        by_file.setdefault(file, []).append(span)
    return by_file


def moved_line(line: int, changed: Iterable[Span]) -> int | None:
    """Return the number of a line after these changes, in their order; None where it is one of several that became others."""
    shift = 0
    for span in changed:
        if span.gone_first <= line < span.gone_first + span.gone:
            return span.first + line - span.gone_first if span.gone == span.new else None
        if line < span.gone_first + max(span.gone, 1):
            break
        shift += span.new - span.gone
    return line + shift


_WHOLE = Span(1, 1, 1, 1)  # of a file whose lines do not say what changed


def hunks(git: Git, base: str, candidate: str) -> tuple[Hunk, ...] | None:
    """Return what differs between two commits; None where git cannot say, as one of them is not here."""
    found = _diff(git, base, candidate)
    if found is None:
        return None
    return tuple(
        Hunk(file, first, first + max(span.new, 1) - 1, span.new == 0)
        for file, span in found
        for first in [max(1, span.first)]
    )


def _diff(git: Git, base: str, candidate: str) -> list[tuple[str, Span]] | None:
    if not all(map(COMMIT_ID.fullmatch, (base, candidate))):
        return None
    try:
        return [*_parsed(git.text(*_DIFF, base, candidate, "--", timeout=_TIMEOUT_S))]
    except MeasurementError as error:
        git.gave_up(error, "what changed in the source is not known")
        return None


def is_build_file(file: str) -> bool:
    """Return whether a file says how a program is built."""
    return _BUILD_FILE.search(file) is not None


def is_source(file: str) -> bool:
    """Return whether a file is code that is compiled or run."""
    return _SOURCE.search(file) is not None and not is_build_file(file)


def text_at(git: Git, commit: str, file: str) -> str | None:
    """Return the text of a file in a commit; None where it is not there."""
    try:
        return git.text("cat-file", "blob", f"{commit}:{file}")
    except MeasurementError:
        return None


def _parsed(text: str) -> Iterator[tuple[str, Span]]:
    """Yield the file and the lines of each hunk of a diff. How many lines each has keeps its content apart from what git says."""
    file, inside, empty = "", 0, ""
    for line in text.split("\n"):
        span = _SPAN.match(line) if inside == 0 else None
        if span is not None:
            gone, new = (1 if span[name] is None else int(span[name]) for name in ("gone", "new"))
            inside, empty = gone + new, ""
            yield file, Span(int(span["gone_first"]), gone, int(span["first"]), new)
        elif inside:
            inside -= not line.startswith("\\")  # "\ No newline at end of file" is not one of them
        elif line.startswith(("--- a/", "+++ b/")):
            file = line[len("+++ b/") :].rstrip("\t")
        elif line.startswith("diff --git "):
            if empty:  # binary, of no length, or another mode
                yield empty, _WHOLE
            empty = line.rpartition(" b/")[2]
    if empty:
        yield empty, _WHOLE
