"""The store `sqlite:///PATH` or `postgresql://…`: many writers, and histories read without unpacking a run.

What the Store protocol asks for, each method a transaction or a few; the statements are in the modules beside it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self

from sqlalchemy import delete, select

from cachegrind_bench.errors import StoreError
from cachegrind_bench.store.checking import checked, intact
from cachegrind_bench.store.protocol import Survey
from cachegrind_bench.store.sql import audit, ingest, schema
from cachegrind_bench.store.sql.database import Database
from cachegrind_bench.store.sql.ingest import FEW, MANY, chunks, stored, unpack
from cachegrind_bench.store.sql.query import snapshots

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from sqlalchemy import Connection

    from cachegrind_bench.model.history import Snapshot
    from cachegrind_bench.store.protocol import Problem, Query
    from cachegrind_bench.store.record import Record

_PATIENCE = 60.0


class SqlStore:
    """A database of records. Made when something is first added; one of an older version is brought to the newest.

    `patience` is how long, in seconds, one waits for other writers before that is an error. UsageError for a bad URL.
    """

    def __init__(self, url: str, *, patience: float = _PATIENCE) -> None:
        self._database = Database(url, patience=patience)

    @property
    def url(self) -> str:
        """The store as --store takes it, without any password."""
        return self._database.url

    def add(self, records: Sequence[Record]) -> int:
        """Keep these, durably; return how many were new. Of a batch all are kept or none, and another try does no harm."""
        count = 0
        for some in chunks([*checked(records).values()], FEW):
            batch = [ingest.prepare(record) for record in some]
            count += self._database.write(partial(ingest.add, batch=batch))
        return count

    def exists(self) -> bool:
        """Tell whether there are tables."""
        with self._database.reading() as connection:
            return connection is not None

    def names(self) -> list[str]:
        """Return the names of all records, sorted."""
        with self._database.reading() as connection:
            return [] if connection is None else sorted(connection.scalars(select(schema.records.c.name)))

    def survey(self) -> Survey:
        """Return the names of all records; nothing hides one from a database that answers."""
        return Survey(names=self.names(), problems=[])

    def read(self, names: Iterable[str] | None = None) -> Iterator[Record]:
        """Return these records, or all, in the order of names. StoreError for one that is missing or damaged."""
        for some in chunks(self.names() if names is None else sorted(set(names)), FEW):
            with self._database.reading() as connection:
                rows = [] if connection is None else stored(connection, some)
            missing = {*some} - {name for _, _, name, _ in rows}
            if missing and names is not None:
                raise StoreError(f"{self.url} has no {min(missing)[:200]}")
            for _, _, name, packed in rows:
                yield intact(unpack(name, packed), name)

    def profile(self, name: str) -> bytes | None:  # noqa: ARG002
        """Return None: a database keeps no profiles."""
        return None

    def remove(self, names: Collection[str]) -> int:
        """Forget these records; return how many there were."""
        count = 0
        for some in chunks(sorted(set(names)), MANY) if self.names() else ():
            count += self._database.write(partial(_remove, names=some))
        return count

    def snapshots(self, query: Query) -> Iterator[Snapshot]:
        """Return the runs that are asked for, by time of commit, time of run and uid; renames are applied."""
        return snapshots(self._database, query)

    def check(self) -> list[Problem]:
        """Read everything, and tell what is wrong, also where the numbers are not those of the records."""
        return audit.check(self._database)

    def compact(self, before: str) -> int:  # noqa: ARG002
        """Do nothing: a database has no files to fold. Return 0."""
        return 0

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of connections."""
        self._database.close()


def _remove(connection: Connection, names: Sequence[str]) -> int:
    """Remove these records; what was drawn from them goes with them. In one order, so that nobody waits in a circle."""
    records = schema.records.c
    statement = select(records.id).where(records.name.in_(names)).order_by(records.id).with_for_update()
    numbers = connection.scalars(statement).all()
    return connection.execute(delete(schema.records).where(records.id.in_(numbers))).rowcount
