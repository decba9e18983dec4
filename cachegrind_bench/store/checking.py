"""What can be wrong with a record or a set of them, the same for every store that keeps records as they are.

Knows records; must not know where they are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from cachegrind_bench.errors import StoreError
from cachegrind_bench.store.protocol import Problem
from cachegrind_bench.store.reading import HINT, rename, snapshot
from cachegrind_bench.store.record import Record, canonical_line, is_record_name, run_name


def intact(record: Record, place: str) -> Record:
    """Return the record; StoreError, with the place, if its bytes are not those it was named after. Quick."""
    problem = _wrong_uid(record)
    if problem is not None:
        raise StoreError(f"{place}: {problem}", hint=HINT)
    return record


def wrong_with(record: Record) -> str | None:
    """Return what is wrong with a record, as a sentence part: its name, its bytes, or that they do not belong together."""
    if not is_record_name(record.name):
        return "no record has such a name"
    problem = _wrong_uid(record) or _uncanonical(record.data)
    if problem is not None:
        return problem
    try:
        said = run_name(record.name)
        if said is None:
            rename(record)
            return None
        run = snapshot(record)
    except StoreError as error:
        return error.message
    if said.month != run.created_at[:7]:
        return f"it is named after the month {said.month}, and was made at {run.created_at}"
    if said.sha12 != (None if run.commit is None else run.commit.sha[:12]):
        return "its name and its content name different commits"
    return None if said.key8 == run.env_key[:8] else "its name and its content name different environments"


def checked(records: Iterable[Record]) -> dict[str, Record]:
    """Return the records by name, in the order of names. StoreError for the first that no history should take."""
    found: dict[str, Record] = {}
    for record in sorted(records, key=lambda record: record.name):
        problem = wrong_with(record)
        if problem is None and record.name in found and found[record.name].data != record.data:
            problem = "two records have this name"
        if problem is not None:
            raise StoreError(f"{record.name[:200]!r} cannot be stored: {problem}")
        found[record.name] = record
    return found


@dataclass(slots=True)
class Inspection:
    """Looks at one record after the other, and gathers what is wrong.

    A record that is kept in two places, as after a fold that was killed, is one record; the same bytes under two
    names are a problem.
    """

    problems: list[Problem] = field(default_factory=list[Problem])
    _names: dict[str, str] = field(default_factory=dict[str, str])

    def report(self, where: str, what: str) -> None:
        """Take down a problem, of a record or not."""
        # Names of files can have bytes that are not text.
        place = where.encode("utf-8", "backslashreplace").decode()
        self.problems.append(Problem(where=place, what=" ".join(what.split())))  # SQLite's have line breaks

    def see(self, record: Record, where: str | None = None) -> None:
        """Look at one record, kept at this place, which is its name unless given."""
        place = where or record.name
        problem = wrong_with(record)
        if problem is not None:
            self.report(place, problem)
        first = self._names.setdefault(record.uid, record.name)
        if first != record.name:
            self.report(place, f"it is the same as {first}")

    def result(self) -> list[Problem]:
        """Return all problems, each once, sorted by place."""
        return sorted({*self.problems}, key=lambda problem: (problem.where, problem.what))


def _wrong_uid(record: Record) -> str | None:
    uid = record.uid
    said = run_name(record.name)
    right = record.name == f"renames/{uid}.json" if said is None else said.uid8 == uid[:8]
    return None if right else f"its bytes are not those it was named after: their uid is {uid}"


def _uncanonical(data: bytes) -> str | None:
    try:
        again = canonical_line(json.loads(data))
    except (ValueError, RecursionError) as error:
        return f"it is not JSON that can be read: {str(error)[:200]}"
    return None if again == data else "its bytes are not canonical"
