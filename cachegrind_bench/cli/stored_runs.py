"""Stored runs as the sides of a comparison need them: by commit, and several of them as one result file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.cli import output
from cachegrind_bench.cli.history_runs import name_of
from cachegrind_bench.errors import StoreError
from cachegrind_bench.model.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cachegrind_bench.history.baseline import Choice
    from cachegrind_bench.model.codec import ResultFile
    from cachegrind_bench.model.history import Snapshot
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.store.protocol import Store


def kept_result(store: Store, name: str, record: bytes | None = None) -> bytes:
    """Return a run's result file with its profiles, if they were kept and can be read, else its record."""
    try:
        kept = store.profile(name)
    except StoreError as error:
        output.write_error(f"cg-bench: warning: {plain(error.message)}; the run is shown without it\n")
        kept = None
    return kept or record or next(store.read([name])).data


class Runs:
    """The runs of clean checkouts in a store, by commit; benchmarks are called as the `candidate` still calls them."""

    def __init__(self, store: Store, candidate: Result | None = None) -> None:
        from cachegrind_bench.store.reading import renames_in

        self._store = store
        self._found: dict[str, list[Snapshot]] = {}
        self._renames = renames_in(store)
        names = [] if candidate is None else [item.id for item in candidate.benchmarks]
        self._called = {self._renames[name]: name for name in names if self._renames.get(name, name) not in names}

    def look_up(self, shas: Iterable[str]) -> None:
        """Read what there is of these commits, all at once: a store may be far away."""
        from cachegrind_bench.store.protocol import Query

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
        from cachegrind_bench.model.codec import ResultFile, decode, encode

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
        from cachegrind_bench.model.codec import decode

        name = name_of(run)
        return decode(next(self._store.read([name])).data, name)
