"""History as a branch of the repository that is never checked out: one file for each run.

For CI: it needs no server but the one that has the repository. Knows what each change adds and removes; how it gets into
the branch is `git_sync`'s, and how records are read `record_tree`'s.
"""

# ruff: noqa: D102  # what the methods of `Store` and `Files` do is said there
from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from cachegrind_bench.errors import MeasurementError, StoreError
from cachegrind_bench.model.text import some
from cachegrind_bench.store import git_sync, reading, segments
from cachegrind_bench.store.checking import checked
from cachegrind_bench.store.git_sync import Changes, Sync, git_errors
from cachegrind_bench.store.protocol import Report
from cachegrind_bench.store.record import MOST_BYTES, Record, is_record_name
from cachegrind_bench.store.record_tree import NOT_A_RECORD, RecordTree, Removal, TreeStore, differs
from cachegrind_bench.vcs.branches import Branch
from cachegrind_bench.vcs.objects import BLOB, Entry, Objects
from cachegrind_bench.waiting import Waiting

_FOLDERS = ("runs/", "renames/", f"{segments.FOLDER}/")
_OF_RECORDS = re.compile(rf"runs(/[0-9]+){{0,2}}|renames|{segments.FOLDER}")
# What people may put next to them.
_README = re.compile(r"README(\..*)?", re.DOTALL | re.IGNORECASE)
# A segment is compressed, so far from this.
_MOST_SEGMENT = 1 << 30
_SHOWN = 3


class CommitFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files in the tree of a commit, or of one that is to be made."""

    place: str
    objects: Objects
    entries: Mapping[str, Entry]

    def singles(self, report: Report | None = None) -> list[str]:
        self._check_folders(report, ("runs", "renames"))
        return sorted(filter(is_record_name, self.entries))

    def segments(self, report: Report | None = None) -> list[str]:
        self._check_folders(report, (segments.FOLDER,))
        return sorted(filter(segments.month_of, self.entries))

    def fetch(self, names: Collection[str]) -> None:
        try:
            self.objects.fetch([self.entries[name].oid for name in names if self.entries[name].kind == BLOB])
        except MeasurementError as error:
            raise StoreError(f"{self.place}: cannot fetch its records: {error.message}", hint=error.hint) from error

    def contents(self, names: Sequence[str], most: int = MOST_BYTES) -> Iterator[bytes]:
        other = next((name for name in names if self.entries[name].kind != BLOB), None)
        if other is not None:
            raise StoreError(f"{self.place}: cannot read {other}: it is not a file")
        try:
            oids = [self.entries[name].oid for name in names]
            self.objects.fetch(oids)
            yield from self.objects.read(oids, most)
        except MeasurementError as error:
            what = names[0] if len(names) == 1 else f"one of {len(names)} records"
            raise StoreError(f"{self.place}: cannot read {what[:200]}: {error.message}", hint=error.hint) from error

    def open(self, segment: str) -> BinaryIO:
        return io.BytesIO(next(self.contents([segment], _MOST_SEGMENT)))

    def check_others(self, report: Report) -> None:
        for name, entry in sorted(self.entries.items()):
            read = is_record_name(name) or segments.month_of(name) is not None or _OF_RECORDS.fullmatch(name)
            if name.startswith(_FOLDERS) and not entry.is_folder and not read:
                report(name, NOT_A_RECORD)

    def _check_folders(self, report: Report | None, tops: Collection[str]) -> None:
        """Report what should be a folder with records, and is a file, a link or a submodule; without `report`, StoreError."""
        for name, entry in self.entries.items():
            if _OF_RECORDS.fullmatch(name) and not entry.is_folder and name.partition("/")[0] in tops:
                with reading.reported(report, name):
                    raise StoreError(f"{self.place}: cannot read {name}: it is not a folder")

    def refuse_foreign(self) -> None:
        """Raise StoreError for a branch that does not hold a history, but: nobody's code is added to."""
        tops = {name.partition("/")[0] for name in self.entries}
        foreign = sorted(top for top in tops if f"{top}/" not in _FOLDERS and not _README.fullmatch(top))
        if foreign:
            raise StoreError(
                f"{self.place} does not hold a history, but: {some([*map(repr, foreign)], _SHOWN)}",
                hint="name a branch of its own, as in git:cg-bench-data; it is created when a run is added",
            )


class GitStore(TreeStore):
    """The store `git:BRANCH[@REMOTE]`. Safe with many writers in many clones, each killed at any moment.

    With a remote (`origin` if there is one and none is named), the branch there counts, and each method asks it. Without
    one it is a branch of this repository. What is removed stays in the branch's past. `patience` is how long, in seconds,
    a change is tried again; `waiting` may bound it, and each question to the remote, to less.
    """

    def __init__(
        self,
        repository: Path,
        branch: str,
        remote: str | None,
        environ: Mapping[str, str],
        *,
        patience: float = git_sync.PATIENCE_S,
        waiting: Waiting | None = None,
    ) -> None:
        waiting = waiting or Waiting()
        self._branch = Branch(repository, environ, waiting, name=branch)
        self._objects = Objects(repository, environ, waiting)
        self._remote = remote
        self._patience = waiting.at_most(patience)

    @property
    def url(self) -> str:
        return f"git:{self._branch.name}{'' if self._remote is None else f'@{self._remote}'}"

    def add(self, records: Sequence[Record]) -> int:
        found = checked(records)
        if not found:
            return 0

        def plan(tip: str | None) -> tuple[Changes, int]:
            files = self._files(tip)
            there = [name for name in files.singles() if name in found]
            for name, data in zip(there, files.contents(there), strict=True) if there else ():
                if data != found[name].data:
                    raise differs(name, self.url)
            changes = {name: record.data for name, record in found.items() if name not in there}
            return changes, len(changes)

        return self._sync().change(_message("Add", found), plan)

    def exists(self) -> bool:
        return self._sync().tip() is not None

    def remove(self, names: Collection[str]) -> int:
        def plan(tip: str | None) -> tuple[Changes, Removal]:
            changes = dict[str, bytes | None]()

            def unfold(segment: str, rest: Sequence[Record]) -> None:
                changes.update({segment: None, **{record.name: record.data for record in rest}})

            done = RecordTree(files=self._files(tip)).remove(names, unfold)
            return changes | dict.fromkeys(done.singles), done

        return self._sync().change(_message("Remove", names), plan).count()

    def _now(self) -> RecordTree:
        return RecordTree(files=self._files(self._sync().tip()))

    def _files(self, tip: str | None) -> CommitFiles:
        with git_errors():
            entries = {} if tip is None else self._objects.listing(tip)
        files = CommitFiles(place=self.url, objects=self._objects, entries=entries)
        files.refuse_foreign()
        return files

    def _sync(self) -> Sync:
        """Return what reads and changes the branch. StoreError outside a repository, or if there is no such remote."""
        with git_errors():
            remotes = self._branch.remotes()
        remote = self._remote or ("origin" if "origin" in remotes else None)
        if remote is not None and remote not in remotes:
            known = (
                f"the remotes are {', '.join(remotes)}" if remotes else "there is none; without @ it is a local branch"
            )
            raise StoreError(f"the repository has no remote {remote!r}", hint=known)
        return Sync(branch=self._branch, objects=self._objects, remote=remote, patience=self._patience)


def _message(verb: str, names: Collection[str]) -> str:
    return f"{verb} {some([name[:200] for name in sorted(names)], 1)}\n"
