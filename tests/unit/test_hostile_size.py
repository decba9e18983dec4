"""Hostile files: long names are cut in errors, and what no honest writer makes is an error with a name."""

from __future__ import annotations

import zlib

import pytest

from cachegrind_bench.errors import CgBenchError, MeasurementError, StoreError
from cachegrind_bench.model.metrics import FunctionCost, Profile
from cachegrind_bench.store.sql.store import _unpack  # pyright: ignore[reportPrivateUsage]
from cachegrind_bench.valgrind.processes import in_order


def test_an_error_quotes_at_most_some_lines_of_a_hostile_name() -> None:
    assert len(CgBenchError("x" * 1_000_000).message) < 2_100
    assert CgBenchError("x" * 2_000).message == "x" * 2_000


def test_an_out_file_without_one_of_the_nine_events_is_an_error_that_names_it() -> None:
    profile = Profile(events=("Ir", "Dr"), functions=(FunctionCost("a", "b", (1, 1)),))
    with pytest.raises(MeasurementError, match="no counts of I1mr"):
        in_order(profile)


@pytest.mark.parametrize("cell", [None, 1, 1.5, "text"])
def test_a_cell_of_another_type_is_a_damaged_record(cell: object) -> None:
    with pytest.raises(StoreError, match=r"is damaged in the database: .*bytes"):
        _unpack("runs/x.json", cell)
    assert _unpack("runs/x.json", zlib.compress(b"a")).data == b"a"
