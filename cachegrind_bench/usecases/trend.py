"""The history of a project as series with findings: what `trend` reports and `bisect` starts from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench._version import __version__
from cachegrind_bench.errors import FileFormatError, MeasurementError, UsageError
from cachegrind_bench.history.accepted import ACCEPTED_FILE, Accepted, parse_accepted, without_effect
from cachegrind_bench.history.findings import Options, find
from cachegrind_bench.history.growth import EXPONENT, LIMITS
from cachegrind_bench.history.lifecycle import reported_before
from cachegrind_bench.history.series import SeriesSet, series_set
from cachegrind_bench.history.trend import trend, window
from cachegrind_bench.history.values import Finding, Kind, Provenance, State, Trend
from cachegrind_bench.log import LOG
from cachegrind_bench.model.metrics import CostModel
from cachegrind_bench.model.parsing import Head, parse
from cachegrind_bench.model.text import matches
from cachegrind_bench.model.thresholds import percentage
from cachegrind_bench.store.checking import Inspection
from cachegrind_bench.store.durable import read_file
from cachegrind_bench.store.protocol import Query, Store
from cachegrind_bench.store.reading import renames_in
from cachegrind_bench.usecases.result_files import DEFAULT_LIMIT, read_bytes
from cachegrind_bench.usecases.stored_runs import warn_of_damage
from cachegrind_bench.vcs import commits
from cachegrind_bench.vcs.git import top_folder

if TYPE_CHECKING:
    from cachegrind_bench.model.result import CommitNote, Release, Snapshot
    from cachegrind_bench.vcs.revisions import Repository

_ACCEPTED = "the file with the changes that were accepted, and why"
_REPORT = "the --json of the last report"
_SCHEMA = "cg-bench.trend/1"
_WRITTEN_BY = "give the file that `cg-bench trend --json FILE` wrote"


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which history is searched: along the first parents of `branch`, benchmarks whose ids fit `pattern`.

    `accepted` and `previous` are files: changes that were accepted, and the last report. Without a `model`, costs are judged by
    the one that they were measured under.
    """

    branch: str
    pattern: str | None
    accepted: str | None
    min_step: str
    creep_budget: str
    previous: str | None
    model: str | None = None


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """All series along a line of commits, what was found in them, and the accepted changes that concern none of it.

    `compared`: there was a previous report; `damaged`: some of the history could not be read; `notes` are the names and
    values of the settings that were used.
    """

    repository: Repository
    store: str
    branch: str | None
    set: SeriesSet
    releases: tuple[Release, ...]
    findings: tuple[Finding, ...]
    idle: tuple[Accepted, ...]
    renames: Mapping[str, str]
    compared: bool
    damaged: bool
    notes: tuple[tuple[str, str], ...]

    @property
    def has_new_regression(self) -> bool:
        """Return whether there is a new regression that is confirmed."""
        new = (item for item in self.findings if item.kind is Kind.REGRESSION and item.state is State.NEW)
        return any(item.confirmed for item in new)

    def trend(self, *, title: str | None, commit_url: str | None, since: str | None, last: int | None) -> Trend:
        """Return the report: the commits `since` a time, and of these the `last`."""
        provenance = Provenance(
            title=title or (top_folder(self.repository.cwd) or self.repository.cwd).name,
            created_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            tool_version=__version__,
            store=self.store,
            branch=self.branch,
            commit_url=commit_url,
            notes=self.notes,
        )
        first = window(self.set.line, since=None if since is None else datetime.fromisoformat(since), last=last)
        return trend(self.set, self.findings, provenance, releases=self.releases, first=first, compared=self.compared)


def find_all(query: HistoryQuery, repository: Repository, store: Store) -> Found:
    """Read the history in the store and search it, with warnings of what is damaged. UsageError, StoreError or MeasurementError (of git)."""
    model = None if query.model is None else CostModel.parse(query.model)
    accepted, earlier = _accepted(repository, query.accepted), _previous(query.previous)
    limits = Options(
        minimum_step=_parts_per_million(query.min_step, "--min-step"),
        creep_budget=_parts_per_million(query.creep_budget, "--creep-budget"),
    )
    head, pattern = _head(repository, query.branch), query.pattern
    with store:
        wanted = Query(wanted=None if pattern is None else lambda name: matches(name, pattern))
        found_damage = Inspection()
        snapshots = list(store.snapshots(wanted, found_damage.report))
        renames = renames_in(store, found_damage.report)
        url, runs = store.url, store.survey().names
        damage = found_damage.result()
    warn_of_damage(damage)
    if head is None and snapshots:
        LOG.info("no git repository here: runs are ordered by their dates, on whatever branch they were")
    line = None if head is None else _line(repository, head, snapshots)
    found = series_set(snapshots, line, model=model)
    if pattern is not None and runs and not found.series:
        raise UsageError(f"--benchmark {pattern!r}: no run of these commits has a matching benchmark")
    tags = () if line is None else commits.releases(repository, found.line)
    begins = {note.sha for note in found.line} if renames else set[str]()
    known = None if earlier is None else reported_before(earlier, renames, begins)
    findings = [
        item
        for series in found.series
        for item in find(
            series,
            found.line,
            releases=tags,
            accepted=accepted,
            previous=known,
            newest=found.newest,
            options=LIMITS if series.model == EXPONENT else limits,
        )
    ]
    return Found(
        repository=repository,
        store=url,
        branch=None if line is None else query.branch,
        set=found,
        releases=tags,
        findings=tuple(findings),
        renames=renames,
        compared=earlier is not None,
        damaged=bool(damage),
        notes=(
            ("Smallest step", query.min_step),
            ("Creep budget", query.creep_budget),
            ("Accepted changes", str(len(accepted))),
        ),
        idle=without_effect(accepted, found.line, {series.id for series in found.series} if pattern is None else None),
    )


def _parts_per_million(text: str, option: str) -> int:
    found = round(percentage(text, option) * 1_000_000)
    if found <= 0:
        raise UsageError(f"{option} {text} is too small", hint="the smallest is 0.0001%")
    return found


def _head(repository: Repository, revision: str) -> str | None:
    """Return the commit to start from; None outside of a repository, whose absence only matters if one was named."""
    try:
        repository.text("rev-parse", "--git-dir")
        sha = repository.named(revision)
    except MeasurementError:
        if top_folder(repository.cwd) is not None:  # there is one, which git cannot or will not read
            raise
        sha = None
    return repository.required(revision) if sha is None and revision != "HEAD" else sha


def _line(repository: Repository, head: str, runs: Sequence[Snapshot]) -> Sequence[CommitNote]:
    """Return the commits up to this one, in a shallow clone as far back as the oldest run."""
    oldest = min((run.commit.committed_at for run in runs if run.commit is not None), default=None)
    if oldest is not None:
        try:
            repository.deepen_since(head, oldest)
        except MeasurementError as error:
            LOG.warning(f"{error.message}: commits before are left out; {error.hint or ''}")
    return commits.line(repository, head)


def _accepted(repository: Repository, name: str | None) -> tuple[Accepted, ...]:
    path = (top_folder(repository.cwd) or repository.cwd) / ACCEPTED_FILE if name is None else Path(name)
    try:
        data = read_file(path, DEFAULT_LIMIT) if name is None else read_bytes(name, hint=_ACCEPTED)
        return parse_accepted(data.decode(), path=str(path))
    except FileNotFoundError:
        return ()
    except UnicodeDecodeError as error:
        raise FileFormatError("it is not UTF-8", path=str(path)) from error


def _previous(name: str | None) -> tuple[Finding, ...] | None:
    """Return the findings of an earlier report; None if there is none, as on the first night."""
    if name is None:
        return None
    if name == "-":
        raise UsageError("--previous takes a file", hint=_REPORT)
    try:
        data = read_bytes(name, hint=_REPORT)
    except UsageError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        LOG.info(f"there is no previous report {name}: findings of the newest day count as new")
        return None
    return reported_findings(data, path=name)


class _Findings(msgspec.Struct):
    findings: tuple[Finding, ...]


def reported_findings(data: bytes, *, path: str) -> tuple[Finding, ...]:
    """Return the findings of a trend report that was written before. UsageError if it is not one; `path` is only named in it."""
    try:
        schema = parse(data, Head, path).schema
        if schema != _SCHEMA:
            raise UsageError(f"{path}: not a trend report, its schema is {schema[:100]!r}", hint=_WRITTEN_BY)
        return parse(data, _Findings, path).findings
    except FileFormatError as error:
        raise UsageError(f"{path}: not a trend report: {error.what}", hint=_WRITTEN_BY) from error
