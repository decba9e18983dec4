"""Whatever a history holds: lines of JSON give it back byte for byte, tables with every number and name."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from cachegrind_bench.history.formats import csvformat, github_action_benchmark, jsonl
from cachegrind_bench.history.formats.fields import imported_record
from cachegrind_bench.model.result import Commit, Point, Score, Snapshot, Status
from cachegrind_bench.store.reading import snapshot
from cachegrind_bench.store.record import rename_record
from tests.property.strategies import counts, models, texts
from tests.unit.stored import measured, stored

if TYPE_CHECKING:
    from cachegrind_bench.model.metrics import CostModel, Counts

shas = st.text("0123456789abcdef", min_size=40, max_size=40)
keys = st.text("0123456789abcdef", min_size=12, max_size=12)
uids = st.text("0123456789abcdef", min_size=16, max_size=16)
times = st.datetimes().map(lambda when: f"{when.isoformat(timespec='seconds').zfill(19)}Z")
# Signs that mean something in one of the formats, more often than by chance.
odd_texts = texts | st.text("=+-@'\";,\t\r\n %\\ a", max_size=6)
commits = st.builds(
    Commit,
    sha=shas,
    parent=st.none() | shas,
    branch=st.none() | odd_texts.filter(bool),
    dirty=st.booleans(),
    committed_at=times,
)


def point(name: str, key: str, found: Counts | None, model: CostModel) -> Point:
    score = None if found is None else Score(model=model.name, value=model.score(found))
    return Point(id=name, key=key, status=Status.OK if found else Status.TIMEOUT, counts=found, score=score)


@st.composite
def runs(draw: st.DrawFn, *, failed: bool) -> Snapshot:
    names = draw(st.lists(odd_texts, min_size=1, max_size=3, unique=True))
    numbers = st.none() | counts if failed else counts
    return Snapshot(
        uid=draw(uids),
        tool_version=draw(odd_texts),
        created_at=draw(times),
        commit=draw(st.none() | commits),
        env_key=draw(keys),
        points=tuple(point(name, draw(odd_texts), draw(numbers), draw(models)) for name in names),
    )


@given(st.lists(runs(failed=True), max_size=3, unique_by=lambda run: run.uid))
def test_a_table_gives_every_run_back(found: list[Snapshot]) -> None:
    assert csvformat.read("".join(csvformat.write(found)), "h.csv") == found


@given(st.lists(runs(failed=True), min_size=1, max_size=2))
def test_no_cell_of_a_table_begins_like_a_formula(found: list[Snapshot]) -> None:
    for run in found:
        for item in run.points:
            for text in (item.id, item.key, run.tool_version):
                assert csvformat.guarded(text).lstrip()[:1] not in tuple("=+-@")
                assert csvformat.unguarded(csvformat.guarded(text)) == text


@given(runs(failed=False))
def test_entries_of_the_action_give_the_run_back(found: Snapshot) -> None:
    assert github_action_benchmark.read(github_action_benchmark.write(found), "x")[0] == [found]


@given(runs(failed=True))
def test_what_is_imported_has_the_same_numbers(found: Snapshot) -> None:
    again = snapshot(imported_record(found, "csv", "h.csv"))
    assert (again.created_at, again.commit) == (found.created_at, found.commit)
    assert [(item.id, item.counts, item.score) for item in again.points] == [
        (item.id, item.counts, item.score) for item in found.points
    ]


@given(st.lists(odd_texts, max_size=3, unique=True), texts, texts, st.booleans())
def test_lines_give_every_record_back_with_its_uid(names: list[str], old: str, new: str, spaced: bool) -> None:
    records = [stored(1, *(measured(name) for name in names)), rename_record(old, new, "2026-01-01T00:00:00Z")]
    data = b"".join(record.data for record in records)
    if spaced:
        data = b"\n".join(json.dumps(json.loads(line)).encode() for line in data.splitlines())
    found = list(jsonl.read(io.BytesIO(data), "h"))
    assert found == records
    assert [record.uid for record in found] == [record.uid for record in records]
