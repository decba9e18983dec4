"""How the pytest that was called looks after its measured processes; none is started here."""

from __future__ import annotations

import errno
import marshal
import os
import sys
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import Mock

import pytest

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.harness.pytest_session import session
from cachegrind_bench.harness.pytest_session.limits import TimeLimit
from cachegrind_bench.harness.pytest_session.reports import read_report
from cachegrind_bench.harness.pytest_session.request import Collected, Item, Python, SessionSettings
from cachegrind_bench.harness.pytest_session.results import parts_of
from cachegrind_bench.harness.pytest_session.session import Lane, Relay
from cachegrind_bench.harness.pytest_session.workers import Place, Worker, Workers
from cachegrind_bench.hermetic.environment import Request
from cachegrind_bench.hermetic.place import Translation
from cachegrind_bench.hermetic.scratch import FIRST_SLOT, scratch
from cachegrind_bench.measure.session import default_cpu
from cachegrind_bench.model.metrics import DEFAULT_MODEL
from cachegrind_bench.pytest_plugin.inner.forking import wait_for_orders
from cachegrind_bench.startup import dumps
from cachegrind_bench.startup.exchange import (
    FIRST,
    NO_BENCHMARK,
    WAITING,
    Exchange,
    Layout,
    Measured,
    Report,
    read_current,
    read_order,
    write_report,
)
from cachegrind_bench.valgrind import runner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.harness.pytest_session.results import Costs

NO_ORDERS: Any = {}


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2, 3})
    nothing = cast("Any", None)
    return Workers(valgrind_setup=nothing, place=nothing, echo=lambda _: None, read=lambda *_: None)


def test_lanes_take_the_cpu_that_is_free_beside_other_runs_and_never_one_cpu_twice(workers: Workers) -> None:
    assert [workers._cpu(wanted) for wanted in (2, 2, 1, 3)] == [2, 3, 1, 0]


def test_native_lanes_have_the_cpus_that_as_many_measured_ones_leave(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers.native = True
    monkeypatch.setattr(workers, "_serve_natively", lambda _worker, cpu: cpu)
    lanes = [Worker(Exchange(f"/none/{number}")) for number in range(3)]
    with workers.serving(lanes):
        assert [cast("Any", lane.future.result()) for lane in lanes] == [0, 3, 2]


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_what_native_lanes_found_is_put_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, jobs: int) -> None:
    names = [f"a::{number}" for number in range(5)]

    def serve(_self: Workers, lane: Lane, _cpu: int) -> Any:
        for number, item in enumerate(lane.items, FIRST):
            outcome = "failed" if item.nodeid == "a::3" else "passed"
            meter = {"look_ups": {item.nodeid: ["get"]}}
            report = {"reports": [{"when": "call", "outcome": outcome}], "meter": meter}
            write_report(lane.exchange.report(FIRST, number), report)
        write_report(lane.exchange.caches, ["/one", f"/of/{lane.items[0].nodeid}"])
        return Mock(unsealed={"place": "no" if names[-1] in [item.nodeid for item in lane.items] else ""})

    monkeypatch.setattr(Workers, "_serve_natively", serve)
    python = Python(executable="", implementation="", version="", trampolines="0", pytest="", variables=())
    items = tuple(Item(nodeid=name, file="a", parameters={}, tags=(), whole=False) for name in names)
    collected = Collected(
        items=items, imports=NO_ORDERS, files={"a": NO_ORDERS}, cwd=str(tmp_path), asserts="rewrite", python=python
    )
    request = Request(values={})
    settings = SessionSettings(environ={}, request=request, jobs=jobs, model=DEFAULT_MODEL)
    place = Place(cwd=tmp_path, environ={}, request=request, python=sys.executable, keep="as it is")
    bench = session.Bench(collected=collected, settings=settings, valgrind_setup=cast("Any", None), place=place)
    found = session._run_natively(bench, Relay())
    assert found.passed == {*names} - {"a::3"}
    assert (found.late, found.refused) == (set(), "no")
    assert found.look_ups == {name: {name: ["get"]} for name in names}
    assert len(found.caches) == 1 + jobs


def test_what_interrupts_the_start_of_lanes_ends_those_that_have_begun(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = Event(), Event()

    def serve(*_: object) -> Any:
        begun.set()
        while True:
            try:
                workers._cancel.check()
            except KeyboardInterrupt:
                ended.set()
                raise

    monkeypatch.setattr(workers, "_serve", serve)
    one = Worker(Exchange("/none"))
    with pytest.raises(KeyboardInterrupt), workers.serving([one]):  # noqa: PT012 - what comes while they start
        begun.wait()
        raise KeyboardInterrupt
    assert ended.is_set()


def test_two_runs_of_one_lane_each_measure_on_different_cpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    with (
        scratch(tmp_path, first=FIRST_SLOT),
        scratch(tmp_path) as first,
        scratch(tmp_path, first=FIRST_SLOT),
        scratch(tmp_path) as second,
    ):
        cpus = {default_cpu(first.slot), default_cpu(second.slot)}
    assert cpus == {0, 1}


def lane_of(folder: Path, names: Sequence[str], limit: TimeLimit, relay: Relay) -> Lane:
    python = Python(executable="", implementation="", version="", trampolines="0", pytest="", variables=())
    items = tuple(Item(nodeid=f"a::{name}", file="a", parameters={}, tags=(), whole=False) for name in names)
    collected = Collected(
        items=items, imports=NO_ORDERS, files={"a": NO_ORDERS}, cwd=str(folder), asserts="rewrite", python=python
    )
    lane = Lane(collected, items, Exchange(str(folder / "000")), limit, relay)
    lane.write_orders(10, (2,))
    return lane


def test_a_report_that_comes_while_its_lane_ends_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    class Told(Relay):
        def report(self, item: Item, found: Report, costs: Costs) -> None:
            told.append((item.nodeid, found, costs))

    lane = lane_of(tmp_path, ["late"], TimeLimit(None), Told())
    report = {"reports": [], "died": "came late"}

    def take_late(path: str) -> Any:
        found = read_report(path)
        if path == lane.exchange.report(FIRST, FIRST) and found is None:
            write_report(path, report)
        return found

    monkeypatch.setattr(session, "read_report", take_late)
    settings = SessionSettings(environ={}, request=Request(values={}), jobs=1, model=DEFAULT_MODEL)
    lane.look(bytearray(), settings, over=True)
    assert told == [("a::late", report, ())]


def test_what_was_compiled_after_a_process_began_is_seen_in_the_folder(tmp_path: Path) -> None:
    compiled, elsewhere = tmp_path / "compiled", tmp_path / "elsewhere"
    for folder in (compiled, elsewhere):
        folder.mkdir()
        os.utime(folder, (1, 1))
    lane = lane_of(tmp_path, ["one"], TimeLimit(None), Relay())
    gone = str(tmp_path / "gone")
    assert not lane.is_older_than([str(compiled), gone])
    (compiled / "module.pyc").write_bytes(b"")
    assert lane.is_older_than([str(elsewhere), str(compiled)])
    assert not lane.is_older_than([str(elsewhere)])


@pytest.mark.parametrize("content", [b"", b"no report", marshal.dumps({"reports": []}, 2)[:-2]])
def test_a_damaged_report_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "done"
    path.write_bytes(content)
    with pytest.raises(MeasurementError, match=f"cannot read {path}, which the measured process wrote"):
        read_report(str(path))


def test_a_report_with_all_that_a_benchmark_printed_has_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "done"
    path.touch()
    os.truncate(path, (1 << 29) + 1)
    assert read_report(str(path))["died"] == "has a report of more than 512 MiB, with all that it printed"


def test_a_report_has_all_plain_values(tmp_path: Path) -> None:
    path = str(tmp_path / "done")
    values = [None, True, 1, -(10**30), 0.5, 1j, "ä\udc80", b"x", (1,), {2}, frozenset({3}), ..., {"a": ["b" * 300]}]
    write_report(path, {"reports": values})
    assert read_report(path) == {"reports": values}


def test_orders_that_cannot_be_written_name_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_order(path: str, _order: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    monkeypatch.setattr(session, "write_order", write_order)
    with pytest.raises(MeasurementError, match=r"cannot write into .*: No space left on device"):
        lane_of(tmp_path, ["one"], TimeLimit(None), Relay())


def test_a_value_in_itself_is_reported_in_words(tmp_path: Path) -> None:
    path, value = str(tmp_path / "done"), list[Any]()
    value.append(value)
    write_report(path, {"reports": [{"user_properties": [("a", value)]}]})
    assert "Circular reference" in (read_report(path) or {})["died"]


def test_a_process_waits_until_its_lane_is_released(tmp_path: Path) -> None:
    lane = lane_of(tmp_path, ["one"], TimeLimit(None), Relay())
    waiting = Thread(target=wait_for_orders, args=(lane.exchange,))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    assert read_current(lane.exchange.current) == (os.getpid(), WAITING, NO_BENCHMARK)
    lane.release({"a::one": {"dict": ["get"]}})
    waiting.join(10)
    assert not waiting.is_alive()
    assert read_order(lane.exchange.look_ups(FIRST, FIRST)) == {"dict": ["get"]}
    lane.close()


def test_a_profile_that_is_missing_says_why(tmp_path: Path) -> None:
    limit = TimeLimit(1000)
    lane = lane_of(tmp_path, ["failed", "killed", "late"], limit, Relay())
    write_report(lane.exchange.report(FIRST, FIRST), {"reports": []})
    for index in (FIRST + 1, FIRST + 2):
        write_report(lane.exchange.report(FIRST, index), {"reports": [], "status": 9, "log": ""})
    limit._ended[lane.exchange.path, FIRST, FIRST + 2] = "took longer than 1 s"
    failed, killed, late = [lane.why_nothing(item) for item in lane.items]
    assert failed == "its test failed in the run that measures it"
    assert killed == "the process of this benchmark was killed by SIGKILL"
    assert late == "this benchmark took longer than 1 s"


def test_what_is_kept_of_a_process_is_not_lost_to_the_next_one_of_its_number(tmp_path: Path) -> None:
    for name in ("out.7.1", "out.7.2", "out.8.1", "out.77.1", "out.7", "log.7"):
        (tmp_path / name).write_text(name)
    dumps.keep(str(tmp_path), "10000.10000", (7, 8))
    dumps.keep(str(tmp_path), "10000.10001", ())  # of a benchmark that measured nothing
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "kept.10000.10000.out.7.1",
        "kept.10000.10000.out.7.2",
        "kept.10000.10000.out.8.1",
        "log.7",
        "out.7",
    ]


def test_a_call_of_which_a_part_is_cut_or_missing_cannot_be_read(tmp_path: Path) -> None:
    measured = Measured(name="1.2", look_ups={}, layouts=[Layout(pid=7, after=0, calls=3, settled=False)])
    for number, word in enumerate([dumps.BEGIN, dumps.END] * 6, 1):
        (tmp_path / f"kept.1.2.out.7.{number}").write_bytes(b"desc: " + word + b"\n\ntotals: 5 1 1\n")
    assert [len(calls) for calls in parts_of(tmp_path, measured)] == [2]
    last = tmp_path / "kept.1.2.out.7.12"
    for damage in (lambda: last.write_bytes(b"desc: "), last.unlink):
        damage()
        with pytest.raises(MeasurementError, match="is the disk full"):
            parts_of(tmp_path, measured)


def test_out_files_that_were_read_and_removed_need_no_real_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kept", "read"):
        (tmp_path / name).write_bytes(b"fl=/seen/a.py")
    opened: Any = vars(runner)["reading"]

    def reading(path: Path) -> Any:
        (tmp_path / "read").unlink(missing_ok=True)
        return opened(path)

    monkeypatch.setattr(runner, "reading", reading)
    runner._restore(tmp_path, Translation((("/real", "/seen"),)))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"kept": b"fl=/real/a.py"}


def test_of_what_was_read_only_its_own_parts_are_removed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    names = [f"kept.{FIRST}.{FIRST + place}.out.5.1" for place in range(2)]
    for name in (*names, "log.5"):
        (out / name).touch()
    Lane._remove_parts(out, FIRST, FIRST)
    assert sorted(path.name for path in out.iterdir()) == [names[1], "log.5"]
