"""Whole results, profiles included, kept compressed beside the records of their runs.

Knows the form of these files; must not know when they are kept.
"""

from __future__ import annotations

import gzip
import io
import zlib
from typing import TYPE_CHECKING

from cachegrind_bench.errors import StoreError
from cachegrind_bench.model.codec import encode
from cachegrind_bench.model.resultfile import open_result
from cachegrind_bench.store.durable import read_file
from cachegrind_bench.store.reading import HINT

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.model.result import Result

_SUFFIX = ".profile.json.gz"
_LEVEL = 6
# Of the file, and of what is in it: profiles of many programs with their lines are large, but not that large.
_MOST = 1 << 31


def name_of(record: str) -> str:
    """Return the name of the profile that belongs to the record of this name."""
    return record.removesuffix(".json") + _SUFFIX


def is_name(name: str) -> bool:
    """Tell whether a file of this name is a profile."""
    return name.endswith(_SUFFIX)


def pack(result: Result) -> bytes:
    """Return the file of a whole result."""
    return gzip.compress(encode(result), _LEVEL, mtime=0)


def unpacked(packed: bytes) -> bytes:
    """Return the bytes of the result file that was packed. OSError, EOFError or zlib.error if they are damaged."""
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
        data = stream.read(_MOST + 1)
    if len(data) > _MOST:
        raise OSError(f"more than {_MOST} bytes")
    return data


def unpack(path: Path) -> bytes | None:
    """Return the bytes of the result file in this file; None if it is not there. StoreError if it is damaged."""
    try:
        return unpacked(read_file(path, _MOST))
    except FileNotFoundError:
        return None
    except (EOFError, OSError, zlib.error) as error:
        raise StoreError(f"cannot read {path}: {error}", hint=HINT) from error


def check(path: Path) -> None:
    """Find out whether this is a result that can be read. UsageError if not."""
    data = unpack(path)
    if data is not None:
        open_result(io.BytesIO(data), str(path))
