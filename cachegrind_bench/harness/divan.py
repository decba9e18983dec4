"""Benchmarks of Divan (Rust), from 0.1.5 on: it calls a function of its own, which is never inlined, around each sample.

A sample has as many iterations as its option says, and no statistics are in it. Inputs are made before, and dropped after it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cachegrind_bench.harness.cargo import Cargo
from cachegrind_bench.harness.engine.loop import Loop, Sections
from cachegrind_bench.hermetic.launch import PINNED_CLOCK

if TYPE_CHECKING:
    from mmap import mmap

# In the symbol table, mangled in the old way or in the new one; with the name that the package has in CodSpeed's variant.
_SYNCHRONISE = re.compile(rb"\0(_(?:ZN|R)[\w.$]*9benchmark[\w.$]*9sync_impl(?:17h[0-9a-f]{16}E)?)(?=\0)")
_PROGRAM = re.compile(rb"DIVAN_SAMPLE_SIZE")
_WORDS = ("--timer", "os", "--threads", "1", "--min-time", "0", "--max-time", "1000000", "--sample-count", "2")


class Divan(Cargo):
    """Two samples are executed, and what the second one costs is counted."""

    key = "divan"
    title = "Divan"
    package = b"divan"
    tested = ("0.1.21",)
    choosing = ("--exact", "--skip")
    with_value = re.compile(
        "--(skip|color|sort|sortr|timer|sample-count|sample-size|threads|min-time|max-time|skip-ext-time|items-count|bytes-count"
        "|bytes-format|chars-count|cycles-count)"
    )
    without_value = re.compile("--(bench|nocapture|show-output)")
    list_words = ("--bench", "--list", "--format", "terse")
    list_env = {"NEXTEST": "1"}  # noqa: RUF012 - without it, Divan does not know the option

    def words(self, name: str) -> tuple[str, ...]:
        """Choose by the whole name."""
        return ("--bench", "--exact", name, *_WORDS)

    def loop(self, program: mmap | bytes) -> Loop | None:
        """Look for the function in the symbol table."""
        if _PROGRAM.search(program) is None:
            return None
        calls = tuple(sorted({f"before:{match[1].decode()}" for match in _SYNCHRONISE.finditer(program)}))
        return Loop(
            words={number: ("--sample-size", str(number)) for number in (1, 10, 100, 1000)},
            native=("--test",),
            sections=Sections(
                begin=calls,
                end=calls,
                skip=2,  # the first sample, and what lies between the two
                order="(be){4}",
                unseen=self.unseen,
            ),
            clock=PINNED_CLOCK,
        )


HARNESS = Divan()
