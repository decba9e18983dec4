"""Reports as aligned plain text, for terminals and logs alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.render.numbers import is_number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from cachegrind_bench.render.report import Report, Section

_MARGIN = "  "


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


def aligned(rows: Sequence[Sequence[str]], *, headed: bool = False) -> list[str]:
    """Return rows as lines with columns of equal width, numbers to the right; the first may be the columns' names."""
    width = max(map(len, rows), default=0)
    lines = [(*row, *[""] * (width - len(row))) for row in rows]
    columns = range(width)
    numeric = [all(is_number(row[place]) for row in lines[headed:] if row[place]) for place in columns]
    sizes = [max(len(row[place]) for row in lines) for place in columns]
    return [_MARGIN.join(_cell(row[place], sizes[place], numeric[place]) for place in columns) for row in lines]


def _cell(text: str, size: int, numeric: bool) -> str:  # noqa: FBT001 - one of three facts about a cell
    return text.rjust(size) if numeric else text.ljust(size)
