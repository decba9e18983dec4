"""The machines that measure commits, as an executor: threads here; `dask_workers` has the other one.

Knows orders and answers; must not know which commits are chosen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import CgBenchError
from cachegrind_bench.interruption import Cancel
from cachegrind_bench.usecases.commit_task import PLACE, Answer, Machine, Order, describe, measure

if TYPE_CHECKING:
    from cachegrind_bench.usecases.measurement import MeasureRequest


class Workforce(msgspec.Struct, frozen=True, kw_only=True):
    """Executes `task` for each order, at most `width` at once, under the conditions of `machine`.

    `repository` and `environ` are what an order has to name; `check` raises MeasurementError if nobody is left to answer.
    """

    executor: Executor
    task: Callable[[Order], Answer]
    width: int
    machine: Machine
    repository: Path
    environ: Mapping[str, str]
    remote: bool = False
    check: Callable[[], None] = lambda: None

    def submit(self, order: Order) -> Future[Answer]:
        """Have a commit measured."""
        return self.executor.submit(self.task, order)

    def answer(self, future: Future[Answer]) -> Answer:
        """Return what came of an order; where nothing did, as of a worker that dies over and over, that is why."""
        try:
            return future.result()
        except CgBenchError:
            raise
        except Exception as error:
            self.check()
            if not self.remote:
                raise
            failure = f"its worker failed: {type(error).__name__}: {error}"
            return Answer(machine="", result=None, failure=failure)


@contextmanager
def local(request: MeasureRequest, repository: Path, jobs: int | None) -> Generator[Workforce]:
    """Measure in threads, as many at once as there are CPUs for us, or `jobs`; one where commits cannot have one place."""
    machine = describe(request)
    cpus = len(os.sched_getaffinity(0))
    width = 1 if PLACE in machine.unsealed else min(jobs or cpus, cpus)
    cancel = Cancel()

    def task(order: Order) -> Answer:
        with cancel.under():
            cancel.check()
            return measure(order)

    executor = ThreadPoolExecutor(width, thread_name_prefix="commit")
    try:
        yield Workforce(
            executor=executor,
            task=task,
            width=width,
            machine=machine,
            repository=repository,
            environ=request.environ,
        )
    finally:
        cancel.set()
        executor.shutdown(wait=True, cancel_futures=True)
        cancel.close()
