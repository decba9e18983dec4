"""Benchmarks that would spoil each other's files run one after the other, and all others side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cachegrind_bench.suite.lanes import Queue, lanes


@dataclass(frozen=True)
class Item:
    id: str
    command: tuple[str, ...] = ("true",)
    prepare: str | None = None
    cleanup: str | None = None
    cwd: Path = Path("/x")
    lane: int | None = None


def groups(*items: Item) -> list[str]:
    """Return the ids that share a lane, each group as one word."""
    found: dict[int, str] = {}
    for name, lane in lanes(items).items():
        found[lane] = found.get(lane, "") + name
    return sorted(found.values())


def test_benchmarks_without_prepare_and_cleanup_have_no_lane() -> None:
    assert lanes([Item("a"), Item("b")]) == {}


def test_the_same_prepare_or_cleanup_in_one_folder_means_the_same_files() -> None:
    assert groups(Item("a", ("a",), prepare="rm -f o"), Item("b", ("b",), prepare="rm -f o")) == ["ab"]
    assert groups(Item("a", ("a",), prepare="x"), Item("b", ("b",), cleanup="x")) == ["ab"]
    assert groups(Item("a", ("a",), prepare="x"), Item("b", ("b",), prepare="x", cwd=Path("/y"))) == ["a", "b"]
    assert groups(Item("a", ("a",), prepare="x"), Item("b", ("b",), prepare="y")) == ["a", "b"]


def test_the_same_command_with_different_preparations_means_the_same_files() -> None:
    assert groups(Item("a", ("sort", "in"), prepare="seq 1 > in"), Item("b", ("sort", "in"), prepare="seq 2 > in")) == [
        "ab"
    ]
    assert groups(Item("a", ("sort", "in"), prepare="seq 1 > in"), Item("b", ("sort", "in"))) == ["a"]


def test_one_that_has_something_in_common_with_two_joins_them() -> None:
    one, two = Item("a", ("a",), prepare="x"), Item("b", ("b",), cleanup="y")
    assert groups(one, two) == ["a", "b"]
    assert groups(one, two, Item("c", ("c",), prepare="x", cleanup="y"), Item("d", ("d",), cleanup="y")) == ["abcd"]


def test_a_queue_lets_all_begin_but_one_of_each_lane() -> None:
    jobs = [Item("a"), Item("b", lane=1), Item("c", lane=1), Item("d", lane=2), Item("e"), Item("f", lane=1)]
    queue = Queue(jobs)
    assert [job.id for job in queue.first()] == ["a", "b", "d", "e"]
    assert queue.after(jobs[0]) is None
    assert queue.after(jobs[3]) is None
    assert queue.after(jobs[1]) == jobs[2]
    assert queue.after(jobs[2]) == jobs[5]
    assert queue.after(jobs[5]) is None
