"""What the doctor found, as text and JSON: one line for each check, and below it what mends it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cachegrind_bench.measure.checks import Level
from cachegrind_bench.model.text import plain

if TYPE_CHECKING:
    from typing import TextIO

    from cachegrind_bench.measure.checks import Diagnosis

_MARKS = {Level.OK: "✓", Level.WARNING: "!", Level.BAD: "✗"}


def table(found: Diagnosis, stream: TextIO) -> None:
    """Write aligned text."""
    width = max((len(check.name) for check in found.checks), default=0)
    lines: list[str] = []
    for title, checks in found.sections:
        lines += ["", title] if lines else [title]
        told: tuple[str, ...] = ()
        for check in checks:
            lines.append(f"  {_MARKS[check.level]} {check.name.ljust(width)}  {plain(check.found)}")
            if check.level is Level.OK:
                continue
            fixes = ("as above",) if check.fixes and check.fixes == told else check.fixes
            lines += [f"    {'':{width}}  fix: {plain(fix)}" for fix in fixes]
            told = check.fixes or told
    lines += ["", conclusion(found)]
    stream.write("\n".join(lines) + "\n")


def as_json(found: Diagnosis, stream: TextIO) -> None:
    """Write one JSON document, indented, keys sorted."""
    document = {
        "schema": "cg-bench.doctor/1",
        "works": found.works,
        "conclusion": conclusion(found),
        "checks": [
            {
                "section": title,
                "name": check.name,
                "level": check.level.value,
                "found": check.found,
                "fixes": list(check.fixes),
            }
            for title, checks in found.sections
            for check in checks
        ],
    }
    json.dump(document, stream, indent=2, sort_keys=True, ensure_ascii=True)
    stream.write("\n")


def conclusion(found: Diagnosis) -> str:
    """Return the outcome in words."""
    if not found.works:
        return "This machine cannot measure yet: see the lines marked ✗."
    warnings = sum(check.level is Level.WARNING for check in found.checks)
    if warnings:
        return f"This machine can measure, with {warnings} thing{'s' if warnings > 1 else ''} to mend (marked !)."
    return "This machine can measure, fully sealed."
