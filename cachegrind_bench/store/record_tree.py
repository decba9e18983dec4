"""Reads records from a tree of files: one for each record, and segments of older versions, which hold the runs of a month.

The tree may be a folder, which others add to and remove from meanwhile, or that of a commit, which never changes.
Must not know how the files are written.
"""

# ruff: noqa: D102  # what the methods of `Store` do is said there
from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from heapq import merge
from operator import attrgetter
from typing import BinaryIO, Protocol

import msgspec

from cachegrind_bench.errors import StoreError
from cachegrind_bench.model.result import Snapshot
from cachegrind_bench.model.text import some
from cachegrind_bench.store import reading, segments
from cachegrind_bench.store.checking import Inspection, intact
from cachegrind_bench.store.protocol import Problem, Query, Report, Store, Survey
from cachegrind_bench.store.record import Record, run_name

NOT_A_RECORD = "it is not a record, and only records belong here"

_TRIES = 100
_PAUSE_S = 0.01


class MovedError(Exception):
    """A file was listed and is gone: removed since."""


def differs(name: str, place: str) -> StoreError:
    """Return the error where a record is there, and not the one that was to be added."""
    what = f"{name} is in {place}, with other bytes than this run has: it is damaged"
    return StoreError(what, hint=reading.HINT)


class Files(Protocol):
    """The files of a tree. Methods raise StoreError; where `report` is given, a part that cannot be listed is reported instead."""

    @property
    def place(self) -> object:
        """Where the tree is, for messages."""
        ...

    def singles(self, report: Report | None = None) -> list[str]:
        """Return the names of the records that have a file of their own, sorted."""
        ...

    def segments(self, report: Report | None = None) -> list[str]:
        """Return the names of all segments, sorted, as they were at one moment."""
        ...

    def fetch(self, names: Collection[str]) -> None:
        """Have the contents of these files here; a partial clone would fetch them one by one."""
        ...

    def contents(self, names: Sequence[str]) -> Iterator[bytes]:
        """Return the bytes of these records, in this order. MovedError for one that is gone."""
        ...

    def open(self, segment: str) -> BinaryIO:
        """Open a segment. MovedError if it is gone."""
        ...

    def check_others(self, report: Report) -> None:
        """Report what is in the folders of records, and is neither a record nor a segment."""
        ...


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """What is removed of the records that are `wanted` away: `gone`; `singles` of them have a file of their own.

    What is in a segment that cannot be read stays, wherever else it is too; `error` says of the first why.
    """

    wanted: frozenset[str]
    gone: frozenset[str]
    singles: list[str]
    error: StoreError | None

    def count(self) -> int:
        """Return how many are gone. StoreError if one is not, and may be in a segment that stays."""
        rest = sorted(self.wanted - self.gone)
        if self.error is not None and rest:
            what = f"not removed is {some([rest[0][:200], *rest[1:]], 1)} ({len(self.gone)} were)"
            raise StoreError(f"{self.error.message}; it stays, and {what}", hint=self.error.hint)
        return len(self.gone)


class RecordTree(msgspec.Struct, frozen=True, kw_only=True):
    """The records in a tree. Where one is in two places, it is one record."""

    files: Files

    def names_in(self, segment: str) -> list[str]:
        """Return the names of the records in a segment."""
        with self.files.open(segment) as stream:
            return segments.segment_names(stream, segment)

    def places(self, report: Report | None = None) -> dict[str, str | None]:
        """Return for each record the segment it is in, None where it has a file of its own."""
        for _ in range(_TRIES):
            with suppress(MovedError):
                # In this order: what leaves a segment in between has a file of its own then.
                return {**self._folded(report), **dict.fromkeys(self.files.singles(report))}
            time.sleep(_PAUSE_S)
        raise self._restless()

    def _folded(self, report: Report | None) -> dict[str, str]:
        found, wanted = dict[str, str](), self.files.segments(report)
        with suppress(StoreError) if report else nullcontext():  # reported below
            self.files.fetch(wanted)
        for segment in wanted:
            with reading.reported(report, segment):
                found |= dict.fromkeys(self.names_in(segment), segment)
        return found

    def survey(self) -> Survey:
        """Return the names of all records that are known, and which folders and segments cannot be read."""
        found = Inspection()
        return Survey(names=sorted(self.places(found.report)), problems=found.result())

    def check(self) -> list[Problem]:
        """Read everything, and report what is wrong."""
        found = Inspection()
        self.files.check_others(found.report)
        singles, folded = self.files.singles(found.report), self.files.segments(found.report)
        with suppress(StoreError):  # what is not there then is reported one by one
            self.files.fetch([*singles, *folded])
        for name, data in self._each(singles):
            if isinstance(data, StoreError):
                found.report(name, data.message)
            elif isinstance(data, bytes):  # else it is gone
                found.see(Record(name=name, data=data))
        for segment in folded:
            try:
                for record in self._in_segment(segment):
                    found.see(record, f"{segment}: {record.name}")
            except StoreError as error:
                found.report(segment, error.message)
            except MovedError:
                continue
        return found.result()

    def read(
        self, names: Iterable[str] | None, report: Report | None = None, *, if_there: bool = False
    ) -> Iterator[Record]:
        """Return these records, or all, in the order of names. StoreError for one that is not there, unless `if_there`.

        With `report`, what is damaged is reported and left out.
        """
        asked = None if names is None else {*names}
        if asked == set():
            return
        last = ""
        for _ in range(_TRIES):
            places = self.places(report)
            wanted = sorted(name for name in (places if asked is None else asked) if name > last)
            missing = next((name for name in wanted if name not in places), None)
            if missing is not None and not if_there and report is None:
                raise StoreError(f"there is no record {missing[:200]} in {self.files.place}")
            try:
                for record in self.stream({name: places[name] for name in wanted if name in places}, report):
                    yield record
                    last = record.name
            except MovedError:
                time.sleep(_PAUSE_S)
                continue
            return
        raise self._restless()

    def stream(self, places: Mapping[str, str | None], report: Report | None = None) -> Iterator[Record]:
        """Return the records at these places, in the order of names."""
        singles = sorted(name for name, place in places.items() if place is None)
        folded: dict[str, set[str]] = {}
        for name, place in places.items():
            if place is not None:
                folded.setdefault(place, set()).add(name)
        parts = (self._in_segment(segment, names, report) for segment, names in folded.items())
        return merge(self._alone(singles, report), *parts, key=attrgetter("name"))

    def remove(self, names: Collection[str], unfold: Callable[[str, list[Record]], None]) -> Removal:
        """Return what becomes of these records; `unfold` is given each segment that has one, and the others that it holds."""
        wanted = frozenset(names)
        singles = wanted.intersection(self.files.singles())
        gone, stay, first = {*singles}, set[str](), None
        months = {said.month for said in map(run_name, wanted) if said is not None}
        for segment in self.files.segments():
            if segments.month_of(segment) not in months:
                continue
            found: set[str] = set()
            try:
                found = {*wanted.intersection(self.names_in(segment))}
                if found:
                    unfold(segment, [record for record in self._in_segment(segment) if record.name not in found])
                gone |= found
            except StoreError as error:
                first = first or error
                stay |= found
        gone -= stay
        return Removal(wanted=wanted, gone=frozenset(gone), singles=sorted(singles & gone), error=first)

    def _each(self, names: Sequence[str]) -> Iterator[tuple[str, bytes | StoreError | MovedError]]:
        """Return the bytes of each of these records, or why it cannot be read."""
        if not names:
            return
        done = 0
        try:
            for data in self.files.contents(names):
                yield names[done], data
                done += 1
        except (StoreError, MovedError) as error:  # of one of the rest
            rest = names[done:]
            middle = len(rest) // 2
            if middle == 0:
                yield rest[0], error
                return
            yield from self._each(rest[:middle])
            yield from self._each(rest[middle:])

    def _alone(self, names: Sequence[str], report: Report | None) -> Iterator[Record]:
        """Return these records, which have files of their own. MovedError if one of them is gone."""
        contents = self._each(names) if report else zip(names, self.files.contents(names), strict=True)
        for name, data in contents:
            with reading.reported(report, name):
                if not isinstance(data, bytes):
                    raise data
                yield intact(Record(name=name, data=data), f"{self.files.place}: {name}")

    def _in_segment(
        self, segment: str, wanted: Collection[str] | None = None, report: Report | None = None
    ) -> Iterator[Record]:
        with reading.reported(report, segment), self.files.open(segment) as stream:
            yield from segments.read_segment(stream, segment, wanted)

    def _restless(self) -> StoreError:
        return StoreError(f"{self.files.place} is changing faster than it can be read", hint="try again later")


class TreeStore(Store):
    """The reading half of a store whose records are in a tree."""

    def _now(self) -> RecordTree:
        """Return the records as they are now."""
        raise NotImplementedError

    def names(self) -> list[str]:
        return sorted(self._now().places())

    def survey(self) -> Survey:
        return self._now().survey()

    def read(self, names: Iterable[str] | None = None, report: Report | None = None) -> Iterator[Record]:
        return self._now().read(names, report)

    def snapshots(self, query: Query, report: Report | None = None) -> Iterator[Snapshot]:
        tree = self._now()
        return reading.snapshots(tree.places(report), partial(tree.read, report=report, if_there=True), query, report)

    def check(self) -> list[Problem]:
        return self._now().check()
