"""Hostile files that are large or long: refused at a bound that the error names, or cut where they are shown."""

from __future__ import annotations

import json
import zlib

import pytest

from cachegrind_bench.errors import CgBenchError, FileFormatError, MeasurementError, StoreError
from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.metrics import FunctionCost, Profile
from cachegrind_bench.model.text import LONGEST_CELL, in_line
from cachegrind_bench.render.markdown import table
from cachegrind_bench.render.table import Report, aligned, render, wrapped
from cachegrind_bench.store.sql.store import _unpack  # pyright: ignore[reportPrivateUsage]
from cachegrind_bench.valgrind.processes import in_order
from tests.unit.samples import result


def test_an_error_quotes_at_most_some_lines_of_a_hostile_name() -> None:
    assert len(CgBenchError("x" * 1_000_000).message) < 2_100
    assert CgBenchError("x" * 2_000).message == "x" * 2_000


def test_a_name_of_a_million_characters_does_not_make_each_row_as_wide() -> None:
    rows = [("x" * 1_000_000, "1"), *[("a", "2")] * 6]
    assert sum(map(len, aligned(rows))) < 10_000
    assert len(table(("name", "count"), rows)) < 10_000


@pytest.mark.parametrize("name", ["env.fields", "env.info", "benchmarks[0].key_fields", "benchmarks[0].parameters"])
def test_a_result_with_more_fields_than_a_report_can_show_is_refused(name: str) -> None:
    document = json.loads(encode(result()))
    place = document["env"] if name.startswith("env") else document["benchmarks"][0]
    place[name.rpartition(".")[2]] = {str(number): "" for number in range(10_001)}
    with pytest.raises(FileFormatError) as caught:
        decode(json.dumps(document).encode(), "r.json")
    assert caught.value.message == f"r.json: {name}: expected an object of length <= 10000"


def test_the_lines_of_a_report_are_no_longer_than_one_can_read() -> None:
    long = "x" * 1_000_000
    text = render(Report(title=long, sections=(), warnings=(long,)))
    assert len(text) < 2_100
    assert len(render(Report(title=long, sections=(), warnings=(long,)), "markdown")) < 2_100
    assert len(in_line("\0" * 1_000_000)) == LONGEST_CELL


def test_an_out_file_without_one_of_the_nine_events_is_an_error_that_names_it() -> None:
    profile = Profile(events=("Ir", "Dr"), functions=(FunctionCost("a", "b", (1, 1)),))
    with pytest.raises(MeasurementError, match="no counts of I1mr"):
        in_order(profile)


@pytest.mark.parametrize("cell", [None, "text"])
def test_a_cell_of_another_type_is_a_damaged_record(cell: object) -> None:
    with pytest.raises(StoreError, match=r"is damaged in the database: .*bytes"):
        _unpack("runs/x.json", cell)
    assert _unpack("runs/x.json", zlib.compress(b"a")).data == b"a"


@pytest.mark.parametrize("width", range(10, 40))
def test_no_line_that_is_wrapped_begins_with_a_command_to_github(width: int) -> None:
    text = "some words ::error::bad and ::warning::worse of 5 % more words"
    lines = wrapped(text, width)
    assert not any(line.lstrip().startswith("::") for line in lines)
    assert " ".join(lines) == text
