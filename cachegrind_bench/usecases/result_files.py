"""Result files by their names: a file, a pipe, or '-' for stdin."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Collection, Generator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from cachegrind_bench.errors import UsageError
from cachegrind_bench.store.durable import check_writable, read_file

if TYPE_CHECKING:
    from cachegrind_bench.model.codec import ResultFile

DEFAULT_LIMIT = 10**9
_CHUNK = 1 << 20
_SPACE = "free some space, let TMPDIR name another folder, or save it to a file first"
_HINT = "'cg-bench run -o FILE' writes result files"


def read_result(name: str, *, limit: int = DEFAULT_LIMIT, hint: str = _HINT) -> ResultFile:
    """Read a result file of up to `limit` bytes, '-' being stdin.

    UsageError, with this hint, if it cannot be read, FileFormatError if it is not a result.
    """
    from cachegrind_bench.model.codec import ResultFile

    return ResultFile(read_bytes(name, limit=limit, hint=hint), shown_name(name))


def read_bytes(name: str, *, limit: int = DEFAULT_LIMIT, hint: str = _HINT) -> bytes:
    """Return the bytes of such a file. UsageError, with this hint, if it cannot be read."""
    with open_input(name, limit=limit, hint=hint) as stream, _errors(f"cannot read {name}", hint):
        return stream.read()


def read_regular(path: Path, hint: str = _HINT) -> bytes:
    """Return the bytes of this file. UsageError, with this hint if it is not there."""
    try:
        return read_file(path, DEFAULT_LIMIT)
    except FileNotFoundError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint=hint) from error


def read_regular_result(path: Path, hint: str = _HINT) -> ResultFile:
    """Read a result as `read_regular` reads. FileFormatError if it is not a result."""
    from cachegrind_bench.model.codec import ResultFile

    return ResultFile(read_regular(path, hint), str(path))


@contextmanager
def open_input(name: str, *, limit: int = DEFAULT_LIMIT, hint: str = _HINT) -> Generator[BinaryIO]:
    """Open a file of up to `limit` bytes, '-' being stdin, so that it can be read twice. UsageError if it cannot be read.

    `hint` says where such files come from.
    """
    with ExitStack() as stack:
        if name != "-":
            yield _opened(name, limit, stack, hint)
            return
        if sys.stdin is None:  # started with a closed descriptor
            raise UsageError("cannot read stdin: it is closed", hint=hint)
        yield _spooled(sys.stdin.buffer, shown_name(name), limit, stack, hint)


def shown_name(name: str) -> str:
    """Return what errors call this input."""
    return "<stdin>" if name == "-" else name


def check_outputs(files: Mapping[str, str | os.PathLike[str] | None], inputs: Collection[str] = ()) -> list[str]:
    """Find out before the work whether files, by their options, can be written; return the names of those, without stdout.

    UsageError if one cannot be, if two are the same, or one is among the `inputs`.
    """
    names = {option: str(file) for option, file in files.items() if file is not None}
    places = {option: name if name == "-" else os.path.realpath(name) for option, name in names.items()}
    for option, name in names.items():
        if name != "-":
            check_writable(Path(name))
            if places[option] in {os.path.realpath(item) for item in inputs if item != "-"}:
                raise UsageError(f"{option} {name} would overwrite an input file", hint="name another file")
    for (one, place), (other, same) in combinations(places.items(), 2):
        if place == same:
            raise UsageError(f"{one} and {other} name the same file")
    return [name for name in names.values() if name != "-"]


@contextmanager
def _errors(what: str, hint: str) -> Generator[None]:
    """Turn an OSError inside into UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{what}: {error.strerror}", hint=hint) from error


def _opened(name: str, limit: int, stack: ExitStack, hint: str) -> BinaryIO:
    with _errors(f"cannot read {name}", hint):
        stream = stack.enter_context(open(name, "rb"))  # noqa: SIM115 - the stack closes it
        status = os.fstat(stream.fileno())
    if not stat.S_ISREG(status.st_mode):  # a pipe, as of `<(command)`
        return _spooled(stream, name, limit, stack, hint)
    _check_size(name, status.st_size, limit, str(status.st_size))
    return stream


def _spooled(source: BinaryIO, name: str, limit: int, stack: ExitStack, hint: str) -> BinaryIO:
    """Copy what cannot be read twice to a file without a name."""
    size = 0
    cannot_keep = f"cannot keep {name} in a temporary file"
    with _errors(cannot_keep, _SPACE):
        copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    while True:
        with _errors(f"cannot read {name}", hint):
            chunk = source.read(_CHUNK)
        if not chunk:
            copy.seek(0)
            return copy
        size += len(chunk)
        _check_size(name, size, limit, f"more than {limit}")
        with _errors(cannot_keep, _SPACE):
            copy.write(chunk)
            copy.flush()


def _check_size(name: str, size: int, limit: int, shown: str) -> None:
    if size > limit:
        raise UsageError(
            f"{name} is too large: {shown} bytes, and the limit is {limit}",
            hint="raise the limit, as in --max-size 4GB",
        )
