"""The comparability key."""

from __future__ import annotations

import re

from cachegrind_bench.model.result import comparability_key


def test_the_key_is_twelve_hex_digits_of_the_fields_in_any_order() -> None:
    key = comparability_key({"b": "2", "a": "1"})
    assert key == comparability_key({"a": "1", "b": "2"})
    assert re.fullmatch(r"[0-9a-f]{12}", key)


def test_the_key_never_changes_between_versions() -> None:
    # Written down once: another value would cut every stored history in two.
    assert comparability_key({"architecture": "x86_64", "valgrind": "3.24.0"}) == "660c825ae309"


def test_every_field_and_its_name_matter() -> None:
    keys = {
        comparability_key(fields)
        for fields in ({}, {"a": "1"}, {"a": "2"}, {"b": "1"}, {"a": "1", "b": ""}, {"a": '1","b":"'}, {"ä": "1"})
    }
    assert len(keys) == 7
