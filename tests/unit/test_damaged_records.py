"""A damaged record costs itself: whoever asks to be told of it gets all others."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachegrind_bench.errors import StoreError
from cachegrind_bench.store.checking import Inspection
from cachegrind_bench.store.files import FileStore, Folder
from cachegrind_bench.store.protocol import Query, Store
from cachegrind_bench.store.reading import renames_in
from cachegrind_bench.store.record_tree import MovedError, RecordTree
from cachegrind_bench.store.sql.store import SqlStore
from tests.unit.clones import Place
from tests.unit.stored import FEBRUARY, NAMES, RECORDS, RENAME, fold

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

DAMAGED = [NAMES[0], NAMES[4], NAMES[5], RENAME.name]
Damage = tuple[Store, "Callable[[], None]"]


def of_files(folder: Path) -> Damage:
    store = FileStore(folder / "s")

    def damage() -> None:
        for name in DAMAGED[:2]:
            (store.folder / name).write_bytes(b"{}\n")
        (store.folder / DAMAGED[2]).unlink()
        (store.folder / DAMAGED[2]).mkdir()
        (store.folder / DAMAGED[3]).write_bytes(b"")

    return store, damage


def of_git(folder: Path) -> Damage:
    place = Place(folder, "local")
    store = place.store()

    def damage() -> None:
        place.write({DAMAGED[0]: b"{}\n", **dict.fromkeys(DAMAGED[1:], "1234567890" * 4)})

    return store, damage


def of_sqlite(folder: Path) -> Damage:
    def damage() -> None:
        with closing(sqlite3.connect(folder / "h.db")) as connection:
            for name, data in zip(DAMAGED, (b"", "text", b"x", 7), strict=True):
                connection.execute("UPDATE cg_bench_records SET data = ? WHERE name = ?", (data, name))
            connection.commit()

    return SqlStore(f"sqlite:///{folder / 'h.db'}"), damage


@pytest.mark.parametrize("made", [of_files, of_git, of_sqlite])
def test_the_others_are_read_and_the_damaged_ones_are_named(tmp_path: Path, made: Callable[[Path], Damage]) -> None:
    store, damage = made(tmp_path)
    store.add([*RECORDS, RENAME, FEBRUARY])
    damage()
    for act in (lambda: list(store.snapshots(Query())), lambda: renames_in(store), lambda: list(store.read())):
        with pytest.raises(StoreError):
            act()
    found = Inspection()
    whole = [record for record in (*RECORDS, FEBRUARY) if record.name not in DAMAGED]
    assert {run.uid for run in store.snapshots(Query(), found.report)} == {record.uid for record in whole}
    assert renames_in(store, found.report) == {}
    assert [problem.where for problem in found.result()] == sorted(DAMAGED)
    assert [record.name for record in store.read(None, found.report)] == [record.name for record in whole]


def test_a_damaged_segment_costs_the_runs_from_there_on(tmp_path: Path) -> None:
    store, found = FileStore(tmp_path), Inspection()
    store.add([*RECORDS, FEBRUARY])
    segment = fold(store)
    segment.write_bytes(segment.read_bytes()[:-20])
    runs = {run.uid for run in store.snapshots(Query(), found.report)}
    assert {FEBRUARY.uid} <= runs < {record.uid for record in (*RECORDS, FEBRUARY)}
    assert [problem.where for problem in found.result()] == [f"segments/{segment.name}"]
    segment.write_bytes(b"nonsense")
    assert [run.uid for run in store.snapshots(Query(), found.report)] == [FEBRUARY.uid]


class Partly(Folder, frozen=True):
    """Files of which some cannot be read, and others are gone."""

    damaged: Collection[str] = ()
    gone: Collection[str] = ()

    def contents(self, names: Sequence[str]) -> Iterator[bytes]:
        if not names:
            raise StoreError("asked for nothing")  # as of a git that fails whatever it is asked for
        for name in names:
            if name in self.damaged:
                raise StoreError(name)
            if name in self.gone:
                raise MovedError
            yield name.encode()


@given(st.dictionaries(st.text("abcd", max_size=3), st.sampled_from(["good", "damaged", "gone"])))
def test_each_file_is_read_or_its_own_error_found(kinds: dict[str, str]) -> None:
    def of(kind: str) -> list[str]:
        return [name for name in kinds if kinds[name] == kind]

    files = Partly(place=None, damaged=of("damaged"), gone=of("gone"))  # type: ignore[arg-type]  # nothing is read
    found = list(RecordTree(files=files)._each(list(kinds)))
    assert [name for name, _ in found] == list(kinds)
    for name, data in found:
        kind = "good" if isinstance(data, bytes) else "damaged" if isinstance(data, StoreError) else "gone"
        assert kind == kinds[name]
        assert str(data) == (name if kind == "damaged" else "" if kind == "gone" else str(name.encode()))
