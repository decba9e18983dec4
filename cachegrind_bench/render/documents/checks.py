"""What `verify` and `doctor` found, as JSON."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from cachegrind_bench.measure.doctor import Check
from cachegrind_bench.measure.findings import AxisDifference, Finding, Verdict, Verification
from cachegrind_bench.model.described import Instructions, doc
from cachegrind_bench.render.documents.document import Document, fields


class AxisResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one axis."""

    axis: Annotated[str, doc("name of the axis, as for `--only`")]
    title: Annotated[str, doc("what it is about")]
    change: Annotated[str, doc("what was changed")]
    pinned: Annotated[bool, doc("whether the seal keeps it the same in every run")]
    verdict: Annotated[Verdict, doc("what became of it")]
    held: Annotated[bool, doc("whether two runs agree in spite of it")]
    cause: Annotated[str | None, doc("what explains it")]
    note: Annotated[str | None, doc("why it was skipped, failed or is unclear")]
    advice: Annotated[str | None, doc("what to do")]
    difference: Annotated[AxisDifference | None, doc("how the executions differ")]


class VerifyReport(Document, frozen=True, kw_only=True):
    """`verify --format json`: what makes a command's counts vary."""

    schema: Literal["cg-bench.verify/1"] = "cg-bench.verify/1"
    command: Annotated[str, doc("the command, as a shell would read it")]
    held: Annotated[bool, doc("whether the counts of two runs agree")]
    tool: Annotated[str, doc("`cachegrind` or `callgrind`")]
    executions: Annotated[int, doc("number of executions under Valgrind")]
    clock_pinned: Annotated[bool, doc("whether the other axes were tried with the clock pinned")]
    warnings: Annotated[tuple[str, ...], doc("what makes the findings less certain")]
    conclusion: Annotated[str, doc("all of it in one sentence")]
    Ir: Annotated[Instructions, doc("Ir of the reference")]
    axes: Annotated[tuple[AxisResult, ...], doc("each axis")]


class DoctorReport(Document, frozen=True, kw_only=True):
    """`doctor --format json`: what works on this machine."""

    schema: Literal["cg-bench.doctor/1"] = "cg-bench.doctor/1"
    works: Annotated[bool, doc("whether programs can be measured here")]
    conclusion: Annotated[str, doc("all of it in one sentence")]
    checks: Annotated[tuple[Check, ...], doc("each check")]


def verification(found: Verification, conclusion: str) -> str:
    """Return what became of each axis."""
    return VerifyReport(
        **fields(found, "command", "held", "tool", "executions", "clock_pinned", "warnings"),
        conclusion=conclusion,
        Ir=found.ir,
        axes=tuple(map(_axis, found.findings)),
    ).text()


def _axis(finding: Finding) -> AxisResult:
    return AxisResult(
        axis=finding.axis.key,
        **fields(finding.axis, "title", "change", "pinned"),
        **fields(finding, "verdict", "held", "cause", "note", "advice"),
        difference=msgspec.convert(finding.difference, AxisDifference | None, from_attributes=True),
    )
