"""Reports as Markdown for pull requests and job summaries; every text is escaped, since names are hostile."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cachegrind_bench.render.numbers import is_number

if TYPE_CHECKING:
    from typing import TextIO

    from cachegrind_bench.render.report import Report, Section

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~@:$-]|(?<=www)\.)", re.IGNORECASE)


def escape(text: str) -> str:
    """Return text that renders as itself: no emphasis, link, mention, formula, table cell or HTML."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A zero-width space keeps GitHub from reading @name and #1 in spite of the backslash.
    return _SPECIAL.sub(r"\\\1", text).replace("\\@", "@\u200b").replace("\\#", "#\u200b")


def render(report: Report, stream: TextIO) -> None:
    """Write one report."""
    stream.write(f"### {escape(report.title)}\n")
    for section in report.sections:
        stream.write("\n")
        if section.title:
            stream.write(f"**{escape(section.title)}**\n\n")
        _table(section, stream)
    stream.writelines(f"\n> ⚠️ {escape(warning)}\n" for warning in report.warnings)


def _table(section: Section, stream: TextIO) -> None:
    rows = section.rows
    width = max(len(row) for row in (section.columns, *rows))
    heading = (*section.columns, *[""] * (width - len(section.columns)))
    columns = [[row[place] for row in rows if row[place : place + 1] not in ((), ("",))] for place in range(width)]
    numeric = [bool(column) and all(map(is_number, column)) for column in columns]
    stream.write("| " + " | ".join(escape(name) for name in heading) + " |\n")
    stream.write("| " + " | ".join("--:" if right else "---" for right in numeric) + " |\n")
    for row in rows:
        cells = (*row, *[""] * (width - len(row)))
        stream.write("| " + " | ".join(escape(cell) for cell in cells) + " |\n")
