"""The journal as a table of Markdown."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from cachegrind_bench.compare.explain import LOADER

if TYPE_CHECKING:
    from collections.abc import Sequence

THRESHOLD_PPM = 5000
QUIET = ("unchanged", "new")


def is_alarm(row: dict[str, Any]) -> bool:
    """Tell whether anybody would look: any state but those that say nothing happened."""
    return not row["state"].startswith(QUIET)


def _blames(row: dict[str, Any]) -> bool:
    """Tell whether a function is named: the loader of libraries is not part of the program."""
    return bool(row["blamed"]) and row["blamed"]["function"] != LOADER


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the figures per label and project: an edit raises an alarm if any of its benchmarks does."""
    lines = [
        "| | project | edits | with an alarm | blaming a function | 1 % found | 2 % found | really planted | Ir alone: alarms | 1 % | 2 % |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    measured = [row for row in rows if row["state"] != "not applicable"]
    for label in sorted({row["label"] for row in measured}, reverse=True):
        mine = [row for row in measured if row["label"] == label]
        projects = sorted({row["project"] for row in mine})
        lines += [_line(label, name, [row for row in mine if row["project"] == name]) for name in projects]
        lines.append(_line(label, "**all**", mine))
    return "\n".join(lines)


def _line(label: str, project: str, rows: list[dict[str, Any]]) -> str:
    plain = [row for row in rows if not row["planted"]]
    edits = {(row["project"], row["edit"]) for row in plain}
    alarms = {(row["project"], row["edit"]) for row in plain if is_alarm(row)}
    blaming = {(row["project"], row["edit"]) for row in plain if is_alarm(row) and _blames(row)}
    ir_alarms = {(row["project"], row["edit"]) for row in plain if abs(row["ir_ppm"]) > THRESHOLD_PPM}
    cells = [label, project, str(len(edits)), _share(len(alarms), len(edits)), _share(len(blaming), len(edits))]
    planted = [[row for row in rows if row["planted"] == percent] for percent in (1, 2)]
    cells += [_share(sum(row["state"] == "regression" for row in each), len(each)) for each in planted]
    cells.append(", ".join(_planted(plain, each) for each in planted if each))
    cells.append(_share(len(ir_alarms), len(edits)))
    cells += [_share(sum(row["ir_ppm"] > THRESHOLD_PPM for row in each), len(each)) for each in planted]
    return f"| {' | '.join(cells)} |"


def _planted(plain: list[dict[str, Any]], planted: list[dict[str, Any]]) -> str:
    """Return the median of what the loops added to the instructions of the same edit."""
    before = {(row["project"], row["edit"], row["benchmark"]): row["ir_ppm"] for row in plain}
    added = [
        row["ir_ppm"] - before[key]
        for row in planted
        if (key := (row["project"], row["edit"], row["benchmark"])) in before
    ]
    return f"{statistics.median(added) / 10_000:.2f} %" if added else ""


def _share(some: int, whole: int) -> str:
    return f"{some} of {whole} ({100 * some / whole:.1f} %)" if whole else ""
