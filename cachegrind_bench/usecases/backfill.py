"""Measuring the commits of a past into a history: first the ends, then where they differ, until each step is one commit.

Knows what is measured and stored; must not know on which machines, or whether at the same time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import FileFormatError, MeasurementError, UsageError
from cachegrind_bench.history.adaptive import Backfilled, Costs, Search, intervals
from cachegrind_bench.interruption import Completed
from cachegrind_bench.log import LOG
from cachegrind_bench.measure.command import default_id
from cachegrind_bench.model.metrics import CostModel
from cachegrind_bench.model.text import counted, joined, matches, rough_duration
from cachegrind_bench.store.protocol import Query, Store
from cachegrind_bench.usecases.commit_task import Answer, Order
from cachegrind_bench.usecases.numbers import may_loop, numbers_of
from cachegrind_bench.usecases.numbers import stored as stored_numbers
from cachegrind_bench.usecases.saving import Destination, keep
from cachegrind_bench.usecases.selection import SelectRequest, chooses, chooses_id, configuration
from cachegrind_bench.usecases.worktrees import Overlay, overlay_of, top_of, within_of
from cachegrind_bench.vcs.commits import notes, tags
from cachegrind_bench.vcs.revisions import DEEPEN
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    from concurrent.futures import Future
    from fractions import Fraction

    from cachegrind_bench.model.result import Benchmark, Point, Snapshot
    from cachegrind_bench.usecases.executors import Workforce
    from cachegrind_bench.vcs.revisions import Repository


class BackfillRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which commits to measure by `cg-bench run` with these words: those of `revisions`, as `git rev-list` takes them.

    `tags` is a pattern: those commits alone; `every` N-th is measured in any case, all of them if it is 1. A step is what
    differs by more than `min_step`. At most `commits` are measured, and none begins after `seconds`; None: no bound.
    `carry` is laid over each commit, None if each has its own suite, which is measured in `split` parts. Unless `fresh`, what read
    the same at another commit is taken over. `command` has the words of one, if it is not a suite.
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
    command: tuple[str, ...]
    select: SelectRequest
    carry: tuple[str, ...] | None
    retry: bool
    split: int
    fresh: bool
    model: CostModel


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """The commits that a request asks for, oldest first, and the places of those to be measured in any case.

    `overlay` is laid over each, and `within` the folder in which it is measured. `wanted` are the ids of the benchmarks that a
    commit is measured by, as far as they are known before; unless that is all, `others` says of an id whether it may be one.
    `loops`: some may be a framework's.
    """

    request: BackfillRequest
    repository: Repository
    shas: tuple[str, ...]
    required: frozenset[int]
    overlay: Overlay
    within: str
    wanted: frozenset[str]
    others: Callable[[str], bool] | None
    loops: bool = False


def past_of(request: BackfillRequest, repository: Repository) -> Past:
    """Return which commits are asked for. UsageError if there are none, or nothing to measure them by."""
    shas, required = _commits(request, repository)
    wanted, others = frozenset[str](), None
    if request.command:
        wanted = frozenset((default_id(request.command, repository.cwd),))
    elif request.carry is None:
        others = chooses_id(request.select)
    else:
        found = configuration(repository.cwd)
        wanted = frozenset(spec.id for spec in filter(chooses(request.select), found.benchmarks))
        others = chooses_id(request.select) if found.entries else None
        if not wanted and others is None:
            raise UsageError("no benchmark was selected", hint="'cg-bench list' shows what there is")
    return Past(
        request=request,
        repository=repository,
        shas=shas,
        required=required,
        overlay=overlay_of(repository, request.carry),
        within=within_of(repository),
        wanted=wanted,
        others=others,
        loops=not request.command and may_loop(repository.cwd),
    )


def backfill(past: Past, destination: Destination, force: Workforce) -> Backfilled:
    """Measure what is needed, and store each commit as soon as it is measured: to be called again after any end.

    StoreError, and MeasurementError if not one of the commits can be measured.
    """
    store = destination.store
    with store:
        stored = _stored(past, store, force.machine.environment.key)
        if stored:
            LOG.info(f"{len(stored)} of {len(past.shas)} commits are in {store.url} already")
        search = Search(len(past.shas), past.required, past.request.min_step, stored)
        work = Work(past, destination, force, search)
        work.numbers = stored_numbers(store) if past.loops else {}
        work.run()
    if not any(costs is not None for costs in search.known.values()):
        raise MeasurementError(
            "none of these commits could be measured",
            hint=next((f"{sha[:12]}: {why}" for sha, why in work.failed.items()), None),
        )
    return _summary(past, search, work, before=sum(costs is not None for costs in stored.values()))


class Work:
    """Hands out commits, and keeps what comes back."""

    def __init__(self, past: Past, destination: Destination, force: Workforce, search: Search) -> None:
        self._past, self._force, self._search = past, force, search
        self._destination = destination
        self._request = past.request
        # What a command alone is measured by does not know of suites.
        cached, alone = ("--cached",) * (not past.request.fresh), ("-j", "1") * (force.width > 1)
        self._words = () if past.request.command else (*cached, *alone)
        self._running: dict[Future[Answer], int] = {}
        self._under_way = Completed[Answer]()
        self._answers: dict[int, list[Answer]] = {}
        self.numbers: dict[str, int] = {}
        self._begun, self._started, self._ended = time.monotonic(), 0, 0
        self.measured = self.taken_over = 0
        self.failed: dict[str, str] = {}

    def run(self) -> None:
        """Work until nothing is left to find out, or the budget is spent; what is under way then is waited for."""
        waiting, since = Waiting(), time.monotonic()
        while True:
            # The first one alone, if its benchmarks' numbers of iterations are to hold for all.
            width = self._force.width if self._ended or not self._past.loops or self.numbers else 1
            while len(self._running) < width and not self._is_spent():
                place = self._search.next()
                if place is None:
                    break
                parts = self._force.submit(self._order(place), self._request.split)
                for part in parts:
                    self._running[part] = place
                    self._under_way.add(part)
                self._started += 1
            if not self._running:
                return
            ended = self._under_way.next()
            self._force.check()
            since = since if ended is None else time.monotonic()
            if self._force.remote:  # what measures here says what it waits for
                waiting.look(counted(len({*self._running.values()}), "commit"), time.monotonic() - since)
            if ended is None:
                continue
            place = self._running.pop(ended)
            answers = self._answers.setdefault(place, [])
            answers.append(self._force.answer(ended))
            if len(answers) == self._request.split:
                self._finish(place, self._answers.pop(place))

    def _is_spent(self) -> bool:
        limit = self._request.seconds
        return self._started == self._request.commits or (limit is not None and time.monotonic() - self._begun >= limit)

    def _order(self, place: int) -> Order:
        past, several = self._past, self._force.width > 1
        return Order(
            repository=self._force.repository,
            sha=past.shas[place],
            within=past.within,
            words=("-q", *self._words, *self._request.words),
            select=self._request.select,
            overlay=past.overlay,
            sharing=several,
            numbers=self.numbers,
        )

    def _finish(self, place: int, answers: Sequence[Answer]) -> None:
        """Check and store what came of a commit."""
        sha, costs, taken = self._past.shas[place], dict[str, int](), False
        self._ended += 1
        try:
            result = self._force.result(sha, answers)
            keep(self._destination, result)
            costs = _costs(result.benchmarks, self._request.model)
            taken = all(item.taken_over for item in result.benchmarks)
            self.numbers = {**numbers_of(result.benchmarks), **self.numbers}
            failure = next((item.error for item in result.benchmarks if item.error), "it has no benchmarks")
        except (MeasurementError, FileFormatError) as error:
            failure = error.message
        self._search.finish(place, costs or None)
        machines = joined(sorted({answer.machine for answer in answers} - {""}))
        where = f" on {machines}" if self._force.remote and machines else ""
        if costs:
            self.taken_over += taken
            self.measured += not taken
            did = "took over what is the same at" if taken else "measured"
            LOG.info(f"{did} {sha[:12]}{where}: {self._progress()}")
        else:
            self.failed[sha] = failure
            LOG.info(f"{sha[:12]} could not be measured{where}: {failure.splitlines()[0]}")

    def _progress(self) -> str:
        running, left = len({*self._running.values()}), self._search.left()
        if self._request.commits is not None:
            left = min(left, self._request.commits - self._ended)
        milliseconds = round(1000 * (time.monotonic() - self._begun) / self._ended * left)
        rest = f", about {left} left, {rough_duration(milliseconds)}" if left else ""
        return f"{counted(len(self._search.known), 'commit')} known, {running} under way{rest}"


def _summary(past: Past, search: Search, work: Work, *, before: int) -> Backfilled:
    request, repository, found = past.request, past.repository, intervals(search.known)
    steps = tuple(item for item in found if item.difference > request.min_step)
    more = search.next() is not None
    subjects = notes(repository, {past.shas[item.after] for item in steps})
    return Backfilled(
        shas=past.shas,
        measured=work.measured,
        taken_over=work.taken_over,
        known_before=before,
        failed=work.failed,
        failed_before=sum(costs is None for costs in search.known.values()) - len(work.failed),
        steps=steps,
        equal=sum(len(item.untried) for item in found if item not in steps),
        is_all=not more,
        costs={number: costs for number, costs in search.known.items() if costs is not None},
        subjects={sha: note.subject for sha, note in subjects.items()},
        min_step=request.min_step,
    )


def _commits(request: BackfillRequest, repository: Repository) -> tuple[tuple[str, ...], frozenset[int]]:
    """Return the commits, oldest first, and the places of those to be measured in any case."""
    base, dots, _tip = request.revisions.partition("..")
    words = ["rev-list", "--reverse", *([] if request.all_commits else ["--first-parent"])]
    words += [] if request.since is None else [f"--since={request.since}"]
    top_of(repository)  # what keeps git from working at all is not due to the revisions
    # A range of git's begins after its first commit, which is what the steps are measured against.
    first = [sha] if dots and (sha := repository.named(base)) is not None else []
    parts = re.split(r"(\.{2,3})", request.revisions)
    revisions = "".join(repository.named(part) or part for part in parts)  # what is a branch to others is one here
    try:
        listed = repository.text(*words, "--end-of-options", revisions, "--").split()
    except MeasurementError as error:
        for end in filter(None, parts[::2]):
            repository.required(end)
        raise UsageError(f"git has no commits {request.revisions!r}", hint=error.message) from error
    if repository.is_cut(listed):
        LOG.info(f"commits of {request.revisions} are missing, as this clone is shallow: {DEEPEN}")
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


def _stored(past: Past, store: Store, key: str) -> dict[int, Costs | None]:
    """Return what these commits cost by the store, under this environment's key; None for those that failed.

    Of a commit's runs the last counts in which a benchmark did not fail. Points under another key than the newest are left
    out, as of another C library.
    """
    places = {sha: place for place, sha in enumerate(past.shas)}
    found: list[Snapshot] = []
    if store.exists():
        runs = store.snapshots(Query(shas=frozenset(past.shas)))
        found = [run for run in runs if run.env_key == key and run.commit is not None and not run.commit.dirty]
    found.sort(key=lambda run: (run.created_at, run.uid))
    newest = {point.id: point.key for run in found for point in run.points if point.counts is not None}
    points: dict[int, dict[str, Point]] = {}
    for run in found:
        of_commit = points.setdefault(places[run.commit.sha], {}) if run.commit is not None else {}
        for point in run.points:
            if point.counts is None:
                of_commit.setdefault(point.id, point)
            elif point.key == newest[point.id]:
                of_commit[point.id] = point
    known: dict[int, Costs | None] = {}
    for place, by_id in points.items():
        chosen = {
            name: point for name, point in by_id.items() if name in past.wanted or (past.others and past.others(name))
        }
        costs = _costs(list(chosen.values()), past.request.model)
        if _is_whole(past, chosen.keys()) and (costs or not past.request.retry):
            known[place] = costs or None
    return known if any(known.values()) else {}  # where all failed, what they are measured by was probably wrong


def _is_whole(past: Past, ids: Collection[str]) -> bool:
    """Return whether these may be all benchmarks of a commit. Where others are asked for by name, there may be none."""
    enough = past.others is None or past.request.select != SelectRequest() or len(ids) > len(past.wanted)
    return bool(ids) and past.wanted.issubset(ids) and enough


def newest_key(store: Store) -> str | None:
    """Return the environment's key of the run that was stored last; None if there is none."""
    with store:
        runs = list(store.snapshots(Query())) if store.exists() else []
    return max(runs, key=lambda run: (run.created_at, run.uid)).env_key if runs else None


def _costs(points: Sequence[Point | Benchmark], model: CostModel) -> dict[str, int]:
    return {point.id: model.score(point.counts) for point in points if point.counts is not None}
