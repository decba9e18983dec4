"""Results as JSON for scripts: the numbers of a report without the profile. (The result file is `model.codec`.)"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cachegrind_bench.render.layouts import spans

if TYPE_CHECKING:
    from typing import TextIO

    from cachegrind_bench.model.result import Benchmark, Result
    from cachegrind_bench.render.layouts import Spans


def render(result: Result, stream: TextIO) -> None:
    """Write one JSON document, indented, keys sorted."""
    document = {
        "schema": "cg-bench.summary/1",
        "created_at": result.created_at,
        "commit": None if result.commit is None else result.commit.sha,
        "env": {"key": result.env.key, "fields": dict(result.env.fields)},
        "benchmarks": [_benchmark(benchmark) for benchmark in result.benchmarks],
    }
    json.dump(document, stream, indent=2, sort_keys=True, ensure_ascii=True)
    stream.write("\n")


def _benchmark(benchmark: Benchmark) -> dict[str, object]:
    counts, score, found = benchmark.counts, benchmark.score, spans(benchmark)
    return {
        "id": benchmark.id,
        "key": benchmark.key,
        "status": benchmark.status.value,
        "error": benchmark.error,
        "warnings": list(benchmark.warnings),
        "tool": benchmark.tool,
        "score": None if score is None else {"model": score.model, "value": score.value},
        "counts": None if counts is None else counts.as_dict(),
        "hits": None if counts is None else {"L1": counts.l1_hits, "LL": counts.ll_hits, "RAM": counts.ram_hits},
        "runs": len(benchmark.runs),
        "runs_identical": found is None or found.identical,
        "layouts": None if found is None else _layouts(found),
        "processes": [{"executable": item.executable, "Ir": item.counts.Ir} for item in benchmark.processes],
        "processes_exact": benchmark.processes_exact,
        "seal": {name: part.state.value for name, part in benchmark.seal.items()},
        "wall_ms": benchmark.wall_ms,
    }


def _layouts(found: Spans) -> dict[str, object]:
    """Return the smallest and largest numbers between memory layouts; runs are identical within each, or not."""
    return {
        "count": found.layouts,
        "score": dict(zip(("min", "max"), found.score, strict=True)),
        "Ir": dict(zip(("min", "max"), found.ir, strict=True)),
    }
