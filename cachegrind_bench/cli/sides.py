"""The two sides of a comparison as a user names them: files and saved baselines, or commits whose runs are stored."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cachegrind_bench.cli.inputs import open_result_file
from cachegrind_bench.cli.references import is_known, resolve
from cachegrind_bench.errors import UsageError
from cachegrind_bench.store.baselines import Baselines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import ExitStack

    from cachegrind_bench.history.baseline import Choice, StoredRun
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.model.resultfile import ResultFile
    from cachegrind_bench.store.protocol import Store
    from cachegrind_bench.vcs.revisions import Repository

_REVISION, _MERGE_BASE = "rev:", "merge-base:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side, opened. `remarks` say where it was found; `missing` is set for a baseline that was searched in vain."""

    name: str
    file: ResultFile
    remarks: tuple[str, ...] = ()
    missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A commit whose run is wanted; if `searched`, the nearest before it does as well."""

    text: str
    sha: str
    searched: bool


class Sides:
    """Opens both sides of a comparison; the candidate first, since a baseline that is searched has to fit it."""

    def __init__(
        self, repository: Repository, stack: ExitStack, open_store: Callable[[], Store], *, limit: int
    ) -> None:
        self._repository, self._cwd = repository, repository.cwd
        self._stack, self._open_store, self._limit = stack, open_store, limit

    def candidate(self, text: str) -> Side:
        """Open the candidate. UsageError if there is none."""
        if text.startswith(_MERGE_BASE):
            raise UsageError(f"{text} can only be the base", hint="name the candidate by a file or a commit")
        wanted = self._wanted(text)
        if wanted is None:
            return self._file(text)
        return self._stored(wanted, key=None)

    def base(self, text: str, candidate: Result) -> Side:
        """Open the base, which may have to be searched: then one without benchmarks stands for none."""
        wanted = self._merge_base(text, candidate) if text.startswith(_MERGE_BASE) else self._wanted(text)
        if wanted is None:
            return self._file(text)
        return self._searched(wanted, candidate) if wanted.searched else self._stored(wanted, candidate.env.key)

    def _file(self, text: str) -> Side:
        if not is_known(text, self._cwd):
            raise UsageError(
                f"{text!r} is neither a result file nor a saved baseline, nor a commit that git knows",
                hint=Baselines.find(self._cwd).known(),
            )
        name = resolve(text, self._cwd)
        return Side(name=text, file=self._stack.enter_context(open_result_file(name, limit=self._limit)))

    def _wanted(self, text: str) -> _Wanted | None:
        """Return the commit that is meant, None for a file or a saved baseline."""
        revision = text.removeprefix(_REVISION)
        if revision == text and is_known(text, self._cwd):
            return None
        branch = self._repository.branch(revision)
        if branch is not None:
            return _Wanted(text=revision, sha=branch, searched=True)
        sha = self._repository.commit(revision)
        if sha is not None:
            return _Wanted(text=revision, sha=sha, searched=False)
        if revision != text:
            raise UsageError(
                f"git knows no commit {revision!r}", hint="a branch, a tag, or the beginning of a commit's id"
            )
        return None

    def _merge_base(self, text: str, candidate: Result) -> _Wanted:
        repository, revision = self._repository, text.removeprefix(_MERGE_BASE)
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
                raise UsageError(
                    f"{text}: git knows no branch or commit {revision!r}", hint=f"try: git fetch origin {revision}"
                )
            base = repository.merge_base(head, other)
        if base is None:
            raise UsageError(f"{text}: it has no commit in common with the candidate", hint="name a file or a commit")
        return _Wanted(text=text, sha=base, searched=True)

    def _stored(self, wanted: _Wanted, key: str | None) -> Side:
        """Return the run of exactly this commit: one that compares, if there is one."""
        from cachegrind_bench.history.baseline import choose

        with self._open_store() as store:
            runs = _Runs(store)
            choice = choose([wanted.sha], runs.of, key)
            if choice.run is None and key is not None:
                choice = choose([wanted.sha], runs.of, None)  # what differs is told by the comparison
            if choice.run is None:
                raise UsageError(
                    f"no run of {_told(wanted)} is stored in {store.url}",
                    hint="'cg-bench run --save' stores one; 'cg-bench ab' measures two commits here and now",
                )
            return Side(name=wanted.text, file=_opened(choice.run, store))

    def _searched(self, wanted: _Wanted, candidate: Result) -> Side:
        from cachegrind_bench.history.baseline import MOST_ANCESTORS, choose

        with self._open_store() as store:
            runs = _Runs(store)
            shas = [wanted.sha]
            choice = choose(shas, runs.of, candidate.env.key)
            if choice.run is None:
                shas = self._repository.ancestors(wanted.sha, MOST_ANCESTORS)
                choice = choose(shas, runs.of, candidate.env.key)
            remarks = [*_passed_over(choice, candidate)]
            if choice.run is None:
                from cachegrind_bench.model.resultfile import open_result

                remarks.insert(
                    0,
                    f"no baseline: no run of {_told(wanted)} or the {MOST_ANCESTORS} commits before it in "
                    f"{store.url} compares with the candidate",
                )
                file = open_result(io.BytesIO(_without_benchmarks(candidate)), wanted.text)
                return Side(name=wanted.text, file=file, remarks=tuple(remarks), missing=True)
            if choice.distance:
                far = f"{choice.distance} commit{'' if choice.distance == 1 else 's'} before {_told(wanted)}"
                remarks.insert(0, f"the baseline is {shas[choice.distance][:12]}, {far}")
            return Side(name=wanted.text, file=_opened(choice.run, store), remarks=tuple(remarks))


class _Runs:
    """The runs of a store by commit, read when they are asked for."""

    def __init__(self, store: Store) -> None:
        from cachegrind_bench.store.record import run_name

        self._store = store
        self._names: dict[str, list[str]] = {}
        for name in store.names():
            said = run_name(name)
            if said is not None and said.sha12 is not None:
                self._names.setdefault(said.sha12, []).append(name)

    def of(self, sha: str) -> Iterable[StoredRun]:
        """Return the runs of clean checkouts of this commit."""
        from cachegrind_bench.history.baseline import StoredRun
        from cachegrind_bench.model.codec import decode

        names = self._names.get(sha[:12], [])
        for record in self._store.read(names) if names else ():
            result = decode(record.data, record.name)
            if result.commit is not None and result.commit.sha == sha and not result.commit.dirty:
                yield StoredRun(name=record.name, result=result)


def _opened(run: StoredRun, store: Store) -> ResultFile:
    """Open a run with its profiles, where the store keeps them."""
    from cachegrind_bench.model.codec import encode
    from cachegrind_bench.model.resultfile import open_result

    return open_result(io.BytesIO(store.profile(run.name) or encode(run.result)), run.name)


def _without_benchmarks(result: Result) -> bytes:
    from dataclasses import replace

    from cachegrind_bench.model.codec import encode

    return encode(replace(result, benchmarks=()))


def _passed_over(choice: Choice, candidate: Result) -> list[str]:
    """Say which nearer runs there are that do not compare, and why."""
    from cachegrind_bench.compare.verdict import field_differences

    found: list[str] = []
    for run in choice.other_keys:
        differences = field_differences(run.result.env.fields, candidate.env.fields)
        told = ", ".join(f"{item.name} {item.base} → {item.candidate}" for item in differences) or "its key"
        sha = "" if run.result.commit is None else run.result.commit.sha[:12]
        found.append(f"a run of {sha} was passed over, measured under another key: {told}")
    return found


def _told(wanted: _Wanted) -> str:
    return wanted.sha[:12] if wanted.sha.startswith(wanted.text) else f"{wanted.text} ({wanted.sha[:12]})"
