"""The file of one stored result: a checksum, its inputs, the result without its profile, and the profile's numbers.

The numbers are binary, and read back without checks: a suite of many benchmarks is to be answered at once, and the
checksum tells that we have written them. Knows bytes; must not know files.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.hermetic.opened import Input
from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.metrics import FunctionCost, LineCost, Profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.model.result import Result

SCHEMA = "cg-bench.cache/1"


class DamagedError(Exception):
    """The file is not what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What a file holds; its result is read when it is asked for."""

    inputs: tuple[Input, ...]
    _profile: dict[str, Any] | None
    _result: bytes
    _numbers: bytes

    def result(self) -> Result:
        """Read the result, of one benchmark. DamagedError if it cannot be."""
        try:
            result = decode(self._result, "stored result")
            (benchmark,) = result.benchmarks
            profile = None if self._profile is None else _read_profile(self._profile, self._numbers)
        except (FileFormatError, ValueError, LookupError, TypeError) as error:
            raise DamagedError(str(error)) from error
        return replace(result, benchmarks=(replace(benchmark, profile=profile),))


def pack(inputs: Sequence[Input], result: Result) -> bytes:
    """Return the bytes of the file for the only benchmark of this result."""
    (benchmark,) = result.benchmarks
    profile, numbers = (None, b"") if benchmark.profile is None else _write_profile(benchmark.profile)
    head = {
        "schema": SCHEMA,
        "inputs": [[item.kind, item.path, item.value, *item.stamp] for item in inputs],
        "profile": profile,
    }
    text = encode(replace(result, benchmarks=(replace(benchmark, profile=None),)))
    body = json.dumps(head, separators=(",", ":")).encode() + b"\n" + text + numbers
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def unpack(data: bytes) -> Stored:
    """Read what `pack` returned. DamagedError on anything else."""
    checksum, _, body = data.partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != checksum:
        raise DamagedError("its checksum is wrong")
    try:
        head, result, numbers = body.split(b"\n", 2)
        document = json.loads(head)
        if document["schema"] != SCHEMA:
            raise DamagedError("it is of another version")
        inputs = tuple(Input(kind, path, value, tuple(stamp)) for kind, path, value, *stamp in document["inputs"])
        return Stored(inputs=inputs, _profile=document["profile"], _result=result + b"\n", _numbers=numbers)
    except (ValueError, LookupError, TypeError) as error:
        raise DamagedError(str(error)) from error


def _write_profile(profile: Profile) -> tuple[dict[str, Any], bytes]:
    """Return names and sizes, and the numbers column by column, which is how they are read back at once.

    The first two columns of each table are places among the names.
    """
    strings: dict[str, int] = {}

    def place(text: str) -> int:
        return strings.setdefault(text, len(strings))

    functions = [(place(row.file), place(row.name), *row.counts) for row in profile.functions]
    lines = [(place(row.file), place(row.name), row.line, *row.counts) for row in profile.lines]
    numbers = array(
        "Q", [number for table in (functions, lines) for column in zip(*table, strict=True) for number in column]
    )
    names = {"strings": list(strings), "events": profile.events, "functions": len(functions), "lines": len(lines)}
    return names, numbers.tobytes()


def _read_profile(names: dict[str, Any], data: bytes) -> Profile:
    text: list[str] = names["strings"]
    events = tuple(names["events"])
    numbers = array("Q", data).tolist()
    rows, more = names["functions"], names["lines"]
    end = rows * (len(events) + 2)

    def named(column: list[int]) -> list[str]:
        return [text[number] for number in column]

    def columns(start: int, stop: int, length: int) -> list[list[int]]:
        return [numbers[at : at + length] for at in range(start, stop, length or 1)]

    file, name, *counts = columns(0, end, rows) or ([], [])
    functions = map(FunctionCost, named(file), named(name), zip(*counts, strict=True))
    file, name, line, *counts = columns(end, len(numbers), more) or ([], [], [])
    lines = map(LineCost, named(file), named(name), line, zip(*counts, strict=True))
    return Profile(events=events, functions=tuple(functions), lines=tuple(lines))
