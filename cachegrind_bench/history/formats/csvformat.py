"""A history as a table, one row for each benchmark of each run, and back.

Carries runs, commits, keys, statuses, counts and scores; not commands, seals, single runs or what failed. No cell can be
taken for a formula by a spreadsheet, or has what a terminal would obey.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator

from cachegrind_bench.errors import FileFormatError, UsageError
from cachegrind_bench.history.formats.fields import NAMES, Runs, texts_of
from cachegrind_bench.model.result import Snapshot
from cachegrind_bench.model.text import plain

# A cell that begins with one of these, after spaces, may be taken for a formula; a quote says that it is not.
_FORMULA = "=+-@'＝＋－＠"
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))", re.ASCII)  # as `plain` makes them
_SURROGATES, _END = range(0xD800, 0xE000), 0x110000
_BLANK = "\t\r\n"
_DELIMITERS = ",;\t"  # European spreadsheets write semicolons


def guarded(text: str) -> str:
    """Return text that no spreadsheet runs and no terminal obeys: where that is needed, with a quote before it and with escapes."""
    escaped = plain(_ESCAPE.sub(lambda found: f"\\x5c{found[0][1:]}", text))
    return f"'{escaped}" if _dangerous(text) else escaped


def unguarded(cell: str) -> str:
    """Return the text that `guarded` made this cell of."""
    text = _ESCAPE.sub(_sign, cell)
    return text[1:] if text.startswith("'") and _dangerous(text[1:]) else text


def _sign(found: re.Match[str]) -> str:
    code = int(found[1] or found[2] or found[3], 16)
    return found[0] if code in _SURROGATES or code >= _END else chr(code)


def _dangerous(text: str) -> bool:
    return text.startswith(tuple(_BLANK)) or text.lstrip().startswith(tuple(_FORMULA))


def line(cells: Iterable[str]) -> str:
    """Return one line of a CSV file, its cells guarded."""
    text = io.StringIO()
    # With both characters as the end of a line, cells that hold either are quoted.
    csv.writer(text, lineterminator="\r\n").writerow(map(guarded, cells))
    return text.getvalue()


def write(runs: Iterable[Snapshot]) -> Iterator[str]:
    """Return the lines of the table, the first with the names of the columns."""
    yield line(NAMES)
    for run in runs:
        yield from (line(texts_of(run, point).values()) for point in run.points)


def read(text: str, name: str) -> list[Snapshot]:
    """Return the runs of a table. Columns may come in any order, others are ignored. FileFormatError with the line."""
    first = text[:10_000].partition("\n")[0]
    delimiter = max(_DELIMITERS, key=lambda sign: (first.count(sign), -_DELIMITERS.index(sign)))
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # a name may be longer than what is read by default
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    runs = Runs()
    try:
        for texts in _rows(reader):
            runs.add(texts)
    except (ValueError, csv.Error, UsageError) as error:
        raise FileFormatError(
            str(error),
            path=name,
            line=max(reader.line_num, 1),
            hint="'cg-bench history export --format csv' writes such files",
        ) from error
    return runs.all()


def _rows(reader: Iterator[list[str]]) -> Iterator[dict[str, str]]:
    heading = next(reader, list[str]())
    for column in NAMES:
        if column not in heading:
            raise ValueError(f"no column {column!r}: the first line has the names of the columns")
    for row in filter(None, reader):
        if len(row) != len(heading):
            raise ValueError(f"{len(row)} cells, and {len(heading)} columns")
        texts = dict(zip(heading, map(unguarded, row), strict=True))
        yield {**texts, "dirty": texts["dirty"].lower()}  # spreadsheets write FALSE
