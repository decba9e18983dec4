"""Stored runs: by the beginning of an id or by a commit, and several of them as one result file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError, StoreError, UsageError
from cachegrind_bench.history.baseline import Choice
from cachegrind_bench.log import LOG
from cachegrind_bench.model.codec import ResultFile, decode, encode
from cachegrind_bench.model.result import Result, Snapshot
from cachegrind_bench.model.text import matches
from cachegrind_bench.store.protocol import Problem, Query, Report, Store, Survey
from cachegrind_bench.store.reading import HINT, renames_in, snapshot
from cachegrind_bench.store.record import name_of_run, run_name
from cachegrind_bench.vcs.git import COMMIT_ID

if TYPE_CHECKING:
    from cachegrind_bench.vcs.revisions import Repository

_HEX = re.compile(r"[0-9a-f]{4,64}", re.ASCII)
_SHOWN = 5


def name_of(run: Snapshot) -> str:
    """Return the name of the record of this run."""
    return name_of_run(run.uid, run.created_at, None if run.commit is None else run.commit.sha, run.env_key)


def warn_of_damage(problems: Sequence[Problem]) -> None:
    """Name what could not be read of a store."""
    for problem in problems[:_SHOWN]:
        place = "" if problem.where in problem.what else f"{problem.where}: "
        LOG.warning(f"{place}{problem.what}")
    if problems:
        more = f"and {len(problems) - _SHOWN} more; " if len(problems) > _SHOWN else ""
        LOG.warning(f"{more}what cannot be read is left out: {HINT}")


def runs_of(store: Store, since: str | None, pattern: str | None, report: Report | None = None) -> Iterator[Snapshot]:
    """Return the runs since a time that have a benchmark whose id fits the pattern, with those alone; None means all.

    With `report`, what is damaged is reported and left out.
    """
    wanted: Callable[[str], bool] | None = None if pattern is None else lambda name: matches(name, pattern)
    runs = store.snapshots(Query(since=since, wanted=wanted), report)
    return (run for run in runs if pattern is None or run.points)


def subjects_of(runs: Iterable[Snapshot], repository: Repository) -> dict[str, str]:
    """Return the subjects of the commits of these runs, as far as git knows them here."""
    from cachegrind_bench.vcs.commits import notes

    shas = {run.commit.sha for run in runs if run.commit is not None and COMMIT_ID.fullmatch(run.commit.sha)}
    try:
        found = notes(repository, shas) if shas else {}
    except MeasurementError as error:  # no git, or no repository of its
        repository.gave_up(error, "the subjects of commits are not known")
        return {}
    return {sha: note.subject for sha, note in found.items()}


def find_run(store: Store, text: str | None) -> str:
    """Return the name of the record that `text` names by its name, the beginning of its uid or of its commit's id.

    Of several runs of one commit it is the last, and None means the run of the newest commit. UsageError if there is no such
    run, or several could be meant.
    """
    if text is None:
        newest = None
        for newest in store.snapshots(Query()):  # noqa: B007 - the last one is wanted
            pass
        if newest is None:
            raise UsageError(f"there are no runs in {store.url}", hint="'cg-bench run --save' stores one")
        return name_of(newest)
    return find_runs(store, text)[-1]


def find_runs(store: Store, text: str, survey: Survey | None = None) -> list[str]:
    """Return the names of the records that `text` names in the same way: one, or all runs of a commit, the last at the end.

    With a `survey` of the store, a whole name is enough where something cannot be read.
    """
    if survey is not None and text in survey.names:
        return [text]
    names = store.names()
    if text in names:
        return [text]
    wanted = text.lower()
    if _HEX.fullmatch(wanted) is None:
        raise UsageError(
            f"{text!r} is not the id of a run or commit",
            hint="write the beginning of its id, or of its commit's: 4 digits or more",
        )
    by_uid = _by_uid(store, names, wanted)
    by_commit = _by_commit(store, names, wanted)
    if len(by_uid) + len({sha for sha, _, _ in by_commit}) > 1:
        names_found = ", ".join([*by_uid, *(name for _, _, name in by_commit)][:_SHOWN])
        raise UsageError(f"{text!r} could be several runs: {names_found}", hint="write more of its id")
    if not by_uid and not by_commit:
        raise UsageError(f"there is no run {text!r} in {store.url}", hint="'cg-bench history list' shows them")
    return by_uid or [name for _, _, name in sorted(by_commit)]


def _by_uid(store: Store, names: Sequence[str], wanted: str) -> list[str]:
    found = [name for name in names if (said := run_name(name)) and said.uid8.startswith(wanted[:8])]
    return found if len(wanted) <= 8 else [record.name for record in store.read(found) if record.uid.startswith(wanted)]


def _by_commit(store: Store, names: Sequence[str], wanted: str) -> list[tuple[str, str, str]]:
    """Return commit, time and name of each run of the commits whose id begins so."""
    found = [name for name in names if (said := run_name(name)) and (said.sha12 or "").startswith(wanted[:12])]
    runs = [(snapshot(record), record.name) for record in (store.read(found) if found else ())]
    return [
        (run.commit.sha, run.created_at, name)
        for run, name in runs
        if run.commit is not None and run.commit.sha.startswith(wanted)
    ]


def kept_result(store: Store, name: str, record: bytes | None = None) -> bytes:
    """Return a run's result file with its profiles, if they were kept and can be read, else its record."""
    try:
        kept = store.profile(name)
    except StoreError as error:
        LOG.warning(f"{error.message}; the run is shown without it")
        kept = None
    return kept or record or next(store.read([name])).data


class Runs:
    """The runs of clean checkouts in a store, by commit; benchmarks are called as the `candidate` still calls them."""

    def __init__(self, store: Store, candidate: Result | None = None) -> None:
        self._store = store
        self._found: dict[str, list[Snapshot]] = {}
        self._renames = renames_in(store)
        names = [] if candidate is None else [item.id for item in candidate.benchmarks]
        self._called = {self._renames[name]: name for name in names if self._renames.get(name, name) not in names}

    def look_up(self, shas: Iterable[str]) -> None:
        """Read what there is of these commits, all at once: a store may be far away."""
        wanted = frozenset(shas) - self._found.keys()
        self._found |= {sha: [] for sha in wanted}
        for run in self._store.snapshots(Query(shas=wanted)) if wanted else ():
            if run.commit is not None and not run.commit.dirty:
                points = tuple(replace(point, id=self._called.get(point.id, point.id)) for point in run.points)
                self._found[run.commit.sha].append(replace(run, points=points))

    def of(self, sha: str) -> list[Snapshot]:
        """Return the runs of this commit."""
        self.look_up([sha])
        return self._found[sha]

    def opened(self, choice: Choice) -> ResultFile:
        """Open what was chosen, as one result, with profiles where the store keeps them."""
        names = [name_of(run) for run in choice.runs]
        stored = {record.name: record.data for record in self._store.read(names)}
        data = {name: kept_result(self._store, name, stored[name]) for name in names}
        whole = ResultFile(data[names[0]], names[0])
        if len(names) == 1 and {item.id for item in whole.result.benchmarks} == {*choice.pieces}:
            return whole
        known = {
            (name, called): replace(benchmark, id=called)
            for name in names
            for benchmark in decode(data[name], name).benchmarks
            for now in (self._renames.get(benchmark.id, benchmark.id),)
            for called in (benchmark.id, now, self._called.get(now, now))
        }
        benchmarks = tuple(known[name_of(piece.run), called] for called, piece in sorted(choice.pieces.items()))
        return ResultFile(encode(replace(whole.result, benchmarks=benchmarks)), names[0])

    def result(self, run: Snapshot) -> Result:
        """Return the result of a run, without profiles."""
        name = name_of(run)
        return decode(next(self._store.read([name])).data, name)
