"""A segment gives back the very bytes that went in, and any damage to it is an error, never a shorter history."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import StoreError
from cachegrind_bench.store.record import Record, rename_record
from cachegrind_bench.store.segments import month_of, read_segment, segment_names
from tests.unit.samples import HOSTILE
from tests.unit.stored import measured, segment, stored

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS = sorted((stored(n, measured(HOSTILE, 1 + n)) for n in range(6)), key=lambda record: record.name)
NAMES = [record.name for record in RECORDS]


def all_of(name: str, data: bytes) -> list[Record]:
    return list(read_segment(io.BytesIO(data), name))


def test_what_went_in_comes_out() -> None:
    name, data = segment(RECORDS)
    assert month_of(name) == "2026-01"
    assert all_of(name, data) == RECORDS
    assert segment_names(io.BytesIO(data), name) == NAMES


def test_some_records_can_be_read_alone() -> None:
    name, data = segment(RECORDS)
    for wanted in ([], NAMES[:1], NAMES[-1:], NAMES[1:4:2], [*NAMES, "other"]):
        found = list(read_segment(io.BytesIO(data), name, {*wanted}))
        assert [record.name for record in found] == [name for name in NAMES if name in wanted]


def test_each_line_is_canonical_json_with_a_name_and_the_bytes_as_text() -> None:
    lines = gzip.decompress(segment(RECORDS)[1]).decode().splitlines()
    assert json.loads(lines[0]) == {"schema": "cg-bench.segment/1", "names": NAMES}
    assert [json.loads(line) for line in lines[1:]] == [
        {"name": record.name, "data": record.data.decode()} for record in RECORDS
    ]


@pytest.mark.parametrize(
    "records",
    [
        [],
        RECORDS[::-1],
        RECORDS[:1] * 2,
        [rename_record("a", "b", "2026-01-01T00:00:00Z")],
        [*RECORDS, stored(1, created_at="2026-02-01T00:00:00Z")],
        [Record(name=NAMES[0], data=RECORDS[1].data)],
    ],
)
def test_what_is_not_one_months_sorted_runs_is_refused(records: list[Record]) -> None:
    with pytest.raises(StoreError):
        all_of(*segment(records))


def test_a_segment_that_is_cut_off_anywhere_is_an_error() -> None:
    name, data = segment(RECORDS)
    for length in [*range(0, len(data), 7), len(data) - 1]:
        with pytest.raises(StoreError) as caught:
            all_of(name, data[:length])
        assert name in caught.value.message


def test_a_segment_with_any_byte_changed_is_an_error_or_still_gives_the_very_records() -> None:
    name, data = segment(RECORDS)
    refused = 0
    for place in range(0, len(data), 3):
        broken = data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]
        try:
            assert all_of(name, broken) == RECORDS  # a byte of gzip's header that means nothing here
        except StoreError:
            refused += 1
    assert refused > len(data) // 4


def repacked(change: Callable[[list[bytes]], object]) -> tuple[str, bytes]:
    name, data = segment(RECORDS)
    lines = gzip.decompress(data).splitlines(keepends=True)
    change(lines)
    return name, gzip.compress(b"".join(lines))


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines.pop(),
        lambda lines: lines.append(lines[-1]),
        lambda lines: lines.reverse(),
        lambda lines: lines.__setitem__(2, b"{}\n"),
        lambda lines: lines.__setitem__(2, lines[2].replace(b"sieve", b"Sieve")),
        lambda lines: lines.__setitem__(0, lines[0].replace(b"segment/1", b"segment/2")),
        lambda lines: lines.__setitem__(0, b'{"names":[7],"schema":"cg-bench.segment/1"}\n'),
    ],
)
def test_well_packed_nonsense_is_an_error(change: Callable[[list[bytes]], object]) -> None:
    name, data = repacked(change)
    with pytest.raises(StoreError):
        all_of(name, data)


def test_a_segment_under_another_name_is_an_error() -> None:
    name, data = segment(RECORDS)
    for other in (name.replace("2026-01", "2026-02"), name.replace(name[17:19], "zz"), "segments/x", ""):
        assert other != name
        with pytest.raises(StoreError):
            all_of(other, data)
    wrong = "0" * 8 if name[17:25] != "0" * 8 else "1" * 8
    with pytest.raises(StoreError, match="named after"):
        all_of(name.replace(name[17:25], wrong), data)


def test_only_names_of_segments_have_a_month() -> None:
    assert month_of("segments/2026-01.0123abcd.jsonl.gz") == "2026-01"
    for name in (
        "segments/2026-01.0123abcd.jsonl",
        "2026-01.0123abcd.jsonl.gz",
        "segments/2026-1.0123abcd.jsonl.gz",
        "",
    ):
        assert month_of(name) is None
