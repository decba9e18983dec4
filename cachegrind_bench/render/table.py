"""Reports as titled rows of text, and their layouts: aligned for terminals and logs, or Markdown.

Makes every text harmless, in one place: a result file may come from a stranger's pull request.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest

import msgspec

from cachegrind_bench.model.text import LONGEST_CELL, is_number, plain, shortened

Row = tuple[str, ...]

_MARGIN = "  "
_SHORTEST = 12


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Rows under a heading; a section without rows is not shown. `columns` names them; empty for pairs of label and value.

    `shrinkable` are the columns that give way where a terminal is narrow, first the first one.
    """

    title: str = ""
    columns: Row = ()
    rows: tuple[Row, ...]
    shrinkable: tuple[int, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A title, sections and warnings."""

    title: str
    sections: tuple[Section, ...]
    warnings: tuple[str, ...] = ()


def render(report: Report, form: str = "table", *, width: int | None = None) -> str:
    """Return a report as table, for a terminal of this width (None: as wide as it gets), or as markdown."""
    if form == "markdown":
        return _markdown(report)
    return "".join(f"{line.rstrip()}\n" for line in _aligned(report, width))


def _markdown(report: Report) -> str:
    from cachegrind_bench.render.markdown import escape, table

    text = f"### {escape(plain(report.title))}\n"
    for section in report.sections:
        if section.rows:
            title = f"**{escape(section.title)}**\n\n" if section.title else ""
            text += f"\n{title}{table(section.columns, [tuple(map(plain, row)) for row in section.rows])}"
    return text + "".join(f"\n> ⚠️ {escape(plain(warning))}\n" for warning in report.warnings)


def _aligned(report: Report, width: int | None) -> Iterator[str]:
    yield plain(report.title)
    for section in report.sections:
        if section.rows:
            yield ""
            yield from [_MARGIN + section.title] if section.title else []
            indent = _MARGIN * 2 if section.title else _MARGIN
            heading = [section.columns] if section.columns else []
            rows = [*heading, *(tuple(map(plain, row)) for row in section.rows)]
            rows = fitted(rows, width and width - len(indent), section.shrinkable)
            yield from (indent + line for line in aligned(rows, headed=bool(heading)))
    yield from [""] if report.warnings else []
    yield from (f"{_MARGIN}warning: {plain(warning)}" for warning in report.warnings)


def fitted(rows: Sequence[Sequence[str]], width: int | None, shrinkable: Sequence[int]) -> list[Row]:
    """Return rows whose texts are cut so that the table is at most `width` wide, if cutting these columns can do it.

    The first of `shrinkable` gives way first; none gets shorter than its heading, or than what can still be read.
    """
    lines = list(zip(*zip_longest(*rows, fillvalue=""), strict=True))
    sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
    excess = 0 if width is None else sum(sizes) + len(_MARGIN) * (len(sizes) - 1) - width
    for place in shrinkable:
        size = max(_SHORTEST, len(lines[0][place]), sizes[place] - max(excess, 0))
        if size < sizes[place]:
            excess -= sizes[place] - size
            lines = [(*row[:place], _cut(row[place], size), *row[place + 1 :]) for row in lines]
    return lines


def _cut(text: str, size: int) -> str:
    """Return text of this length at most; of a path, its end is kept, which says most."""
    return f"…{text[1 - size :]}" if "/" in text and len(text) > size else shortened(text, size)


def without_empty(rows: Sequence[Row], places: Collection[int]) -> list[Row]:
    """Return rows (the first is the heading) without those of these columns that have nothing below it."""
    empty = [place for place in places if not any(row[place:] and row[place] for row in rows[1:])]
    return [tuple(cell for place, cell in enumerate(row) if place not in empty) for row in rows]


def aligned(rows: Sequence[Sequence[str]], *, headed: bool = False, right: Collection[int] = ()) -> list[str]:
    """Return rows as lines with columns of equal width; the first may be the columns' names.

    Numbers are aligned to the right, and so is what is in the columns `right`, of numbers with exceptions.
    """
    columns: list[list[str]] = []
    for place, texts in enumerate(zip_longest(*rows, fillvalue="")):
        column = [shortened(text, LONGEST_CELL) for text in texts]
        size = max(map(len, column))
        to_right = place in right or all(is_number(text) for text in column[headed:] if text)
        columns.append([text.rjust(size) if to_right else text.ljust(size) for text in column])
    return [_MARGIN.join(row) for row in zip(*columns, strict=True)]
