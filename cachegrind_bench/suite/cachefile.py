"""The file of one stored result: a checksum, its inputs, and the result. Knows bytes; must not know files."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.hermetic.opened import Input
from cachegrind_bench.model.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.model.result import Result

SCHEMA = "cg-bench.cache/3"


class DamagedError(Exception):
    """The file is not what was written."""


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds; its result is read when it is asked for."""

    inputs: tuple[Input, ...]
    _result: bytes

    def result(self) -> Result:
        """Read the result, of one benchmark. DamagedError if it cannot be."""
        try:
            result = decode(self._result, "stored result")
        except FileFormatError as error:
            raise DamagedError(str(error)) from error
        if len(result.benchmarks) != 1:
            raise DamagedError("it has not exactly one benchmark")
        return result


def pack(inputs: Sequence[Input], result: Result) -> bytes:
    """Return the bytes of the file for the only benchmark of this result."""
    # Paths may have bytes that are no text, which only json writes and reads again.
    head = {"schema": SCHEMA, "inputs": [[item.kind, item.path, item.value, *item.stamp] for item in inputs]}
    body = json.dumps(head, separators=(",", ":")).encode() + b"\n" + encode(result)
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def unpack(data: bytes) -> Stored:
    """Read what `pack` returned. DamagedError on anything else."""
    checksum, _, body = data.partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != checksum:
        raise DamagedError("its checksum is wrong")
    head, _, result = body.partition(b"\n")
    try:
        document = json.loads(head)
        if document["schema"] != SCHEMA:
            raise DamagedError("it is of another version")
        inputs = tuple(Input(kind, path, value, tuple(stamp)) for kind, path, value, *stamp in document["inputs"])
        return Stored(inputs=inputs, _result=result)
    except (ValueError, LookupError, TypeError) as error:
        raise DamagedError(str(error)) from error
