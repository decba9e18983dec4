"""Benchmarks that their harness measures together: run after all others, with every CPU, and merged with these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.errors import CgBenchError
from cachegrind_bench.harness.protocol import Batch, harness_of
from cachegrind_bench.model.result import Benchmark, Status
from cachegrind_bench.suite.execute import Watcher, failed
from cachegrind_bench.suite.schedule import Outcome

if TYPE_CHECKING:
    from cachegrind_bench.measure.session import ValgrindSetup


def run_batch(batch: Batch, valgrind_setup: ValgrindSetup, watcher: Watcher, before: Outcome) -> Outcome:
    """Measure the benchmarks of a batch, and return them with those that had ended before."""
    found: dict[str, Benchmark] = {}
    shown: set[str] = set()
    skipped: dict[str, str] = {}
    interrupted = before.interrupted

    def show(benchmark: Benchmark, said: bytes) -> None:
        shown.add(benchmark.id)
        watcher.finished(benchmark, said)

    def skip(name: str, why: str) -> None:
        skipped[name] = why
        watcher.skipped(name, why)

    if not interrupted and not (batch.fail_fast and any(item.status is not Status.OK for item in before.benchmarks)):
        try:
            harness = harness_of(batch.entry.harness)
            found = {item.id: item for item in harness.measure(batch, valgrind_setup, show, skip)}
        except KeyboardInterrupt:
            interrupted = True
        except CgBenchError as error:
            found = {spec.id: failed(spec, valgrind_setup, error) for spec in batch.specs}
    for benchmark in found.values():
        if benchmark.id not in shown:
            watcher.finished(benchmark, b"")
    missing = (spec.id for spec in batch.specs if spec.id not in found and spec.id not in skipped)
    return Outcome(
        benchmarks=(*before.benchmarks, *(found[spec.id] for spec in batch.specs if spec.id in found)),
        unfinished=(*before.unfinished, *missing),
        skipped={**before.skipped, **skipped},
        interrupted=interrupted,
    )
