"""The numbers of a page for its script: differences of whole numbers, packed into text, within JSON that HTML cannot break.

Knows the layout that `page.js` reads; must not know how it is shown.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from cachegrind_bench.model.score import CostModel
from cachegrind_bench.model.text import plain, shortened
from cachegrind_bench.render.page import html
from cachegrind_bench.render.trend import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cachegrind_bench.history.values import Row, Trend

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
# Digits that a number takes on average, where there is little room: so many and, divided by how coarse it is, so many more.
_LEAST_DIGITS, _MORE_DIGITS = 2.8, 5
_LONGEST_SUBJECT, _LONGEST_AUTHOR, _LONGEST_TAG = 100, 60, 40


def block(report: Trend, anchors: Sequence[str], coarse: int = 1) -> str:
    """Return the JSON of a page; `anchors` are those of the rows. No character of it means anything to HTML.

    The larger `coarse`, the shorter are texts, and the fewer digits of numbers are kept: `grain` is what they are counted in.
    """

    def cut(text: str, length: int) -> str:
        return shortened(plain(shortened(text, 2 * length)), max(length // coarse, 8))

    written = [cut(words.author(note), _LONGEST_AUTHOR) for note in report.commits]
    authors = sorted(set(written))
    number = {name: place for place, name in enumerate(authors)}
    keys = sorted({reading.key for row in report.rows for reading in row.readings})
    key = {name: place for place, name in enumerate(keys)}
    document = {
        "coarse": coarse,
        "first": report.first,
        "shas": [words.sha(note.sha) for note in report.commits],
        "minutes": packed(_minutes(report)),
        "authors": authors,
        "author": packed([number[name] for name in written]),
        "subjects": [cut(words.subject(note), _LONGEST_SUBJECT) for note in report.commits],
        "keys": [plain(key[:12]) for key in keys],
        "releases": [
            [place - report.first, cut(name, _LONGEST_TAG)] for place, name in report.releases[-len(report.commits) :]
        ],
        "rows": [
            _row(row, anchor, report.first, key, coarse) for row, anchor in zip(report.rows, anchors, strict=True)
        ],
    }
    return html.block(document)


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


def _row(row: Row, anchor: str, first: int, keys: Mapping[str, int], coarse: int) -> dict[str, object]:
    readings = row.readings
    model = CostModel.parse(row.model)
    quantities = {
        "value": [reading.value for reading in readings],
        "ir": [reading.counts.Ir for reading in readings],
        "ll": [reading.counts.ll_hits for reading in readings],
        "ram": [reading.counts.ram_hits for reading in readings],
    }
    found = {name: _rounded(numbers, coarse) for name, numbers in quantities.items()}
    return {
        "anchor": anchor,
        "at": packed(reading.index - first for reading in readings),
        "failed": packed(index - first for index in row.failed),
        **{name: text for name, (text, _grain) in found.items()},
        "grain": {name: grain for name, (_text, grain) in found.items() if grain > 1},
        "key": packed(keys[reading.key] for reading in readings),
        "weights": None if model.l1 is None else [model.l1, model.ll, model.ram],
    }


def _rounded(numbers: Sequence[int], coarse: int) -> tuple[str, int]:
    """Return numbers packed, and the power of ten that they are counted in: 1 unless they must take less room."""
    text, grain = packed(numbers), 1
    most = (_LEAST_DIGITS + _MORE_DIGITS / coarse) * len(numbers)
    while coarse > 1 and len(text) > most and grain < max(numbers):
        # A digit of five bits is one and a half of ten: never too much, as the shortest numbers do not get shorter.
        grain *= 10 ** max(1, int(1.5 * (len(text) - most) / len(numbers)))
        text = packed((number + grain // 2) // grain for number in numbers)
    return text, grain


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
