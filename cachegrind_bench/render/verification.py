"""What the noise hunter found, as text, Markdown and JSON: one line for each axis, the functions that moved below it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cachegrind_bench.measure.axes import CLOCK
from cachegrind_bench.measure.findings import Verdict
from cachegrind_bench.model.text import grouped, plain, small_share
from cachegrind_bench.render.demangling import demangled
from cachegrind_bench.render.markdown import escape

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from cachegrind_bench.measure.difference import Difference, Moved
    from cachegrind_bench.measure.findings import Finding, Verification

_MARKS = {
    Verdict.HELD: "✓",
    Verdict.MOVED: "✗",
    Verdict.FAILED: "✗",
    Verdict.DEPENDS: "~",
    Verdict.TRACE: "~",
    Verdict.UNCLEAR: "–",
    Verdict.SKIPPED: "–",
}
_WORDS = {
    Verdict.HELD: "identical",
    Verdict.MOVED: "counts moved",
    Verdict.FAILED: "the command failed",
    Verdict.DEPENDS: "counts depend on it; pinned",
    Verdict.TRACE: "no more than another path may",
    Verdict.UNCLEAR: "unclear",
    Verdict.SKIPPED: "skipped",
}


def table(found: Verification, stream: TextIO) -> None:
    """Write aligned text, for terminals and logs alike."""
    lines = [plain(found.command), f"  {_base(found)}", ""]
    rows = [_row(finding) for finding in found.findings]
    widths = [max(len(row[place]) for row in rows) for place in range(4)]
    for finding, row in zip(found.findings, rows, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("  " + "  ".join([cells[0], cells[1], cells[2], cells[3], row[4]]))
        lines += [f"      {line}" for line in _details(finding)]
    lines += ["", *(f"  warning: {plain(warning)}" for warning in found.warnings)]
    lines += [*([""] if found.warnings else []), conclusion(found)]
    stream.write("\n".join(line.rstrip() for line in lines) + "\n")


def markdown(found: Verification, stream: TextIO) -> None:
    """Write Markdown, everything escaped."""
    stream.write(f"### {escape(plain(found.command))}\n\n{escape(_base(found))}\n\n")
    stream.write("| | what | changed | verdict | difference |\n| --- | --- | --- | --- | --- |\n")
    for finding in found.findings:
        mark, *cells = _row(finding)
        stream.write(f"| {mark} | " + " | ".join(escape(cell) for cell in cells) + " |\n")
    for finding in found.findings:
        details = _details(finding)
        if details:
            stream.write(f"\n**{escape(finding.axis.title)}**\n\n")
            stream.writelines(f"- {escape(line.strip())}\n" for line in details)
    stream.writelines(f"\n> ⚠️ {escape(plain(warning))}\n" for warning in found.warnings)
    stream.write(f"\n{escape(conclusion(found))}\n")


def as_json(found: Verification, stream: TextIO) -> None:
    """Write one JSON document, indented, keys sorted."""
    document = {
        "schema": "cg-bench.verify/1",
        "command": found.command,
        "held": found.held,
        "conclusion": conclusion(found),
        "tool": found.tool,
        "Ir": found.ir,
        "executions": found.executions,
        "clock_pinned": found.clock_pinned,
        "warnings": list(found.warnings),
        "axes": [_finding(finding) for finding in found.findings],
    }
    json.dump(document, stream, indent=2, sort_keys=True, ensure_ascii=True)
    stream.write("\n")


def conclusion(found: Verification) -> str:
    """Return the outcome in words: what to blame, or what was proved."""
    blamed = [finding for finding in found.findings if not finding.held]
    repeat = found.findings[0]
    if not repeat.held:
        why = repeat.cause or "none of the things that could be changed here"
        rest = _names([finding for finding in blamed if finding is not repeat and finding.axis.key != CLOCK])
        more = f" Beyond that, they change with: {rest}." if rest else ""
        return plain(f"Not repeatable. Cause: {why}.{more} What to do: {(repeat.advice or '').rstrip('.')}.")
    if blamed:
        names = _names(blamed)
        return f"Repeats agree, but the counts change with: {names}."
    depends = [finding for finding in found.findings if finding.verdict is Verdict.DEPENDS]
    if not depends and all(finding.verdict is Verdict.HELD for finding in found.findings):
        return "Repeatable: all that was changed left the counts as they are."
    if not depends:
        return "Repeatable: nothing that was changed moved the counts by more than it may."
    names = _names(depends)
    causes = "".join(f" {_sentence(finding.cause)}" for finding in depends if finding.cause)
    return plain(f"Repeatable. The counts depend on {names}, which the seal keeps the same in every run.{causes}")


def _base(found: Verification) -> str:
    clock = ", from the second line on with the clock pinned" if found.clock_pinned else ""
    return f"{grouped(found.ir)} Ir, {found.executions} executions under {found.tool.capitalize()}{clock}"


def _row(finding: Finding) -> tuple[str, str, str, str, str]:
    moved = finding.difference is not None and not finding.difference.identical
    amount = _amount(finding.difference) if moved and finding.difference is not None else ""
    verdict = finding.verdict
    return _MARKS[verdict], finding.axis.title, finding.axis.change, _WORDS[verdict], amount


def _amount(found: Difference) -> str:
    """Return the largest deviation: of Ir, or where it held, of the score."""
    if found.ir:
        return f"ΔIr {found.ir:+,} ({small_share(abs(found.ir), found.reference_ir)})"
    if found.events:
        return f"ΔIr 0, score {found.score:+,} ({small_share(abs(found.score), found.reference_score)})"
    return f"totals identical, {found.rows} functions not"


def _details(finding: Finding) -> list[str]:
    if finding.verdict is Verdict.DEPENDS and finding.axis.common:
        return []
    lines = [f"cause: {plain(finding.cause)}"] if finding.cause else []
    if finding.note:
        lines.append(plain(finding.note))
    if finding.difference is not None and finding.verdict in (Verdict.MOVED, Verdict.DEPENDS):
        lines += _functions(finding.difference.functions)
    lines += [plain(line) for line in (f"→ {finding.advice}" if finding.advice else "").splitlines()]
    return lines


def _functions(functions: tuple[Moved, ...]) -> list[str]:
    ranges = [f"{item.event} {grouped(item.low)} … {grouped(item.high)}" for item in functions]
    width = max(map(len, ranges), default=0)
    return [f"{text.ljust(width)}  {plain(demangled(item.name))}" for text, item in zip(ranges, functions, strict=True)]


def _finding(finding: Finding) -> dict[str, object]:
    found = finding.difference
    return {
        "axis": finding.axis.key,
        "title": finding.axis.title,
        "change": finding.axis.change,
        "pinned": finding.axis.pinned,
        "verdict": finding.verdict.value,
        "held": finding.held,
        "cause": finding.cause,
        "note": finding.note,
        "advice": finding.advice,
        "difference": None
        if found is None
        else {
            "Ir": found.ir,
            "score": found.score,
            "events": list(found.events),
            "rows": found.rows,
            "functions": [
                {"file": item.file, "name": item.name, "event": item.event, "low": item.low, "high": item.high}
                for item in found.functions
            ],
        },
    }


def _names(findings: Sequence[Finding]) -> str:
    titles = [finding.axis.title for finding in findings]
    return " and ".join(filter(None, (", ".join(titles[:-1]), *titles[-1:])))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
