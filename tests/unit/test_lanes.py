"""Benchmarks that would spoil each other's files run one after the other, and all others side by side."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

from cachegrind_bench.config.benchmarks import BenchmarkSpec
from cachegrind_bench.suite.execute import Job
from cachegrind_bench.suite.schedule import Queue, lanes


def item(
    id: str,  # noqa: A002 - its name
    command: tuple[str, ...] = ("true",),
    prepare: str | None = None,
    cleanup: str | None = None,
    cwd: Path = Path("/x"),
) -> BenchmarkSpec:
    return BenchmarkSpec(id=id, command=command, prepare=prepare, cleanup=cleanup, cwd=cwd, parameters={}, place="")


def job(name: str, lane: int | None = None) -> Job:
    return Job(spec=item(name), plan=Mock(), lane=lane)


def groups(*items: BenchmarkSpec) -> list[str]:
    """Return the ids that share a lane, each group as one word."""
    found: dict[int, str] = {}
    for name, lane in lanes(items).items():
        found[lane] = found.get(lane, "") + name
    return sorted(found.values())


def test_benchmarks_without_prepare_and_cleanup_have_no_lane() -> None:
    assert lanes([item("a"), item("b")]) == {}


def test_the_same_prepare_or_cleanup_in_one_folder_means_the_same_files() -> None:
    assert groups(item("a", ("a",), prepare="rm -f o"), item("b", ("b",), prepare="rm -f o")) == ["ab"]
    assert groups(item("a", ("a",), prepare="x"), item("b", ("b",), cleanup="x")) == ["ab"]
    assert groups(item("a", ("a",), prepare="x"), item("b", ("b",), prepare="x", cwd=Path("/y"))) == ["a", "b"]
    assert groups(item("a", ("a",), prepare="x"), item("b", ("b",), prepare="y")) == ["a", "b"]


def test_the_same_command_with_different_preparations_means_the_same_files() -> None:
    assert groups(item("a", ("sort", "in"), prepare="seq 1 > in"), item("b", ("sort", "in"), prepare="seq 2 > in")) == [
        "ab"
    ]
    assert groups(item("a", ("sort", "in"), prepare="seq 1 > in"), item("b", ("sort", "in"))) == ["a"]


def test_one_that_has_something_in_common_with_two_joins_them() -> None:
    one, two = item("a", ("a",), prepare="x"), item("b", ("b",), cleanup="y")
    assert groups(one, two) == ["a", "b"]
    assert groups(one, two, item("c", ("c",), prepare="x", cleanup="y"), item("d", ("d",), cleanup="y")) == ["abcd"]


def test_a_queue_lets_all_begin_but_one_of_each_lane() -> None:
    jobs = [job("a"), job("b", lane=1), job("c", lane=1), job("d", lane=2), job("e"), job("f", lane=1)]
    queue = Queue(jobs)
    assert [found.spec.id for found in queue.first()] == ["a", "b", "d", "e"]
    assert queue.after(jobs[0]) is None
    assert queue.after(jobs[3]) is None
    assert queue.after(jobs[1]) == jobs[2]
    assert queue.after(jobs[2]) == jobs[5]
    assert queue.after(jobs[5]) is None
