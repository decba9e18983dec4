"""A history as lines of JSON, each a record with all it holds: the one format that loses nothing.

A line is exactly what a store keeps, so the uid of a record is that of its line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Any, BinaryIO, NoReturn

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.codec import FAMILY, decode
from cachegrind_bench.store.checking import wrong_with
from cachegrind_bench.store.record import (
    MOST_BYTES,
    RENAME_SCHEMA,
    Record,
    canonical_line,
    named_record,
    run_record,
    uid_of,
)


def read(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Return the records of these lines; blank lines are ignored. FileFormatError with the line that is not a record.

    A line may have other spaces, or another order of keys, than a record has; profiles and outputs are left out.
    """
    return (_record(line, name, number) for number, line in _lines(stream))


def read_again(stream: BinaryIO, name: str, names: Iterable[str]) -> Iterator[Record]:
    """Return the records that `read` returned, by their names, without looking at what is in them a second time."""
    for (number, line), known in zip(_lines(stream), chain(names, repeat("")), strict=False):
        record = Record(name=known, data=line)
        yield record if record.uid[:8] in record.name else _record(line, name, number)


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Return the lines that are not blank, with their numbers."""
    pieces = iter(lambda: stream.readline(MOST_BYTES + 1), b"")
    return ((number, line) for number, line in enumerate(pieces, 1) if line.strip())


def _record(line: bytes, name: str, number: int) -> Record:
    if len(line) > MOST_BYTES:
        raise FileFormatError(f"a line of more than {MOST_BYTES} bytes", path=name, line=number, hint=_HINT)
    try:
        document: Any = json.loads(line, parse_constant=_refuse)
        schema = str(document["schema"])
        data = canonical_line(document)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        what = f"not a line of a history: {error if isinstance(error, ValueError) else 'it is not an object with a schema'}"
        raise FileFormatError(what[:300], path=name, line=number, hint=_HINT) from error
    if schema == RENAME_SCHEMA:
        record = Record(name=f"renames/{uid_of(data)}.json", data=data)
    elif schema.startswith(FAMILY):
        result = decode(data, f"{name}:{number}")
        slim = all((item.profile, item.output, item.python, item.calls) == (None,) * 4 for item in result.benchmarks)
        record = named_record(result, data) if slim else run_record(result)
    else:
        raise FileFormatError(f"its schema is {schema[:80]!r}, not a record's", path=name, line=number, hint=_HINT)
    problem = wrong_with(record)
    if problem is not None:
        raise FileFormatError(problem, path=name, line=number)
    return record


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


_HINT = "'cg-bench history export --format jsonl' writes such files"
