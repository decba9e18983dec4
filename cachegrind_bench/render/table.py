"""Reports as aligned plain text, for terminals and logs alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

    from cachegrind_bench.render.report import Report, Row, Section

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
    rows = [section.columns, *section.rows] if section.columns else list(section.rows)
    width = max(map(len, rows), default=0)
    full = [(*row, *[""] * (width - len(row))) for row in rows]
    sizes = [
        max((len(row[place]) for row in full if row[place + 1 :] or _is_number(row[place])), default=0)
        for place in range(width)
    ]
    indent = _MARGIN * 2 if section.title else _MARGIN
    return [indent + _line(row, sizes) for row in full]


def _line(row: Row, sizes: list[int]) -> str:
    cells = [cell.rjust(size) if _is_number(cell) else cell.ljust(size) for cell, size in zip(row, sizes, strict=True)]
    return _MARGIN.join(cells)


def _is_number(cell: str) -> bool:
    return cell[:1].isdigit() and cell[-1:] in "0123456789%"
