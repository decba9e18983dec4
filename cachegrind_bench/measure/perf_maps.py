"""The perf maps that the processes of one execution write: whose they are, and that none is left behind.

Knows which processes there were; must not know what is made of the functions in the maps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Self

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.launch import Outcome
from cachegrind_bench.interruption import uninterrupted
from cachegrind_bench.valgrind import perf_map
from cachegrind_bench.valgrind.perf_map import Trampolines

_OF_PROCESS = re.compile(r"(?:.*\.)?(?:out|log)\.([0-9]+)(?:\.[0-9]+)?")


class PerfMaps:
    """The maps of one execution, whose processes write into the folder `out`; they are removed at the end of the block."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._before = perf_map.sizes_now()

    def read(self, outcome: Outcome) -> Callable[[int], Trampolines]:
        """Read the maps of all processes; return what gives the trampolines of each.

        MeasurementError where there are none; FileFormatError where one cannot be read.
        """
        maps: dict[int, Trampolines] = {}
        for pid in self._pids():
            path = perf_map.map_of(pid)
            found = perf_map.read_map(path, start=self._before.get(path.name, 0), places=outcome.places)
            if found is not None:
                maps[pid] = found
        if not maps:
            raise MeasurementError(
                f"Python wrote no perf map, so functions cannot be distinguished ({perf_map.FOLDER}/perf-PID.map)",
                hint="check whether the disk is full, or files of another user are in the way there",
            )
        parents = {image.pid: image.parent for image in outcome.images or ()}

        @cache
        def trampolines(pid: int) -> Trampolines:
            # A forked child begins with its parent's calls, and writes a map of its own for what it calls itself.
            line = _line(pid, parents) if outcome.images is not None else [pid, *sorted(maps)]
            return perf_map.merged(maps[pid] for pid in line if pid in maps)

        return trampolines

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with uninterrupted():
            for pid in self._pids():
                perf_map.remove_map(pid)

    def _pids(self) -> list[int]:
        """Return the processes that Valgrind wrote anything for."""
        try:
            matches = [_OF_PROCESS.fullmatch(path.name) for path in self._out.iterdir()]
        except OSError:
            return []
        return sorted({int(match[1]) for match in matches if match is not None})


def _line(pid: int, parents: Mapping[int, int]) -> list[int]:
    """Return a process and those it descends from."""
    found: list[int] = []
    while pid in parents and pid not in found:
        found.append(pid)
        pid = parents[pid]
    return found or [pid]
