"""Records as rows of the table of records: their bytes, compressed, as many at once as memory and databases take.

Must not know what is in a record.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import select

from cachegrind_bench.errors import StoreError
from cachegrind_bench.store.reading import HINT
from cachegrind_bench.store.record import Record
from cachegrind_bench.store.sql import schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection

T = TypeVar("T")

# Whole records in memory at once, and values in one condition of a query.
FEW = 16
MANY = 500

# Far above any record; less than what a few damaged or hostile bytes can unfold to.
MOST = 1_000_000_000


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield these items in their order, so many at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))


def pack(record: Record) -> bytes:
    """Return the bytes to keep. StoreError for a record of absurd size."""
    if len(record.data) > MOST:
        raise StoreError(f"{record.name} has {len(record.data)} bytes, and a database takes {MOST}")
    return zlib.compress(record.data)


def unpack(name: str, packed: bytes) -> Record:
    """Return the record of these bytes. StoreError if they are damaged."""
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(packed, MOST)
    except zlib.error as error:
        raise StoreError(f"{name} is damaged in the database: {error}", hint=HINT) from error
    if not reader.eof or reader.unused_data:
        raise StoreError(f"{name} is damaged in the database: its bytes are cut off or too many", hint=HINT)
    return Record(name=name, data=data)


def stored(connection: Connection, names: Sequence[str]) -> list[tuple[int, str, str, bytes]]:
    """Return number, uid, name and packed bytes of those of these few records that are there, sorted by name."""
    table = schema.records.c
    found = connection.execute(select(table.id, table.uid, table.name, table.data).where(table.name.in_(names)))
    return sorted(((number, uid, name, data) for number, uid, name, data in found), key=lambda row: row[2])
