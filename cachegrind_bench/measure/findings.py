"""What the noise hunter found: one verdict for each thing it changed. Values only."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cachegrind_bench.measure.axes import Axis
    from cachegrind_bench.measure.difference import Difference


class Verdict(StrEnum):
    """What became of one axis."""

    HELD = "held"  # all counts and rows identical
    MOVED = "moved"  # counts vary between runs
    DEPENDS = "depends"  # counts vary with it, and the seal keeps it the same in every run
    TRACE = "trace"  # less than another path may cost
    UNCLEAR = "unclear"  # no more than the noise of plain repeats
    FAILED = "failed"  # the command failed
    SKIPPED = "skipped"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One axis and how it came out. `cause` is what explains it, `note` why it was skipped, failed or is unclear."""

    axis: Axis
    verdict: Verdict
    difference: Difference | None = None
    cause: str | None = None
    note: str | None = None
    advice: str | None = None

    @property
    def held(self) -> bool:
        """Whether runs agree in spite of this axis."""
        pinned = self.axis.pinned and self.verdict is not Verdict.MOVED
        return pinned or self.verdict not in (Verdict.MOVED, Verdict.FAILED)


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """Everything found about one command. `clock_pinned` if the other axes were tried with the clock pinned."""

    command: str
    tool: str
    ir: int
    executions: int
    findings: tuple[Finding, ...]
    clock_pinned: bool
    warnings: tuple[str, ...]

    @property
    def held(self) -> bool:
        """Whether the counts of two runs agree, whatever happens beside them."""
        return all(finding.held for finding in self.findings)
