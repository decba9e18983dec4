"""What holds for all results, scores and profiles."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.metrics import EVENTS, ZERO, CostModel, Counts, Profile, merge_profiles
from tests.property.strategies import counts, models, profiles, results, sensible_models

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Result


def read_or_refused(data: bytes) -> Result | None:
    """Return the result, or None for bytes that are refused with the file's name."""
    told = ""
    try:
        return decode(data, "r.json")
    except FileFormatError as error:
        told = str(error)
    assert told.startswith("r.json:")
    return None


@given(results())
def test_what_is_written_is_read_again_and_the_bytes_are_stable(result: Result) -> None:
    data = encode(result)
    again = decode(data, "r.json")
    assert again == result
    assert encode(again) == data


@given(results(), st.data())
def test_a_damaged_file_is_read_as_a_whole_or_refused_never_half(result: Result, data: st.DataObject) -> None:
    content = encode(result)
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 20)))
    damaged = content[:start] + data.draw(st.binary(max_size=8)) + content[end:]
    found = read_or_refused(damaged)
    if found is not None:
        assert decode(encode(found), "r.json") == found


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_other_json_is_refused_with_the_files_name(value: object) -> None:
    assert read_or_refused(json.dumps(value).encode()) is None


@given(sensible_models, counts, st.sampled_from(EVENTS), st.integers(1, 10**9))
@example(CostModel(1, 5, 30), ZERO, "DLmw", 1)
def test_one_event_more_never_lowers_the_score(model: CostModel, base: Counts, event: str, more: int) -> None:
    values = base.as_dict()
    values[event] += more
    assert model.score(Counts(**values)) >= model.score(base)


@given(models, counts, counts)
def test_scores_add_up_as_counts_do(model: CostModel, one: Counts, other: Counts) -> None:
    assert model.score(one + other) == model.score(one) + model.score(other)


@given(models)
def test_a_model_is_read_from_its_name(model: CostModel) -> None:
    assert CostModel.parse(model.name) == model


@given(st.lists(profiles, min_size=1, max_size=4))
def test_merged_profiles_add_up_row_by_row(parts: list[Profile]) -> None:
    merged = merge_profiles(parts)
    assert merged.totals() == tuple(map(sum, zip(*(part.totals() for part in parts), strict=True)))
    wanted: Counter[tuple[str, str]] = Counter()
    for part in parts:
        for row in part.functions:
            wanted[row.file, row.name] += row.counts[0]
    assert {(row.file, row.name): row.counts[0] for row in merged.functions} == wanted
    keys = [(row.file, row.name) for row in merged.functions]
    assert keys == sorted(set(keys))


@given(st.lists(profiles, min_size=1, max_size=4), st.randoms())
def test_the_order_of_merging_does_not_matter(parts: list[Profile], random: object) -> None:
    shuffled = list(parts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis hands in a random.Random
    assert merge_profiles(shuffled) == merge_profiles(parts)
