"""What a database's errors mean to a user: which pass by themselves, and what to try against the others.

Knows the codes of SQLite and PostgreSQL; must not know what was asked of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from cachegrind_bench.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy.exc import SQLAlchemyError

_LONGEST = 400

# Beginnings of codes: SQLite's have suffixes, PostgreSQL's have classes.
_TRANSIENT = ("SQLITE_BUSY", "SQLITE_LOCKED", "40001", "40P01")
_HINTS = {
    "SQLITE_BUSY": "another program holds it for long: try again when that has ended",
    "SQLITE_LOCKED": "another program holds it for long: try again when that has ended",
    "SQLITE_CANTOPEN": "make the folder first, and see that you may write in it",
    "SQLITE_NOTADB": "name another file",
    "SQLITE_FULL": "free some space",
    "SQLITE_READONLY": "see that you may write the file and in its folder",
    "SQLITE_CORRUPT": "restore the file from a copy, or 'cg-bench history sync' into a new one",
    "SQLITE_IOERR": "see that the disk is well and has space",
    "28": "check the user and the password; it can stand in the URL, in PGPASSWORD or in ~/.pgpass",
    "3D": "make the database first: createdb",
    "42501": "ask the database's owner for the right to use, and the first time to create, the cg_bench_ tables",
    "25006": "this server only answers, as copies do: name the one that takes changes",
    "53100": "free some space on the server",
    "53300": "the server has too many connections: try again later",
    "55P03": "another program holds the tables for long: try again when that has ended",
}
_NO_CONNECTION = (
    "see that the server runs and can be reached, and that host, port, user, password and database are right"
)


def is_transient(error: DBAPIError) -> bool:
    """Tell whether another writer was in the way, so that the same may go well now."""
    return _code(error).startswith(_TRANSIENT)


def store_error(error: SQLAlchemyError, doing: str, url: str, secrets: Iterable[str]) -> StoreError:
    """Return what to tell the user, as in `cannot read sqlite:///x.db: …`; none of the secrets is in it."""
    code, detail, hint = "", str(error), None
    if isinstance(error, DBAPIError):
        code, detail = _code(error), str(error.orig)
        lost = error.connection_invalidated or error.statement is None
        hint = next(
            (hint for start, hint in _HINTS.items() if code.startswith(start)), _NO_CONNECTION if lost else None
        )
    for secret in secrets:
        detail = detail.replace(secret, "***")
    detail = " ".join(detail.split())
    return StoreError(f"cannot {doing} {url}: {detail[:_LONGEST]}", hint=hint)


def _code(error: DBAPIError) -> str:
    """Return the error's code, SQLite's name of it or PostgreSQL's five characters; empty where it has none."""
    for attribute in ("sqlite_errorname", "sqlstate"):
        code = getattr(error.orig, attribute, None)
        if isinstance(code, str):
            return code
    return ""
