"""What `doctor` found on a machine and `verify` about a command, in the forms json, markdown (of `verify` only) and table."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter

from cachegrind_bench.measure.axes import CLOCK
from cachegrind_bench.measure.doctor import Diagnosis, Level
from cachegrind_bench.measure.findings import Difference, Finding, Verdict, Verification
from cachegrind_bench.model.text import counted, grouped, in_line, joined, plain
from cachegrind_bench.render.markdown import escape, table
from cachegrind_bench.render.table import aligned, wrapped
from cachegrind_bench.valgrind.demangling import demangled

_LEVELS = {Level.OK: "✓", Level.WARNING: "!", Level.BAD: "✗"}
# A mark and words for each verdict.
_VERDICTS = {
    Verdict.HELD: ("✓", "identical"),
    Verdict.MOVED: ("✗", "counts moved"),
    Verdict.FAILED: ("✗", "the command failed"),
    Verdict.DEPENDS: ("~", "counts depend on it; pinned"),
    Verdict.TRACE: ("~", "no more than another path may"),
    Verdict.UNCLEAR: ("–", "unclear"),
    Verdict.SKIPPED: ("–", "skipped"),
}


def machine(found: Diagnosis, form: str, *, width: int | None = None) -> str:
    """Return each check of the doctor, for a terminal of this `width`, and below it what mends it, in lines to copy."""
    if form == "json":
        from cachegrind_bench.render.documents.checks import DoctorReport

        return DoctorReport(works=found.works, conclusion=_usability(found), checks=found.checks).text()
    longest = max((len(check.name) for check in found.checks), default=0)
    lines: list[str] = []
    for title, checks in groupby(found.checks, key=attrgetter("section")):
        lines += [title]
        last: tuple[str, ...] = ()
        for check in checks:
            start = f"  {_LEVELS[check.level]} {check.name.ljust(longest)}  "
            lines += wrapped(in_line(check.found), width, start, " " * len(start))
            if check.level is Level.OK:
                continue
            fixes = ("as above",) if check.fixes and check.fixes == last else check.fixes
            lines += [f"    {'':{longest}}  fix: {plain(fix)}" for fix in fixes]
            last = check.fixes or last
        lines.append("")
    return "\n".join([*lines, _usability(found)]) + "\n"


def _usability(found: Diagnosis) -> str:
    if not found.works:
        return "This machine cannot measure yet: see the lines marked ✗."
    warnings = sum(check.level is Level.WARNING for check in found.checks)
    if warnings:
        return f"This machine can measure, with {counted(warnings, 'thing')} to fix (marked !)."
    return "This machine can measure, fully sealed."


def verification(found: Verification, form: str) -> str:
    """Return one line for each axis, and below it the functions that moved."""
    if form == "json":
        from cachegrind_bench.render.documents.checks import verification

        return verification(found, conclusion(found))
    return _markdown(found) if form == "markdown" else _table(found)


def _table(found: Verification) -> str:
    lines = [plain(found.command), f"  {_base(found)}", ""]
    for finding, row in zip(found.findings, aligned(list(map(_row, found.findings))), strict=True):
        lines.append(f"  {row}")
        lines += [f"      {line}" for line in _details(finding)]
    lines += ["", *(f"  warning: {plain(warning)}" for warning in found.warnings)]
    lines += [*([""] if found.warnings else []), conclusion(found)]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _markdown(found: Verification) -> str:
    text = f"### {escape(plain(found.command))}\n\n{escape(_base(found))}\n\n"
    text += table(("", "what", "changed", "verdict", "difference"), list(map(_row, found.findings)))
    for finding in found.findings:
        details = _details(finding)
        if details:
            text += f"\n**{escape(finding.axis.title)}**\n\n"
            text += "".join(f"- {escape(line.strip())}\n" for line in details)
    text += "".join(f"\n> ⚠️ {escape(plain(warning))}\n" for warning in found.warnings)
    return f"{text}\n{escape(conclusion(found))}\n"


def conclusion(found: Verification) -> str:
    """Return the outcome in words: what to blame, or what was proved."""
    blamed = [finding for finding in found.findings if not finding.held]
    repeat = found.findings[0]
    if not repeat.held:
        why = repeat.cause or "none of the things that can be changed here"
        rest = joined([item.axis.title for item in blamed if item is not repeat and item.axis.key != CLOCK])
        more = f" Beyond that, they change with: {rest}." if rest else ""
        return plain(f"Not repeatable. Cause: {why}.{more} What to do: {(repeat.advice or '').rstrip('.')}.")
    if blamed:
        return f"Repeats agree, but the counts change with: {joined([finding.axis.title for finding in blamed])}."
    depends = [finding for finding in found.findings if finding.verdict is Verdict.DEPENDS]
    if depends:
        causes = [finding.cause for finding in depends if finding.cause]
        sentences = "".join(f" {cause[:1].upper()}{cause[1:].rstrip('.')}." for cause in causes)
        kept = f"The counts depend on {joined([finding.axis.title for finding in depends])}, which the seal keeps the same in every run."
        return plain(f"Repeatable. {kept}{sentences}")
    if all(finding.verdict is Verdict.HELD for finding in found.findings):
        return "Repeatable: the counts stayed the same, whatever was changed."
    return "Repeatable: nothing that was changed moved the counts by more than is allowed."


def _base(found: Verification) -> str:
    clock = ", from the second line on with the clock pinned" if found.clock_pinned else ""
    return f"{grouped(found.ir)} Ir, {found.executions} executions under {found.tool.capitalize()}{clock}"


def _row(finding: Finding) -> tuple[str, ...]:
    mark, verdict = _VERDICTS[finding.verdict]
    difference = finding.difference
    amount = "" if difference is None or difference.identical else _amount(difference)
    return mark, finding.axis.title, finding.axis.change, verdict, amount


def _amount(found: Difference) -> str:
    """Return the largest deviation: of Ir, or where it held, of the score."""

    def relative(part: int, whole: int) -> str:
        return f"{part:+,} ({f'{100 * abs(part) / whole:.2g} %' if whole else '-'})"

    if found.Ir:
        return f"ΔIr {relative(found.Ir, found.reference_ir)}"
    if found.events:
        return f"ΔIr 0, score {relative(found.score, found.reference_score)}"
    return f"totals identical, {found.rows} functions not"


def _details(finding: Finding) -> list[str]:
    if finding.verdict is Verdict.DEPENDS and finding.axis.common:
        return []
    lines = [f"cause: {plain(finding.cause)}"] if finding.cause else []
    if finding.note:
        lines.append(plain(finding.note))
    if finding.difference is not None and finding.verdict in (Verdict.MOVED, Verdict.DEPENDS):
        functions = finding.difference.functions
        ranges = [f"{item.event} {grouped(item.low)} … {grouped(item.high)}" for item in functions]
        width = max(map(len, ranges), default=0)
        names = [plain(demangled(item.name)) for item in functions]
        lines += [f"{text.ljust(width)}  {name}" for text, name in zip(ranges, names, strict=True)]
    return [*lines, *map(plain, (f"→ {finding.advice}" if finding.advice else "").splitlines())]
