"""History as a branch of the repository that is never checked out: one file for each run, and a segment for each old month.

For CI: it needs no server but the one that has the repository. Knows what each change adds and removes; how it gets into
the branch is `git_sync`'s, and how records are read `git_view`'s.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Self

from cachegrind_bench.errors import StoreError
from cachegrind_bench.store import git_sync, reading, segments
from cachegrind_bench.store.checking import checked
from cachegrind_bench.store.git_partial import Promises
from cachegrind_bench.store.git_sync import Sync, telling
from cachegrind_bench.store.git_view import View
from cachegrind_bench.store.record import run_name
from cachegrind_bench.vcs.branches import Branch
from cachegrind_bench.vcs.objects import Entry, Objects

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from cachegrind_bench.model.history import Snapshot
    from cachegrind_bench.store.git_sync import Changes, State
    from cachegrind_bench.store.protocol import Problem, Query, Survey
    from cachegrind_bench.store.record import Record

_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}", re.ASCII)
_SHOWN = 3


class GitStore:
    """The store `git:BRANCH[@REMOTE]`. Safe with many writers in many clones, each killed at any moment.

    With a remote (`origin` if there is one and none is named), the branch there counts, and each method asks it. Without
    one it is a branch of this repository. What is removed stays in the branch's past. `patience` is how long, in seconds,
    a change is tried again.
    """

    def __init__(
        self,
        repository: Path,
        branch: str,
        remote: str | None,
        environ: Mapping[str, str],
        *,
        patience: float = git_sync.PATIENCE_S,
    ) -> None:
        self._branch = Branch(repository, environ, branch)
        self._objects = Objects(repository, environ)
        self._promises = Promises(repository, environ)
        self._remote = remote
        self._patience = patience
        self._known: dict[str, list[str]] = {}  # objects never change, so what a segment names need not be read twice

    @property
    def url(self) -> str:
        """The store as --store takes it."""
        return f"git:{self._branch.name}{'' if self._remote is None else f'@{self._remote}'}"

    def add(self, records: Sequence[Record]) -> int:
        """Keep these, durably; return how many were new. StoreError for what is no record, or differs from what is there."""
        found = checked(records)
        if not found:
            return 0
        months = {said.month for said in map(run_name, found) if said is not None}
        with telling():
            written = self._objects.write(record.data for record in found.values())
        oids = dict(zip(found, written, strict=True))

        def plan(state: State) -> tuple[Changes, int]:
            view = self._view(state)
            folded = view.folded(months)
            there = [name for name in oids if name in folded]
            for record in view.stream({name: folded[name] for name in there}):
                self._compare(record.name, same=record.data == found[record.name].data)
            changes: dict[str, Entry | None] = {}
            for name, oid in oids.items():
                if name in view.entries:
                    self._compare(name, same=view.entries[name].oid == oid)
                elif name not in folded:
                    changes[name] = Entry(oid)
            return changes, len(changes)

        return self._sync().change(_message("Add", found), plan)

    def exists(self) -> bool:
        """Tell whether there is a branch, here or at the remote."""
        state = self._sync().look()
        return state.here is not None or state.there is not None

    def names(self) -> list[str]:
        """Return the names of all records, sorted; of a segment only the first line is unpacked."""
        return sorted(self._now().places())

    def survey(self) -> Survey:
        """Return the names of all records that can be told, and which segments cannot be read."""
        return self._now().survey()

    def read(self, names: Iterable[str] | None = None) -> Iterator[Record]:
        """Return these records, or all, in the order of names. StoreError for one that is missing or damaged."""
        return self._now().read(None if names is None else {*names})

    def profile(self, name: str) -> bytes | None:  # noqa: ARG002
        """Return None: profiles are too large for a branch."""
        return None

    def snapshots(self, query: Query) -> Iterator[Snapshot]:
        """Return the runs that are asked for, by time of commit, time of run and uid; renames are applied."""
        view = self._now()
        places = view.places()
        return reading.snapshots(places, lambda names: view.stream({name: places[name] for name in names}), query)

    def remove(self, names: Collection[str]) -> int:
        """Forget these records; return how many there were. Segments are written anew without them.

        A segment that cannot be read stays, and what is known to be in it: StoreError, after the others were removed.
        """
        wanted = {*names}

        def plan(state: State) -> tuple[Changes, segments.Cut]:
            view = self._view(state)
            singles = wanted.intersection(view.singles())
            cut = segments.Cut(wanted=wanted, gone={*singles})
            changes: dict[str, Entry | None] = {}
            for segment in cut.concerned(view.segments()):
                with cut.trying(segment):
                    held = view.names_in(segment)
                    if cut.within(held):
                        changes |= {segment: None, **self._segment(view, dict.fromkeys(cut.left(held), segment), made)}
            return changes | dict.fromkeys(sorted(singles & cut.gone)), cut

        made: dict[tuple[str, ...], dict[str, Entry]] = {}
        return self._sync().change(_message("Remove", wanted), plan).count()

    def compact(self, before: str) -> int:
        """Fold the runs of each month before this one (as 2026-01) into one segment; return how many were folded."""
        if _MONTH.fullmatch(before) is None:
            raise StoreError(f"{before[:80]!r} is not a month", hint="write a year and a month, as in 2026-01")

        def plan(state: State) -> tuple[Changes, int]:
            view = self._view(state)
            places = view.places()
            months: dict[str, dict[str, str | None]] = {}
            for name, place in places.items():
                said = run_name(name)
                if said is not None and said.month < before:
                    months.setdefault(said.month, {})[name] = place
            view.fetch({name: place for inside in months.values() for name, place in inside.items()})
            changes: dict[str, Entry | None] = {}
            count = 0
            for month, inside in sorted(months.items()):
                old = [segment for segment in view.segments() if segments.month_of(segment) == month]
                singles = [name for name, place in inside.items() if place is None]
                if singles or len(old) > 1:  # two of one month: after histories that went apart were joined
                    count += len(singles)
                    changes |= dict.fromkeys([*singles, *old])
                    changes |= self._segment(view, inside, made)
            return changes, count

        made: dict[tuple[str, ...], dict[str, Entry]] = {}
        return self._sync().change(f"Fold the runs before {before}\n", plan)

    def check(self) -> list[Problem]:
        """Read everything, and tell what is wrong."""
        return self._now().check()

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""

    def _segment(
        self, view: View, places: Mapping[str, str | None], made: dict[tuple[str, ...], dict[str, Entry]]
    ) -> dict[str, Entry]:
        """Write a segment of the records at these places, read it back, and return its entry; nothing for no records.

        `made` has those that an earlier try wrote: other writers seldom add to an old month.
        """
        if not places:
            return {}
        names = sorted(places)
        sources = (view.entries[places[name] or name].oid for name in names)
        key = tuple(f"{name} {oid}" for name, oid in zip(names, sources, strict=True))
        if key not in made:
            stream = io.BytesIO()
            segment = segments.write_segment(stream, names, view.stream(places))
            data = stream.getvalue()
            if [record.name for record in segments.read_segment(io.BytesIO(data), segment)] != names:
                raise StoreError(f"{segment} is not as it was written")
            with telling():
                made[key] = {segment: Entry(self._objects.write([data])[0])}
        return made[key]

    def _compare(self, name: str, *, same: bool) -> None:
        if not same:
            raise StoreError(
                f"{name} is in {self.url}, with other bytes than this run has: it is damaged", hint=reading.HINT
            )

    def _now(self) -> View:
        return self._view(self._sync().look())

    def _view(self, state: State) -> View:
        """Return the records of this state. StoreError for a branch that holds something else: nobody's code is added to."""
        view = View(
            url=self.url,
            objects=self._objects,
            promises=self._promises,
            entries=state.entries,
            known=self._known,
        )
        foreign = view.foreign()
        if foreign:
            more = f" and {len(foreign) - _SHOWN} more" if len(foreign) > _SHOWN else ""
            raise StoreError(
                f"{self.url} holds something else than a history: {', '.join(map(repr, foreign[:_SHOWN]))}{more}",
                hint="name a branch of its own, as in git:cg-bench-data; it is made when a run is added",
            )
        return view

    def _sync(self) -> Sync:
        """Return what reads and changes the branch. StoreError outside a repository, or if there is no such remote."""
        with telling():
            remotes = self._branch.remotes()
        remote = self._remote or ("origin" if "origin" in remotes else None)
        if remote is not None and remote not in remotes:
            known = (
                f"the remotes are {', '.join(remotes)}" if remotes else "there is none; without @ it is a local branch"
            )
            raise StoreError(f"the repository has no remote {remote!r}", hint=known)
        return Sync(branch=self._branch, objects=self._objects, remote=remote, patience=self._patience)


def _message(verb: str, names: Collection[str]) -> str:
    first = min(names, default="")
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{verb} {first[:200]}{more}\n"
