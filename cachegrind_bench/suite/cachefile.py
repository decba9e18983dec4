"""The file of one stored result: a checksum, its inputs, the result without its profiles, and the profiles' numbers.

The numbers are binary, and read back without checks: a suite of many benchmarks is to be answered at once, and the
checksum tells that we have written them. Knows bytes; must not know files.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.hermetic.opened import Input
from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.metrics import FunctionCost, LineCost, Profile
from cachegrind_bench.model.pythonprofile import TOP, PythonFunction, PythonPath, PythonProfile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.model.result import Result

SCHEMA = "cg-bench.cache/2"


class DamagedError(Exception):
    """The file is not what was written."""


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds; its result is read when it is asked for."""

    inputs: tuple[Input, ...]
    _profile: dict[str, Any] | None
    _python: dict[str, Any] | None
    _result: bytes
    _numbers: bytes

    def result(self) -> Result:
        """Read the result, of one benchmark. DamagedError if it cannot be."""
        try:
            result = decode(self._result, "stored result")
            (benchmark,) = result.benchmarks
            end = len(self._numbers) - (0 if self._python is None else self._python["bytes"])
            profile = None if self._profile is None else _read_profile(self._profile, self._numbers[:end])
            python = None if self._python is None else _read_python(self._python, self._numbers[end:])
        except (FileFormatError, ValueError, LookupError, TypeError) as error:
            raise DamagedError(str(error)) from error
        return replace(result, benchmarks=(replace(benchmark, profile=profile, python=python),))


def pack(inputs: Sequence[Input], result: Result) -> bytes:
    """Return the bytes of the file for the only benchmark of this result."""
    (benchmark,) = result.benchmarks
    profile, numbers = (None, b"") if benchmark.profile is None else _write_profile(benchmark.profile)
    python, more = (None, b"") if benchmark.python is None else _write_python(benchmark.python)
    head = {
        "schema": SCHEMA,
        "inputs": [[item.kind, item.path, item.value, *item.stamp] for item in inputs],
        "profile": profile,
        "python": python,
    }
    text = encode(replace(result, benchmarks=(replace(benchmark, profile=None, python=None),)))
    body = json.dumps(head, separators=(",", ":")).encode() + b"\n" + text + numbers + more
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
        profile, python = document["profile"], document["python"]
        return Stored(inputs=inputs, _profile=profile, _python=python, _result=result + b"\n", _numbers=numbers)
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


def _write_python(profile: PythonProfile) -> tuple[dict[str, Any], bytes]:
    """Return names and sizes, and the numbers column by column, the callers counted from 1."""
    strings: dict[str, int] = {}

    def place(text: str) -> int:
        return strings.setdefault(text, len(strings))

    functions = [(place(item.file), place(item.name), item.line) for item in profile.functions]
    paths = [(path.parent - TOP, path.function, path.calls, path.ir) for path in profile.paths]
    numbers = array(
        "Q", [number for table in (functions, paths) for column in zip(*table, strict=True) for number in column]
    ).tobytes()
    names = {"strings": list(strings), "functions": len(functions), "total": profile.total, "cut": profile.cut}
    return {**names, "bytes": len(numbers)}, numbers


def _read_python(names: dict[str, Any], data: bytes) -> PythonProfile:
    text: list[str] = names["strings"]
    numbers = array("Q", data).tolist()
    count = names["functions"]
    files, called, lines = (numbers[count * place : count * (place + 1)] for place in range(3))
    rest = numbers[3 * count :]
    rows = len(rest) // 4
    parents, functions, calls, ir = (rest[rows * place : rows * (place + 1)] for place in range(4))
    return PythonProfile(
        total=names["total"],
        functions=tuple(map(PythonFunction, map(text.__getitem__, files), map(text.__getitem__, called), lines)),
        paths=tuple(map(PythonPath, (parent + TOP for parent in parents), functions, calls, ir)),
        cut=names["cut"],
    )
