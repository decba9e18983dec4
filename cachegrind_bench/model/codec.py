"""The result file `cg-bench.run/1`: values to canonical JSON. The way back, `decode`, is in `resultfile`.

Knows JSON and the values of `result`; must not know files, folders or stores. The format's history is in `decoder`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cachegrind_bench.model.decoder import SCHEMA
from cachegrind_bench.model.resultfile import decode
from cachegrind_bench.model.storedpython import document_of

if TYPE_CHECKING:
    from cachegrind_bench.model.metrics import Profile
    from cachegrind_bench.model.result import Benchmark, Commit, Result

__all__ = ["SCHEMA", "decode", "encode"]


def encode(result: Result) -> bytes:
    """Return the canonical bytes: sorted keys, no floats, UTF-8, one newline at the end."""
    strings: dict[str, int] = {}
    document: dict[str, object] = {
        "schema": SCHEMA,
        "tool": {"version": result.tool_version},
        "created_at": result.created_at,
        "commit": None if result.commit is None else _commit(result.commit),
        "env": {"key": result.env.key, "fields": dict(result.env.fields), "info": dict(result.env.info)},
        "benchmarks": [_benchmark(benchmark, strings) for benchmark in result.benchmarks],
    }
    document["strings"] = list(strings)
    return json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _commit(commit: Commit) -> dict[str, object]:
    return {
        "sha": commit.sha,
        "parent": commit.parent,
        "branch": commit.branch,
        "dirty": commit.dirty,
        "committed_at": commit.committed_at,
    }


def _benchmark(benchmark: Benchmark, strings: dict[str, int]) -> dict[str, object]:
    score = benchmark.score
    document: dict[str, object] = {
        "id": benchmark.id,
        "key": benchmark.key,
        "key_fields": dict(benchmark.key_fields),
        "command": list(benchmark.command),
        "parameters": dict(benchmark.parameters),
        "tags": list(benchmark.tags),
        "status": benchmark.status.value,
        "exit_status": benchmark.exit_status,
        "error": benchmark.error,
        "warnings": list(benchmark.warnings),
        "tool": benchmark.tool,
        "counts": None if benchmark.counts is None else benchmark.counts.as_dict(),
        "score": None if score is None else {"model": score.model, "value": score.value},
        "runs": [{"layout": run.layout, "counts": run.counts.as_dict()} for run in benchmark.runs],
        "processes": [
            {"executable": process.executable, "counts": process.counts.as_dict()} for process in benchmark.processes
        ],
        "processes_exact": benchmark.processes_exact,
        "objects": [{"path": item.path, "build_id": item.build_id} for item in benchmark.objects],
        "wall_ms": benchmark.wall_ms,
        "seal": {part: {"state": state.state.value, "why": state.why} for part, state in benchmark.seal.items()},
        "profile": None if benchmark.profile is None else _profile(benchmark.profile, strings),
    }
    if benchmark.output is not None:
        document["output"] = benchmark.output
    if benchmark.python is not None:
        document["python"] = document_of(benchmark.python, lambda text: _place(text, strings))
    return document


def _profile(profile: Profile, strings: dict[str, int]) -> dict[str, object]:
    functions = [[_place(row.file, strings), _place(row.name, strings), *row.counts] for row in profile.functions]
    lines = [[_place(row.file, strings), _place(row.name, strings), row.line, *row.counts] for row in profile.lines]
    document: dict[str, object] = {"events": list(profile.events), "functions": functions}
    return document | {"lines": lines} if lines else document


def _place(text: str, strings: dict[str, int]) -> int:
    return strings.setdefault(text, len(strings))
