"""The numbers of a page for its script: differences of whole numbers, packed into text, within JSON that HTML cannot break.

Knows the layout that `page.js` reads; must not know how it is shown.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING

from cachegrind_bench.model.score import CostModel
from cachegrind_bench.render.names import plain
from cachegrind_bench.render.trend import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cachegrind_bench.history.report import Row, Trend

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
# What HTML or a script would take for its own, and halves of pairs, which cannot be written; others are shorter as they are.
_MEANT = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def block(report: Trend, anchors: Sequence[str]) -> str:
    """Return the JSON of a page; `anchors` are those of the rows. No character of it means anything to HTML."""
    authors = sorted({words.author(note) for note in report.commits})
    number = {name: place for place, name in enumerate(authors)}
    keys = sorted({reading.key for row in report.rows for reading in row.readings})
    document = {
        "first": report.first,
        "shas": [words.sha(note.sha) for note in report.commits],
        "minutes": packed(_minutes(report)),
        "authors": authors,
        "author": packed([number[words.author(note)] for note in report.commits]),
        "subjects": [words.subject(note) for note in report.commits],
        "keys": [plain(key) for key in keys],
        "releases": [[place - report.first, plain(name)] for place, name in report.releases],
        "rows": [_row(row, anchor, report.first, keys) for row, anchor in zip(report.rows, anchors, strict=True)],
    }
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return _MEANT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def packed(numbers: Iterable[int]) -> str:
    """Return whole numbers as text: their differences in base 32, and `!` with a number where one repeats so many times."""
    text: list[str] = []
    before, last, repeated = 0, None, 0
    for number in numbers:
        difference, before = number - before, number
        if difference == last:
            repeated += 1
            continue
        text.append(_repeats(repeated, last))
        text.append(_digits(difference))
        last, repeated = difference, 0
    text.append(_repeats(repeated, last))
    return "".join(text)


def _repeats(number: int, difference: int | None) -> str:
    if not number or difference is None:
        return ""
    short, long = f"!{_digits(number)}", _digits(difference) * number
    return min(long, short, key=len)


def _digits(number: int) -> str:
    """Return a number in digits of five bits, the lowest first, each but the last marked; the lowest bit is the sign."""
    rest = 2 * number if number >= 0 else -2 * number - 1
    text = ""
    while True:
        rest, digit = divmod(rest, 32)
        text += _DIGITS[digit + (32 if rest else 0)]
        if not rest:
            return text


def _row(row: Row, anchor: str, first: int, keys: Sequence[str]) -> dict[str, object]:
    readings = row.readings
    model = CostModel.parse(row.model)
    return {
        "anchor": anchor,
        "id": words.name(row.id),
        "at": packed(reading.index - first for reading in readings),
        "value": packed(reading.value for reading in readings),
        "ir": packed(reading.counts.Ir for reading in readings),
        "ll": packed(reading.counts.ll_hits for reading in readings),
        "ram": packed(reading.counts.ram_hits for reading in readings),
        "key": packed(keys.index(reading.key) for reading in readings),
        "weights": None if model.l1 is None else [model.l1, model.ll, model.ram],
    }


def _minutes(report: Trend) -> list[int]:
    """Return the commits' times in minutes since 1970; one that nobody can read is that of the commit before it."""
    found: list[int] = []
    for note in report.commits:
        try:
            minute = int(datetime.fromisoformat(note.committed_at).timestamp()) // 60
        except (ValueError, OverflowError):
            minute = found[-1] if found else 0
        found.append(max(minute, found[-1] if found else minute))
    return found
