"""Reports as Markdown for pull requests and job summaries; every text is escaped, since names are hostile."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cachegrind_bench.model.text import is_number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from cachegrind_bench.render.report import Report

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~@:$-]|(?<=www)\.)", re.IGNORECASE)
# What GitHub makes a reference of without any sign.
_REFERENCE = re.compile(r"\b(GH)(?=\\?-[0-9])", re.IGNORECASE)


def escape(text: str) -> str:
    """Return text that renders as itself: no emphasis, link, mention, formula, table cell or HTML."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A zero-width space keeps GitHub from reading @name and #1 in spite of the backslash.
    text = _SPECIAL.sub(r"\\\1", text).replace("\\@", "@\u200b").replace("\\#", "#\u200b")
    return unreferenced(text)


def unreferenced(text: str) -> str:
    """Return text of which GitHub makes no reference to an issue, as it does of GH-1."""
    return _REFERENCE.sub("\\1\u200b", text)


def render(report: Report, stream: TextIO) -> None:
    """Write one report."""
    stream.write(f"### {escape(report.title)}\n")
    for section in report.sections:
        stream.write("\n")
        if section.title:
            stream.write(f"**{escape(section.title)}**\n\n")
        stream.write(table(section.columns, section.rows))
    stream.writelines(f"\n> ⚠️ {escape(warning)}\n" for warning in report.warnings)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with a line for the columns' names, which may be fewer than the cells; numbers to the right."""
    width = max(len(row) for row in (columns, *rows))
    heading = (*columns, *[""] * (width - len(columns)))
    cells = [[row[place] for row in rows if row[place : place + 1] not in ((), ("",))] for place in range(width)]
    numeric = [bool(column) and all(map(is_number, column)) for column in cells]
    lines = [
        "| " + " | ".join(escape(name) for name in heading) + " |",
        "| " + " | ".join("--:" if right else "---" for right in numeric) + " |",
    ]
    lines += [
        "| "
        + " | ".join(cell if is_number(cell) else escape(cell) for cell in (*row, *[""] * (width - len(row))))
        + " |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"
