"""Reader of perf maps, in which CPython notes the trampoline of each Python function: `/tmp/perf-PID.map`.

Knows the lines (`start size name`, in hex; the name is `py::QUALIFIED_NAME:FILE`) and that anybody may have written
them; must not know what is counted at these addresses.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import msgspec

from cachegrind_bench.hermetic.place import NOWHERE, Translation
from cachegrind_bench.model.python_profile import PythonFunction
from cachegrind_bench.startup.removal import remove_own_file
from cachegrind_bench.valgrind.out_format import decode

FOLDER = Path("/tmp")  # noqa: S108 - CPython writes there, whatever TMPDIR is (Python/perf_trampoline.c, Python/sysmodule.c)
_LINE = re.compile(rb"([0-9a-f]{1,16}) ([0-9a-f]{1,16}) py::([^:]*):(.*)")


class Trampolines(msgspec.Struct, frozen=True, dict=True):
    """The trampolines of a process: the function of each by its address, and its size in bytes."""

    functions: Mapping[int, tuple[PythonFunction, int]]

    def at(self, address: int) -> PythonFunction | None:
        """Return the function in whose trampoline this address lies."""
        place = bisect_right(self._starts, address)
        if not place:
            return None
        start = self._starts[place - 1]
        function, size = self.functions[start]
        return function if address == start or address < start + size else None

    @cached_property
    def _starts(self) -> Sequence[int]:
        return sorted(self.functions)


def map_of(pid: int) -> Path:
    """Return where a process writes its map."""
    return FOLDER / f"perf-{pid}.map"


def merged(maps: Iterable[Trampolines]) -> Trampolines:
    """Return the trampolines of several maps; of two at one address that of the first."""
    functions: dict[int, tuple[PythonFunction, int]] = {}
    for found in maps:
        functions |= {start: known for start, known in found.functions.items() if start not in functions}
    return Trampolines(functions)


def read_map(path: Path, *, start: int = 0, places: Translation = NOWHERE) -> Trampolines | None:
    """Read a map from this byte on; None if there is no file that we have written ourselves.

    Functions have files as the program named them, and no lines.
    """
    try:
        with path.open("rb") as stream:
            if os.fstat(stream.fileno()).st_uid != os.geteuid():  # the folder is everybody's
                return None
            stream.seek(start)
            data = stream.read()
    except OSError:
        return None
    return parse_map(places.real_bytes(data))


def parse_map(data: bytes) -> Trampolines:
    """Read the content of a map; of two lines with one address the last holds, as the code there was replaced.

    A qualified name has no colon, so the first one ends it. Other lines are of other compilers, or the rest of a file
    name with a line break in it: they are passed over.
    """
    functions: dict[int, tuple[PythonFunction, int]] = {}
    for line in data.split(b"\n"):
        match = _LINE.fullmatch(line)
        if match is not None:
            address, size, name, file = match.groups()
            functions[int(address, 16)] = PythonFunction(file=decode(file), name=decode(name), line=0), int(size, 16)
    return Trampolines(functions)


def sizes_now() -> dict[str, int]:
    """Return how long the maps are that lie there already; a process of the same number would append to its own."""
    found: dict[str, int] = {}
    with suppress(OSError), os.scandir(FOLDER) as entries:
        for entry in entries:
            if entry.name.startswith("perf-") and entry.name.endswith(".map"):
                with suppress(OSError):
                    found[entry.name] = entry.stat(follow_symlinks=False).st_size
    return found


def remove_map(pid: int) -> None:
    """Remove the map of a process, if it is ours."""
    remove_own_file(str(map_of(pid)))
