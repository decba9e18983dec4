"""What the noise hunter found: how executions that ought to agree differ, and one verdict for each thing it changed."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import msgspec

from cachegrind_bench.measure.axes import Axis
from cachegrind_bench.model.described import Events, InstructionsMore, PointsMore, doc
from cachegrind_bench.model.metrics import EVENTS, CostModel, Profile

MOST_MOVED = 5


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """A function whose self cost moved."""

    file: Annotated[str, doc("its source file, or program")]
    name: Annotated[str, doc("its name in the symbol table")]
    event: Annotated[str, doc("the first event that moved")]
    low: Annotated[Events, doc("its lowest count over all executions")]
    high: Annotated[Events, doc("its highest count over all executions")]


class AxisDifference(msgspec.Struct, frozen=True, kw_only=True):
    """How the executions of an axis differ from the reference."""

    Ir: Annotated[InstructionsMore, doc("largest deviation of Ir from the reference")]
    score: Annotated[PointsMore, doc("largest deviation of the score from the reference")]
    events: Annotated[tuple[str, ...], doc("names of the counts that moved")]
    rows: Annotated[int, doc("number of functions whose counts moved")]
    functions: Annotated[tuple[Moved, ...], doc("those that moved most, with the range of one event")]


class Difference(AxisDifference, frozen=True, kw_only=True):
    """The same with the values of the reference, which no document has."""

    reference_ir: int
    reference_score: int

    @property
    def identical(self) -> bool:
        """Whether all nine counts and every row agreed."""
        return not self.events and not self.rows

    @property
    def relative(self) -> float:
        """The largest deviation of Ir or score, relative to the reference."""
        return max(abs(self.Ir) / max(self.reference_ir, 1), abs(self.score) / max(self.reference_score, 1))


def difference(reference: Profile, others: Sequence[Profile], model: CostModel) -> Difference:
    """Compare executions with a reference, row by row."""
    first = reference.counts()
    counts = [other.counts() for other in others]
    base = first.as_dict()
    events = tuple(name for name in EVENTS if any(item.as_dict()[name] != base[name] for item in counts))
    rows = [_rows(profile) for profile in (reference, *others)]
    names = sorted({key for table in rows for key in table})
    moved = [key for key in names if len({table.get(key, _NOTHING) for table in rows}) > 1]
    functions = sorted(
        (_moved(key, rows) for key in moved),
        key=lambda item: (item.event != "Ir", item.low - item.high, item.name, item.file),
    )
    score = model.score(first)
    return Difference(
        events=events,
        rows=len(moved),
        Ir=max((item.Ir - first.Ir for item in counts), key=abs, default=0),
        score=max((model.score(item) - score for item in counts), key=abs, default=0),
        reference_ir=first.Ir,
        reference_score=score,
        functions=tuple(functions[:MOST_MOVED]),
    )


_Row = tuple[int, ...]
_NOTHING = (0,) * len(EVENTS)


def _rows(profile: Profile) -> dict[tuple[str, str], _Row]:
    places = [profile.events.index(event) for event in EVENTS]
    return {(row.file, row.name): tuple(row.counts[place] for place in places) for row in profile.functions}


def _moved(key: tuple[str, str], rows: Sequence[dict[tuple[str, str], _Row]]) -> Moved:
    values = [table.get(key, _NOTHING) for table in rows]
    columns = list(zip(*values, strict=True))
    place = next(place for place, column in enumerate(columns) if len(set(column)) > 1)
    return Moved(file=key[0], name=key[1], event=EVENTS[place], low=min(columns[place]), high=max(columns[place]))


class Verdict(StrEnum):
    """What became of one axis."""

    HELD = "held"  # all counts and rows identical
    MOVED = "moved"  # counts vary between runs
    DEPENDS = "depends"  # counts vary with it, and the seal keeps it the same in every run
    TRACE = "trace"  # less than another path may cost
    UNCLEAR = "unclear"  # no more than the noise of plain repeats
    FAILED = "failed"  # the command failed
    SKIPPED = "skipped"


class Finding(msgspec.Struct, frozen=True):
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
        """Whether the counts of two runs agree, whatever else happens at the same time."""
        return all(finding.held for finding in self.findings)
