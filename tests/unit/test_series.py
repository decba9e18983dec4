"""Stored runs along a line of commits: which reading counts, and what is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.history.baseline import choose, of_commit
from cachegrind_bench.history.series import series_set
from cachegrind_bench.history.values import Differing, LeftOut
from cachegrind_bench.model.metrics import CostModel
from cachegrind_bench.model.result import Commit, CommitNote, Point, Score, Snapshot, Status
from cachegrind_bench.store.reading import snapshot
from cachegrind_bench.store.record import run_record
from tests.unit.comparing import counts, measured
from tests.unit.samples import result

if TYPE_CHECKING:
    from cachegrind_bench.history.baseline import Choice
    from cachegrind_bench.history.series import SeriesSet

KEY = "0123456789ab"


def sha(number: int) -> str:
    return f"{number:040x}"


def line(length: int) -> list[CommitNote]:
    return [
        CommitNote(
            sha=sha(number),
            parents=(sha(number - 1),) if number else (),
            committed_at=f"2026-01-{number + 1:02}T00:00:00Z",
            author="A",
            subject=f"commit {number}",
        )
        for number in range(length)
    ]


def point(ir: int = 1000, *, name: str = "a", key: str = KEY, model: str = "l1+5ll+30ram") -> Point:
    found = counts(ir)
    score = Score(model=model, value=CostModel.parse(model).score(found))
    return Point(id=name, key=key, status=Status.OK, counts=found, score=score)


def failure(name: str = "a") -> Point:
    return Point(id=name, key=KEY, status=Status.FAILED, counts=None, score=None)


def run(
    at: int | None, *points: Point, uid: str = "u", created_at: str = "2026-02-01T00:00:00Z", dirty: bool = False
) -> Snapshot:
    commit = None
    if at is not None:
        note = line(at + 1)[at]
        commit = Commit(sha=note.sha, parent=None, branch="main", dirty=dirty, committed_at=note.committed_at)
    return Snapshot(uid=uid, tool_version="1", created_at=created_at, commit=commit, env_key=KEY, points=points)


def values(found: SeriesSet) -> dict[str, list[tuple[int, int]]]:
    return {item.id: [(reading.index, reading.counts.Ir) for reading in item.readings] for item in found.series}


def test_readings_stand_where_their_commits_do() -> None:
    found = series_set([run(2, point(3)), run(0, point(1), point(7, name="b"))], line(4))
    assert values(found) == {"a": [(0, 1), (2, 3)], "b": [(0, 7)]}
    assert [len(item.failed) for item in found.series] == [0, 0]
    assert found.left_out == LeftOut()


def test_runs_that_belong_to_no_commit_of_the_line_are_counted_and_left_out() -> None:
    runs = [run(None, point()), run(9, point()), run(1, point(), dirty=True), run(9, point(), dirty=True)]
    found = series_set(runs, line(3))
    assert found.series == ()
    assert found.left_out == LeftOut(dirty=2, elsewhere=1, without_commit=1)


def test_of_several_runs_of_a_commit_the_last_counts_whatever_the_order() -> None:
    old = run(0, point(1), uid="a", created_at="2026-02-01T00:00:00Z")
    new = run(0, point(2), uid="b", created_at="2026-02-02T00:00:00Z")
    for runs in ([old, new], [new, old]):
        found = series_set(runs, line(1))
        assert values(found) == {"a": [(0, 2)]}
        assert found.left_out.differing == (Differing(benchmark="a", sha=sha(0)),)


def test_repeats_that_agree_or_have_another_key_do_not_differ() -> None:
    runs = [run(0, point(1)), run(0, point(1), uid="v"), run(1, point(1)), run(1, point(2, key="f" * 12), uid="v")]
    assert series_set(runs, line(2)).left_out.differing == ()


def test_a_failure_is_not_a_reading_and_is_forgotten_where_another_run_succeeded() -> None:
    found = series_set([run(0, failure()), run(1, failure()), run(1, point(5), uid="v"), run(2, failure("b"))], line(3))
    assert values(found) == {"a": [(1, 5)], "b": []}
    assert [item.failed for item in found.series] == [(0,), (2,)]


def test_values_are_scores_under_one_model_the_newest_unless_another_is_asked_for() -> None:
    runs = [run(0, point(1000)), run(1, point(1000, model="ir"))]
    (found,) = series_set(runs, line(2)).series
    assert (found.model, [reading.value for reading in found.readings]) == ("ir", [1000, 1000])
    (found,) = series_set(runs, line(2), model=CostModel.parse("l1+5ll+30ram")).series
    assert found.model == "l1+5ll+30ram"
    assert {reading.value for reading in found.readings} == {CostModel.parse("l1+5ll+30ram").score(counts(1000))}


def test_readings_without_caches_have_no_score_of_caches() -> None:
    only_ir = point(1200, model="ir")
    assert only_ir.counts is not None
    runs = [run(0, point(1000)), run(1, replace(only_ir, counts=only_ir.counts.without_caches()))]
    (found,) = series_set(runs, line(2)).series
    assert [reading.index for reading in found.readings] == [0, 1]
    (found,) = series_set(runs, line(2), model=CostModel.parse("l1+5ll+30ram")).series
    assert [reading.index for reading in found.readings] == [0]


def test_without_a_repository_commits_are_in_the_order_of_their_times() -> None:
    found = series_set([run(3, point(3)), run(1, point(1)), run(1, point(1), uid="v")])
    assert [note.sha for note in found.line] == [sha(1), sha(3)]
    assert values(found) == {"a": [(0, 1), (1, 3)]}


def test_what_fails_on_one_machine_has_failed_whatever_others_say() -> None:
    runs = [run(0, point(5)), replace(run(0, failure(), uid="b"), env_key="f" * 12), run(1, failure(), uid="c")]
    (found,) = series_set([*runs, run(1, point(5), uid="d")], line(2)).series
    assert found.failed == (0,)


# The choice of a baseline


CANDIDATE = result(measured("a", counts(1)), measured("b", counts(1)))


def stored(uid: str, *names: str, key: str | None = None, created_at: str = "2026-02-01T00:00:00Z") -> Snapshot:
    found = snapshot(run_record(replace(CANDIDATE, benchmarks=tuple(measured(name, counts(1)) for name in names))))
    return replace(found, uid=uid, env_key=key or found.env_key, created_at=created_at)


def chosen(choice: Choice) -> dict[str, tuple[str, int]]:
    return {name: (piece.run.uid, piece.distance) for name, piece in choice.pieces.items()}


def test_the_nearest_run_of_the_same_key_is_chosen_and_others_are_reported() -> None:
    other, fitting = stored("other", "a", "b", key="f" * 12), stored("fitting", "a", "b")
    runs = {"b": [other], "c": [fitting], "d": [stored("further", "a", "b")]}
    found = choose(["a", "b", "c", "d"], lambda name: runs.get(name, []), CANDIDATE)
    assert chosen(found) == {"a": ("fitting", 2), "b": ("fitting", 2)}
    assert (found.distance, found.other_keys, found.runs) == (2, (other,), (fitting,))


def test_of_one_commit_the_last_run_of_each_benchmark_is_chosen() -> None:
    old, new = stored("z", "a", "b"), stored("y", "a", created_at="2026-02-02T00:00:00Z")
    for runs in ([new, old], [old, new]):
        assert chosen(choose(["x"], {"x": runs}.__getitem__, CANDIDATE)) == {"a": ("y", 0), "b": ("z", 0)}
        assert chosen(of_commit(runs, None)) == {"a": ("y", 0), "b": ("z", 0)}


def test_where_nothing_fits_there_is_no_baseline() -> None:
    other = stored("other", "a", key="f" * 12)
    found = choose(["a", "b"], lambda name: [other] if name == "b" else [], CANDIDATE)
    assert (chosen(found), found.other_keys, found.runs, found.distance) == ({}, (other,), (), 0)
    assert chosen(of_commit([other], CANDIDATE)) == {"a": ("other", 0)}
    assert chosen(of_commit([], CANDIDATE)) == {}


def test_where_only_the_machine_fits_that_run_is_chosen_as_it_reports_what_differs() -> None:
    near = stored("near", "a", "b")
    near = replace(near, points=tuple(replace(point, key="f" * 12) for point in near.points))
    assert chosen(choose(["x", "y"], lambda name: [near] if name == "y" else [], CANDIDATE)) == {
        "a": ("near", 1),
        "b": ("near", 1),
    }


def test_the_newest_run_is_looked_for_once_however_many_benchmarks_ask_for_it() -> None:
    found = series_set([])
    assert found.newest == -1
    assert "newest" in vars(found)
