"""Reports as titled rows of text, and their layouts: aligned for terminals and logs, or Markdown.

Makes every text harmless, in one place: a result file may come from a stranger's pull request. Only this module knows what fits
a terminal: which columns go, which texts are cut, where prose is broken.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType

import msgspec

from cachegrind_bench.model.text import LONGEST_CELL, common_start, in_line, is_number, plain, shortened, shortened_path

Row = tuple[str, ...]

_MARGIN = "  "
_SHORTEST, _READABLE = 12, 22
RED, GREEN, YELLOW = "31", "32", "33"
_CHANGE = re.compile(r"([+-])([0-9.,]+) %")
_SMALL = 0.5


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Rows under a heading; a section without rows is not shown. `columns` names them; empty for pairs of label and value.

    Where a terminal is narrow, groups of `droppable` columns are left out and `shrinkable` ones give way, first the first one;
    the column `ids` loses what all of them begin with, which is then a line of its own.
    """

    title: str = ""
    columns: Row = ()
    rows: tuple[Row, ...]
    shrinkable: tuple[int, ...] = ()
    droppable: tuple[tuple[int, ...], ...] = ()
    last: tuple[int, ...] = ()
    ids: int | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A title, sections and warnings."""

    title: str
    sections: tuple[Section, ...]
    warnings: tuple[str, ...] = ()


def render(report: Report, form: str = "table", *, width: int | None = None, colour: bool = False) -> str:
    """Return a report as table, for a terminal of this width (None: as wide as it gets), or as markdown.

    With `colour`, changes of at least half a percent are red if they are for the worse, else green.
    """
    if form == "markdown":
        return _markdown(report)
    return "".join(f"{line.rstrip()}\n" for line in _aligned(report, width, colour=colour))


def _markdown(report: Report) -> str:
    from cachegrind_bench.render.markdown import escape, table

    text = f"### {escape(in_line(report.title))}\n"
    for section in report.sections:
        if section.rows:
            title = f"**{escape(section.title)}**\n\n" if section.title else ""
            text += f"\n{title}{table(section.columns, [tuple(map(plain, row)) for row in section.rows])}"
    return text + "".join(f"\n> ⚠️ {escape(in_line(warning))}\n" for warning in report.warnings)


def _aligned(report: Report, width: int | None, *, colour: bool) -> Iterator[str]:
    yield in_line(report.title)
    for section in report.sections:
        if section.rows:
            yield ""
            yield from [_MARGIN + section.title] if section.title else []
            indent = _MARGIN * 2 if section.title else _MARGIN
            heading = [section.columns] if section.columns else []
            rows = [*heading, *(tuple(map(plain, row)) for row in section.rows)]
            room, start = width and width - len(indent), ""
            if section.ids is not None:
                rows, start = _brief(rows, room, section.ids)
            rows = fitted(rows, room, section.shrinkable, section.droppable, section.last)
            yield from (
                indent + line for line in aligned(rows, headed=bool(heading), colours=tones(rows) if colour else {})
            )
            yield from [f"{indent}all ids begin with {start}"] if start else []
    yield from [""] if report.warnings else []
    for warning in report.warnings:
        yield from wrapped(f"warning: {in_line(warning)}", width, _MARGIN)


def tones(rows: Sequence[Row]) -> dict[tuple[int, int], str]:
    """Return the colours of changes, by row and column: red if they are of half a percent at least for the worse, green for the better."""
    cells = ((number, place, cell) for number, row in enumerate(rows) for place, cell in enumerate(row))
    return {(number, place): tone for number, place, cell in cells if (tone := _tone(cell))}


def _tone(cell: str) -> str | None:
    match = _CHANGE.fullmatch(cell)
    return None if match is None or float(match[2].replace(",", "")) < _SMALL else RED if match[1] == "+" else GREEN


def _brief(rows: Sequence[Row], width: int | None, ids: int) -> tuple[list[Row], str]:
    """Return rows (the first is the heading) whose ids have lost what all begin with, and that, where they are too wide."""
    whole = list(zip(*zip_longest(*rows, fillvalue=""), strict=True))
    start = common_start([row[ids] for row in rows[1:]]) if is_wider(whole, width) else ""
    return [(*row[:ids], plain(row[ids].removeprefix(start)), *row[ids + 1 :]) for row in rows], start


def fitted(
    rows: Sequence[Sequence[str]],
    width: int | None,
    shrinkable: Sequence[int],
    droppable: Sequence[Sequence[int]] = (),
    last: Sequence[int] = (),
) -> list[Row]:
    """Return rows whose texts are cut so that the table is at most `width` wide, if cutting these columns can do it.

    First groups of `droppable` columns are left out, the first one first. Then the first of `shrinkable` gives way first; none
    gets shorter than its heading, or than what can still be read. Before they get hard to read, columns `last` are left out.
    """
    lines = list(zip(*zip_longest(*rows, fillvalue=""), strict=True))
    if width is None or not lines:
        return lines
    sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
    kept = list(range(len(sizes)))

    def excess(readable: int) -> int:
        wanted = (min(sizes[place], readable) if place in shrinkable else sizes[place] for place in kept)
        return sum(wanted) + len(_MARGIN) * (len(kept) - 1) - width

    for places, readable in (*((places, LONGEST_CELL) for places in droppable), (last, _READABLE)):
        if excess(readable) > 0:
            kept = [place for place in kept if place not in places]
    lacking = excess(LONGEST_CELL)
    for place in filter(kept.__contains__, shrinkable):
        size = max(_SHORTEST, len(lines[0][place]), sizes[place] - max(lacking, 0))
        if size < sizes[place]:
            lacking -= sizes[place] - size
            lines = [(*row[:place], _cut(row[place], size), *row[place + 1 :]) for row in lines]
    return [tuple(row[place] for place in kept) for row in lines]


def _cut(text: str, size: int) -> str:
    return (shortened_path(text, size) if "/" in text else shortened(text, size)).replace("……", "…")


def is_wider(rows: Sequence[Sequence[str]], width: int | None) -> bool:
    """Return whether a table of these rows, all of one length, is wider than this."""
    return (
        width is not None
        and sum(max(map(len, column)) + len(_MARGIN) for column in zip(*rows, strict=True)) > width + 2
    )


def wrapped(text: str, width: int | None, indent: str = "", hanging: str | None = None) -> list[str]:
    """Return text as lines of a terminal, broken between words, but not between a number and its sign, nor before `::`.

    The first begins with `indent`, the others with `hanging` if that is given.
    """
    if width is None or len(indent) + len(text) <= width:
        return [indent + text]
    from textwrap import wrap

    later = indent if hanging is None else hanging
    glued = {
        f" {sign}": f"\N{NO-BREAK SPACE}{sign}" for sign in ("%", "::")
    }  # `::` at a line's begin is a command to GitHub
    for separate, joined in glued.items():
        text = text.replace(separate, joined)
    lines = wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for separate, joined in glued.items():
        lines = [line.replace(joined, separate) for line in lines]
    return lines


def without_empty(rows: Sequence[Row], places: Collection[int]) -> list[Row]:
    """Return rows (the first is the heading) without those of these columns that have nothing below it."""
    empty = [place for place in places if not any(row[place:] and row[place] for row in rows[1:])]
    return [tuple(cell for place, cell in enumerate(row) if place not in empty) for row in rows]


def aligned(
    rows: Sequence[Sequence[str]],
    *,
    headed: bool = False,
    right: Collection[int] = (),
    colours: Mapping[tuple[int, int], str] = MappingProxyType({}),
) -> list[str]:
    """Return rows as lines with columns of equal width; the first may be the columns' names.

    Numbers are aligned to the right, and so is what is in the columns `right`, of numbers with exceptions. `colours` are those
    of single cells, by row and column.
    """
    columns: list[list[str]] = []
    for place, texts in enumerate(zip_longest(*rows, fillvalue="")):
        column = [shortened(text, LONGEST_CELL) for text in texts]
        size = max(map(len, column))
        to_right = place in right or all(is_number(text) for text in column[headed:] if text)
        padded = [text.rjust(size) if to_right else text.ljust(size) for text in column]
        columns.append([coloured(text, colours.get((row, place))) for row, text in enumerate(padded)])
    return [_MARGIN.join(row) for row in zip(*columns, strict=True)]


def coloured(text: str, colour: str | None) -> str:
    """Return text in this colour of a terminal; None leaves it as it is."""
    return text if colour is None or not text.strip() else f"\x1b[{colour}m{text}\x1b[0m"
