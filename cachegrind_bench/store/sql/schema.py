"""The tables of the newest version, as queries name them. How a database comes to have them is in `migrations`.

Everything numeric is in `points`, one narrow row for each benchmark of a run; texts are kept once, in lookup tables.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from sqlalchemy import (
    CHAR,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    TypeDecorator,
)

from cachegrind_bench.model.metrics import EVENTS
from cachegrind_bench.model.result import Status

if TYPE_CHECKING:
    from sqlalchemy import Dialect

# The numbers are in databases: they must stay.
STATUS_NUMBERS = {Status.OK: 0, Status.FAILED: 1, Status.TIMEOUT: 2, Status.ERROR: 3}
STATUSES = {number: status for status, number in STATUS_NUMBERS.items()}


class Words(TypeDecorator[str]):
    """Any text: PostgreSQL's cannot hold the character NUL, so NUL is written as SUB 0, and SUB as SUB 1."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Return the text as the database holds it."""
        return None if value is None else value.replace("\x1a", "\x1a1").replace("\0", "\x1a0")

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Return the text as it was."""
        return None if value is None else value.replace("\x1a0", "\0").replace("\x1a1", "\x1a")


def digest(name: str) -> str:
    """Return what a lookup table finds a text by: an index takes no text of any length, as a benchmark's id can be."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _lookup(name: str) -> Table:
    return Table(
        name,
        tables,
        Column("id", Integer, primary_key=True),
        Column("digest", CHAR(32), nullable=False, unique=True),
        Column("name", Words, nullable=False),
    )


# The names begin alike, as others may keep their tables in the same database.
tables = MetaData()

version = Table("cg_bench_schema", tables, Column("version", Integer, nullable=False))

# Every record, whole: `data` is its bytes, compressed.
records = Table(
    "cg_bench_records",
    tables,
    Column("id", Integer, primary_key=True),
    Column("uid", CHAR(16), nullable=False, unique=True),
    Column("name", Text, nullable=False, unique=True),
    Column("data", LargeBinary, nullable=False),
)

# What follows is drawn from the records, so that they need not be read.
runs = Table(
    "cg_bench_runs",
    tables,
    Column("id", Integer, ForeignKey(records.c.id, ondelete="CASCADE"), primary_key=True),
    Column("tool_version", Words, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("env_key", Text, nullable=False),
    Column("sha", Text),
    Column("parent", Text),
    Column("branch", Words),
    Column("dirty", Boolean),
    Column("committed_at", Text),
)
renames = Table(
    "cg_bench_renames",
    tables,
    Column("id", Integer, ForeignKey(records.c.id, ondelete="CASCADE"), primary_key=True),
    Column("old", Words, nullable=False),
    Column("new", Words, nullable=False),
    Column("created_at", Text, nullable=False),
)
benchmarks = _lookup("cg_bench_benchmarks")
keys = _lookup("cg_bench_keys")
models = _lookup("cg_bench_models")

# Events in lower case, so that a query by hand may write Ir without quotes: PostgreSQL folds it.
# `position` is that of the benchmark in its run.
points = Table(
    "cg_bench_points",
    tables,
    Column("run", Integer, ForeignKey(runs.c.id, ondelete="CASCADE"), primary_key=True),
    Column("benchmark", Integer, ForeignKey(benchmarks.c.id), primary_key=True),
    Column("key", Integer, ForeignKey(keys.c.id), nullable=False),
    Column("position", Integer, nullable=False),
    Column("status", SmallInteger, nullable=False),
    *(Column(event.lower(), BigInteger) for event in EVENTS),
    Column("model", Integer, ForeignKey(models.c.id)),
    Column("score", BigInteger),
)
