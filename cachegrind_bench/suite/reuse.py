"""Results of former runs in place of new ones, where nothing that a benchmark read has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.measure.surroundings import surrounded
from cachegrind_bench.suite.cache import Missed
from cachegrind_bench.suite.inputs import key_of

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.opened import Recording
    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.model.result import Benchmark, Environment
    from cachegrind_bench.suite.cache import Cache
    from cachegrind_bench.suite.execute import Job, Watcher


class Reuse(msgspec.Struct, frozen=True, kw_only=True):
    """Results of former runs, to be used again where nothing that a benchmark read has changed."""

    cache: Cache
    environment: Environment
    valgrind: tuple[str, ...]
    version: str
    created_at: str

    def stored(self, job: Job, plan: Plan, *, watcher: Watcher, with_output: bool = False) -> Benchmark | None:
        """Return the stored benchmark, or None and say why there is none.

        With `with_output` it has to have what the program wrote; without, it has not.
        """
        with surrounded(plan):  # what it reads may be what its preparation makes
            found = self.cache.lookup(self._key(job, plan))
        if isinstance(found, Missed):
            watcher.remark(job.id, f"measured, since {found.why}")
            return None
        if with_output and found.benchmark.output is None:
            watcher.remark(job.id, "measured, since what it wrote was not kept")
            return None
        benchmark = replace(found.benchmark, parameters=dict(job.parameters), tags=job.tags)
        if not with_output:
            benchmark = replace(benchmark, output=None)
        watcher.reused(benchmark, found.created_at)
        return benchmark

    def keep(self, job: Job, plan: Plan, recording: Recording, benchmark: Benchmark, *, watcher: Watcher) -> None:
        """Store a benchmark for the next time, or say why that cannot be."""
        why = self.cache.keep(
            self._key(job, plan),
            recording,
            benchmark,
            self.environment,
            version=self.version,
            created_at=self.created_at,
        )
        if why is not None:
            watcher.remark(job.id, f"not kept for the next time: {why}")

    def _key(self, job: Job, plan: Plan) -> str:
        return key_of(plan, self.environment, version=self.version, valgrind=self.valgrind, setup=job.setup)
