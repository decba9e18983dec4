"""The numbers of a page for its script: JSON, compressed, in letters that mean nothing to HTML.

Knows the layout that `page.js` reads; must not know how it is shown.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from itertools import groupby, pairwise

from cachegrind_bench.history.growth import EXPONENT
from cachegrind_bench.history.lifecycle import times_of
from cachegrind_bench.history.values import ACTIVE, Finding, Reading, Row, Trend
from cachegrind_bench.model.metrics import IR_MODEL, CostModel
from cachegrind_bench.model.text import plain, shortened, some
from cachegrind_bench.render.trend import words

QUANTITIES = ("value", "ir", "ll", "ram")
_LONGEST_SUBJECT, _LONGEST_AUTHOR, _LONGEST_TAG = 100, 60, 60


def block(report: Trend, anchors: Sequence[str]) -> str:
    """Return what the script unpacks; `anchors` are those of the rows."""
    written = [_cut(words.author(note), _LONGEST_AUTHOR) for note in report.commits]
    authors = sorted(set(written))
    keys = sorted({reading.key for row in report.rows for reading in row.readings})
    tags = groupby(report.releases, key=lambda release: release[0])  # the text of at most ten at a commit
    document = {
        "shas": [words.sha(note.sha) for note in report.commits],
        "minutes": packed([int(time.timestamp()) // 60 for time in times_of(report.commits)]),
        "authors": authors,
        "author": packed([authors.index(name) for name in written]),
        "subjects": [_cut(words.subject(note), _LONGEST_SUBJECT) for note in report.commits],
        "keys": [plain(key[:12]) for key in keys],
        "releases": [
            [at - report.first, _cut(", ".join(shortened(name, 99) for _, name in [*found][:10]), _LONGEST_TAG)]
            for at, found in tags
        ],
        "rows": [_row(row, anchor, report.first, keys) for row, anchor in zip(report.rows, anchors, strict=True)],
    }
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("utf-8", "replace"))).decode()


def with_caches(row: Row) -> bool:
    """Return whether hits are known of all readings, and have panels."""
    return all(reading.counts.with_caches for reading in row.readings)


def amount(reading: Reading, name: str) -> int:
    """Return the number of a panel, which is one of `QUANTITIES`."""
    counts = reading.counts
    return {"value": reading.value, "ir": counts.Ir, "ll": counts.ll_hits, "ram": counts.ram_hits}[name]


def packed(numbers: Sequence[int]) -> str:
    """Return the differences of whole numbers: of what hardly changes, little is left once compressed."""
    return ",".join(str(number - before) for before, number in pairwise([0, *numbers]))


def _cut(text: str, length: int) -> str:
    return shortened(plain(shortened(text, 2 * length)), length)


def _row(row: Row, anchor: str, first: int, keys: Sequence[str]) -> dict[str, object]:
    readings = row.readings
    model = IR_MODEL if row.model == EXPONENT else CostModel.parse(row.model)
    measured = {reading.index for reading in readings}
    return {
        "anchor": anchor,
        "named": words.value_name(row.model).capitalize(),
        "at": packed([reading.index - first for reading in readings]),
        "failed": packed([index - first for index in row.failed]),
        "taken": packed([place for place, reading in enumerate(readings) if reading.taken_over]),
        **{name: packed([amount(reading, name) for reading in readings]) for name in QUANTITIES},
        "key": packed([keys.index(reading.key) for reading in readings]),
        "weights": None if model.l1 is None else [model.l1, model.ll, model.ram],
        "caches": with_caches(row),
        "marks": [[found.index - first, *_mark(found)] for found in row.findings if found.index in measured],
    }


def _mark(found: Finding) -> tuple[str, str, str]:
    """Return the shape of a finding in a chart, a class that says how it is filled, and a title."""
    look = "" if found.confirmed and found.state in ACTIVE else "hollow"
    commits = some([words.sha(sha) for sha in found.suspects], 3)
    return found.kind.value, look, f"{words.kind(found)}{words.size(found)}: {commits}"
