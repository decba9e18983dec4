"""Segments: one compressed file for the runs of a month, `segments/2026-01.0123abcd.jsonl.gz`. Older versions wrote them.

The first line names the records, in order; each further line is one of them, with its bytes as text. The name has the
month and the uid of all lines. Knows the format; must not know where segments are kept.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, TypeVar

import msgspec

from cachegrind_bench.errors import FileFormatError, StoreError
from cachegrind_bench.model.parsing import Head, parse
from cachegrind_bench.store.checking import intact
from cachegrind_bench.store.record import Record, run_name

T = TypeVar("T")

FOLDER = "segments"
SCHEMA = "cg-bench.segment/1"
# The longest line that is read, in bytes: a record is at most as long as a result file may be.
MOST = 250_000_000

_NAME = re.compile(FOLDER + r"/([0-9]{4}-[0-9]{2})\.([0-9a-f]{8})\.jsonl\.gz", re.ASCII)


def month_of(name: str) -> str | None:
    """Return the month of the segment of this name, as 2026-01; None if no segment has such a name."""
    match = _NAME.fullmatch(name)
    return None if match is None else match[1]


def segment_names(stream: BinaryIO, segment: str) -> list[str]:
    """Return the names of the records in this segment, sorted. Only its first line is read."""
    with _unpacking(segment, stream) as packed:
        return _names(packed.readline(MOST), segment)


def read_segment(stream: BinaryIO, segment: str, wanted: Collection[str] | None = None) -> Iterator[Record]:
    """Return these records of a segment, or all, in the order of names. StoreError for what is not as it was written.

    All is checked only where all is read.
    """
    with _unpacking(segment, stream) as packed:
        line = packed.readline(MOST)
        names = _names(line, segment)
        whole = hashlib.sha256(line)
        left = len(names) if wanted is None else len({*names}.intersection(wanted))
        for name in names:
            if not left:
                return
            line = packed.readline(MOST)
            if wanted is None:
                whole.update(line)
            elif name not in wanted:
                continue
            left -= 1
            found = _parsed(line, _Line, segment)
            if found.name != name:
                raise _damaged(segment, f"the record {name} is not in its place")
            yield intact(Record(name=name, data=found.data.encode()), f"{segment}: {name}")
        if wanted is None and (packed.read(1) or f".{whole.hexdigest()[:8]}." not in segment):
            raise _damaged(segment, "its bytes are not those it was named after")


@contextmanager
def _unpacking(segment: str, stream: BinaryIO) -> Generator[gzip.GzipFile]:
    if month_of(segment) is None:
        raise _damaged(segment, "no segment has such a name")
    try:
        with gzip.GzipFile(fileobj=stream, mode="rb") as packed:
            yield packed
    except (EOFError, OSError, zlib.error) as error:
        raise _damaged(segment, str(error) or "it is cut off") from error


class _Names(msgspec.Struct):
    names: list[str]


class _Line(msgspec.Struct):
    name: str
    data: str


def _names(line: bytes, segment: str) -> list[str]:
    schema = _parsed(line, Head, segment).schema
    if schema != SCHEMA:
        raise _damaged(segment, f"its schema is {schema[:80]!r}, and this cg-bench reads {SCHEMA}")
    names = _parsed(line, _Names, segment).names
    if _common_month(names) != month_of(segment):
        raise _damaged(segment, "it does not begin with the names of its month's runs")
    return names


def _parsed(line: bytes, kind: type[T], segment: str) -> T:
    if not line.endswith(b"\n"):
        raise _damaged(segment, "it is cut off, or a line is too long")
    try:
        return parse(line, kind, segment)
    except FileFormatError as error:
        raise _damaged(segment, error.what) from error


def _common_month(names: Sequence[str]) -> str | None:
    """Return the month that all these runs are of; None if there is none, or they are not sorted."""
    months = {said.month if said else None for said in map(run_name, names)}
    return months.pop() if len(months) == 1 and list(names) == sorted({*names}) else None


def _damaged(segment: str, what: str) -> StoreError:
    return StoreError(f"{segment} cannot be read: {what}", hint="put a good copy in its place, or move the file away")
