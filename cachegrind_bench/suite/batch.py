"""Benchmarks that their harness measures together: run after all others, with every CPU, and merged with these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.errors import CgBenchError
from cachegrind_bench.harness.protocol import Batch, harness_of
from cachegrind_bench.model.result import Benchmark, Status
from cachegrind_bench.suite.execute import Watcher, failed
from cachegrind_bench.suite.schedule import Outcome

if TYPE_CHECKING:
    from cachegrind_bench.measure.session import ValgrindSetup


def run_batch(batch: Batch, valgrind_setup: ValgrindSetup, watcher: Watcher, before: Outcome) -> Outcome:
    """Measure the benchmarks of a batch, and return them with those that had ended before."""
    interrupted = before.interrupted
    done: dict[str, Benchmark] = {}
    specs = {spec.id: spec for spec in batch.specs}

    def finish(benchmark: Benchmark, said: bytes) -> None:
        done[benchmark.id] = replace(benchmark, tags=specs[benchmark.id].tags)
        watcher.finished(benchmark, said)

    if not interrupted and not (batch.fail_fast and any(item.status is not Status.OK for item in before.benchmarks)):
        try:
            harness_of(batch.entry.harness).measure(batch, valgrind_setup, finish)
        except KeyboardInterrupt:
            interrupted = True
        except CgBenchError as error:
            for spec in batch.specs:
                if spec.id not in done:
                    finish(failed(spec, valgrind_setup, error), b"")
    return Outcome(
        benchmarks=(*before.benchmarks, *(done[name] for name in specs if name in done)),
        unfinished=(*before.unfinished, *(name for name in specs if name not in done)),
        interrupted=interrupted,
    )
