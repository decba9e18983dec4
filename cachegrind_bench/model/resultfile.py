"""A result file that is open: its result is in memory, its profiles are read when they are asked for.

Knows how the pieces fit together; must not know where the bytes come from, or what is done with them.
"""

from __future__ import annotations

import io
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.decoder import read_result
from cachegrind_bench.model.json_reader import Hole, SchemaError
from cachegrind_bench.model.skeleton import read_document, read_hole

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import BinaryIO

    from cachegrind_bench.model.decoder import Document
    from cachegrind_bench.model.metrics import Profile
    from cachegrind_bench.model.pythonprofile import PythonProfile
    from cachegrind_bench.model.result import Result

# Both for one profile and for everything beside the profiles. Parsed, a byte of hostile JSON takes up to 40.
MOST = 125_000_000


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A result whose benchmarks have no `profile` and no `python`: ask for them, as long as the stream is open."""

    name: str
    _document: Document
    _stream: BinaryIO
    _most: int

    @property
    def result(self) -> Result:
        """The result without its profiles."""
        return self._document.result

    def has_profile(self, identity: str) -> bool:
        """Tell whether the benchmark of this id has a profile."""
        return identity in self._document.profiles

    def profile(self, identity: str) -> Profile | None:
        """Read the profile of the benchmark of this id. FileFormatError if its rows are not what they should be."""
        stored = self._document.profiles.get(identity)
        if stored is None:
            return None
        with _refusing(self.name):
            return stored.read(self._document.strings, self._load)

    def python(self, identity: str) -> PythonProfile | None:
        """Read what the Python functions of the benchmark of this id cost. FileFormatError as for `profile`."""
        stored = self._document.pythons.get(identity)
        if stored is None:
            return None
        with _refusing(self.name):
            return stored.read(self._document.strings, self._load)

    def _load(self, path: str, hole: Hole) -> object:
        return read_hole(self._stream, self.name, path, hole, self._most)


def open_result(stream: BinaryIO, name: str, most: int = MOST) -> ResultFile:
    """Read all but the profiles from a seekable stream; `name` stands in the errors.

    FileFormatError on anything but a valid result. Profiles are only looked over: nothing but numbers and brackets. One
    that has more is read now, so that its error is told now. `most` bounds the bytes of what is parsed at once.
    """
    value = read_document(stream, name, most)
    with _refusing(name):
        document = read_result(value, name)
    found = ResultFile(name, document, stream, most)
    for identity, stored in document.profiles.items():
        if stored.at_hand():
            found.profile(identity)
    for identity, python in document.pythons.items():
        if python.at_hand():
            found.python(identity)
    return found


def decode(data: bytes, name: str) -> Result:
    """Read a result file's bytes with all its profiles; `name` stands in the errors. FileFormatError as above."""
    opened = open_result(io.BytesIO(data), name, max(MOST, len(data)))
    benchmarks = (
        replace(item, profile=opened.profile(item.id), python=opened.python(item.id))
        for item in opened.result.benchmarks
    )
    return replace(opened.result, benchmarks=tuple(benchmarks))


@contextmanager
def _refusing(name: str) -> Generator[None]:
    """Tell of a wrong value with the file's name."""
    try:
        yield
    except SchemaError as error:
        raise FileFormatError(
            str(error), path=name, hint="the file was altered or cut off; measure again to make a new one"
        ) from None
