"""Whole results, profiles included, kept compressed next to the records of their runs.

Knows the form of these files; must not know when they are kept.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from msgspec.structs import replace

from cachegrind_bench.errors import FileFormatError, StoreError
from cachegrind_bench.model.codec import ResultFile, encode
from cachegrind_bench.model.result import Result
from cachegrind_bench.store.durable import read_file
from cachegrind_bench.store.record import Record, run_name, run_record

HINT = "remove the file: the run is kept without it as well"

_SUFFIX = ".profile.json.gz"
_LEVEL = 6
_MOST = 1 << 31


def name_of(record: str) -> str:
    """Return the name of the profile that belongs to the record of this name."""
    return record.removesuffix(".json") + _SUFFIX


def pack(result: Result) -> bytes:
    """Return the file of a whole result."""
    return gzip.compress(encode(result), _LEVEL, mtime=0)


def unpacked(packed: bytes) -> bytes:
    """Return the bytes of the result file that was packed. OSError, EOFError or zlib.error if they are damaged."""
    return gzip.decompress(packed)


def is_of(data: bytes, record: Record) -> bool:
    """Return whether the result file with these bytes is of this record's run, as far as this version can read both."""
    found, kept = (ResultFile(text, record.name) for text in (data, record.data))
    return run_record(found.result).data == run_record(kept.result).data


def record_of(name: str) -> str | None:
    """Return the name of the record that the profile of this name belongs to; None if it is not a profile's."""
    return name.removesuffix(_SUFFIX) + ".json" if name.endswith(_SUFFIX) else None


def unpack(path: Path, record: str) -> bytes | None:
    """Return the bytes of the result file in this file, which is of this record's commit and environment; None if not there.

    StoreError if it is damaged, or of another run. What a later version would call the record is not asked: it may know more.
    """
    try:
        data = unpacked(read_file(path, _MOST))
        found = ResultFile(data, str(path)).result
    except FileNotFoundError:
        return None
    except (EOFError, OSError, zlib.error, FileFormatError) as error:
        raise StoreError(f"cannot read {path}: {error}", hint=HINT) from error
    kept, said = run_name(run_record(found).name), run_name(record)
    if kept is None or said is None or replace(kept, uid8=said.uid8) != said:
        raise StoreError(f"{path} is not the profile of that run", hint=HINT)
    return data
