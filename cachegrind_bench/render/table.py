"""Reports as aligned plain text, for terminals and logs alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.render.numbers import is_number

if TYPE_CHECKING:
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
    width = max(map(len, (*heading, *section.rows)), default=0)
    rows = [(*row, *[""] * (width - len(row))) for row in section.rows]
    columns = range(width)
    numeric = [all(is_number(row[place]) for row in rows if row[place]) for place in columns]
    lines = [(*row, *[""] * (width - len(row))) for row in heading] + rows
    sizes = [max(len(row[place]) for row in lines) for place in columns]
    indent = _MARGIN * 2 if section.title else _MARGIN
    return [
        indent + _MARGIN.join(_cell(row[place], sizes[place], numeric[place]) for place in columns) for row in lines
    ]


def _cell(text: str, size: int, numeric: bool) -> str:  # noqa: FBT001 - one of three facts about a cell
    return text.rjust(size) if numeric else text.ljust(size)
