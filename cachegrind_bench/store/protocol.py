"""What every store of history can do, whatever it keeps its records in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Protocol, Self

import msgspec

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.described import doc

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Result, Snapshot
    from cachegrind_bench.store.record import Record


Report = Callable[[str, str], None]  # takes where something is wrong, and what


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something wrong with a store."""

    where: Annotated[str, doc("place in the store")]
    what: Annotated[str, doc("what is wrong, as a part of a sentence")]


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What a look over a store finds: the names of all records that are known, sorted, and what hides others."""

    names: list[str]
    problems: list[Problem]


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs are asked for; None asks for all. `since` is UTC, as 2026-01-31T12:00:00Z, by the time of the run.

    `shas` are whole commit ids; `wanted` says for the present name of a benchmark whether its points matter.
    """

    since: str | None = None
    shas: frozenset[str] | None = None
    wanted: Callable[[str], bool] | None = None


class Store(Protocol):
    """A set of records that only grows, safe with many writers at once.

    Every method raises StoreError where the store cannot be reached, read or written; nothing unreadable is ever taken
    for empty. As a context manager it lets go of what it holds.
    """

    is_quick: bool = False  # to add to; else results are left in a file meanwhile

    @property
    def url(self) -> str:
        """The store as --store takes it, without any password."""
        ...

    def check_usable(self) -> None:
        """Find out before any work whether records can be added, and make the folder. UsageError if they cannot."""
        return

    def add(self, records: Sequence[Record]) -> int:
        """Keep these, durably; return how many were new. What is there already stays as it is."""
        ...

    def exists(self) -> bool:
        """Return whether there is a store; there is none before something was first kept in it."""
        ...

    def names(self) -> list[str]:
        """Return the names of all records, sorted. Cheap: no record is read."""
        ...

    def survey(self) -> Survey:
        """Return what `names` does, and instead of raising what could not be read on the way."""
        return Survey(names=self.names(), problems=[])

    def read(self, names: Iterable[str] | None = None, report: Report | None = None) -> Iterator[Record]:
        """Return these records, or all, in the order of their names. StoreError for a name that is not there.

        With `report`, what is damaged is reported and left out; without it is a StoreError.
        """
        ...

    def profile(self, name: str) -> bytes | None:  # noqa: ARG002
        """Return the whole result that was kept with this run, profiles and all; None where only the record was."""
        return None

    def check_profiles(self) -> None:
        """UsageError if this store keeps no profiles."""
        raise UsageError(f"{self.url} keeps no profiles", hint="leave --with-profile out, or store in files: file:DIR")

    def keep_profile(self, record: Record, result: Result) -> None:  # noqa: ARG002
        """Keep the whole result of this record's run, profiles and all, where `check_profiles` passes."""
        self.check_profiles()

    def remove(self, names: Collection[str]) -> int:
        """Forget these records; return how many there were. What cannot be read stays: StoreError if it holds one of them."""
        ...

    def snapshots(self, query: Query, report: Report | None = None) -> Iterator[Snapshot]:
        """Return the runs that are asked for, by time of commit, time of run and uid; renames are applied.

        With `report`, as `read` does.
        """
        ...

    def check(self) -> list[Problem]:
        """Read everything, and report what is wrong: unreadable, a wrong uid or name, duplicates."""
        ...

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of connections and locks."""
        return
