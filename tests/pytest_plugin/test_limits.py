"""Which processes a time limit ends; none that measures is started here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.harness.pytest_session import limits
from cachegrind_bench.harness.pytest_session.limits import TimeLimit
from cachegrind_bench.hermetic.process_memory import descendants_of
from cachegrind_bench.startup.exchange import WAITING, Exchange, put_current, put_report

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
            put_current(exchange.current, other.pid, 10_000, -1)
        time.sleep(1)
        assert other.poll() is None
        other.kill()


def test_a_process_that_is_not_below_this_one_is_left_alone(exchange: Exchange) -> None:
    other = int(subprocess.run(["sh", "-c", _ORPHAN], stdout=subprocess.PIPE, check=True).stdout)
    with TimeLimit(_LIMIT_MS) as limit, limit.watching(exchange):
        put_current(exchange.current, other, 10_000, 10_000)
        time.sleep(1)
        os.kill(other, 9)  # raises if it is not there
    assert limit.why(exchange, 10_000, 10_000) is None


@pytest.mark.parametrize("hold", [True, False])
def test_what_takes_too_long_ends_with_all_it_started_and_words_name_the_limit(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch, *, hold: bool
) -> None:
    if not hold:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    monkeypatch.setattr(limits, "_LEAST_FOR_FILES_S", 0.6)
    with subprocess.Popen(["sh", "-c", _GOES_ON]) as late, TimeLimit(_LIMIT_MS) as limit, limit.watching(exchange):
        (started,) = _started(late.pid)
        put_current(exchange.current, late.pid, 10_000, -1)
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
    put_report(exchange.report(10_000, 10_000), {})
    with subprocess.Popen(["sleep", "60"]) as late, TimeLimit(_LIMIT_MS) as limit, limit.watching(exchange):
        put_current(exchange.current, late.pid, 10_000, 10_000)
        begun = time.monotonic()
        late.wait(_PATIENCE_S)
    assert time.monotonic() - begun > 0.75


def test_one_that_removes_what_says_that_it_is_at_work_is_ended(exchange: Exchange) -> None:
    with subprocess.Popen(["sleep", "60"]) as late, TimeLimit(_LIMIT_MS) as limit, limit.watching(exchange):
        put_current(exchange.current, late.pid, 10_000, 10_000)
        _wait_for(lambda: limit._watched[0].now is not None)
        os.unlink(exchange.current)
        late.wait(_PATIENCE_S)
    assert "took longer" in (limit.why(exchange, 10_000, 10_000) or "")


def test_a_process_may_take_as_long_as_all_benchmarks_and_files_with_their_rehearsals() -> None:
    assert TimeLimit(None).of_all(10, 2) is None
    assert TimeLimit(5_000).of_all(10, 2) == 4 * 14 * 65_000


@pytest.mark.parametrize("limit_ms", [_LIMIT_MS, None])
def test_one_that_waits_for_orders_has_the_usual_time_from_when_they_are_there(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch, limit_ms: int | None
) -> None:
    monkeypatch.setattr(limits, "_LEAST_FOR_FILES_S", 0.5)
    with subprocess.Popen(["sleep", "60"]) as late, TimeLimit(limit_ms) as limit, limit.watching(exchange):
        put_current(exchange.current, late.pid, WAITING, -1)
        time.sleep(1.5)
        assert late.poll() is None
        limit.release(exchange)  # and its gate is not the one that it waits at
        late.wait(_PATIENCE_S)
    assert "did not get its orders within 0.5 s" in (limit.why(exchange, -1) or "")


def test_half_a_word_does_not_end_the_watch(exchange: Exchange) -> None:
    with subprocess.Popen(["sleep", "60"]) as late, TimeLimit(_LIMIT_MS) as limit, limit.watching(exchange):
        put_current(exchange.current, late.pid, 10_000)
        time.sleep(0.5)
        assert late.poll() is None
        put_current(exchange.current, late.pid, 10_000, 10_000)
        late.wait(_PATIENCE_S)


# Starts a process that stops it, and ends; says which. A shell that reads would not be stopped in the middle of it.
_STOPPED_BY_ITS_CHILD = "sh -c 'echo $$; kill -STOP $PPID' & wait; echo went on"


def test_the_parent_that_a_benchmark_stopped_is_ended_without_a_time_limit(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_STOPPED_LOOKS", 3)
    shell = ["sh", "-c", _STOPPED_BY_ITS_CHILD]
    with (
        subprocess.Popen(shell, stdout=subprocess.PIPE, text=True) as parent,
        TimeLimit(None) as limit,
        limit.watching(exchange),
    ):
        assert parent.stdout is not None
        put_current(exchange.current, int(parent.stdout.readline()), 10_000, 10_000)
        assert not parent.stdout.read()
        assert parent.wait(_PATIENCE_S) == -9
    assert limit.why(exchange, 10_000, 10_000) is None
    assert limit.why(exchange, 10_000) == "the process of its file was stopped by a signal for 0.3 s or more"


# Calls are counted in such a copy; what it starts, and stops on purpose, is the benchmark's own business.
_STOPPED_COPY = """
import os, signal, subprocess, sys
if sys.argv[1] == "program":
    os.kill(subprocess.Popen(["sleep", "60"]).pid, signal.SIGSTOP)
elif not os.fork():
    os.kill(os.getpid(), signal.SIGSTOP)
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("which", ["copy", "program"])
def test_one_whose_copy_is_stopped_is_ended_as_if_it_was(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    monkeypatch.setattr(limits, "_STOPPED_LOOKS", 3)
    command = [sys.executable, "-c", _STOPPED_COPY, which]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as work,
        TimeLimit(None) as limit,
        limit.watching(exchange),
    ):
        assert work.stdout is not None
        put_current(exchange.current, int(work.stdout.readline()), 10_000, 10_000)
        if which == "copy":
            assert work.wait(_PATIENCE_S) == -9
        else:
            with pytest.raises(subprocess.TimeoutExpired):
                work.wait(1)
            (sleeping,) = descendants_of(work.pid)
            os.kill(sleeping, signal.SIGKILL)
    assert (limit.why(exchange, 10_000, 10_000) is not None) == (which == "copy")


def test_one_that_was_stopped_and_goes_on_in_time_is_left_alone(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_STOPPED_LOOKS", 10)
    with subprocess.Popen(["sleep", "60"]) as paused, TimeLimit(None) as limit, limit.watching(exchange):
        put_current(exchange.current, paused.pid, 10_000, 10_000)
        for _ in range(4):
            paused.send_signal(signal.SIGSTOP)
            time.sleep(0.4)
            paused.send_signal(signal.SIGCONT)
            time.sleep(0.4)
        assert paused.poll() is None
        paused.send_signal(signal.SIGSTOP)
        assert paused.wait(_PATIENCE_S) == -9
    assert limit.why(exchange, 10_000, 10_000) == "was stopped by a signal for 1 s or more"
