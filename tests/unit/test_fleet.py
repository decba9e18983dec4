"""What is said of the workers of a fleet, and how the answers to parts of a suite become one result."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import msgspec
import pytest

from cachegrind_bench.cli.fleet import report_of
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.model.codec import encode
from cachegrind_bench.model.result import Environment
from cachegrind_bench.usecases.backfill import Work
from cachegrind_bench.usecases.commit_task import Answer, Machine, Order
from cachegrind_bench.usecases.dask_workers import connected
from cachegrind_bench.usecases.executors import Workforce
from cachegrind_bench.usecases.measurement import MeasureRequest
from cachegrind_bench.usecases.selection import SelectRequest
from cachegrind_bench.usecases.spread import measured_by
from cachegrind_bench.usecases.worktrees import Overlay
from cachegrind_bench.valgrind.options import Geometry
from cachegrind_bench.vcs.revisions import Repository
from cachegrind_bench.waiting import Waiting
from tests.unit.samples import benchmark, result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.model.result import Result

INFO: dict[str, str | int] = {"cpus_online": 16, "libc": "glibc 2.36", "python": "3.12.1"}


def machine(valgrind: str, **unsealed: str) -> Machine:
    fields = {"valgrind": valgrind}
    environment = Environment(key=valgrind, fields=fields, info=INFO)
    return Machine(name="host", key=valgrind, fields=fields, environment=environment, unsealed=unsealed)


def test_workers_are_in_sets_that_measure_alike_the_largest_first() -> None:
    found = {"a": machine("3.24"), "b": machine("3.19", place="not root", scheduling="busy"), "c": machine("3.19")}
    said = report_of({**found, "d": "Valgrind was not found on PATH"}, {"a": 2, "b": 4})
    assert said.title == "4 workers: 2 and 1 measure alike"
    (section,) = said.sections
    assert [row[:2] for row in section.rows] == [("1", "b"), ("1", "c"), ("2", "a")]
    assert section.rows[0][2:] == ("host", "16", "4", "3.19", "glibc 2.36", "3.12.1", "not place")
    assert said.warnings == (
        "those of set 2 cannot be compared with set 1: valgrind is 3.24, not 3.19",
        "d cannot measure: Valgrind was not found on PATH",
        "b: not sealed is place: not root",
    )


def test_a_fleet_that_cannot_measure_has_no_table() -> None:
    said = report_of({"d": "Valgrind was not found on PATH"}, {})
    assert (said.title, said.sections) == ("1 worker: none can measure", ())


class Noting(Executor):
    """Notes the words of orders."""

    def __init__(self) -> None:
        self.words: list[tuple[str, ...]] = []

    def submit(self, _task: Any, order: Order, /) -> Future[Any]:  # type: ignore[override]
        self.words.append(order.words)
        return Future()


def workforce(executor: Executor, of: Result) -> Workforce:
    known = Machine(name="m", key="k", fields={}, environment=of.env, unsealed={})
    return Workforce(
        executor=executor, task=lambda _order: Answer(machine="m", result=None, failure=None), width=2, machine=known,
        repository=Path(),
    )  # fmt: skip


def answers(*results: Result) -> Sequence[Answer]:
    return [Answer(machine=str(number), result=encode(item), failure=None) for number, item in enumerate(results)]


def test_a_suite_in_parts_is_ordered_by_shards_and_a_whole_one_is_not() -> None:
    executor, one = Noting(), result()
    order = Order(
        repository=Path(), sha="1" * 40, within=".", words=("-q",), select=SelectRequest(),
        overlay=Overlay(configuration=None), sharing=True,
    )  # fmt: skip
    force = workforce(executor, one)
    assert len(force.submit(order)) == 1
    assert len(force.submit(order, 2)) == 2
    assert executor.words == [("-q",), ("--shard", "1/2", "-q"), ("--shard", "2/2", "-q")]


def test_the_parts_of_a_commit_are_one_result_and_nothing_else_is() -> None:
    one, other = result(benchmark(id="a")), result(benchmark(id="b"))
    assert one.commit is not None
    sha, force = one.commit.sha, workforce(Noting(), one)
    whole = force.result(sha, answers(one, other))
    assert [item.id for item in whole.benchmarks] == ["a", "b"]
    assert whole.commit is not None
    assert not whole.commit.dirty
    with pytest.raises(MeasurementError, match="make: no rule"):
        force.result(sha, [*answers(one), Answer(machine="2", result=None, failure="make: no rule")])
    with pytest.raises(MeasurementError, match="of another commit"):
        force.result("2" * 40, answers(one))
    with pytest.raises(MeasurementError, match="a: "):
        force.result(sha, answers(one, result(benchmark(id="a", exit_status=3))))


@pytest.mark.parametrize(("said", "kind"), [("x", "str"), (None, "NoneType")])
def test_a_worker_that_answers_with_something_else_is_one_failure(said: object, kind: str) -> None:
    future: Future[Any] = Future()
    future.set_result(said)
    answer = workforce(Noting(), result()).answer(future)
    assert (answer.result, answer.failure) == (None, f"its worker failed: TypeError: it answered with {kind}")


def test_workers_that_hang_are_not_waited_for() -> None:
    dask_workers = pytest.importorskip("cachegrind_bench.usecases.dask_workers", reason="needs the extra fleet")

    def run(*_: object, callback_timeout: int, workers: list[str], **_options: object) -> dict[str, Machine]:
        assert callback_timeout == 60
        if workers == ["tcp://b"]:
            raise TimeoutError
        return dict.fromkeys(workers, machine("3.24"))

    now = datetime(2026, 1, 31, tzinfo=UTC)
    request = MeasureRequest(command=("true",), now=now, geometry=Geometry(), cwd=Path(), environ={})
    with pytest.raises(MeasurementError, match="the workers do not answer: tcp://b did not within 60 s"):
        dask_workers.machines(MagicMock(run=run, nthreads=lambda: {"tcp://a": 1, "tcp://b": 1}), request, Waiting())


@pytest.mark.parametrize("asked", ["register_plugin", "nthreads", "unregister_worker_plugin"])
def test_a_scheduler_that_goes_before_its_client_knows_is_one_error(asked: str) -> None:
    dask_workers = pytest.importorskip("cachegrind_bench.usecases.dask_workers", reason="needs the extra fleet")
    client = MagicMock(status="running")
    client.run.return_value = {"tcp://a": machine("3.24")}
    client.nthreads.return_value = {"tcp://a": 1}
    now = datetime(2026, 1, 31, tzinfo=UTC)
    request = MeasureRequest(command=("true",), now=now, geometry=Geometry(), cwd=Path(), environ={})
    source = MagicMock(digest="d")
    getattr(client, asked).side_effect = ConnectionAbortedError("Stream is closed")
    if asked == "unregister_worker_plugin":
        with dask_workers.workforce(client, request, source, None, MagicMock()) as force:
            client.nthreads.side_effect = ConnectionAbortedError("Stream is closed")
            with pytest.raises(MeasurementError, match="the Dask scheduler went away"):
                force.check()
        return
    said = pytest.raises(MeasurementError, match="the workers do not answer: Stream is closed")
    with said, dask_workers.workforce(client, request, source, None, MagicMock()):
        pass


@pytest.mark.parametrize("hangs", ["register_plugin", "nthreads", "unregister_worker_plugin", "get_executor"])
def test_a_scheduler_that_is_stopped_is_not_waited_for(hangs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dask_workers = pytest.importorskip("cachegrind_bench.usecases.dask_workers", reason="needs the extra fleet")
    for name in ("_CONNECT_S", "_ANSWER_S", "_GIT_S"):
        monkeypatch.setattr(dask_workers, name, 0.1)
    client, over = MagicMock(status="running"), threading.Event()
    client.run.return_value = {"tcp://a": machine("3.24")}
    client.nthreads.return_value = {"tcp://a": 1}
    now = datetime(2026, 1, 31, tzinfo=UTC)
    request = MeasureRequest(command=("true",), now=now, geometry=Geometry(), cwd=Path(), environ={})

    def hang(*_: object, **__: object) -> None:
        over.wait()

    if hangs == "register_plugin":
        client.register_plugin.side_effect = hang
        silent = pytest.raises(MeasurementError, match=r"the workers do not answer: not all did within 0\.1 s")
        with silent, dask_workers.workforce(client, request, MagicMock(digest="d"), None, MagicMock()):
            pass
    else:
        with dask_workers.workforce(client, request, MagicMock(digest="d"), None, MagicMock()) as force:
            if hangs == "nthreads":
                client.nthreads.side_effect = hang
                with pytest.raises(MeasurementError, match="the Dask scheduler went away"):
                    force.check()
            client.unregister_worker_plugin.side_effect = client.get_executor().shutdown.side_effect = hang
    over.set()


def test_a_scheduler_that_never_answers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    dask_workers = pytest.importorskip("cachegrind_bench.usecases.dask_workers", reason="needs the extra fleet")
    monkeypatch.setattr(dask_workers, "_CONNECT_S", 0.1)
    over = threading.Event()
    monkeypatch.setattr(dask_workers, "_connect", lambda *_, **__: over.wait())
    silent = pytest.raises(MeasurementError, match=r"tcp://x:1 cannot be reached: it does not answer within 0\.2 s")
    with silent, connected("tcp://x:1", Waiting()):
        pass
    over.set()


def test_a_part_that_takes_long_is_reported(monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.setattr("cachegrind_bench.waiting._FIRST_S", 0.1)
    executor, of = ThreadPoolExecutor(1), result(benchmark(id="a"))
    assert of.commit is not None
    sha = of.commit.sha

    def answer(_order: Order) -> Answer:
        while not any(f"waiting for 1 part of {sha[:12]}" in line for line in said):
            time.sleep(0.01)
        return Answer(machine="m", result=encode(of), failure=None)

    force = msgspec.structs.replace(workforce(executor, of), task=answer)
    order = Order(
        repository=Path(), sha=sha, within="", words=(), select=SelectRequest(),
        overlay=Overlay(configuration=None), sharing=True,
    )  # fmt: skip
    with executor:
        made = measured_by(force, order, ["a"], Repository(cwd=Path(), environ={}))
    assert made.whole


def test_a_commit_that_takes_long_on_a_worker_is_reported(monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.setattr("cachegrind_bench.waiting._FIRST_S", 0.1)
    monkeypatch.setattr(Work, "_order", lambda *_: None)
    futures = [Future[Answer]()]
    monkeypatch.setattr(Work, "_finish", lambda *_: futures.clear())
    force, search = MagicMock(width=1, remote=True), MagicMock()
    force.submit.return_value, search.next.side_effect = futures[:], [0, None, None]
    force.check = lambda: futures[0].set_result(MagicMock()) if said and not futures[0].done() else None
    Work(MagicMock(request=MagicMock(split=1, seconds=None)), MagicMock(), force, search).run()
    assert futures == []
    assert said[0].startswith("waiting for 1 commit, ")


@pytest.mark.filterwarnings("error")
def test_an_address_that_is_none_is_an_error_at_once() -> None:
    with pytest.raises(MeasurementError, match="cannot be reached: missing port"), connected("x", Waiting()):
        pass
