"""Which processes a time limit ends; none that measures is started here."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.harness.pytest_session import limits
from cachegrind_bench.harness.pytest_session.limits import TimeLimit
from cachegrind_bench.hermetic.process_memory import descendants_of
from cachegrind_bench.startup.exchange import NO_BENCHMARK, WAITING, Exchange, write_current, write_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes in /proc")
_PATIENCE_S = 10
_LIMIT_MS = 300
# A shell that a process outlives: its parent is another one then.
_ORPHAN = "sleep 60 >/dev/null & echo $!"
# Goes on to start programs when one of them has ended.
_GOES_ON = "while true; do sleep 60; done"


@pytest.fixture
def exchange(tmp_path: Path) -> Exchange:
    return Exchange(str(tmp_path))


def _wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_process_of_a_folder_that_nobody_serves_any_more_is_left_alone(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_LEAST_FOR_FILES_S", 0.1)
    with subprocess.Popen(["sleep", "60"]) as other, TimeLimit(_LIMIT_MS) as limit:
        with limit.watching(exchange):
            write_current(exchange.current, other.pid, 10_000, NO_BENCHMARK)
        time.sleep(1)
        assert other.poll() is None
        other.kill()


def test_a_process_that_is_not_below_this_one_is_left_alone(exchange: Exchange) -> None:
    other = int(subprocess.run(["sh", "-c", _ORPHAN], stdout=subprocess.PIPE, check=True).stdout)
    with TimeLimit(_LIMIT_MS) as limit, limit.watching(exchange):
        write_current(exchange.current, other, 10_000, 10_000)
        time.sleep(1)
        os.kill(other, 9)  # raises if it is not there
    assert limit.why(exchange, 10_000, 10_000) is None


def test_what_takes_too_long_ends_with_all_it_started_and_words_name_the_limit(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_LEAST_FOR_FILES_S", 0.6)
    with subprocess.Popen(["sh", "-c", _GOES_ON]) as late, TimeLimit(_LIMIT_MS) as limit, limit.watching(exchange):
        (started,) = _started(late.pid)
        write_current(exchange.current, late.pid, 10_000, NO_BENCHMARK)
        _wait_for(lambda: late.poll() is not None)
        _wait_for(lambda: not os.path.exists(f"/proc/{started}"))
    assert late.returncode == -9
    assert "took longer than 0.6 s" in (limit.why(exchange, 10_000) or "")


def _started(pid: int) -> list[int]:
    found: list[int] = []

    def look() -> bool:
        found[:] = descendants_of(pid)
        return bool(found)

    _wait_for(look)
    return found


def test_one_that_has_reported_but_does_not_end_is_ended_later(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_LEAST_FOR_FILES_S", 0.5)
    write_report(exchange.report(10_000, 10_000), {})
    with subprocess.Popen(["sleep", "60"]) as late, TimeLimit(_LIMIT_MS) as limit, limit.watching(exchange):
        write_current(exchange.current, late.pid, 10_000, 10_000)
        begun = time.monotonic()
        late.wait(_PATIENCE_S)
    assert time.monotonic() - begun > 0.75


def test_one_that_waits_for_orders_may_wait(exchange: Exchange, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_LEAST_FOR_FILES_S", 0.1)
    with subprocess.Popen(["sleep", "60"]) as waits, TimeLimit(_LIMIT_MS) as limit, limit.watching(exchange):
        write_current(exchange.current, waits.pid, WAITING, NO_BENCHMARK)
        time.sleep(1)
        assert waits.poll() is None
        waits.kill()


def test_a_process_may_take_as_long_as_all_benchmarks_and_files_with_their_native_runs() -> None:
    assert TimeLimit(None).of_all(10, 2) is None
    assert TimeLimit(5_000).of_all(10, 2) == 4 * 14 * 65_000
