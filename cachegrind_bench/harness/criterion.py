"""Benchmarks of Criterion (Rust), from 0.3 on: `Bencher` calls `Instant::now` and `Instant::elapsed` around what it measures.

With --profile-time it first executes one iteration, then as many as its clock says are left; no statistics follow.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cachegrind_bench.harness.cargo import Cargo
from cachegrind_bench.harness.protocol import exactly
from cachegrind_bench.hermetic.launch import SECONDS_CLOCK
from cachegrind_bench.valgrind.options import Loop, Sections

if TYPE_CHECKING:
    import mmap

# In the symbol table, mangled in the old way (with a hash at its end) or in the new one.
_INSTANT = re.compile(rb"\0(_(?:ZN|R)[\w.$]*3std4time[\w.$]*7Instant(3now|7elapsed)(?:17h[0-9a-f]{16}E)?)(?=\0)")
_CLOCK = (("after", b"3now"), ("before", b"7elapsed"))
# Bencher reads the clock when it begins, around each batch, and when it ends; once for the warm-up, once for the rest.
_ORDER = "(b(be)+e){1,2}"
_READ = 3  # seconds, of which one passes at each reading, that a call of the benchmark takes if it is one batch


class Criterion(Cargo):
    """What lies between two readings of the clock is counted."""

    key = "criterion"
    title = "Criterion"
    package = b"(codspeed-criterion-compat|criterion)"

    def words(self, name: str) -> tuple[str, ...]:
        """Choose by a regular expression."""
        return ("--bench", exactly(name))

    def loop(self, program: mmap.mmap) -> Loop | None:
        """Look for the clock in the symbol table."""
        if program.find(b"9criterion7bencher") < 0:
            return None
        names: dict[bytes, list[str]] = {}
        for match in _INSTANT.finditer(program):
            names.setdefault(match[2], []).append(match[1].decode())
        begin, end = (tuple(f"{when}:{name}" for name in sorted(set(names.get(key, ())))) for when, key in _CLOCK)
        return Loop(
            words={number: ("--profile-time", str(_READ * (number + 1))) for number in (1, 10, 100)},
            native=("--test",),
            sections=Sections(begin=begin, end=end, skip=1, order=_ORDER),
            clock=SECONDS_CLOCK,
        )


HARNESS = Criterion()
