"""History in a database: SQLite or PostgreSQL, through SQLAlchemy Core.

SQLAlchemy is optional, so importing this package is a UsageError with advice where it is missing.
"""

from __future__ import annotations

from cachegrind_bench.errors import UsageError


def missing_package(error: ImportError) -> UsageError:
    """Return what to tell the user who lacks a package."""
    return UsageError(
        f"a history in a database needs a package that is not there: {error}",
        hint="pip install 'cachegrind-bench[sql]', or keep the history in files: --store file:DIR",
    )


try:
    import sqlalchemy as _sqlalchemy
except ImportError as error:
    raise missing_package(error) from error

del _sqlalchemy
