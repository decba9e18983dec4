"""History as files in a folder: one for each run, added and never changed.

Needs no set-up, no server, and no lock to add or read. Knows how files come and go; how records are read from them is
`record_tree`'s.
"""

# ruff: noqa: D102  # what the methods of `Store` and `Files` do is said there
from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from cachegrind_bench.errors import StoreError, UsageError
from cachegrind_bench.model.result import Result
from cachegrind_bench.store import durable, profiles, reading, segments
from cachegrind_bench.store.baselines import make_store
from cachegrind_bench.store.checking import checked
from cachegrind_bench.store.protocol import Report
from cachegrind_bench.store.record import MOST_BYTES, Record, is_record_name, run_name, run_record
from cachegrind_bench.store.record_tree import (
    NOT_A_RECORD,
    MovedError,
    RecordTree,
    TreeStore,
    differs,
)
from cachegrind_bench.waiting import Waiting

_DIGITS = re.compile(r"[0-9]{2,4}", re.ASCII)


class Folder(msgspec.Struct, frozen=True):
    """The files in the folder of a store. Temporary ones are passed over."""

    place: Path

    def listing(self, report: Report | None = None) -> Iterator[str]:
        """Return the names of all that is where single records are, whatever it is, sorted."""
        yield from self._within("renames", report)
        for year in self._within("runs", report):
            if _DIGITS.fullmatch(year.rpartition("/")[2]) is None:
                yield year
                continue
            for month in self._within(year, report):
                if _DIGITS.fullmatch(month.rpartition("/")[2]) is None:
                    yield month
                else:
                    yield from self._within(month, report)

    def singles(self, report: Report | None = None) -> list[str]:
        return [name for name in self.listing(report) if is_record_name(name)]

    def segments(self, report: Report | None = None) -> list[str]:
        return [name for name in self._within(segments.FOLDER, report) if segments.month_of(name) is not None]

    def fetch(self, names: Collection[str]) -> None:
        """Do nothing: all files are here."""

    def contents(self, names: Sequence[str]) -> Iterator[bytes]:
        for name in names:
            try:
                yield durable.read_file(self.place / name, MOST_BYTES)
            except FileNotFoundError:
                raise MovedError from None

    def open(self, segment: str) -> BinaryIO:
        path = self.place / segment
        with durable.store_errors(path, "read"):
            try:
                return path.open("rb")
            except FileNotFoundError:
                durable.accept_absence(path)
                raise MovedError from None

    def check_others(self, report: Report) -> None:
        """Report damaged profiles, and what is neither a record nor a segment."""
        for name in self.listing(_silent):
            if (record := profiles.record_of(name)) is not None:
                try:
                    profiles.unpack(self.place / name, record)
                except StoreError as error:
                    report(name, error.message)
            elif not is_record_name(name):
                report(name, NOT_A_RECORD)
        for name in self._within(segments.FOLDER, _silent):
            if segments.month_of(name) is None:
                report(name, NOT_A_RECORD)

    def _within(self, folder: str, report: Report | None) -> list[str]:
        """Return the paths in a folder, sorted; none if it is not there."""
        path = self.place / folder
        try:
            with durable.store_errors(path, "read"):
                names = sorted(os.listdir(path)) if durable.is_there(path) else []
        except StoreError as error:
            # Where nothing in the store can be read, that is said once.
            if report is None or not os.access(f"{self.place}/.", os.X_OK):
                raise StoreError(error.message, hint=error.hint or reading.HINT) from error
            report(folder, error.message)
            return []
        return [f"{folder}/{name}" for name in names if not durable.is_temporary(name)]


class FileStore(TreeStore):
    """The store `file:DIR`. Safe with many writers, readers and one who removes, each killed at any moment."""

    is_quick = True

    def __init__(self, folder: Path, *, wait: float = durable.WAIT_S, waiting: Waiting | None = None) -> None:
        self.folder = folder
        self._waiting = waiting or Waiting()
        self._wait = self._waiting.at_most(wait)
        self._files = Folder(folder)
        self._tree = RecordTree(files=self._files)

    @property
    def url(self) -> str:
        return f"file:{self.folder}"

    def check_usable(self) -> None:
        make_store(self.folder)
        durable.check_writable(self.folder / "runs.json")

    def add(self, records: Sequence[Record]) -> int:
        found = checked(records)
        folders = {name.rpartition("/")[0] for name in found}
        for folder in sorted(folders):
            self._make(self.folder / folder)
        count = sum([self._add(record) for record in found.values()])
        self._sync(folders)  # also where nothing is new: another writer may not have come that far
        return count

    def exists(self) -> bool:
        return durable.is_there(self.folder)

    def remove(self, names: Collection[str]) -> int:
        if not self.exists():
            return 0
        with durable.locked(self._lock(), self._wait, self._waiting):
            self._tidy()
            done = self._tree.remove(names, self._unfold)
            for name in done.gone:
                self._unlink(self.profile_path(name))
            for name in done.singles:
                self._unlink(self.folder / name)
            self._sync({name.rpartition("/")[0] for name in done.singles})
        return done.count()

    def check_profiles(self) -> None:
        """Accept: profiles are kept next to the records."""

    def keep_profile(self, record: Record, result: Result) -> None:
        """Keep the whole result of this record's run next to it, compressed: profiles and what its programs wrote."""
        if run_record(result).name != record.name:
            raise StoreError(f"{record.name} is not the record of this result")
        path, packed = self.profile_path(record.name), profiles.pack(result)
        self._make(path.parent)
        if not durable.add_file(path, packed, self._lock("adding")):
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

    def _now(self) -> RecordTree:
        return self._tree

    def _add(self, record: Record) -> bool:
        """Add the file of one record; False if it is there. StoreError if it is there with other bytes."""
        path = self.folder / record.name
        while not durable.add_file(path, record.data, self._lock("adding")):
            with suppress(FileNotFoundError):  # removed since: once more
                if durable.read_file(path, MOST_BYTES) != record.data:
                    raise differs(record.name, self.url)
                return False
        return True

    def _unfold(self, segment: str, rest: Sequence[Record]) -> None:
        """Give these records of a segment, which stay, files of their own, then remove it."""
        self.add(rest)
        self._unlink(self.folder / segment)
        self._sync({segments.FOLDER})

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
        for folder in {self.folder / segments.FOLDER, *((self.folder / name).parent for name in self._files.listing())}:
            durable.remove_leftovers(folder)

    def _unlink(self, path: Path) -> None:
        with durable.store_errors(path, "remove"), suppress(FileNotFoundError):
            path.unlink()

    def _lock(self, what: str = "removing") -> Path:
        return self.folder / f".cg-bench.{what}.lock"


def _silent(*_: str) -> None:
    """Report nothing."""
