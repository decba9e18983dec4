"""Measuring the commits of a past into a history: first the ends, then where they differ, until each step is one commit."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.history.adaptive import Backfilled, Costs, intervals, next_place
from cachegrind_bench.model.metrics import CostModel
from cachegrind_bench.model.text import matches
from cachegrind_bench.store.protocol import Query, Store
from cachegrind_bench.store.record import run_record
from cachegrind_bench.usecases.result_files import read_result
from cachegrind_bench.usecases.selection import SelectRequest
from cachegrind_bench.usecases.worktrees import Worktree, opened_worktree
from cachegrind_bench.vcs.commits import notes, tags

if TYPE_CHECKING:
    from fractions import Fraction

    from cachegrind_bench.model.result import Benchmark, Point, Result
    from cachegrind_bench.usecases import Notices
    from cachegrind_bench.vcs.revisions import Repository


class BackfillRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which commits to measure by `cg-bench run` with these words: those of `revisions`, as `git rev-list` takes them.

    `tags` is a pattern: those commits alone; `every` N-th is measured in any case, all of them if it is 1. A step is what
    differs by more than `min_step`. At most `commits` are measured, and none begins after `seconds`; None: no bound.
    `carry` is laid over each commit, None if each has its own suite.
    """

    revisions: str
    since: str | None
    tags: str | None
    every: int | None
    all_commits: bool
    min_step: Fraction
    commits: int | None
    seconds: float | None
    words: tuple[str, ...]
    select: SelectRequest
    carry: tuple[str, ...] | None
    model: CostModel


def backfill(request: BackfillRequest, repository: Repository, store: Store, notices: Notices) -> Backfilled:
    """Measure what is needed, and store each commit as soon as it is measured: to be called again after any end.

    UsageError if there are no such commits, StoreError, and MeasurementError if not one of them can be measured.
    """
    shas, required = _commits(request, repository)
    places = {sha: place for place, sha in enumerate(shas)}
    stored, key = _stored(request, store, shas)
    before = len(stored)
    if before:
        notices.note(f"{before} of {len(shas)} commits are in {store.url} already")
    known: dict[int, Costs | None] = {places[sha]: costs for sha, costs in stored.items()}
    failed: dict[str, str] = {}
    measured, begun = 0, time.monotonic()
    with opened_worktree(repository, notices, request.select, request.carry) as place, store:
        while (number := next_place(len(shas), required, known, request.min_step)) is not None:
            if measured + len(failed) == request.commits or _is_over(request.seconds, begun):
                break
            sha = shas[number]
            notices.note(_progress(sha, number, len(shas), known, request.min_step))
            try:
                result = _measured(place, request.words, sha)
            except MeasurementError as error:
                notices.note(f"{sha[:12]} could not be measured: {error.message}")
                known[number], failed[sha] = None, error.message
                continue
            store.add([run_record(result)])
            measured += 1
            if key not in (None, result.env.key):
                notices.note(
                    "what was stored before was measured by another Valgrind or under other conditions: it is measured anew"
                )
                known, before = dict.fromkeys((places[item] for item in failed), None), 0
            key = result.env.key
            known[number] = _costs(result.benchmarks, request)
    if not any(costs is not None for costs in known.values()):
        raise MeasurementError("none of these commits could be measured", hint=next(iter(failed.values()), None))
    found = intervals(known)
    steps = tuple(item for item in found if item.difference > request.min_step)
    subjects = notes(repository.cwd, repository.environ, {shas[item.after] for item in steps})
    return Backfilled(
        shas=shas,
        measured=measured,
        known_before=before,
        failed=failed,
        steps=steps,
        equal=sum(len(item.untried) for item in found if item not in steps),
        costs={number: costs for number, costs in known.items() if costs is not None},
        subjects={sha: note.subject for sha, note in subjects.items()},
        min_step=request.min_step,
    )


def _commits(request: BackfillRequest, repository: Repository) -> tuple[tuple[str, ...], frozenset[int]]:
    """Return the commits, oldest first, and the places of those to be measured in any case."""
    base, dots, _tip = request.revisions.partition("..")
    words = ["rev-list", "--reverse", *([] if request.all_commits else ["--first-parent"])]
    words += [] if request.since is None else [f"--since={request.since}"]
    # A range of git's begins after its first commit, which is what the steps are measured against.
    first = [sha] if dots and (sha := repository.named(base)) is not None else []
    try:
        listed = repository.text(*words, "--end-of-options", request.revisions, "--").split()
    except MeasurementError as error:
        raise UsageError(f"git has no commits {request.revisions!r}", hint=error.message) from error
    shas = tuple(dict.fromkeys([*first, *listed]))
    tagged = frozenset(tag.sha for tag in tags(repository) if matches(tag.name, request.tags or "*"))
    if request.tags is not None:
        shas = tuple(sha for sha in shas if sha in tagged)
    if not shas:
        what = "" if request.tags is None else f" with a tag like {request.tags!r}"
        raise UsageError(f"there are no commits in {request.revisions!r}{what}")
    every = request.every or len(shas)
    required = {0, len(shas) - 1, *range(0, len(shas), every)}
    return shas, frozenset(required | {place for place, sha in enumerate(shas) if sha in tagged})


def _stored(request: BackfillRequest, store: Store, shas: Sequence[str]) -> tuple[dict[str, Costs], str | None]:
    """Return what these commits cost by the store, as the last run's machine measured it, and the key of that."""
    with store:
        found = [
            item
            for item in (store.snapshots(Query(shas=frozenset(shas))) if store.exists() else ())
            if item.commit is not None and not item.commit.dirty
        ]
    if not found:
        return {}, None
    key = max(found, key=lambda item: (item.created_at, item.uid)).env_key
    costs = {
        item.commit.sha: _costs(item.points, request)
        for item in found
        if item.env_key == key and item.commit is not None
    }
    return {sha: cost for sha, cost in costs.items() if cost}, key


def _costs(points: Sequence[Point | Benchmark], request: BackfillRequest) -> dict[str, int]:
    return {point.id: request.model.score(point.counts) for point in points if point.counts is not None}


def _measured(place: Worktree, words: Sequence[str], sha: str) -> Result:
    """Return the result of a commit, which is as it was but for what is laid over it. MeasurementError if it has no counts."""
    target: Path = place.folder / "result.json"
    target.unlink(missing_ok=True)
    place.measure(sha, ("-q", *words), target)
    result = read_result(str(target)).result
    if all(item.counts is None for item in result.benchmarks):
        why = next((item.error for item in result.benchmarks if item.error), "it has no benchmarks")
        raise MeasurementError(why.partition("\n")[0])
    return result if result.commit is None else replace(result, commit=replace(result.commit, dirty=False))


def _progress(sha: str, number: int, count: int, known: Mapping[int, Costs | None], step: Fraction) -> str:
    found = [item for item in intervals(known) if item.untried and item.difference > step]
    left = sum((len(item.untried)).bit_length() for item in found)
    more = f", about {left} more to narrow down what differs" if left else ""
    return f"measuring {sha[:12]}, commit {number + 1} of {count}; {len(known)} are known{more}"


def _is_over(seconds: float | None, begun: float) -> bool:
    return seconds is not None and time.monotonic() - begun >= seconds
