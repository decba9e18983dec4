"""The trend report as JSON for scripts, and for the next report, which reads its findings: whole numbers, sorted keys.

Relative changes are in parts per million. The layout is `cg-bench.trend/1`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import FileFormatError, UsageError
from cachegrind_bench.history.values import Finding  # noqa: TC001 - msgspec reads annotations
from cachegrind_bench.model.parsing import parse

if TYPE_CHECKING:
    from fractions import Fraction

    from cachegrind_bench.history.values import Against, Reading, Row, Trend

SCHEMA = "cg-bench.trend/1"
_HINT = "give the file that `cg-bench trend --json FILE` wrote"


def encode(view: Trend) -> bytes:
    """Return the document, the same bytes for the same report."""
    made, found, health = view.provenance, view.headline, view.health
    document = {
        "schema": SCHEMA,
        "title": made.title,
        "created_at": made.created_at,
        "tool": {"version": made.tool_version},
        "store": made.store,
        "branch": made.branch,
        "release": view.release,
        "window": {
            "commits": len(view.commits),
            "measured": view.measured,
            "first": view.commits[0].sha if view.commits else None,
            "last": view.commits[-1].sha if view.commits else None,
        },
        "headline": {
            "new": found.new,
            "possible": found.possible,
            "open": found.open,
            "recovered": found.recovered,
            "acknowledged": found.acknowledged,
            "creeping": found.creeping,
            "new_creep": found.new_creep,
            "improved": found.improved,
            "suspicious": found.suspicious,
            "unstable": found.unstable,
            "measured": found.measured,
            "compared": found.compared,
        },
        "benchmarks": [_row(row) for row in view.rows],
        "findings": [_finding(item) for item in view.findings],
        "health": {
            "failing": health.failing,
            "failed_before": health.failed_before,
            "missing": health.missing,
            "retired": health.retired,
            "unstable": health.unstable,
            "differing": [{"benchmark": name, "sha": sha} for name, sha in health.differing],
            "dirty": health.dirty,
            "elsewhere": health.elsewhere,
            "without_commit": health.without_commit,
        },
    }
    return (json.dumps(document, indent=2, sort_keys=True, ensure_ascii=True) + "\n").encode()


class _Head(msgspec.Struct):
    schema: str


class _Document(msgspec.Struct):
    findings: tuple[Finding, ...]


def findings(data: bytes, *, path: str) -> tuple[Finding, ...]:
    """Return the findings of a report that was written before. UsageError if it is not one; `path` is only named in it."""
    try:
        schema = parse(data, _Head, path).schema
        if schema != SCHEMA:
            raise UsageError(f"{path}: not a trend report, its schema is {schema[:100]!r}", hint=_HINT)
        return parse(data, _Document, path).findings
    except FileFormatError as error:
        raise UsageError(f"{path}: not a trend report: {error.what}", hint=_HINT) from error


def _row(row: Row) -> dict[str, object]:
    return {
        "id": row.id,
        "model": row.model,
        "impact_ppm": _ppm(row.impact),
        "failing": row.failing,
        "missing": row.missing,
        "latest": _reading(row.latest),
        "yesterday": _against(row.day),
        "days_7": _against(row.week),
        "days_30": _against(row.month),
        "release": _against(row.release),
    }


def _against(item: Against | None) -> dict[str, object] | None:
    if item is None or item.base is None:
        return None
    change = item.change
    return {
        "sha": item.base.sha,
        "value": item.base.value,
        "comparable": item.comparable,
        "change_ppm": None if change is None else _ppm(change),
    }


def _reading(found: Reading | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {
        "sha": found.sha,
        "key": found.key,
        "value": found.value,
        "counts": found.counts.as_dict(),
        "run": found.uid,
    }


def _finding(found: Finding) -> dict[str, object]:
    return {
        "id": found.id,
        "kind": found.kind.value,
        "state": found.state.value,
        "benchmark": found.benchmark,
        "key": found.key,
        "before": found.before,
        "after": found.after,
        "suspects": found.suspects,
        "last_good_sha": found.last_good_sha,
        "index": found.index,
        "confirmed": found.confirmed,
        "recovered_sha": found.recovered_sha,
        "reason": found.reason,
        "lone_base": found.lone_base,
    }


def _ppm(share: Fraction) -> int:
    return round(share * 1_000_000)
