"""The marks of regions in a running program: client requests that toggle the collection and name what follows.

Callgrind writes its counts out at a mark, and the mark's text is in that part: what FOLLOWS it, up to the next mark,
belongs to it. So nothing has to be done at the program's end, however it comes. `valgrind.region_parts` reads the parts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final
from urllib.parse import quote

from cachegrind_bench.region.requests import DUMP_STATS_AT, START_INSTRUMENTATION, TOGGLE_COLLECT, Request, Requests

PREFIX: Final = "cg-bench:"
_CALIBRATION: Final = "calibration"
_WARM_UPS: Final = 16  # CPython 3.11 and later specialise code until the tenth execution or so
_PLAIN: Final = "".join(chr(code) for code in range(33, 127) if chr(code) != "%")


class Marks:
    """The state of the marks in this process."""

    def __init__(self) -> None:
        self._requests = Requests()
        self._make = self._requests.make
        self._make_counted = self._requests.make_counted
        self._toggle = Request(TOGGLE_COLLECT).block
        self._names: dict[str, Request] = {}
        self._current: str | None = None  # of the last mark
        self._inside: str | None = None
        self._calibrated = False
        self._region: Callable[[str], AbstractContextManager[None]] | None = None
        os.register_at_fork(before=self._before_fork, after_in_child=self._after_fork_in_child)

    def calibrate(self, region: Callable[[str], AbstractContextManager[None]]) -> None:
        """Enter an empty region until it costs the same each time, then once under a mark of its own."""
        self._region = region
        self._calibrated = True
        self._requests.send(Request(START_INSTRUMENTATION))
        self._mark("warm")
        for _ in range(_WARM_UPS):
            self._enter_empty(region)
        self._mark(f"empty:{self._requests.counter:#x}")
        self._enter_empty(region)
        self._mark("none")
        self._current = None

    def _enter_empty(self, region: Callable[[str], AbstractContextManager[None]]) -> None:
        self._current = _CALIBRATION
        with region(_CALIBRATION):  # spelled as everybody does: other spellings cost a few instructions more or less
            pass

    def enter(self, name: str) -> None:
        """Begin to count. RuntimeError inside of a region."""
        if self._inside is not None:
            raise RuntimeError(
                f"region {name!r} was entered inside of region {self._inside!r}: regions cannot be nested, and only one "
                "thread or task at a time can be in one"
            )
        if self._region is not None and not self._calibrated:
            self.calibrate(self._region)
        if name != self._current:
            self._mark(f"region:{encoded(name)}")
            self._current = name
        self._inside = name
        self._make(self._toggle)

    def leave(self) -> None:
        """Count no more. What is counted an odd number of times was entered, and never left."""
        self._make_counted(self._toggle)
        self._inside = None

    def _mark(self, text: str, make: Callable[[bytes], object] | None = None) -> None:
        request = self._names.get(text)
        if request is None:
            request = self._names[text] = Request(DUMP_STATS_AT, (PREFIX + text).encode("ascii"))
        (make or self._make)(request.block)

    def _before_fork(self) -> None:
        """Write out what was counted, or the child's file would have it as well."""
        if self._current is not None:
            self._mark(f"region:{encoded(self._current)}", self._make_counted)

    def _after_fork_in_child(self) -> None:
        """Begin anew in a child, whose file knows nothing of the marks before."""
        self._calibrated = False
        self._current = None
        if self._inside is not None:
            self._mark(f"region:{encoded(self._inside)}")
            self._current = self._inside


def encoded(name: str) -> str:
    """Return a name as a mark spells it: printable ASCII without blanks, the rest percent-encoded."""
    return quote(name.encode("utf-8", "surrogatepass"), safe=_PLAIN)
