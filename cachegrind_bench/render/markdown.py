"""Markdown for pull requests and job summaries: every text is escaped, since names are hostile."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from itertools import zip_longest

from cachegrind_bench.model.text import LONGEST_CELL, is_number, shortened

# What has a meaning wherever it is, or only before what follows: most signs are left alone, as mail and chat show the escapes.
_COLON = r"(?<![:0-9]):(?=//|[a-z0-9_+-]+:(?!:))"  # in addresses, and in names of small pictures
_SPECIAL = re.compile(
    rf"""[\\`*|~$]
    | ^(?:[-+](?=\s|$) | [-=]+\s*$ | \[)   # the beginning of a list, a rule or a definition
    | !(?=[\[\w]) | \[(?=[\^!\[\ ]) | \](?=[(\[:])    # links, footnotes, tasks
    | &(?=[#\w]|$) | %(?=["\w])    # entities; epics and milestones of GitLab
    | {_COLON}
    | (?<=www)\.""",
    re.IGNORECASE | re.VERBOSE,
)
_EMPHASIS = re.compile(r"(?<!_)(?:(?<![^\W_])_++|_++(?![^\W_]))")  # within a word it has no meaning
_NUMBERED = re.compile(r"^([0-9]+)([.)])(?=\s|$)")
_TAG = re.compile(r"<(?=[a-z/!?]|$)", re.IGNORECASE)
# What GitHub and GitLab make a reference of without any sign; the latter also of `[issue:1]`.
_KIND = "issue|epic|work_item|vulnerability|feature_flag|contact|cadence|iteration|wiki_page"
_REFERENCE = re.compile(rf"\b(?:GH|GL)(?=\\?-[0-9])|\[(?=(?:{_KIND})\\?:)", re.IGNORECASE)
# The same where a backslash would be seen.
_IN_HTML = re.compile(rf"""[@#]|[!$~^%](?=["\w])|&amp;(?=\w)|www|{_COLON}""", re.IGNORECASE)
_LONGEST_SUMMARY = 120
_LONGEST_MARGIN = 3


def escape(text: str) -> str:
    """Return one line of text that renders as itself: no emphasis, link, list, mention, formula, table cell or HTML."""
    rest = text.lstrip()
    margin = text[: len(text) - len(rest)]
    if len(margin) > _LONGEST_MARGIN:  # four are a block of code
        margin = "\N{NO-BREAK SPACE}" * len(margin)
    rest = _NUMBERED.sub(r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", rest))
    rest = _TAG.sub("&lt;", rest)
    text = margin + (f"&gt;{rest[1:]}" if rest.startswith(">") else rest)
    text = _EMPHASIS.sub(lambda run: r"\_" * len(run[0]), text)
    # A zero-width space keeps GitHub from reading @name and #1; it does so in spite of a backslash.
    text = text.replace("@", "@\u200b").replace("#", "#\u200b")
    return _unreferenced(text)


def _unreferenced(text: str) -> str:
    """Return text in which neither GitHub nor GitLab sees a reference to an issue, as in GH-1."""
    return _REFERENCE.sub("\\g<0>\u200b", text)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with a line for the columns' names, which may be fewer than the cells; numbers to the right."""
    filled = list(zip_longest(columns, *rows, fillvalue=""))
    cells = (list(filter(None, column[1:])) for column in filled)
    rules = ["--:" if column and all(map(is_number, column)) else "---" for column in cells]
    heading, *others = (
        [
            cell.replace(" ", "\N{NO-BREAK SPACE}") if is_number(cell) else escape(shortened(cell, LONGEST_CELL))
            for cell in row
        ]
        for row in zip(*filled, strict=True)
    )
    return "".join(f"| {' | '.join(row)} |\n" for row in (heading, rules, *others))


def fold(summary: str, content: str) -> str:
    """Return Markdown that is folded under a summary, which may be any text."""
    # GitHub reads no Markdown within a summary, only HTML.
    title = html.escape(shortened(summary, _LONGEST_SUMMARY), quote=False)
    # What makes a mention, a reference or an address of what follows.
    title = _IN_HTML.sub("\\g<0>\u200b", title)
    return f"\n<details><summary>{_unreferenced(title)}</summary>\n\n{content}\n</details>\n"
