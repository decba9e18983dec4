"""Runs the jobs of a suite side by side, each for itself: what becomes of one changes nothing for the others.

Counts do not care about load, so as many run as there are CPUs; but not at one time those that make or remove the same files
around their executions. Knows jobs and executors; must not know what is measured.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.interruption import Cancel, Completed, held
from cachegrind_bench.model.result import Benchmark, Status

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from cachegrind_bench.config.benchmarks import BenchmarkSpec
    from cachegrind_bench.suite.execute import Job


def lanes(benchmarks: Iterable[BenchmarkSpec]) -> dict[str, int]:
    """Return a number for each benchmark that has `prepare` or `cleanup`; those with one number run one after the other.

    They have it in common if they are executed in one folder and share one of these two or the command: 'rm -f out' of two
    benchmarks means the same file, and so does the `in` that one command reads and each `prepare` makes anew.
    """
    lane_of: dict[str, int] = {}
    first_of: dict[tuple[str, ...], int] = {}
    for number, item in enumerate(benchmarks):
        if item.prepare is None and item.cleanup is None:
            continue
        texts = [("shell", text) for text in (item.prepare, item.cleanup) if text is not None]
        traits = [(str(item.cwd), *trait) for trait in (*texts, ("command", *item.command))]
        joined = {first_of[trait] for trait in traits if trait in first_of}
        lane = min(joined, default=number)
        lane_of[item.id] = lane
        first_of |= dict.fromkeys(traits, lane)
        first_of = {trait: lane if known in joined else known for trait, known in first_of.items()}
        lane_of = {name: lane if known in joined else known for name, known in lane_of.items()}
    return lane_of


class Queue:
    """Jobs in their order: what may run at once, and what may when one has ended."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs
        self._waiting: dict[int, deque[Job]] = {}

    def first(self) -> Iterator[Job]:
        """Yield all jobs without a lane, and the first of each lane."""
        for job in self._jobs:
            if job.lane is None or job.lane not in self._waiting:
                if job.lane is not None:
                    self._waiting[job.lane] = deque()
                yield job
            else:
                self._waiting[job.lane].append(job)

    def after(self, job: Job) -> Job | None:
        """Return the job that may begin now that this one has ended, if there is one."""
        waiting = None if job.lane is None else self._waiting[job.lane]
        return waiting.popleft() if waiting else None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The benchmarks that came to an end, in the order of their jobs, and the ids of those that did not.

    `skipped` has those that their own code skips, with why.
    """

    benchmarks: tuple[Benchmark, ...]
    unfinished: tuple[str, ...]
    interrupted: bool
    skipped: Mapping[str, str] = {}


def run_suite(
    jobs: Sequence[Job],
    measure_one: Callable[[Job], Benchmark],
    executor: Executor,
    cancel: Cancel,
    *,
    fail_fast: bool = False,
) -> Outcome:
    """Submit all jobs in this order, as their lanes allow, and wait.

    Ctrl-C, and with `fail_fast` the first failure, ends those that run.
    """

    def task(job: Job) -> Benchmark:
        with cancel.under():
            cancel.check()
            benchmark = measure_one(job)
            if fail_fast and benchmark.status is not Status.OK:
                cancel.set()  # here, before this thread turns to its next job
            return benchmark

    queue, ended = Queue(jobs), Completed[Benchmark]()
    jobs_of: dict[Future[Benchmark], Job] = {}
    done: dict[str, Benchmark] = {}
    interrupted = False

    def submit(job: Job) -> None:
        with held():  # the locks of executors and futures
            future = executor.submit(task, job)
            jobs_of[future] = job
            ended.add(future)

    try:
        for job in queue.first():
            submit(job)
        for future in ended:
            following = queue.after(jobs_of[future])
            if following is not None:
                submit(following)
            with held():
                if not isinstance(future.exception(), KeyboardInterrupt):  # ended by the failure of another
                    done[future.result().id] = future.result()
    except KeyboardInterrupt:
        interrupted = True
    finally:
        if len(done) < len(jobs):
            cancel.set()
        executor.shutdown(wait=True, cancel_futures=True)
    # Those that came to their end while we turned away.
    for future in jobs_of:
        if future.done() and not future.cancelled() and future.exception() is None:
            done[future.result().id] = future.result()
    return Outcome(
        benchmarks=tuple(done[job.spec.id] for job in jobs if job.spec.id in done),
        unfinished=tuple(job.spec.id for job in jobs if job.spec.id not in done),
        interrupted=interrupted,
    )
