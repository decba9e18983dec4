"""Reads records from the tree of a commit: single files, and segments of whole months. The tree never changes.

Knows where records are kept in a branch; must not know how they come there.
"""

from __future__ import annotations

import io
import re
from contextlib import suppress
from heapq import merge
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import MeasurementError, StoreError
from cachegrind_bench.store import segments
from cachegrind_bench.store.checking import Inspection, intact
from cachegrind_bench.store.protocol import Survey
from cachegrind_bench.store.record import MOST_BYTES, Record, is_record_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from cachegrind_bench.store.git_partial import Promises
    from cachegrind_bench.store.protocol import Problem
    from cachegrind_bench.vcs.objects import Entry, Objects

_FOLDERS = ("runs/", "renames/", f"{segments.FOLDER}/")
# What people may put beside them.
_README = re.compile(r"README(\..*)?", re.DOTALL | re.IGNORECASE)
# A segment is compressed, so far from this.
_MOST_SEGMENT = 1 << 30


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The records of a tree. `known` has the names in segments by their objects, and is shared by many views."""

    url: str
    objects: Objects
    promises: Promises
    entries: Mapping[str, Entry]
    known: dict[str, list[str]]

    def singles(self) -> list[str]:
        """Return the names of the records that have a file of their own, sorted."""
        return sorted(name for name, entry in self.entries.items() if entry.is_file and is_record_name(name))

    def segments(self) -> list[str]:
        """Return the names of all segments, sorted."""
        return sorted(
            name for name, entry in self.entries.items() if entry.is_file and segments.month_of(name) is not None
        )

    def names_in(self, segment: str) -> list[str]:
        """Return the names of the records in a segment."""
        oid = self.entries[segment].oid
        if oid not in self.known:
            self.known[oid] = segments.segment_names(self._open(segment), segment)
        return self.known[oid]

    def folded(self, months: Collection[str] | None = None) -> dict[str, str]:
        """Return the segment that each of the folded runs, or those of these months, is in."""
        wanted = [name for name in self.segments() if months is None or segments.month_of(name) in months]
        self._fetch(wanted)
        return {name: segment for segment in wanted for name in self.names_in(segment)}

    def places(self) -> dict[str, str | None]:
        """Return for each record the segment it is in, None where it has a file of its own."""
        return {**self.folded(), **dict.fromkeys(self.singles())}

    def survey(self) -> Survey:
        """Return the names of all records that can be told, and which segments cannot be read."""
        found = Inspection()
        names, wanted = {*self.singles()}, self.segments()
        with suppress(StoreError):  # told below
            self._fetch(wanted)
        for segment in wanted:
            try:
                names.update(self.names_in(segment))
            except StoreError as error:
                found.tell(segment, error.message)
        return Survey(names=sorted(names), problems=found.report())

    def foreign(self) -> list[str]:
        """Return what is at the top of the tree, and in no history, sorted: it is somebody's own files then."""
        tops = {name.partition("/")[0] for name in self.entries}
        return sorted(top for top in tops if f"{top}/" not in _FOLDERS and not _README.fullmatch(top))

    def read(self, names: Collection[str] | None) -> Iterator[Record]:
        """Return these records, or all, in the order of names. StoreError for one that is missing or damaged."""
        places = self.places()
        missing = min((name for name in names or () if name not in places), default=None)
        if missing is not None:
            raise StoreError(f"there is no record {missing[:200]} in {self.url}")
        return self.stream(places if names is None else {name: places[name] for name in names})

    def stream(self, places: Mapping[str, str | None]) -> Iterator[Record]:
        """Return the records at these places, in the order of names; of segments, those of one month are open at once."""
        singles = sorted(name for name, place in places.items() if place is None)
        homes: dict[str, dict[str, list[str]]] = {}
        for name, place in sorted(places.items()):
            if place is not None:
                homes.setdefault(str(segments.month_of(place)), {}).setdefault(place, []).append(name)
        folded = chain.from_iterable(self._of_month(homes[month]) for month in sorted(homes))
        return merge(self._single(singles), folded, key=lambda record: record.name)

    def fetch(self, places: Mapping[str, str | None]) -> None:
        """Have what is at these places here: a partial clone would fetch it one by one. StoreError if that fails."""
        self._fetch([name for name, place in places.items() if place is None])

    def data(self, names: Sequence[str], most: int = MOST_BYTES) -> Iterator[bytes]:
        """Return the bytes of these files, in this order."""
        try:
            oids = [self.entries[name].oid for name in names]
            self.promises.fetch(oids)
            yield from self.objects.read(oids, most)
        except MeasurementError as error:
            some = names[0] if len(names) == 1 else f"one of {len(names)} records"
            raise StoreError(f"{self.url}: cannot read {some[:200]}: {error.message}", hint=error.hint) from error

    def check(self) -> list[Problem]:
        """Read everything, and tell what is wrong."""
        found = Inspection()
        with suppress(StoreError):  # what is not there then is told one by one
            self._fetch([*self.singles(), *self.segments()])
        for name, entry in sorted(self.entries.items()):
            known = (is_record_name(name) or segments.month_of(name) is not None) and entry.is_file
            if name.startswith(_FOLDERS) and not entry.is_folder and not known:
                found.tell(name, "it is not a record, and nothing else belongs here")
            elif entry.is_folder and (is_record_name(name) or segments.month_of(name) is not None):
                found.tell(name, "it is a folder, and should be a file")
        for name, data in self._each(self.singles()):
            if isinstance(data, StoreError):
                found.tell(name, data.message)
            else:
                found.see(Record(name=name, data=data))
        for segment in self.segments():
            try:
                for record in segments.read_segment(self._open(segment), segment):
                    found.see(record, f"{segment}: {record.name}")
            except StoreError as error:
                found.tell(segment, error.message)
        return found.report()

    def _fetch(self, names: Collection[str]) -> None:
        """Have the objects of these files here, which a partial clone would fetch one by one."""
        unknown = [oid for name in names if (oid := self.entries[name].oid) not in self.known]
        try:
            self.promises.fetch(unknown)
        except MeasurementError as error:
            raise StoreError(f"{self.url}: cannot fetch its records: {error.message}", hint=error.hint) from error

    def _each(self, names: Sequence[str]) -> Iterator[tuple[str, bytes | StoreError]]:
        """Return the bytes of each of these files, or why it cannot be read."""
        done = 0
        try:
            for data in self.data(names):
                yield names[done], data
                done += 1
        except StoreError:  # git gives up at the first: one by one
            for name in names[done:]:
                try:
                    yield name, next(self.data([name]))
                except StoreError as error:
                    yield name, error

    def _single(self, names: Sequence[str]) -> Iterator[Record]:
        for name, data in zip(names, self.data(names), strict=True):
            yield intact(Record(name=name, data=data), f"{self.url}: {name}")

    def _of_month(self, homes: Mapping[str, Collection[str]]) -> Iterator[Record]:
        parts = [segments.read_segment(self._open(segment), segment, {*homes[segment]}) for segment in sorted(homes)]
        return merge(*parts, key=lambda record: record.name)

    def _open(self, segment: str) -> io.BytesIO:
        return io.BytesIO(next(self.data([segment], _MOST_SEGMENT)))
