"""Reads the folder of a file store while others add to it, fold it and remove from it: nothing that stays is missed.

Knows where records are kept and how they move from single files into segments; must not know how they are written.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from heapq import merge
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import StoreError, UsageError
from cachegrind_bench.store import profiles, segments
from cachegrind_bench.store.checking import Inspection, intact
from cachegrind_bench.store.durable import accept_absence, is_temporary, read_file
from cachegrind_bench.store.protocol import Survey
from cachegrind_bench.store.reading import HINT
from cachegrind_bench.store.record import MOST_BYTES, Record, is_record_name, run_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import BinaryIO

    from cachegrind_bench.store.protocol import Problem

    Tell = Callable[[str, str], None]

_DIGITS = re.compile(r"[0-9]{2,4}", re.ASCII)
_TRIES = 100
_PAUSE_S = 0.01


class _MovedError(Exception):
    """A file was listed and is gone: folded or removed since."""


class Tree(msgspec.Struct, frozen=True):
    """The folder of a file store. Where a record is in two places, as after a fold that was killed, it is one record."""

    folder: Path
    # Segments never change, so what is in one of this name need not be read twice.
    _known: dict[str, list[str]] = msgspec.field(default_factory=dict[str, list[str]])

    def listing(self, tell: Tell | None = None) -> Iterator[str]:
        """Return all that is where single records are, whatever it is, but temporary files.

        A folder that cannot be read is a StoreError, or told where `tell` is given.
        """
        yield from self._within("renames", tell)
        for year in self._within("runs", tell):
            if _DIGITS.fullmatch(year.rpartition("/")[2]) is None:
                yield year
                continue
            for month in self._within(year, tell):
                if _DIGITS.fullmatch(month.rpartition("/")[2]) is None:
                    yield month
                else:
                    yield from self._within(month, tell)

    def singles(self) -> list[str]:
        """Return the names of the records that have a file of their own."""
        return [name for name in self.listing() if is_record_name(name)]

    def segments(self, tell: Tell | None = None) -> list[str]:
        """Return the names of all segments, and of what else is among them; as they were at one moment."""
        # A folder that changes while it is listed may show neither the old segment nor the one that replaces it.
        for _ in range(_TRIES):
            found = self._within(segments.FOLDER, tell)
            if found == self._within(segments.FOLDER, None if tell is None else _silent):
                return found
        raise self._restless()

    def places(self, month: str | None = None) -> dict[str, str | None]:
        """Return for each record, or each run of a month, the segment it is in, None where it has a file of its own."""
        # In this order: what is folded in between is then in a segment.
        singles = self.singles() if month is None else filter(is_record_name, self._within(month_folder(month)))
        found: dict[str, str | None] = dict.fromkeys(singles)
        for name, segment in self.folded(None if month is None else {month}).items():
            found.setdefault(name, segment)
        return found

    def folded(self, months: Collection[str] | None = None) -> dict[str, str]:
        """Return the segment that each of the folded runs, or those of these months, is in."""
        for _ in range(_TRIES):
            with suppress(_MovedError):
                return {
                    name: segment
                    for segment in self.segments()
                    if (month := segments.month_of(segment)) is not None and (months is None or month in months)
                    for name in self.names_in(segment)
                }
            time.sleep(_PAUSE_S)
        raise self._restless()

    def survey(self) -> Survey:
        """Return the names of all records that can be told, and which folders and segments cannot be read."""
        for _ in range(_TRIES):
            with suppress(_MovedError):
                return self._survey()
            time.sleep(_PAUSE_S)
        raise self._restless()

    def check(self) -> list[Problem]:
        """Read everything, and tell what is wrong."""
        found = Inspection()
        for name in self.listing(found.tell):
            try:
                if profiles.is_name(name):
                    profiles.unpack(self.folder / name, profiles.record_of(name))
                elif is_record_name(name):
                    with suppress(FileNotFoundError):  # folded or removed since
                        found.see(self.raw(name))
                else:
                    found.tell(name, "it is not a record, and nothing else belongs here")
            except UsageError as error:
                found.tell(name, error.message)
        for segment in self.segments(found.tell):
            try:
                for record in self.whole(segment):
                    found.see(record, f"{segment}: {record.name}")
            except StoreError as error:
                found.tell(segment, error.message)
        return found.report()

    def names_in(self, segment: str) -> list[str]:
        """Return the names of the records in a segment."""
        if segment not in self._known:
            with self._open(segment) as stream:
                self._known[segment] = segments.segment_names(stream, segment)
        return self._known[segment]

    def whole(self, segment: str) -> Iterator[Record]:
        """Return all records of a segment, every byte checked; none if it is gone."""
        with suppress(_MovedError):
            yield from self._from_segment(segment, None)

    def read(self, names: Iterable[str] | None, *, if_there: bool = False) -> Iterator[Record]:
        """Return these records, or all, in the order of names. StoreError for one that is not there, unless `if_there`."""
        asked = None if names is None else {*names}
        last = ""
        for _ in range(_TRIES):
            places = self.places()
            wanted = sorted(name for name in (places if asked is None else asked) if name > last)
            missing = next((name for name in wanted if name not in places), None)
            if missing is not None and not if_there:
                raise StoreError(f"there is no record {missing[:200]} in {self.folder}")
            try:
                for record in self.stream({name: places[name] for name in wanted if name in places}):
                    yield record
                    last = record.name
            except _MovedError:
                time.sleep(_PAUSE_S)
                continue
            return
        raise self._restless()

    def stream(self, places: Mapping[str, str | None]) -> Iterator[Record]:
        """Return the records at these places, in the order of names; months one by one, to have few segments open."""
        for _, group in groupby(sorted(places), key=lambda name: name[: len("runs/2026/01")]):
            names = list(group)
            homes = {place for place in map(places.get, names) if place is not None}
            parts = [
                self._from_segment(home, {name for name in names if places[name] == home}) for home in sorted(homes)
            ]
            yield from merge(self._from_files(names, places), *parts, key=lambda record: record.name)

    def raw(self, name: str) -> Record:
        """Read the file of one record, whatever is in it. FileNotFoundError if there is none."""
        return Record(name=name, data=read_file(self.folder / name, MOST_BYTES))

    def _from_files(self, names: list[str], places: Mapping[str, str | None]) -> Iterator[Record]:
        for name in names:
            if places[name] is None:
                try:
                    yield intact(self.raw(name), str(self.folder / name))
                except FileNotFoundError:
                    raise _MovedError from None

    def _from_segment(self, segment: str, wanted: Collection[str] | None) -> Iterator[Record]:
        with self._open(segment) as stream:
            yield from segments.read_segment(stream, segment, wanted)

    def _open(self, segment: str) -> BinaryIO:
        try:
            return open(self.folder / segment, "rb")
        except FileNotFoundError:
            accept_absence(self.folder / segment)
            raise _MovedError from None
        except OSError as error:
            raise StoreError(f"cannot read {self.folder / segment}: {error.strerror}") from error

    def _survey(self) -> Survey:
        found = Inspection()
        # In this order: what is folded in between is then in a segment.
        names = {name for name in self.listing(found.tell) if is_record_name(name)}
        for segment in self.segments(found.tell):
            if segments.month_of(segment) is not None:
                try:
                    names.update(self.names_in(segment))
                except StoreError as error:
                    found.tell(segment, error.message)
        return Survey(names=sorted(names), problems=found.report())

    def _within(self, folder: str, tell: Tell | None = None) -> list[str]:
        """Return the paths in a folder, sorted; none if it is not there. One that cannot be read is told, or a StoreError."""
        try:
            return self._listed(folder)
        except StoreError as error:
            if tell is None:
                raise
            tell(folder, error.message)
            return []

    def _listed(self, folder: str) -> list[str]:
        try:
            return [f"{folder}/{name}" for name in sorted(os.listdir(self.folder / folder)) if not is_temporary(name)]
        except FileNotFoundError:
            accept_absence(self.folder / folder)
            return []
        except OSError as error:
            raise StoreError(f"cannot read {self.folder / folder}: {error.strerror}", hint=HINT) from error

    def _restless(self) -> StoreError:
        return StoreError(f"{self.folder} changes faster than it can be read", hint="try again later")


def _silent(*_: str) -> None:
    """Tell nobody."""


def month_folder(month: str) -> str:
    """Return where the runs of a month have their files."""
    year, _, number = month.partition("-")
    return f"runs/{year}/{number}"


def runs_before(names: Iterable[str], month: str) -> set[str]:
    """Return the months before this one of which there are runs among these names."""
    return {said.month for said in map(run_name, names) if said is not None and said.month < month}
