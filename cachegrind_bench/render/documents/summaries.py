"""The numbers of a result, without its profiles, as JSON: `run --format json` and `show --format json`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from cachegrind_bench.model.described import Events, Instructions, Milliseconds, Points, doc
from cachegrind_bench.model.metrics import Counts
from cachegrind_bench.model.result import Benchmark, Result, Score, SealState, Status
from cachegrind_bench.render.documents.document import Document, fields, optional
from cachegrind_bench.render.documents.growth import GrowingBenchmark, growing
from cachegrind_bench.render.report import Spans, spans

if TYPE_CHECKING:
    from cachegrind_bench.compare.growth import Growth


class Hits(msgspec.Struct, frozen=True, kw_only=True):
    """Accesses by what answered them."""

    L1: Annotated[Events, doc("accesses that a first-level cache answered")]
    LL: Annotated[Events, doc("accesses that the last-level cache answered")]
    RAM: Annotated[Events, doc("accesses that no cache answered")]


class PointsRange(msgspec.Struct, frozen=True, kw_only=True):
    """The range of the score."""

    min: Annotated[Points, doc("the lowest score of a layout")]
    max: Annotated[Points, doc("the highest score of a layout")]


class InstructionsRange(msgspec.Struct, frozen=True, kw_only=True):
    """The range of Ir."""

    min: Annotated[Instructions, doc("the lowest Ir of a layout")]
    max: Annotated[Instructions, doc("the highest Ir of a layout")]


class Layouts(msgspec.Struct, frozen=True, kw_only=True):
    """What memory layouts make of a benchmark."""

    count: Annotated[int, doc("number of memory layouts (`--layouts`)")]
    score: Annotated[PointsRange, doc("range of the score over the layouts")]
    Ir: Annotated[InstructionsRange, doc("range of Ir over the layouts")]


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """One process of a benchmark."""

    executable: Annotated[str, doc("path of the program")]
    Ir: Annotated[Instructions, doc("instructions that it executed")]


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark."""

    id: Annotated[str, doc("name of the benchmark")]
    key: Annotated[str, doc("comparability key: only benchmarks of the same key compare")]
    status: Annotated[Status, doc("how it ended; only `ok` has counts")]
    error: Annotated[str | None, doc("why it failed")]
    warnings: Annotated[tuple[str, ...], doc("what makes its counts less certain")]
    tool: Annotated[str | None, doc("`cachegrind` or `callgrind`")]
    score: Annotated[Score | None, doc("the score")]
    counts: Annotated[Counts | None, doc("the nine event counts of the median run")]
    hits: Annotated[Hits | None, doc("accesses by the cache that answered them")]
    wall_ms: Annotated[Milliseconds | None, doc("time the measured executions took, under Valgrind")]
    runs: Annotated[int, doc("number of measured executions")]
    runs_identical: Annotated[bool, doc("whether all nine counts are the same in all runs of a layout")]
    layouts: Annotated[Layouts | None, doc("what memory layouts make of it")]
    processes: Annotated[tuple[Process, ...], doc("each process, the first one first")]
    processes_exact: Annotated[bool, doc("whether each cost is known to be of one process")]
    seal: Annotated[dict[str, SealState], doc("state of each part of the seal")]


class MachineFields(msgspec.Struct, frozen=True, kw_only=True):
    """What machines must have in common for results to compare."""

    key: Annotated[str, doc("hash of the fields")]
    fields: Annotated[dict[str, str], doc("architecture, Valgrind's version, caches, ...")]


class Summary(Document, frozen=True, kw_only=True):
    """`run --format json` and `show --format json`: a result without its profiles."""

    schema: Literal["cg-bench.summary/1"] = "cg-bench.summary/1"
    created_at: Annotated[str, doc("when it was measured, UTC")]
    commit: Annotated[str | None, doc("id of the commit that was measured")]
    env: Annotated[MachineFields, doc("the machine")]
    benchmarks: Annotated[tuple[Measured, ...], doc("all benchmarks, in the order of the suite")]
    growth: Annotated[tuple[GrowingBenchmark, ...], doc("how benchmarks with `sizes` grow")]


def summary(result: Result, growth: Iterable[Growth] = ()) -> str:
    """Return the numbers of a report, without the profiles."""
    return Summary(
        created_at=result.created_at,
        commit=optional(result.commit, lambda commit: commit.sha),
        env=MachineFields(key=result.env.key, fields=dict(result.env.fields)),
        benchmarks=tuple(map(_measured, result.benchmarks)),
        growth=growing(growth),
    ).text()


def _measured(benchmark: Benchmark) -> Measured:
    def hits(counts: Counts) -> Hits | None:
        return Hits(L1=counts.l1_hits, LL=counts.ll_hits, RAM=counts.ram_hits) if counts.with_caches else None

    def layouts(found: Spans) -> Layouts:
        score = PointsRange(min=found.score[0], max=found.score[1])
        return Layouts(count=found.layouts, score=score, Ir=InstructionsRange(min=found.ir[0], max=found.ir[1]))

    found = spans(benchmark)
    return Measured(
        **fields(benchmark, "id", "key", "status", "error", "warnings", "tool", "score", "counts", "wall_ms"),
        processes_exact=benchmark.processes_exact,
        hits=optional(benchmark.counts, hits),
        runs=len(benchmark.runs),
        runs_identical=found is None or found.identical,
        layouts=optional(found, layouts),
        processes=tuple(Process(executable=item.executable, Ir=item.counts.Ir) for item in benchmark.processes),
        seal={name: part.state for name, part in benchmark.seal.items()},
    )
