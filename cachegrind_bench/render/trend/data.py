"""The numbers of a page for its script: differences of whole numbers, packed into text, within JSON that HTML cannot break.

Knows the layout that `page.js` reads; must not know how it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from cachegrind_bench.history.growth import EXPONENT
from cachegrind_bench.history.lifecycle import times_of
from cachegrind_bench.history.values import Row, Trend
from cachegrind_bench.model.metrics import IR_MODEL, CostModel
from cachegrind_bench.model.text import plain, shortened
from cachegrind_bench.render import page
from cachegrind_bench.render.trend import words
from cachegrind_bench.render.trend.chart import QUANTITIES, amount

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
# Digits that a number takes on average, where there is little room: at least the first, plus the second divided by how coarse it is.
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
    keys = sorted({reading.key for row in report.rows for reading in row.readings})
    document = {
        "coarse": coarse,
        "first": report.first,
        "shas": [words.sha(note.sha) for note in report.commits],
        "minutes": packed([int(time.timestamp()) // 60 for time in times_of(report.commits)]),
        "authors": authors,
        "author": packed([authors.index(name) for name in written]),
        "subjects": [cut(words.subject(note), _LONGEST_SUBJECT) for note in report.commits],
        "keys": [plain(key[:12]) for key in keys],
        "releases": [
            [place - report.first, cut(name, _LONGEST_TAG)] for place, name in report.releases[-len(report.commits) :]
        ],
        "rows": [
            _row(row, anchor, report.first, keys, coarse) for row, anchor in zip(report.rows, anchors, strict=True)
        ],
    }
    return page.block(document)


def packed(numbers: Sequence[int]) -> str:
    """Return whole numbers as text: their differences in base 32, and `!` with a number where one repeats."""
    text = ""
    for difference, run in groupby(number - before for before, number in pairwise([0, *numbers])):
        digits, repeated = _digits(difference), len(list(run)) - 1
        text += digits + min(digits * repeated, f"!{_digits(repeated)}", key=len)
    return text


def _digits(number: int) -> str:
    """Return a number in digits of five bits, the lowest first, each but the last marked; the lowest bit is the sign."""
    rest = 2 * number if number >= 0 else -2 * number - 1
    text = ""
    while True:
        rest, digit = divmod(rest, 32)
        text += _DIGITS[digit + (32 if rest else 0)]
        if not rest:
            return text


def _row(row: Row, anchor: str, first: int, keys: Sequence[str], coarse: int) -> dict[str, object]:
    readings = row.readings
    model = IR_MODEL if row.model == EXPONENT else CostModel.parse(row.model)
    quantities = {name: [amount(reading, name) for reading in readings] for name in QUANTITIES}
    found = {name: _rounded(numbers, coarse) for name, numbers in quantities.items()}
    return {
        "anchor": anchor,
        "named": words.value_name(row.model).capitalize(),
        "at": packed([reading.index - first for reading in readings]),
        "failed": packed([index - first for index in row.failed]),
        "taken": packed([place for place, reading in enumerate(readings) if reading.taken_over]),
        **{name: text for name, (text, _grain) in found.items()},
        "grain": {name: grain for name, (_text, grain) in found.items() if grain > 1},
        "key": packed([keys.index(reading.key) for reading in readings]),
        "weights": None if model.l1 is None else [model.l1, model.ll, model.ram],
    }


def _rounded(numbers: Sequence[int], coarse: int) -> tuple[str, int]:
    """Return numbers packed, and the power of ten that they are counted in: 1 unless they must take less room."""
    text, grain = packed(numbers), 1
    most = (_LEAST_DIGITS + _MORE_DIGITS / coarse) * len(numbers)
    while coarse > 1 and len(text) > most and grain < max(numbers):
        # A digit of five bits is one and a half of ten: never too much, as the shortest numbers do not get shorter.
        grain *= 10 ** max(1, int(1.5 * (len(text) - most) / len(numbers)))
        text = packed([(number + grain // 2) // grain for number in numbers])
    return text, grain
