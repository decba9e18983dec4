"""A page about benchmarks that loads nothing: a headline, a table of them, and of each what it took, its flame graphs and tables.

Knows what is on such a page, be it of one result or of two that are compared; must not know where that comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from os.path import basename
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec
from msgspec.structs import replace

from cachegrind_bench.compare.call_paths import ALL, OTHERS, OUTSIDE, CallPaths, Kind
from cachegrind_bench.model.text import counted, is_number, name_or_path, plain, shortened
from cachegrind_bench.render.page import block, render
from cachegrind_bench.render.table import Section  # noqa: TC001 - a field's type
from cachegrind_bench.valgrind.demangling import demangled

if TYPE_CHECKING:
    from cachegrind_bench.compare.call_split import Label

_MOST_ROWS = 1_000  # of benchmarks
_LONGEST, _LONGEST_CELL = 300, 100
_LONGEST_NAME = 200  # of frames
_COLOURS = 8  # of the style
_NOWHERE = ("", "not under any Python function")
# Columns of words; all others are numbers.
_WORDS = frozenset(
    {"benchmark", "where", "function", "file", "executable", "Python function", "line", "source line", "called from"}
    | {"count", "growth", "next best"}
)


class Row(msgspec.Struct, frozen=True):
    """A benchmark, first its id; `style` is the look of the cell after that."""

    cells: Sequence[str]
    style: str = ""


class Details(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of one benchmark. `hunks` are those of a change, as a title and code; `numbers` come before the graphs.

    Where there are no `graphs`, `without_graph` says why.
    """

    title: str
    remarks: Sequence[str] = ()
    hunks: Sequence[tuple[str, str]] = ()
    numbers: Section | None = None
    graphs: Sequence[CallPaths] = ()
    without_graph: str = ""
    tables: Sequence[Section] = ()


class BenchmarkPage(msgspec.Struct, frozen=True, kw_only=True):
    """What is on a page; `origin` has labels and texts, `left_out` says what `rows` lack."""

    title: str
    headline: str
    origin: Sequence[tuple[str, str]]
    notices: Sequence[str] = ()
    columns: Sequence[str]
    rows: Sequence[Row]
    left_out: str = ""
    details: Sequence[Details]

    def html(self, *, tool_version: str) -> str:
        """Return the page."""
        more = len(self.rows[_MOST_ROWS:])
        left_out = [counted(more, "benchmark") if more else "", self.left_out]
        return render(
            "report",
            data=block([[*map(drawn, item.graphs)] for item in self.details if item.graphs]),
            report=self,
            rows=self.rows[:_MOST_ROWS],
            left_out=", ".join(filter(None, left_out)),
            remarks_on=_remarks_on,
            is_words=_WORDS.__contains__,
            is_number=is_number,
            name_or_path=partial(name_or_path, length=_LONGEST_CELL),
            words_first=_words_first,
            cut=partial(shortened, length=_LONGEST),
            tool_version=tool_version,
        )


def _words_first(table: Section) -> Section:
    """Return a table with what its rows are called on the left, where a narrow screen shows it, next to the numbers."""
    columns = [*zip_longest(table.columns, *table.rows, fillvalue="")]
    first = next((column for column in columns if column[0] in _WORDS), columns[0])
    heading, *rows = zip(*sorted(columns, key=lambda column: column is not first), strict=True)
    return replace(table, columns=heading, rows=tuple(rows))


def _remarks_on(paths: CallPaths) -> Iterator[str]:
    """Say what in these paths is not what it may seem to be."""
    if not paths.recorded:
        yield (
            "Who called whom was recorded, not whole paths: what a function cost is shared out among its callers by what "
            "their calls of it cost."
        )
    if paths.kind is Kind.BOTH:
        both = " on both sides" if len(paths.frames[0].own) > 1 else ""
        yield (
            f"Up to 20 native functions that cost at least half a percent of the program{both} are frames below the Python function that ran "
            "them; what others cost is in the frame above. All of these paths were recorded."
        )
    if paths.cut:
        yield (
            "Some calls were nested too deeply to be followed to their outermost callers: they are at the top, by themselves."
        )
    merged = sum(frame.merged for frame in paths.frames)
    if merged:
        yield f"Calls too small to be drawn are merged, as “…”: {counted(merged, 'path')} with what is below."


def drawn(paths: CallPaths) -> dict[str, object]:
    """Return what the script draws: columns of numbers, and the functions that they name by index."""
    found = paths.frames
    used = sorted({frame.function for frame in found} - {ALL, OTHERS})
    number = {function: place for place, function in enumerate(used)}
    sides = range(len(found[0].own))
    return {
        "functions": [  # name, place and colour, which is that of the file, or of none
            (
                plain(_cut(demangled(item.name) + _others(paths.circles.get(function, 0)))),
                plain(_cut(item.place or basename(item.object))) or _NOWHERE[function == OUTSIDE],
                _colour(item, paths.kind) if function != OUTSIDE else -1,
            )
            for function, item in ((function, paths.labels[function]) for function in used)
        ],
        "parent": [frame.parent for frame in found],
        "function": [number.get(frame.function, frame.function) for frame in found],
        "own": [[frame.own[side] for frame in found] for side in sides],
        "calls": [[frame.calls[side] for frame in found] for side in sides],
        "merged": {place: frame.merged for place, frame in enumerate(found) if frame.function == OTHERS},
    }


def _others(number: int) -> str:
    return f" and {number} that call each other" if number else ""


def _colour(item: Label, kind: Kind) -> int:
    """Return the colour of a function: that of its file, and one of its own for what is native below Python."""
    if kind is Kind.BOTH and item.object:
        return _COLOURS
    return crc32((item.file or item.object).encode(errors="surrogatepass")) % _COLOURS


def _cut(text: str) -> str:
    return shortened(text, _LONGEST_NAME)
