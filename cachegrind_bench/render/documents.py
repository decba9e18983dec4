"""All reports as JSON for scripts: whole numbers, relative changes in parts per million, no text cut short.

The key `schema` names a document's layout. Structs of lower layers are written with all their fields, so a new field of one is
a new key. (The result file is `model.codec`.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import FileFormatError, UsageError
from cachegrind_bench.history.values import Against, Finding, Row, Trend
from cachegrind_bench.model.parsing import Head, parse
from cachegrind_bench.model.text import printable

if TYPE_CHECKING:
    from fractions import Fraction
    from pathlib import Path

    from cachegrind_bench.compare.call_split import CallCause, CallDelta, Caller, CallSplit, Label
    from cachegrind_bench.compare.change import Shift
    from cachegrind_bench.compare.explain import Details, FunctionDelta
    from cachegrind_bench.compare.python_blame import PythonDelta
    from cachegrind_bench.compare.verdict import Comparison, Difference
    from cachegrind_bench.config.benchmarks import BenchmarkSpec
    from cachegrind_bench.measure.doctor import Diagnosis
    from cachegrind_bench.measure.findings import Finding as AxisFinding
    from cachegrind_bench.measure.findings import Verification
    from cachegrind_bench.model.metrics import Counts
    from cachegrind_bench.model.result import Benchmark, Result, Snapshot
    from cachegrind_bench.store.protocol import Problem

TREND_SCHEMA = "cg-bench.trend/1"
_HINT = "give the file that `cg-bench trend --json FILE` wrote"


def _text(schema: str, document: Mapping[str, object]) -> str:
    """Return a document, indented, with sorted keys: the same text for the same values."""
    values = msgspec.to_builtins({"schema": schema, **document})
    return json.dumps(values, indent=2, sort_keys=True, ensure_ascii=True) + "\n"


def _fields(value: object, *names: str) -> dict[str, object]:
    return {name: getattr(value, name) for name in names}


def _ppm(share: Fraction) -> int:
    return round(share * 1_000_000)


# --- Results -------------------------------------------------------------------------------------------------------------


def summary(result: Result) -> str:
    """Return the numbers of a report, without the profiles."""
    document = {
        "created_at": result.created_at,
        "commit": result.commit and result.commit.sha,
        "env": {"key": result.env.key, "fields": result.env.fields},
        "benchmarks": [_measured(benchmark) for benchmark in result.benchmarks],
    }
    return _text("cg-bench.summary/1", document)


def _measured(benchmark: Benchmark) -> dict[str, object]:
    from cachegrind_bench.render.report import spans

    counts, found = benchmark.counts, spans(benchmark)
    return {
        **_fields(benchmark, "id", "key", "status", "error", "warnings", "tool", "score", "counts", "wall_ms"),
        "processes_exact": benchmark.processes_exact,
        "hits": counts and {"L1": counts.l1_hits, "LL": counts.ll_hits, "RAM": counts.ram_hits},
        "runs": len(benchmark.runs),
        "runs_identical": found is None or found.identical,  # within each layout
        "layouts": found
        and {
            "count": found.layouts,
            "score": dict(zip(("min", "max"), found.score, strict=True)),
            "Ir": dict(zip(("min", "max"), found.ir, strict=True)),
        },
        "processes": [{"executable": item.executable, "Ir": item.counts.Ir} for item in benchmark.processes],
        "seal": {name: part.state for name, part in benchmark.seal.items()},
    }


# --- Lists ---------------------------------------------------------------------------------------------------------------


def benchmarks(specs: Sequence[BenchmarkSpec], origin: str) -> str:
    """Return benchmarks of the configuration at this place."""
    document = {"configuration": origin, "benchmarks": [_spec(spec) for spec in specs]}
    return _text("cg-bench.list/1", document)


def _spec(spec: BenchmarkSpec) -> dict[str, object]:
    def text(path: Path | None) -> str | None:
        return None if path is None else printable(path)

    commands = _fields(spec, "id", "command", "setup", "prepare", "cleanup", "parameters", "tags", "place")
    numbers = _fields(spec, "repeat", "warmup", "layouts", "timeout_ms", "threshold", "limits")
    return {
        **commands,
        **numbers,
        "cwd": text(spec.cwd),
        "stdin": text(spec.stdin),
        "env": [item.partition("=")[0] for item in spec.env],  # names only: a value may be a secret
    }


def baselines(held: Mapping[str, Result | str]) -> str:
    """Return baselines by name, and what they hold, or why they cannot be read."""
    return _text("cg-bench.baselines/1", {"baselines": [_baseline(name, found) for name, found in held.items()]})


def _baseline(name: str, held: Result | str) -> dict[str, object]:
    if isinstance(held, str):
        return {"name": name, "error": held}
    commit = held.commit
    return {
        "name": name,
        "error": None,
        "benchmarks": [item.id for item in held.benchmarks],
        "commit": commit and commit.sha,
        "branch": commit and commit.branch,
        "dirty": commit and commit.dirty,
        "created_at": held.created_at,
    }


def runs(found: Sequence[Snapshot], total: int, store: str) -> str:
    """Return runs of the `total` that there are in this store."""
    listed = [
        _fields(run, "uid", "created_at", "tool_version", "commit")
        | {"environment": run.env_key, "benchmarks": run.points}
        for run in found
    ]
    return _text("cg-bench.history/1", {"store": store, "total": total, "runs": listed})


def problems(found: Sequence[Problem], total: int, store: str) -> str:
    """Return what is wrong with this store, which has `total` records."""
    return _text("cg-bench.fsck/1", {"store": store, "records": total, "problems": found})


# --- What `verify` and `doctor` found ------------------------------------------------------------------------------------


def verification(found: Verification, conclusion: str) -> str:
    """Return what became of each axis."""
    document = {
        **_fields(found, "command", "held", "tool", "executions", "clock_pinned", "warnings"),
        "conclusion": conclusion,
        "Ir": found.ir,
        "axes": [_axis(finding) for finding in found.findings],
    }
    return _text("cg-bench.verify/1", document)


def _axis(finding: AxisFinding) -> dict[str, object]:
    found = finding.difference
    return {
        "axis": finding.axis.key,
        **_fields(finding.axis, "title", "change", "pinned"),
        **_fields(finding, "verdict", "held", "cause", "note", "advice"),
        "difference": found and {"Ir": found.ir, **_fields(found, "score", "events", "rows", "functions")},
    }


def diagnosis(found: Diagnosis, conclusion: str) -> str:
    """Return each check with the heading it is under."""
    checks = [
        {"section": title, **msgspec.structs.asdict(check)} for title, checks in found.sections for check in checks
    ]
    return _text("cg-bench.doctor/1", {"works": found.works, "conclusion": conclusion, "checks": checks})


# --- Comparisons ---------------------------------------------------------------------------------------------------------


def comparison(found: Comparison, details: Mapping[str, Details]) -> str:
    """Return a comparison; every benchmark is in it."""
    from cachegrind_bench.render.comparison import words
    from cachegrind_bench.render.comparison.view import notices

    document = {
        "verdict": found.verdict,
        "conclusion": found.conclusion(),
        "headline": words.headline(found, details),
        "metric": found.gates.metric,
        "model": found.model.name,
        "notices": notices(found, details),
        **_fields(found, "rescored", "compared"),
        "states": {state.value: number for state, number in found.count().items()},
        "forced": any(item.forced for item in found.differences),
        "base": _side(found.base),
        "candidate": _side(found.candidate),
        "benchmarks": [_difference(item, found, details.get(item.id)) for item in found.differences],
    }
    return _text("cg-bench.diff/1", document)


def _side(result: Result) -> dict[str, object]:
    return {"commit": result.commit and result.commit.sha, "created_at": result.created_at, "env_key": result.env.key}


def _difference(item: Difference, found: Comparison, details: Details | None) -> dict[str, object]:
    from cachegrind_bench.compare.verdict import BLAMING
    from cachegrind_bench.render.comparison import words
    from cachegrind_bench.render.demangling import demangled

    def counts(side: Benchmark | None) -> dict[str, object] | None:
        if side is None or side.counts is None:
            return None
        return {"counts": side.counts, "score": found.model.score(side.counts), "key": side.key}

    moved = item.change
    blamed = details.blamed if details is not None and item.state in BLAMING else None
    return {
        **_fields(item, "id", "state", "forced", "causes", "fields"),
        "remarks": words.remarks(item, found.gates),
        "base": counts(item.base),
        "candidate": counts(item.candidate),
        "threshold_ppm": _ppm(item.threshold),
        "change_ppm": moved and {"score": _ppm(moved.score.relative), "Ir": _ppm(moved.ir.relative)},
        "noise_ppm": moved and {"score": _noise(moved.score), "Ir": _noise(moved.ir)},
        "layouts": moved and moved.layouts,
        "limits": [
            {"name": broken.limit.name, "limit": broken.limit.value, "value": broken.value} for broken in item.broken
        ],
        "interpreter": words.interpreted(item),
        "blamed": None
        if blamed is None or details is None
        else {"function": demangled(blamed.name), "file": blamed.file, "share_ppm": _ppm(details.blamed_share)},
        "cause": (details and item.state in BLAMING and _cause(details)) or None,
        "python": details and _python(details),
        "calls": details and details.calls and _calls(details.calls),
        "explanation": details and _explanation(details, found),
    }


def _noise(shift: Shift) -> int:
    """Return parts per million, rounded up: only equal runs have none."""
    return -(-shift.noise.numerator * 1_000_000 // shift.noise.denominator)


def _explanation(details: Details, found: Comparison) -> dict[str, object]:
    from cachegrind_bench.render.demangling import demangled

    def part(counts: Counts) -> dict[str, object]:
        return {"delta": counts, "score": found.model.score(counts)}

    def function(row: FunctionDelta) -> dict[str, object]:
        return {"function": demangled(row.name), "file": row.file, **part(row.delta)}

    return {
        "functions": [function(row) for row in details.rows],
        "rest": {"functions": len(details.rest), **part(details.rest_delta)},
        "total": part(details.total),
        "lines": None
        if details.lines is None
        else [
            {
                "function": demangled(name),
                "base": {"file": line.base_file, "line": line.base_line},
                "candidate": {"file": line.candidate_file, "line": line.candidate_line},
                **part(line.delta),
            }
            for name, line in details.lines
        ],
        "moved": [
            {"function": demangled(row.name), "from": row.base_file, "to": row.candidate_file} for row in details.moved
        ],
    }


def _cause(details: Details) -> dict[str, object] | None:
    """Return what the sentence says: whose calls are more or fewer, or cost more or less; costs are in Ir."""
    from cachegrind_bench.render.comparison import words

    found = details.cause
    if found is None:
        return None
    return {
        **_fields(found, "kind", "ir", "members"),
        "text": words.cause(details),
        "function": _label(found.function),
        "blamed": _label(found.culprit),
        **_both(found),
        "caller": found.caller and _caller(found.caller),
    }


def _calls(found: CallSplit) -> dict[str, object]:
    """Return what became of calls; the blames of functions, rest and top add up to the total, in Ir."""
    return {
        "functions": [
            {
                **_label(row.label),
                **_fields(row, "members", "base_own", "candidate_own", "by_calls", "by_cost", "own", "blame"),
                **_both(row),
                "callers": [*map(_caller, row.callers)],
            }
            for row in found.rows
        ],
        **_fields(found, "rest", "top", "total"),
    }


def _caller(caller: Caller) -> dict[str, object]:
    return {**_label(caller.label), **_both(caller)}


def _both(found: CallCause | CallDelta | Caller) -> dict[str, object]:
    sides = {"base": found.base, "candidate": found.candidate}
    return {name: {"calls": calls.number, "ir": calls.ir} for name, calls in sides.items()}


def _label(label: Label) -> dict[str, object]:
    from cachegrind_bench.render.demangling import demangled

    return {"function": demangled(label.name), "file": label.file, "line": label.line, "object": label.object}


def _python(details: Details) -> dict[str, object] | None:
    """Return what became of Python's functions; costs are in Ir."""
    found = details.python
    if found is None:
        return None
    return {
        "blamed": found.chief and _python_function(found.chief),
        "functions": [_python_function(row) for row in found.rows],
        "rest": {
            "functions": len(found.rest),
            **{name: sum(getattr(row, name) for row in found.rest) for name in ("blame", "own", "delta")},
        },
        "native": {"base": found.base_native, "candidate": found.candidate_native, "blame": found.native_blame},
        "total": {"base": found.base_total, "candidate": found.candidate_total},
        "cut": found.cut,
    }


def _python_function(row: PythonDelta) -> dict[str, object]:
    sides = {"base": row.base, "candidate": row.candidate}
    return {
        "function": row.function.name,
        **_fields(row.function, "file", "line"),
        **_fields(row, "blame", "own"),
        **{name: {"calls": side.calls, "self": side.ir, "inclusive": side.inclusive} for name, side in sides.items()},
    }


# --- Trend reports -------------------------------------------------------------------------------------------------------


def trend(view: Trend) -> str:
    """Return the trend report, also for the next report, which reads its findings."""
    made, health, commits = view.provenance, msgspec.structs.asdict(view.health), view.commits
    document = {
        **_fields(made, "title", "created_at", "store", "branch"),
        "tool": {"version": made.tool_version},
        "release": view.release,
        "window": {
            "commits": len(commits),
            "measured": view.measured,
            "first": commits[0].sha if commits else None,
            "last": commits[-1].sha if commits else None,
        },
        "headline": view.headline,
        "benchmarks": [_row(row) for row in view.rows],
        "findings": view.findings,
        "health": health | {"differing": [{"benchmark": name, "sha": sha} for name, sha in view.health.differing]},
    }
    return _text(TREND_SCHEMA, document)


def _row(row: Row) -> dict[str, object]:
    latest = row.latest
    return {
        **_fields(row, "id", "model", "failing", "missing"),
        "impact_ppm": _ppm(row.impact),
        "latest": latest and {**_fields(latest, "sha", "key", "value", "counts"), "run": latest.uid},
        "yesterday": _against(row.day),
        "days_7": _against(row.week),
        "days_30": _against(row.month),
        "release": _against(row.release),
    }


def _against(item: Against | None) -> dict[str, object] | None:
    if item is None or item.base is None:
        return None
    change = None if item.change is None else _ppm(item.change)
    return {**_fields(item.base, "sha", "value"), "comparable": item.comparable, "change_ppm": change}


class _Trend(msgspec.Struct):
    findings: tuple[Finding, ...]


def findings(data: bytes, *, path: str) -> tuple[Finding, ...]:
    """Return the findings of a trend report that was written before. UsageError if it is not one; `path` is only named in it."""
    try:
        schema = parse(data, Head, path).schema
        if schema != TREND_SCHEMA:
            raise UsageError(f"{path}: not a trend report, its schema is {schema[:100]!r}", hint=_HINT)
        return parse(data, _Trend, path).findings
    except FileFormatError as error:
        raise UsageError(f"{path}: not a trend report: {error.what}", hint=_HINT) from error
