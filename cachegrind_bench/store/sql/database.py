"""One database: connections, transactions, patience with other writers, its tables, and what its errors mean to a user.

A database of an older version is brought to the newest step by step, in one transaction; a step that was released never
changes. Knows SQLAlchemy, SQLite and PostgreSQL; must not know records.
"""

from __future__ import annotations

import os
import random
import re
import socket
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, Engine, column, create_engine, delete, event, insert, inspect, select, table
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from cachegrind_bench.errors import StoreError, UsageError
from cachegrind_bench.model.text import without_password
from cachegrind_bench.store.durable import accept_absence
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    Step = Callable[[Connection], None]

# The names begin alike, as others may keep their tables in the same database.
VERSION = table("cg_bench_schema", column("version"))
# One row for each record; `data` is its bytes, compressed.
RECORDS = table("cg_bench_records", column("id"), column("uid"), column("name"), column("data"))

# Any number that others are unlikely to lock in the same database.
_LOCK = 0x63672D62656E6368

_LONGEST = 400

# Beginnings of codes: SQLite's have suffixes, PostgreSQL's have classes.
_TRANSIENT = ("SQLITE_BUSY", "SQLITE_LOCKED", "40001", "40P01")
_HINTS = {
    "SQLITE_BUSY": "another program has locked it for long: try again when that has ended",
    "SQLITE_LOCKED": "another program has locked it for long: try again when that has ended",
    "SQLITE_CANTOPEN": "make the folder first, and make sure that you may write in it",
    "SQLITE_NOTADB": "name another file",
    "SQLITE_FULL": "free some space",
    "SQLITE_READONLY": "make sure that you may write to the file and its folder",
    "SQLITE_CORRUPT": "restore the file from a copy, or 'cg-bench history sync' into a new one",
    "SQLITE_IOERR": "check the disk: does it work, and has it space?",
    "28": "check the user and the password; it can be in the URL, in PGPASSWORD or in ~/.pgpass",
    "3D": "make the database first: createdb",
    "42501": "ask the database's owner for the right to use, and the first time to create, the cg_bench_ tables",
    "25006": "this server is read-only, as replicas are: name the primary server",
    "53100": "free some space on the server",
    "53300": "the server has too many connections: try again later",
    "55P03": "another program has locked the tables for long: try again when that has ended",
}
_NO_CONNECTION = (
    "check that the server runs and can be reached, and that host, port, user, password and database are right"
)


def _code(error: DBAPIError) -> str:
    """Return the error's code, SQLite's name of it or PostgreSQL's five characters; empty where it has none."""
    for attribute in ("sqlite_errorname", "sqlstate"):
        code = getattr(error.orig, attribute, None)
        if isinstance(code, str):
            return code
    return ""


T = TypeVar("T")

_FORMS = "a database is sqlite:///PATH or postgresql://[USER@]HOST[:PORT]/DATABASE"
_QUOTING = "in a user's name, a password or an option write %40 for @, %3A for : and %2F for /"
_SQLITE = "sqlite:///"
_DRIVER = "postgresql+psycopg"
# Also what no server takes, but people write.
_SECRET = re.compile(r"pass(?!file)|pwd|secret|token", re.IGNORECASE)
# A server that is gone without a word is noticed: while we connect, while it answers, and while it takes what we send.
_PATIENCE = {"connect_timeout": 15, "keepalives_idle": 30, "keepalives_interval": 10, "tcp_user_timeout": 60_000}
_WRITING = "cg_bench_writing"
# Else a commit is acknowledged before it is on the disk.
_DURABLE = "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"
_SILENCE_S = 300.0  # of a server that was asked something
_TRY_S = 1.0  # that SQLite waits for a lock by itself, without a word


def _make_tables(connection: Connection) -> None:
    """Make the tables of version 1, but for those that version 2 is without."""
    postgresql = connection.dialect.name == "postgresql"
    # AUTOINCREMENT: the number of a removed record is never given to another.
    serial = "SERIAL PRIMARY KEY" if postgresql else "INTEGER PRIMARY KEY AUTOINCREMENT"
    blob = "BYTEA" if postgresql else "BLOB"
    connection.exec_driver_sql("CREATE TABLE cg_bench_schema (version INTEGER NOT NULL)")
    connection.exec_driver_sql(
        f"CREATE TABLE cg_bench_records (id {serial} NOT NULL, uid CHAR(16) NOT NULL, name TEXT NOT NULL,"
        f" data {blob} NOT NULL, UNIQUE (uid), UNIQUE (name))"
    )


def _drop_numbers(connection: Connection) -> None:
    """Drop what version 1 kept twice: the numbers that are in the records as well."""
    for name in ("points", "runs", "renames", "benchmarks", "keys", "models"):
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS cg_bench_{name}")


STEPS: tuple[Step, ...] = (_make_tables, _drop_numbers)


class Database:
    """A database at a URL; nothing is asked of it before the first transaction. `url` has no password.

    `patience` is how long, in seconds, one waits for other writers, unless `waiting` bounds it to less; `steps` lead to the
    newest version of the tables. Its methods raise StoreError, the constructor UsageError.
    """

    def __init__(
        self, url: str, *, patience: float, waiting: Waiting | None = None, steps: Sequence[Step] = STEPS
    ) -> None:
        self._waiting = waiting or Waiting()
        self._patience = patience = self._waiting.at_most(patience)
        self._steps = steps
        self._secrets: list[str] = []
        self.path: str | None = None
        if "\0" in url:
            raise UsageError("a URL has no NUL character in it", hint=_FORMS)
        if url.startswith(_SQLITE):
            self.url, path = url, url.removeprefix(_SQLITE)
            if path in {"", ":memory:"}:
                raise UsageError(f"{url} does not name a file", hint=_FORMS)
            self.path = os.path.abspath(path)
            self._engine = _sqlite(self.path, patience)
        else:
            parsed = _postgresql_url(url)
            self.url, self._secrets = _without_secrets(parsed)
            self._engine = _postgresql(parsed, self.url, self._waiting, patience)

    @contextmanager
    def reading(self) -> Generator[Connection | None]:
        """Hold a transaction that sees one state of the database; None where nothing was ever stored.

        An older database is left as it is: every version has the same table of records.
        """
        if self._is_missing():
            yield None
            return
        with self._errors("read"), ExitStack() as stack:

            def begin() -> Connection | None:
                with ExitStack() as own:
                    connection = own.enter_context(self._begin(writing=False))
                    version = self._version(connection)  # from then on, no writer is in the way
                    stack.push(own.pop_all())
                return connection if version else None

            yield self._patiently(begin)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do this in one transaction on the newest tables: from the start again, where another writer was in the way."""
        self._is_missing()  # SQLite would make a new file behind a link that leads nowhere
        with self._errors("write to"):
            return self._patiently(partial(self._once, work))

    def _patiently(self, attempt: Callable[[], T]) -> T:
        since = time.monotonic()
        while True:
            try:
                return attempt()
            except DBAPIError as error:
                # Else another writer was in the way, so that the same may go well now.
                past = time.monotonic() - since
                if not _code(error).startswith(_TRANSIENT) or past >= self._patience:
                    raise
            self._waiting.look(f"the lock of {self.url}", past)
            time.sleep(random.uniform(0.01, 0.2))  # noqa: S311  # so that the same two do not meet again

    def close(self) -> None:
        """Let go of connections."""
        self._engine.dispose()

    def _once(self, work: Callable[[Connection], T]) -> T:
        with self._begin(writing=True) as connection:
            self._lock(connection, "pg_advisory_xact_lock_shared")  # nobody migrates before this ends
            if self._version(connection) == len(self._steps):
                return work(connection)
        with self._begin(writing=True) as connection:
            # Of two at once, one waits for the other and then finds it done: SQLite's transactions that write exclude
            # each other, in PostgreSQL a lock does it.
            self._lock(connection, "pg_advisory_xact_lock")
            there = self._version(connection)
            for step in self._steps[there:]:
                step(connection)
            if there < len(self._steps):
                connection.execute(delete(VERSION))
                connection.execute(insert(VERSION).values(version=len(self._steps)))
            return work(connection)

    def _lock(self, connection: Connection, function: str) -> None:
        if self.path is None:
            connection.exec_driver_sql(f"SELECT {function}({_LOCK})")

    def _version(self, connection: Connection) -> int:
        """Return the version of this database, 0 where it has no tables of ours.

        StoreError if this program is too old for it, or if it is the file of another program: somebody named the wrong one.
        """
        if not inspect(connection).has_table(VERSION.name):
            others = [] if self.path is None else inspect(connection).get_table_names()
            if others:
                what = f"{self.url} is a database of another program: it has the table {min(others)[:80]!r}"
                raise StoreError(what, hint="name another file")
            return 0
        found: list[Any] = [*connection.scalars(select(VERSION.c.version))]
        if len(found) != 1 or not isinstance(found[0], int) or found[0] < 1:
            raise StoreError(f"{self.url} does not say which version it has: {VERSION.name} was altered")
        if found[0] > len(self._steps):
            raise StoreError(
                f"{self.url} has version {found[0]} of the tables, and this cg-bench knows versions up to {len(self._steps)}",
                hint="install a newer cachegrind-bench",
            )
        return found[0]

    @contextmanager
    def _begin(self, *, writing: bool) -> Generator[Connection]:
        # By turns: what others have just added must be seen, and one state of everything.
        level = {"isolation_level": "READ COMMITTED" if writing else "REPEATABLE READ"} if self.path is None else {}
        with self._engine.connect().execution_options(**{_WRITING: writing}, **level) as connection, connection.begin():
            if self.path is None:
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = {max(1, round(self._patience * 1000))}")
                if writing:
                    connection.exec_driver_sql(_DURABLE)
            yield connection
            if self.path is not None:  # the end waits for readers: to begin anew would lose the place
                self._patiently(partial(connection.exec_driver_sql, "COMMIT"))

    @contextmanager
    def _errors(self, doing: str) -> Generator[None]:
        """Turn an error into one for the user, as in `cannot read sqlite:///x.db: …`; none of the secrets is in it."""
        try:
            yield
        except (SQLAlchemyError, UnicodeError) as error:  # the latter for a damaged schema, or a host that can be none
            code, detail = "", str(error)
            hint = _NO_CONNECTION if type(error) in {UnicodeError, UnicodeEncodeError} else None
            if isinstance(error, DBAPIError):
                code, detail = _code(error), str(error.orig)
                lost = error.connection_invalidated or error.statement is None
                hints = (hint for start, hint in _HINTS.items() if code.startswith(start))
                hint = next(hints, _NO_CONNECTION if lost else None)
            for secret in self._secrets:
                detail = detail.replace(secret, "***")
            detail = " ".join(detail.split())[:_LONGEST]
            raise StoreError(f"cannot {doing} {self.url}: {detail}", hint=hint) from error

    def _is_missing(self) -> bool:
        """Return whether there is no file; one that cannot be looked at is there. StoreError if a link to it leads nowhere."""
        if self.path is None:
            return False
        try:
            os.stat(self.path)
        except FileNotFoundError:
            accept_absence(Path(self.path))
            return True
        except OSError:
            pass
        return False


def _sqlite(path: str, patience: float) -> Engine:
    # No pool: a connection that waits would hold the file open.
    url = URL.create("sqlite", database=path)
    engine = create_engine(url, connect_args={"timeout": min(patience, _TRY_S)}, poolclass=NullPool)

    def set_up(connection: Any, _: object) -> None:
        connection.isolation_level = None  # this module alone begins transactions
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = EXTRA")  # what was stored survives a power cut

    def begin(connection: Connection) -> None:
        # Writers take their turn at once: one that reads first and writes later cannot wait for another.
        writing = connection.get_execution_options().get(_WRITING)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    event.listen(engine, "connect", set_up)
    event.listen(engine, "begin", begin)
    return engine


def _postgresql(url: URL, shown: str, waiting: Waiting, patience: float) -> Engine:
    import psycopg

    silence = max(waiting.at_most(_SILENCE_S), patience) + _TRY_S  # the server itself ends waits for locks

    class Patient(psycopg.Connection[Any]):
        """Says so where the server does not answer, and hangs up in the end: one that is stopped keeps the connection."""

        def wait(self, *arguments: Any, **options: Any) -> Any:
            with ExitStack() as stack:
                line = stack.enter_context(socket.socket(fileno=os.dup(self.pgconn.socket)))
                stack.enter_context(waiting.watched(shown, silence, partial(line.shutdown, socket.SHUT_RDWR)))
                return super().wait(*arguments, **options)

    def connect(_dialect: object, _record: object, words: Any, options: Any) -> Any:
        with waiting.watched(shown):
            return Patient.connect(*words, **options)

    limits = {**_PATIENCE, "connect_timeout": max(2, round(waiting.at_most(_PATIENCE["connect_timeout"])))}
    # Text in UTF-8, whatever the server's default. No prepared statements: poolers between us and the server mix them up.
    arguments: dict[str, Any] = {
        "client_encoding": "utf8",
        "prepare_threshold": None,
        "fallback_application_name": "cg-bench",
        # What the URL says of these holds.
        **{name: value for name, value in limits.items() if name not in url.query},
    }
    # No pool: a connection that waited while something was measured may have been cut meanwhile.
    engine = create_engine(url, connect_args=arguments, poolclass=NullPool)
    event.listen(engine, "do_connect", connect)
    return engine


def _postgresql_url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (SQLAlchemyError, ValueError):
        parsed = None  # the exception would show the password
    if parsed is None or parsed.drivername not in {"postgresql", "postgres", _DRIVER}:
        raise UsageError(f"this is not the URL of a database: {without_password(url)[:80]}", hint=_FORMS)
    # Where a password has an @, SQLAlchemy takes its rest for the host, which errors show.
    after = "" if parsed.password is None else url.partition("//")[2].partition(":")[2].partition("@")[2]
    if "@" in f"{after}{parsed.host or ''}{parsed.database or ''}":
        raise UsageError(f"this URL has more than one @: {without_password(url)[:80]}", hint=_QUOTING)
    return parsed.set(drivername=_DRIVER)


def _without_secrets(url: URL) -> tuple[str, list[str]]:
    """Return the URL as it may be shown, and what was taken out."""
    secrets = [url.password] if url.password else []
    for name in sorted(filter(_SECRET.search, url.query)):
        value = url.query[name]
        secrets.extend([value] if isinstance(value, str) else value)
    # Without a password, and not one of asterisks.
    shown = url.difference_update_query(filter(_SECRET.search, url.query))._replace(
        drivername="postgresql", password=None
    )
    return shown.render_as_string(), sorted(secrets, key=lambda secret: (-len(secret), secret))
