"""The two sides of a comparison as a user names them: files and saved baselines, or commits whose runs are stored."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.log import LOG
from cachegrind_bench.model.result import Result, Status
from cachegrind_bench.model.text import counted, matches, some
from cachegrind_bench.store.baselines import Baselines
from cachegrind_bench.usecases.comparison import InMemory, ReportOptions, Side, compared
from cachegrind_bench.usecases.result_files import DEFAULT_LIMIT, read_result

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.compare.explained import Explained
    from cachegrind_bench.compare.verdict import Gates
    from cachegrind_bench.history.baseline import Choice
    from cachegrind_bench.store.protocol import Store
    from cachegrind_bench.usecases.stored_runs import Runs
    from cachegrind_bench.vcs.revisions import Repository

_FILE, _BASELINE = "file:", "baseline:"


def find(text: str, cwd: Path) -> str | None:
    """Return the path of the result that `text` names, `-` being stdin; None if it is neither a file nor a saved baseline.

    An existing file comes before a baseline of the same name; `file:` and `baseline:` force one of them, UsageError if there is
    no such baseline.
    """
    if text == "-":
        return text
    if text.startswith(_FILE):
        path = text.removeprefix(_FILE)
        return path if path != "-" else f".{os.sep}-"
    saved = Baselines.find(cwd)
    if text.startswith(_BASELINE):
        name = text.removeprefix(_BASELINE)
        if saved.exists(name):
            return str(saved.path(name))
        raise UsageError(f"there is no baseline {name!r}", hint=saved.known())
    # A folder is not an input: `main` may well be both a baseline and a folder of the sources.
    is_folder = os.path.isdir(cwd / text)
    if os.path.exists(cwd / text) and not is_folder:
        return text
    if saved.exists(text):
        return str(saved.path(text))
    return text if os.path.lexists(cwd / text) and not is_folder else None


def resolve(text: str, cwd: Path) -> str:
    """Return what `find` does, or UsageError. What is wrong with a folder is for whoever opens it to say."""
    found = find(text, cwd)
    if found is not None:
        return found
    if text and os.path.isdir(cwd / text):
        return text
    raise UsageError(f"{text!r} is neither a result file nor a saved baseline", hint=Baselines.find(cwd).known())


def resolve_all(texts: Sequence[str], cwd: Path) -> list[str]:
    """Return what `resolve` does of each. UsageError, too, if several are stdin."""
    if texts.count("-") > 1:
        raise UsageError("only one file can be stdin", hint="save the others to files first")
    return [resolve(text, cwd) for text in texts]


_REVISION, _MERGE_BASE = "rev:", "merge-base:"
_SHOWN = 5


class CompareRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Two sides by their names, which of their benchmarks to compare, by what, and how to show it."""

    base: str
    candidate: str
    gates: Gates
    report: ReportOptions
    pattern: str | None = None
    max_size: int = DEFAULT_LIMIT
    require_baseline: bool = False


class _Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A commit whose run is wanted; if `searched`, the nearest before it does as well."""

    text: str
    sha: str
    searched: bool

    def __str__(self) -> str:
        return self.sha[:12] if self.sha.startswith(self.text) else f"{self.text} ({self.sha[:12]})"


class Sides(msgspec.Struct, frozen=True, kw_only=True):
    """Opens both sides of a comparison; the candidate first, since a baseline that is searched has to fit it."""

    repository: Repository
    open_store: Callable[[], Store]
    limit: int = DEFAULT_LIMIT

    def candidate(self, text: str) -> Side:
        """Open the candidate. UsageError if there is none."""
        if text.startswith(_MERGE_BASE):
            raise UsageError(f"{text} can only be the base", hint="name the candidate by a file or a commit")
        wanted = self._wanted(text)
        if wanted is None:
            return self._file(text)
        return self._stored(wanted, None)

    def base(self, text: str, candidate: Result) -> Side:
        """Open the base, which may have to be searched: without benchmarks if none was found."""
        wanted = self._merge_base(text, candidate) if text.startswith(_MERGE_BASE) else self._wanted(text)
        if wanted is None:
            return self._file(text)
        return self._searched(wanted, candidate) if wanted.searched else self._stored(wanted, candidate)

    def nearest(self, text: str, sha: str, candidate: Result) -> Side:
        """Open the run of this commit, which `text` names, or of the nearest before it; without benchmarks if there is none."""
        return self._searched(_Wanted(text=text, sha=sha, searched=True), candidate)

    def _file(self, text: str) -> Side:
        name = find(text, self.repository.cwd)
        if name is None:
            hint = Baselines.find(self.repository.cwd).known()
            with suppress(MeasurementError):  # there need be no repository
                hint += f"\n{self.repository.advice(text)}" if self.repository.is_shallow() else ""
            what = f"{text!r} is neither a result file nor a saved baseline, nor a commit that git knows"
            raise UsageError(what, hint=hint)
        return Side(name=text, file=read_result(name, limit=self.limit))

    def _wanted(self, text: str) -> _Wanted | None:
        """Return the commit that is meant, None for a file or a saved baseline."""
        revision = text.removeprefix(_REVISION)
        if revision == text and find(text, self.repository.cwd) is not None:
            return None
        branch = self.repository.branch(revision)
        if branch is not None:
            return _Wanted(text=revision, sha=branch, searched=True)
        sha = self.repository.commit(revision)
        if sha is not None:
            return _Wanted(text=revision, sha=sha, searched=False)
        if revision != text:
            self.repository.required(revision)
        return None

    def _merge_base(self, text: str, candidate: Result) -> _Wanted:
        repository, revision = self.repository, text.removeprefix(_MERGE_BASE)
        head = candidate.commit.sha if candidate.commit is not None else repository.commit("HEAD")
        if head is None or repository.commit(head) is None:
            raise UsageError(
                f"{text}: the candidate's commit is not in this repository",
                hint="compare where it was measured, or name a file",
            )
        base = repository.pull_request_base(head)
        if base is None:
            other = repository.named(revision)
            if other is None:
                message = (
                    f"{text}: git knows no branch or commit {revision!r}"
                    if revision
                    else f"{text} does not name a branch"
                )
                raise UsageError(message, hint=repository.advice(revision) if revision else "as in merge-base:main")
            base = repository.merge_base(head, other)
        if base is None:
            raise UsageError(f"{text}: it has no commit in common with the candidate", hint="name a file or a commit")
        return _Wanted(text=text, sha=base, searched=True)

    def _stored(self, wanted: _Wanted, candidate: Result | None) -> Side:
        """Return the runs of exactly this commit: those that compare, if there are any."""
        from cachegrind_bench.history.baseline import of_commit
        from cachegrind_bench.usecases.stored_runs import Runs

        with self.open_store() as store:
            runs = Runs(store, candidate)
            choice = of_commit(runs.of(wanted.sha), candidate)
            if not choice.pieces:
                raise UsageError(
                    f"no run of {wanted} is stored in {store.url}",
                    hint="'cg-bench run --save' stores one; 'cg-bench ab' measures two commits here and now",
                )
            return Side(name=wanted.text, file=runs.opened(choice))

    def _searched(self, wanted: _Wanted, candidate: Result) -> Side:
        """Return the nearest run that compares, or a side without benchmarks."""
        from cachegrind_bench.history.baseline import MOST_ANCESTORS, choose
        from cachegrind_bench.usecases.stored_runs import Runs

        commit = candidate.commit
        itself = commit is not None and commit.sha == wanted.sha and not commit.dirty
        with self.open_store() as store:
            runs = Runs(store, candidate)

            def line() -> Iterator[str]:
                if not itself:
                    yield wanted.sha
                # Deepens a shallow clone, so not before.
                before = self.repository.ancestors(wanted.sha, MOST_ANCESTORS)[1:]
                runs.look_up(before)
                yield from before

            choice = choose(line(), runs.of, candidate)
            passed_over = _passed_over(choice, candidate, runs)
            choice, failed = _without_failed(choice)
            passed_over += failed
            if not choice.pieces:
                before = f"the {MOST_ANCESTORS} commits before"
                which = f"{before} {wanted}" if itself else f"{wanted} or {before} it"
                missing = f"no baseline: no run of {which} in {store.url} compares with the candidate; 'cg-bench ab' measures both here and now"
                if not store.names():
                    missing = f"no baseline yet: {store.url} holds no runs"
                return no_side(wanted.text, candidate, missing, *passed_over)
            remarks = [f"the candidate is {wanted} itself: it is compared with what was before"] if itself else []
            remarks += [*_far_back(choice, wanted, first=int(itself)), *passed_over]
            return Side(name=wanted.text, file=runs.opened(choice), remarks=tuple(remarks))


def compare_sides(
    request: CompareRequest, repository: Repository, open_store: Callable[[], Store]
) -> tuple[Explained, int]:
    """Return the comparison and its exit code. UsageError, before the work, where its files cannot be written."""
    if request.base == request.candidate == "-":
        raise UsageError("base and candidate cannot both be stdin", hint="save one of them to a file first")
    inputs = [find(name, repository.cwd) for name in (request.base, request.candidate)]
    request.report.check_files([path for path in inputs if path is not None])
    sides = Sides(repository=repository, open_store=open_store, limit=request.max_size)
    after = sides.candidate(request.candidate)
    before = sides.base(request.base, after.file.result)
    pattern = request.pattern
    made = compared(
        before, after, request.gates, request.report, wanted=lambda name: pattern is None or matches(name, pattern)
    )
    if pattern is not None and not made.comparison.differences:
        known = ", ".join(item.id for item in after.file.result.benchmarks[:10]) or "no benchmarks at all"
        raise UsageError(f"neither side has a benchmark {pattern!r}", hint=f"the candidate has {known}")
    if before.missing:
        LOG.warning(f"{before.remarks[0]}")
    return made, made.exit_code(require_baseline=request.require_baseline)


def no_side(name: str, candidate: Result, *remarks: str) -> Side:
    """Return a side without benchmarks for a base that was searched in vain; the first of the remarks says so."""
    empty = replace(candidate, commit=None, benchmarks=())
    return Side(name=name, file=InMemory(empty), remarks=remarks, missing=True)


def _far_back(choice: Choice, wanted: _Wanted, *, first: int) -> Iterator[str]:
    """Say how far back the baseline lies, and for which benchmarks further back; the nearest commit lies `first` commits back."""
    commits: dict[int, str] = {}
    names: dict[int, list[str]] = {}
    for name, piece in sorted(choice.pieces.items()):
        commits[piece.distance + first] = "" if piece.run.commit is None else piece.run.commit.sha[:12]
        names.setdefault(piece.distance + first, []).append(name)
    for distance, sha in sorted(commits.items()):
        which = "" if distance == min(commits) else f" of {some(names[distance], _SHOWN)}"
        if distance:
            yield f"the baseline{which} is {sha}, {counted(distance, 'commit')} before {wanted}"


def _without_failed(choice: Choice) -> tuple[Choice, list[str]]:
    """Leave out what failed there, and say so: a candidate that works is not to blame."""
    well = {name: piece for name, piece in choice.pieces.items() if piece.point.status is Status.OK}
    failed = sorted(choice.pieces.keys() - well.keys())
    if not failed:
        return choice, []
    return replace(choice, pieces=well), [f"no baseline of {some(failed, _SHOWN)}: failed there as well as before"]


def _passed_over(choice: Choice, candidate: Result, runs: Runs) -> list[str]:
    """Say which nearer runs there are that do not compare, and why."""
    from cachegrind_bench.compare.verdict import field_differences

    found: list[str] = []
    for run in choice.other_keys[:_SHOWN]:
        differences = field_differences(runs.result(run).env.fields, candidate.env.fields)
        fields = ", ".join(f"{item.name} {item.base} → {item.candidate}" for item in differences) or "its key"
        sha = "" if run.commit is None else run.commit.sha[:12]
        found.append(f"a run of {sha} was skipped, as its key differs: {fields}")
    more = len(choice.other_keys) - _SHOWN
    return [*found, f"{counted(more, 'more run')} skipped, as their keys differ"] if more > 0 else found
