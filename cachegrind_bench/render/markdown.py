"""Markdown for pull requests and job summaries: every text is escaped, since names are hostile."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from itertools import zip_longest

from cachegrind_bench.model.text import LONGEST_CELL, is_number, shortened

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~@:$-]|(?<=www)\.)", re.IGNORECASE)
# What GitHub makes a reference of without any sign.
_REFERENCE = re.compile(r"\b(GH)(?=\\?-[0-9])", re.IGNORECASE)
_LONGEST_SUMMARY = 120


def escape(text: str) -> str:
    """Return text that renders as itself: no emphasis, link, mention, formula, table cell or HTML."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A zero-width space keeps GitHub from reading @name and #1 in spite of the backslash.
    text = _SPECIAL.sub(r"\\\1", text).replace("\\@", "@\u200b").replace("\\#", "#\u200b")
    return _unreferenced(text)


def _unreferenced(text: str) -> str:
    """Return text in which GitHub sees no reference to an issue, as it does in GH-1."""
    return _REFERENCE.sub("\\1\u200b", text)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with a line for the columns' names, which may be fewer than the cells; numbers to the right."""
    filled = list(zip_longest(columns, *rows, fillvalue=""))
    cells = (list(filter(None, column[1:])) for column in filled)
    rules = ["--:" if column and all(map(is_number, column)) else "---" for column in cells]
    heading, *others = (
        [cell if is_number(cell) else escape(shortened(cell, LONGEST_CELL)) for cell in row]
        for row in zip(*filled, strict=True)
    )
    return "".join(f"| {' | '.join(row)} |\n" for row in (heading, rules, *others))


def fold(summary: str, content: str) -> str:
    """Return Markdown that is folded under a summary, which may be any text."""
    # GitHub reads no Markdown within a summary, only HTML.
    title = html.escape(shortened(summary, _LONGEST_SUMMARY))
    for sign in ("@", "#", ":", "www"):  # that make a mention, a reference or an address of what follows
        title = title.replace(sign, f"{sign}\u200b")
    return f"\n<details><summary>{_unreferenced(title)}</summary>\n\n{content}\n</details>\n"
