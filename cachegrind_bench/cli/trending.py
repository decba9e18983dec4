"""The history of a project as series with findings: what `trend` reports and `bisect` starts from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from cachegrind_bench.cli import output
from cachegrind_bench.cli.options import opened_store, store_option, working_directory
from cachegrind_bench.errors import FileFormatError, MeasurementError, UsageError
from cachegrind_bench.history.accepted import ACCEPTED_FILE
from cachegrind_bench.vcs.git import top_folder
from cachegrind_bench.vcs.revisions import Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cachegrind_bench.history.accepted import Accepted
    from cachegrind_bench.history.findings import Options
    from cachegrind_bench.history.series import SeriesSet
    from cachegrind_bench.history.values import Finding
    from cachegrind_bench.model.history import CommitNote, Release, Snapshot
    from cachegrind_bench.model.score import CostModel

Function = TypeVar("Function", bound="Callable[..., Any]")

_OPTIONS = (
    store_option,
    click.option(
        "--branch", metavar="REV", default="HEAD", show_default=True, help="Follow the first parents from this commit."
    ),
    click.option(
        "--benchmark", "pattern", metavar="PATTERN", help="Only benchmarks with this id (* and ? are wildcards)."
    ),
    click.option(
        "--accepted", metavar="FILE", help=f"Changes that were accepted. [default: {ACCEPTED_FILE} at the top]"
    ),
    click.option(
        "--min-step", default="0.2%", show_default=True, metavar="PERCENT", help="Ignore steps smaller than this."
    ),
    click.option(
        "--creep-budget", default="2%", show_default=True, metavar="PERCENT", help="How far a level may creep up."
    ),
    click.option("--previous", metavar="FILE", help="The last report (its --json): what is not in it is new."),
)


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """All series along a line of commits, what was found in them, and the accepted changes that concern none of it.

    `compared` tells that there was a previous report; `notes` are names and values of what was judged by.
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
    notes: tuple[tuple[str, str], ...]


def trending_options(function: Function) -> Function:
    """Take which history is looked at, and what is known of it already."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def find_all(options: Mapping[str, Any], model: CostModel | None = None) -> Found:
    """Read the history that `trending_options` name and search it, by this model, or the one it was measured under.

    UsageError, StoreError or MeasurementError (of git).
    """
    from cachegrind_bench.history.accepted import without_effect
    from cachegrind_bench.history.findings import find
    from cachegrind_bench.history.lifecycle import reported_before
    from cachegrind_bench.history.series import series_set
    from cachegrind_bench.model.text import matches
    from cachegrind_bench.store.protocol import Query
    from cachegrind_bench.store.reading import renames_in
    from cachegrind_bench.vcs.commits import releases

    repository = Repository(cwd=working_directory(), environ=dict(os.environ))
    accepted, earlier = _accepted(repository, options["accepted"]), _previous(options["previous"])
    limits = _limits(options)
    head, pattern = _head(repository, options["branch"]), options["pattern"]
    with opened_store(options) as store:
        query = Query(wanted=None if pattern is None else lambda name: matches(name, pattern))
        snapshots = list(store.snapshots(query))
        renames = renames_in(store)
        url, runs = store.url, store.names()
    if head is None and snapshots:
        output.write_error("cg-bench: no git repository here: runs stand by their dates, whatever their branch\n")
    line = None if head is None else _line(repository, head, snapshots)
    found = series_set(snapshots, line, model=model)
    if pattern is not None and runs and not found.series:
        raise UsageError(f"--benchmark {pattern!r}: no run of these commits has such a benchmark")
    tags = () if line is None else releases(repository.cwd, repository.environ, found.line)
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
            options=limits,
        )
    ]
    return Found(
        repository=repository,
        store=url,
        branch=None if line is None else options["branch"],
        set=found,
        releases=tags,
        findings=tuple(findings),
        renames=renames,
        compared=earlier is not None,
        notes=(
            *((name, options[key]) for name, key in (("Smallest step", "min_step"), ("Creep budget", "creep_budget"))),
            ("Accepted changes", str(len(accepted))),
        ),
        idle=without_effect(accepted, found.line, {series.id for series in found.series} if pattern is None else None),
    )


def _limits(options: Mapping[str, Any]) -> Options:
    from cachegrind_bench.history.findings import Options
    from cachegrind_bench.model.thresholds import percentage

    def parts_per_million(name: str) -> int:
        option = f"--{name.replace('_', '-')}"
        found = round(percentage(options[name], option) * 1_000_000)
        if found <= 0:
            raise UsageError(f"{option} {options[name]} is too small", hint="0.0001% is the least")
        return found

    return Options(minimum_step=parts_per_million("min_step"), creep_budget=parts_per_million("creep_budget"))


def _head(repository: Repository, revision: str) -> str | None:
    """Return the commit to start from; None outside of a repository, whose absence only matters to who names one."""
    from cachegrind_bench.vcs.git import git

    try:
        git(("rev-parse", "--git-dir"), repository.cwd, repository.environ)
        sha = repository.named(revision)
    except MeasurementError:
        if top_folder(repository.cwd) is not None:  # there is one, which git cannot or will not read
            raise
        sha = None
    if sha is None and revision != "HEAD":
        raise UsageError(f"git knows no commit {revision!r}", hint="a branch, a tag, or a commit's id")
    return sha


def _line(repository: Repository, head: str, runs: Sequence[Snapshot]) -> Sequence[CommitNote]:
    """Return the commits up to this one, in a shallow clone as far back as the oldest run."""
    from cachegrind_bench.model.text import plain
    from cachegrind_bench.vcs.commits import line

    oldest = min((run.commit.committed_at for run in runs if run.commit is not None), default=None)
    if oldest is not None:
        try:
            repository.deepen_since(head, oldest)
        except MeasurementError as error:
            told = plain(f"{error.message}: commits before are left out; {error.hint or ''}")
            output.write_error(f"cg-bench: warning: {told}\n")
    return line(repository.cwd, repository.environ, head)


def _accepted(repository: Repository, name: str | None) -> tuple[Accepted, ...]:
    from cachegrind_bench.history.accepted import parse_accepted

    path = (top_folder(repository.cwd) or repository.cwd) / ACCEPTED_FILE if name is None else Path(name)
    try:
        return parse_accepted(path.read_text("utf-8"), path=str(path))
    except FileNotFoundError:
        if name is None:
            return ()
        raise UsageError(f"cannot read {path}: there is no such file") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FileFormatError("it is not UTF-8", path=str(path)) from error


def _previous(name: str | None) -> tuple[Finding, ...] | None:
    """Return the findings of an earlier report; None if there is none, as on the first night."""
    from cachegrind_bench.render.documents import findings

    if name is None:
        return None
    if name == "-":
        raise UsageError("--previous takes a file", hint="the --json of the last report")
    try:
        data = Path(name).read_bytes()
    except FileNotFoundError:
        output.write_error(f"cg-bench: there is no previous report {name}: new is what came with the newest day\n")
        return None
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from error
    return findings(data, path=name)
