"""A comparison as JSON for scripts: whole numbers, relative changes in parts per million, no text cut short."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cachegrind_bench.compare.verdict import BLAMING
from cachegrind_bench.render.comparison import pythons, words
from cachegrind_bench.render.comparison.view import notices
from cachegrind_bench.render.demangling import demangled

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction
    from typing import TextIO

    from cachegrind_bench.compare.change import Shift
    from cachegrind_bench.compare.comparison import Comparison
    from cachegrind_bench.compare.details import Details
    from cachegrind_bench.compare.explain import FunctionDelta
    from cachegrind_bench.compare.verdict import Difference
    from cachegrind_bench.model.metrics import Counts
    from cachegrind_bench.model.result import Benchmark, Result

SCHEMA = "cg-bench.diff/1"


def render(comparison: Comparison, details: Mapping[str, Details], stream: TextIO) -> None:
    """Write one JSON document, indented, keys sorted; every benchmark is in it."""
    document = {
        "schema": SCHEMA,
        "verdict": comparison.verdict.value,
        "conclusion": comparison.conclusion().value,
        "headline": words.headline(comparison, details),
        "metric": comparison.gates.metric.value,
        "model": comparison.model.name,
        "rescored": list(comparison.rescored),
        "notices": notices(comparison, details),
        "compared": comparison.compared,
        "states": {state.value: number for state, number in comparison.count().items()},
        "forced": any(item.forced for item in comparison.differences),
        "base": _side(comparison.base),
        "candidate": _side(comparison.candidate),
        "benchmarks": [_difference(item, comparison, details.get(item.id)) for item in comparison.differences],
    }
    json.dump(document, stream, indent=2, sort_keys=True, ensure_ascii=True)
    stream.write("\n")


def _side(result: Result) -> dict[str, object]:
    return {
        "commit": None if result.commit is None else result.commit.sha,
        "created_at": result.created_at,
        "env_key": result.env.key,
    }


def _difference(item: Difference, comparison: Comparison, details: Details | None) -> dict[str, object]:
    moved = item.change
    return {
        "id": item.id,
        "state": item.state.value,
        "remarks": words.remarks(item, comparison.gates),
        "forced": item.forced,
        "base": _counts(item.base, comparison),
        "candidate": _counts(item.candidate, comparison),
        "threshold_ppm": _ppm(item.threshold),
        "change_ppm": None if moved is None else {"score": _ppm(moved.score.relative), "Ir": _ppm(moved.ir.relative)},
        "noise_ppm": None if moved is None else {"score": _noise(moved.score), "Ir": _noise(moved.ir)},
        "layouts": None if moved is None else moved.layouts,
        "causes": [cause.value for cause in item.causes],
        "fields": [{"name": field.name, "base": field.base, "candidate": field.candidate} for field in item.fields],
        "limits": [
            {"name": broken.limit.name, "limit": broken.limit.value, "value": broken.value} for broken in item.broken
        ],
        "interpreter": words.interpreted(item),
        "blamed": None
        if details is None or details.blamed is None or item.state not in BLAMING
        else {
            "function": demangled(details.blamed.name),
            "file": details.blamed.file,
            "share_ppm": _ppm(details.blamed_share),
        },
        "python": pythons.document(details),
        "explanation": None if details is None else _explanation(details, comparison),
    }


def _counts(side: Benchmark | None, comparison: Comparison) -> dict[str, object] | None:
    if side is None or side.counts is None:
        return None
    return {"counts": side.counts.as_dict(), "score": comparison.model.score(side.counts), "key": side.key}


def _explanation(details: Details, comparison: Comparison) -> dict[str, object]:
    def part(counts: Counts) -> dict[str, object]:
        return {"delta": counts.as_dict(), "score": comparison.model.score(counts)}

    def function(row: FunctionDelta) -> dict[str, object]:
        return {"function": demangled(row.name), "file": row.file, **part(row.delta)}

    return {
        "functions": [function(row) for row in details.top.rows],
        "rest": {"functions": details.top.rest_functions, **part(details.top.rest)},
        "total": part(details.total),
        "lines": None
        if details.lines is None
        else [
            {
                "function": demangled(group.function),
                "base": {"file": line.base_file, "line": line.base_line},
                "candidate": {"file": line.candidate_file, "line": line.candidate_line},
                **part(line.delta),
            }
            for group in details.lines
            for line in group.lines
        ],
        "moved": [
            {"function": demangled(row.name), "from": row.base_file, "to": row.candidate_file} for row in details.moved
        ],
    }


def _noise(shift: Shift) -> int:
    """Return parts per million, rounded up: only equal runs have none."""
    return -(-shift.noise.numerator * 1_000_000 // shift.noise.denominator)


def _ppm(share: Fraction) -> int:
    return round(share * 1_000_000)
