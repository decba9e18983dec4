"""History as files in a folder: one for each run, added and never changed, and a segment for each month that was folded.

Needs no set-up, no server, and no lock to add or read. Knows how files come and go; how they are read is `tree`'s.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Self

from cachegrind_bench.errors import StoreError, UsageError
from cachegrind_bench.store import durable, profiles, reading, segments
from cachegrind_bench.store.baselines import make_store
from cachegrind_bench.store.checking import checked
from cachegrind_bench.store.record import run_name, run_record
from cachegrind_bench.store.tree import Tree, runs_before

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from cachegrind_bench.model.history import Snapshot
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.store.protocol import Problem, Query, Survey
    from cachegrind_bench.store.record import Record

_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}", re.ASCII)


class FileStore:
    """The store `file:DIR`. Safe with many writers, readers and one who folds or removes, each killed at any moment."""

    def __init__(self, folder: Path, *, wait: float = durable.WAIT_S) -> None:
        self.folder = folder
        self._wait = wait
        self._tree = Tree(folder)

    @property
    def url(self) -> str:
        """The store as --store takes it."""
        return f"file:{self.folder}"

    def add(self, records: Sequence[Record]) -> int:
        """Keep these, durably; return how many were new. StoreError for what is no record, or differs from what is there."""
        found = checked(records)
        folded = found.keys() & self._tree.folded({said.month for said in map(run_name, found) if said is not None})
        for there in self._tree.read(folded, if_there=True):
            self._compare(there, found.pop(there.name))
        others = list(found)
        folders = {name.rpartition("/")[0] for name in others}
        for folder in sorted(folders):
            self._make(self.folder / folder)
        count = sum([self._add(found[name]) for name in others])
        self._sync(folders)  # also where nothing is new: another writer may not have come that far
        return count

    def exists(self) -> bool:
        """Tell whether there is a folder. StoreError if that cannot be found out."""
        return durable.is_there(self.folder)

    def names(self) -> list[str]:
        """Return the names of all records, sorted; of a segment only the first line is read."""
        return sorted(self._tree.places())

    def survey(self) -> Survey:
        """Return the names of all records that can be told, and which folders and segments cannot be read."""
        return self._tree.survey()

    def read(self, names: Iterable[str] | None = None) -> Iterator[Record]:
        """Return these records, or all, in the order of names. StoreError for one that is missing or damaged."""
        return self._tree.read(names)

    def snapshots(self, query: Query) -> Iterator[Snapshot]:
        """Return the runs that are asked for, by time of commit, time of run and uid; renames are applied."""
        return reading.snapshots(self.names(), partial(self._tree.read, if_there=True), query)

    def remove(self, names: Collection[str]) -> int:
        """Forget these records and their profiles; return how many there were. Segments are written anew without them.

        A segment that cannot be read stays, and what is known to be in it: StoreError, after the others were removed.
        """
        if not self.exists():
            return 0
        with durable.locked(self._lock(), self._wait):
            self._tidy()
            singles = {*self._tree.singles()}.intersection(names)
            cut = segments.Cut(wanted={*names}, gone={*singles})
            for segment in cut.concerned(self._segments()):
                with cut.trying(segment):
                    held = self._tree.names_in(segment)
                    if cut.within(held):
                        self._fold(dict.fromkeys(cut.left(held), segment), {segment})
            singles &= cut.gone
            for name in sorted(cut.gone):
                self._unlink(self.profile_path(name))
            for name in sorted(singles):
                self._unlink(self.folder / name)
            self._sync({name.rpartition("/")[0] for name in singles})
        return cut.count()

    def compact(self, before: str) -> int:
        """Fold the runs of each month before this one (as 2026-01) into one segment; return how many were folded."""
        if _MONTH.fullmatch(before) is None:
            raise StoreError(f"{before[:80]!r} is not a month", hint="write a year and a month, as in 2026-01")
        if not self.exists():
            return 0
        count = 0
        with durable.locked(self._lock(), self._wait):
            self._tidy()
            folded = self._segments()
            months = [month for month in map(segments.month_of, folded) if month is not None and month < before]
            twice = {month for month in months if months.count(month) > 1}  # after a fold that was killed
            for month in sorted(runs_before(self._tree.singles(), before) | twice):
                places = self._tree.places(month)
                count += sum(place is None for place in places.values())
                self._fold(places, {segment for segment in folded if segments.month_of(segment) == month})
        return count

    def check(self) -> list[Problem]:
        """Read everything, and tell what is wrong."""
        return self._tree.check()

    def keep_profile(self, record: Record, result: Result) -> None:
        """Keep the whole result of this record's run beside it, compressed: profiles and what its programs wrote."""
        if run_record(result).name != record.name:
            raise StoreError(f"{record.name} is not the record of this result")
        path, packed = self.profile_path(record.name), profiles.pack(result)
        self._make(path.parent)
        if not durable.add_file(path, lambda stream: stream.write(packed), self._lock("adding")):
            there = profiles.unpack(path, record.name)
            if there is not None and there != profiles.unpacked(packed):
                raise StoreError(f"{path} is there, with another profile", hint="remove the file to keep the new one")
        self._sync({record.name.rpartition("/")[0]})

    def profile_path(self, name: str) -> Path:
        """Return where the profile of the record of this name is or would be."""
        return self.folder / profiles.name_of(name)

    def profile(self, name: str) -> bytes | None:
        """Return the whole result file of this record's run; None if it was not kept. StoreError if it is damaged."""
        path = self.profile_path(name)
        data = None if run_name(name) is None else profiles.unpack(path, name)
        if data is not None and not profiles.is_of(data, next(self.read([name]))):
            raise StoreError(f"{path} is not the profile of that run", hint=profiles.HINT)
        return data

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""

    def _add(self, record: Record) -> bool:
        """Add the file of one record; False if it is there. StoreError if it is there with other bytes."""
        path = self.folder / record.name
        while not durable.add_file(path, lambda stream: stream.write(record.data), self._lock("adding")):
            with suppress(FileNotFoundError):  # folded or removed since: once more
                self._compare(self._tree.raw(record.name), record)
                return False
        return True

    def _compare(self, there: Record, record: Record) -> None:
        if there.data != record.data:
            what = f"{self.folder / record.name} is there, with other bytes than this run has"
            raise StoreError(f"{what}: it is damaged", hint=reading.HINT)

    def _fold(self, places: Mapping[str, str | None], old: Collection[str]) -> None:
        """Write the records at these places into one segment, then remove their files and the old segments."""
        self._make(self.folder / segments.FOLDER)
        new = self._write_segment(places) if places else None
        self._sync({segments.FOLDER})
        for name in sorted(name for name, place in places.items() if place is None):
            self._unlink(self.folder / name)
        for segment in sorted({*old} - {new}):
            self._unlink(self.folder / segment)
        self._sync({segments.FOLDER, *(name.rpartition("/")[0] for name in places)})

    def _write_segment(self, places: Mapping[str, str | None]) -> str:
        """Write a segment, read it back, and only then give it its name, which is returned."""
        names, written = sorted(places), [""]

        def write(stream: BinaryIO) -> None:
            written[0] = segments.write_segment(stream, names, self._tree.stream(places))

        with durable.new_file(self.folder / segments.FOLDER, write) as temporary:
            self._verify(temporary, written[0], names)
            path = self.folder / written[0]
            if not durable.publish(temporary, path, self._lock("adding")):
                self._verify(path, written[0], names)
        return written[0]

    def _verify(self, path: Path, segment: str, names: list[str]) -> None:
        with durable.telling(path, "read"), open(path, "rb") as stream:
            if [record.name for record in segments.read_segment(stream, segment)] != names:
                raise StoreError(f"{path} is not as it was written")

    def _segments(self) -> list[str]:
        return [name for name in self._tree.segments() if segments.month_of(name) is not None]

    def _make(self, folder: Path) -> None:
        try:
            make_store(self.folder, folder)
        except UsageError as error:
            raise StoreError(error.message, hint=error.hint) from error
        durable.remove_leftovers(folder)

    def _sync(self, folders: Collection[str]) -> None:
        """Make the names in these folders of the store last, and those of the folders themselves."""
        paths = {self.folder / folder for folder in folders}
        paths |= {parent for path in paths for parent in path.parents if parent.is_relative_to(self.folder.parent)}
        for path in sorted(paths, reverse=True):
            durable.sync_folder(path)

    def _tidy(self) -> None:
        for folder in {self.folder / segments.FOLDER, *((self.folder / name).parent for name in self._tree.listing())}:
            durable.remove_leftovers(folder)

    def _unlink(self, path: Path) -> None:
        with durable.telling(path, "remove"), suppress(FileNotFoundError):
            path.unlink()

    def _lock(self, what: str = "folding") -> Path:
        return self.folder / f".cg-bench.{what}.lock"
