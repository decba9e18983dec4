"""The machines that measure commits, as an executor: threads here; `dask_workers` has the other one.

Knows orders and answers; must not know which commits are chosen.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec.structs import replace

from cachegrind_bench.errors import CgBenchError, MeasurementError, NotComparableError
from cachegrind_bench.interruption import Cancel, held
from cachegrind_bench.log import LOG, Threads
from cachegrind_bench.model.codec import decode
from cachegrind_bench.suite.merge import merged
from cachegrind_bench.usecases.commit_task import PLACE, Answer, Machine, Order, describe, measure

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from cachegrind_bench.model.result import Result
    from cachegrind_bench.usecases.measurement import MeasureRequest
    from cachegrind_bench.usecases.worktrees import Run
    from cachegrind_bench.vcs.revisions import Repository


class Workforce(msgspec.Struct, frozen=True, kw_only=True):
    """Executes `task` for each order, at most `width` at once, under the conditions of `machine`.

    `repository` is what an order has to name; `check` raises MeasurementError if nobody is left to answer.
    """

    executor: Executor
    task: Callable[[Order], Answer]
    width: int
    machine: Machine
    repository: Path
    remote: bool = False
    check: Callable[[], None] = lambda: None

    def submit(self, order: Order, parts: int = 1) -> list[Future[Answer]]:
        """Have a commit measured, in parts of its suite that set it up each for themselves."""
        shards = [("--shard", f"{part}/{parts}") for part in range(1, parts + 1)] if parts > 1 else [()]
        with held():  # the locks of the executor
            return [self.executor.submit(self.task, replace(order, words=(*shard, *order.words))) for shard in shards]

    def answer(self, future: Future[Answer]) -> Answer:
        """Return what came of an order; where nothing did, as of a worker that dies over and over, that is why."""
        try:
            found = cast("object", future.result())
            if isinstance(found, Answer):
                return found
            raise TypeError(f"it answered with {type(found).__name__}")  # noqa: TRY301 - reported below
        except CgBenchError:
            raise
        except Exception as error:  # noqa: BLE001 - it must not cost the other commits
            self.check()
            LOG.debug("".join(traceback.format_exception(error)))
            failure = f"its worker failed: {type(error).__name__}: {error}"
            return Answer(machine="", result=None, failure=failure)

    def result(self, sha: str, answers: Sequence[Answer]) -> Result:
        """Return the result of a commit, as it was but for what is laid over it, by the answers to all its parts.

        MeasurementError if there is none, or if it is of something else.
        """
        found: list[tuple[str, Result]] = []
        for answer in answers:
            if answer.result is None:
                raise MeasurementError(answer.failure or "it was not measured")
            result = decode(answer.result, f"the result of {sha[:12]}")
            if result.commit is None or result.commit.sha != sha:
                what = (
                    "is of another commit"
                    if result.commit
                    else "does not say of which commit it is: git failed or hung"
                )
                raise MeasurementError(f"its result {what}")
            if result.env.key != self.machine.environment.key:
                raise MeasurementError("its result is of another environment")
            found.append((answer.machine, replace(result, commit=replace(result.commit, dirty=False, branch=None))))
        try:
            return merged(found)
        except NotComparableError as error:
            raise MeasurementError(error.message) from error


@contextmanager
def local(request: MeasureRequest, here: Repository, run: Run, jobs: int | None) -> Generator[Workforce]:
    """Measure in threads, as many at once as there are CPUs for us, or `jobs`; one where commits cannot have one place."""
    machine = describe(request)
    cpus = len(os.sched_getaffinity(0))
    width = 1 if PLACE in machine.unsealed else min(jobs or cpus, cpus)
    cancel = Cancel()

    def task(order: Order) -> Answer:
        with cancel.under():
            cancel.check()
            return measure(order, request.environ, run, here.waiting.apart())

    executor = Threads(width, thread_name_prefix="commit")
    try:
        yield Workforce(
            executor=executor,
            task=task,
            width=width,
            machine=machine,
            repository=here.cwd,
        )
    finally:
        cancel.set()
        executor.shutdown(wait=True, cancel_futures=True)
        cancel.close()
