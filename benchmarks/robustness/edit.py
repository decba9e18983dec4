"""What an edit is: new texts of files, requirements or other ways to link. Rules make them; they are undone by copying."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One edit of a project; `what` is for people."""

    what: str
    files: Mapping[str, str] = field(default_factory=dict)
    requirements: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    reversed_objects: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A folder of sources, and the functions that the benchmarks execute, per file: rules apply to these files only."""

    root: Path
    executed: Mapping[str, frozenset[str]]

    def files(self, rng: random.Random) -> list[str]:
        """Return the executed files, in an order that the generator decides."""
        names = sorted(self.executed)
        rng.shuffle(names)
        return names

    def text(self, name: str) -> str:
        """Read one of the files."""
        return (self.root / name).read_text()


# A rule proposes edits, the best first; the first one that proves innocent is taken.
Rule = Callable[[Source, random.Random], Iterator[Edit]]


def proposals(rule: Rule, source: Source, key: str) -> Iterator[Edit]:
    """Propose edits that are the same whenever the key is."""
    return rule(source, random.Random(key))


def insert(text: str, line: int, addition: str) -> str:
    """Insert lines before this one, counted from 1."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return "".join([*lines[: line - 1], addition, *lines[line - 1 :]])


def replace_spans(text: str, spans: list[tuple[int, int, int]], new: str) -> str:
    """Replace (line from 1, first byte, last byte + 1) by another word: the positions that `ast` gives are of UTF-8."""
    lines = text.encode().splitlines(keepends=True)
    for line, start, end in sorted(spans, reverse=True):
        old = lines[line - 1]
        lines[line - 1] = old[:start] + new.encode() + old[end:]
    return b"".join(lines).decode()
