"""Reports as aligned plain text, for terminals and logs alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.model.text import is_number, shortened

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import TextIO

    from cachegrind_bench.render.report import Report, Section

_MARGIN = "  "
_SHORTEST = 12


def render(report: Report, stream: TextIO) -> None:
    """Write one report."""
    lines = [report.title]
    for section in report.sections:
        lines.append("")
        if section.title:
            lines.append(f"{_MARGIN}{section.title}")
        lines += _section(section)
    if report.warnings:
        lines.append("")
        lines += [f"{_MARGIN}warning: {warning}" for warning in report.warnings]
    stream.write("\n".join(line.rstrip() for line in lines) + "\n")


def _section(section: Section) -> list[str]:
    heading = [section.columns] if section.columns else []
    indent = _MARGIN * 2 if section.title else _MARGIN
    return [indent + line for line in aligned([*heading, *section.rows], headed=bool(heading))]


def fitted(rows: Sequence[Sequence[str]], width: int | None, shrinkable: Sequence[int]) -> list[tuple[str, ...]]:
    """Return rows whose texts are cut so that the table is at most `width` wide, if cutting these columns can do it.

    The first of `shrinkable` gives way first; none gets shorter than its heading, or than what can still be read.
    """
    lines = [tuple(row) for row in rows]
    sizes = [max((len(row[place]) for row in lines if place < len(row)), default=0) for place in range(_width(lines))]
    excess = 0 if width is None else sum(sizes) + len(_MARGIN) * (len(sizes) - 1) - width
    for place in shrinkable:
        size = max(_SHORTEST, len(lines[0][place]), sizes[place] - max(excess, 0))
        if size < sizes[place]:
            excess -= sizes[place] - size
            lines = [
                (*row[:place], _cut(row[place], size), *row[place + 1 :]) if place < len(row) else row for row in lines
            ]
    return lines


def _cut(text: str, size: int) -> str:
    """Return text of this length at most; of a path the end, which tells most."""
    return f"…{text[1 - size :]}" if "/" in text and len(text) > size else shortened(text, size)


def _width(rows: Sequence[Sequence[str]]) -> int:
    return max(map(len, rows), default=0)


def aligned(rows: Sequence[Sequence[str]], *, headed: bool = False, right: Collection[int] = ()) -> list[str]:
    """Return rows as lines with columns of equal width; the first may be the columns' names.

    Numbers stand to the right, and so does what is in the columns `right`, of numbers with exceptions.
    """
    width = _width(rows)
    lines = [(*row, *[""] * (width - len(row))) for row in rows]
    columns = range(width)
    numeric = [
        place in right or all(is_number(row[place]) for row in lines[headed:] if row[place]) for place in columns
    ]
    sizes = [max(len(row[place]) for row in lines) for place in columns]
    return [_MARGIN.join(_cell(row[place], sizes[place], numeric[place]) for place in columns) for row in lines]


def _cell(text: str, size: int, numeric: bool) -> str:  # noqa: FBT001 - one of three facts about a cell
    return text.rjust(size) if numeric else text.ljust(size)
