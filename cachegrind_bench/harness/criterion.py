"""Benchmarks of Criterion (Rust), from 0.3 on: `Bencher` calls `Instant::now` and `Instant::elapsed` around what it measures.

With --profile-time it executes one iteration, two more as a second has not passed, then as many as its clock says are left; no
statistics follow. The clock jumps after the second iteration, by what that cost: so one execution is enough.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from cachegrind_bench.harness.cargo import Cargo
from cachegrind_bench.harness.protocol import exactly
from cachegrind_bench.hermetic.launch import PINNED_CLOCK
from cachegrind_bench.valgrind.options import Loop, Sections

if TYPE_CHECKING:
    from mmap import mmap

# In the symbol table, mangled in the old way (with a hash at its end) or in the new one.
_INSTANT = re.compile(rb"\0(_(?:ZN|R)[\w.$]*3std4time[\w.$]*7Instant(3now|7elapsed)(?:17h[0-9a-f]{16}E)?)(?=\0)")
_PLACES = (("after", b"3now"), ("before", b"7elapsed"))
# Bencher reads the clock when it begins, around each batch, and when it ends; twice for the warm-up, once for the rest.
_ORDER = "(b(be)+e){3}"
# Which time `elapsed` is entered after the second iteration, and also after the third if both are in one batch.
_TURN = 3
_SECONDS = 4212
# By numbers of iterations, the seconds of a warm-up after which as many times a third of it are left; each reading adds 0.3 s,
# six or, if each iteration is a batch, eight times. That leaves 100.2 to 100.7, 10.5 and 1.5 iterations, rounded down.
_JUMPS = {100: 120, 10: 934, 1: 2806}
_MOST_IR = 20_000_000  # of two iterations (of one if each is a batch), as many times
_CLOCK = PINNED_CLOCK._replace(
    step_ns=3 * 10**8,
    turn=_TURN,
    jumps=tuple(
        (_MOST_IR // number if number > 1 else sys.maxsize, seconds * 10**9) for number, seconds in _JUMPS.items()
    ),
)


class Criterion(Cargo):
    """What lies between two readings of the clock is counted."""

    key = "criterion"
    title = "Criterion"
    tested = ("0.3", "0.5", "0.7", "0.8")
    package = b"(codspeed-criterion-compat|criterion)"

    def words(self, name: str) -> tuple[str, ...]:
        """Choose by a regular expression."""
        return ("--bench", exactly(name))

    def loop(self, program: mmap | bytes) -> Loop | None:
        """Look for the clock in the symbol table."""
        if program.find(b"9criterion7bencher") < 0:
            return None
        names: dict[bytes, list[str]] = {}
        for match in _INSTANT.finditer(program):
            names.setdefault(match[2], []).append(match[1].decode())
        begin, end = (tuple(f"{when}:{name}" for name in sorted(set(names.get(key, ())))) for when, key in _PLACES)
        words = ("--profile-time", str(_SECONDS))
        return Loop(
            words=dict.fromkeys(_JUMPS, words),
            rehearsal=(*self.words(""), *words),
            native=("--test",),
            sections=Sections(begin=begin, end=end, lone=2, order=_ORDER),
            clock=_CLOCK._replace(triggers=tuple(f"--dump-{place.replace(':', '=')}" for place in end)),
        )


HARNESS = Criterion()
