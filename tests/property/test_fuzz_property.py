"""Damaged data of each format that others may have written: the right answer, or an error of one line. `make fuzz` tries a million."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.formats import CORPUS, FORMATS, try_one
from tests.fuzz.mutations import damaged


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=25)
@given(st.data())
def test_damaged_data_is_refused_in_one_line_or_read_rightly(name: str, data: st.DataObject) -> None:
    try_one(name, data.draw(damaged(FORMATS[name][1])))


@pytest.mark.parametrize("name", FORMATS)
def test_the_reader_of_each_format_takes_its_samples(name: str) -> None:
    assert any(try_one(name, sample) for sample in FORMATS[name][1])


def test_what_fell_once_does_not_fall_again() -> None:
    for path in CORPUS.glob("*/*"):
        try_one(path.parent.name, path.read_bytes())
