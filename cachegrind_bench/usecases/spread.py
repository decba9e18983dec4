"""The suite of a checkout measured by the workers of a fleet, each a part of it. Must not know how they are reached."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.errors import UsageError
from cachegrind_bench.interruption import Completed
from cachegrind_bench.log import LOG
from cachegrind_bench.model.text import counted
from cachegrind_bench.suite.schedule import Outcome
from cachegrind_bench.usecases.commit_task import Order
from cachegrind_bench.usecases.suite import SuiteRun
from cachegrind_bench.usecases.worktrees import overlay_of, within_of
from cachegrind_bench.vcs.commits import commit_of
from cachegrind_bench.vcs.worktree import changes_as_commit
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.usecases.executors import Workforce
    from cachegrind_bench.usecases.selection import SelectRequest
    from cachegrind_bench.vcs.revisions import Repository


def order_of(repository: Repository, select: SelectRequest, words: Sequence[str]) -> Order:
    """Return the order to measure the commit of this work tree. UsageError if it is not as it is there."""
    sha = repository.named("HEAD")
    if sha is None or changes_as_commit(repository) is not None:
        why = "there is no commit yet" if sha is None else "your work tree has changes that are not committed"
        raise UsageError(f"workers measure commits, and {why}", hint="commit first, or measure here, without --workers")
    return Order(
        repository=repository.cwd,
        sha=sha,
        within=within_of(repository),
        words=("-q", "-j", "1", *words),
        select=select,
        overlay=overlay_of(repository, None),
        sharing=True,
    )


def measured_by(force: Workforce, order: Order, ids: Sequence[str], here: Repository) -> SuiteRun:
    """Measure these benchmarks, which the order selects. MeasurementError if a part of them cannot be measured."""
    order, sha = replace(order, repository=force.repository), order.sha
    parts = force.submit(order, min(force.width, len(ids)))
    LOG.info(f"{counted(len(ids), 'benchmark')} of {sha[:12]} in {counted(len(parts), 'part')}")
    ended, waiting, since = Completed(parts), Waiting(), time.monotonic()
    while ended.pending:
        part = ended.next()
        force.check()
        if part is not None:
            since = time.monotonic()
            LOG.info(f"{len(parts) - ended.pending} of {counted(len(parts), 'part')} measured")
        waiting.look(f"{counted(ended.pending, 'part')} of {sha[:12]}", time.monotonic() - since)
    result = force.result(sha, [force.answer(part) for part in parts])
    found = {item.id: item for item in result.benchmarks}
    commit = commit_of(here)  # with its branch
    benchmarks = tuple(found[name] for name in ids if name in found)
    unfinished = tuple(name for name in ids if name not in found)
    outcome = Outcome(benchmarks=benchmarks, unfinished=unfinished, interrupted=False)
    return SuiteRun(result=replace(result, benchmarks=benchmarks, commit=commit), outcome=outcome, reused=frozenset())
