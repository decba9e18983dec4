"""Many jobs at once: what becomes of one changes nothing for the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry
from cachegrind_bench.errors import CommandFailedError, CommandTimeoutError, MeasurementError
from cachegrind_bench.interruption import Cancel, cancellation
from cachegrind_bench.measure import session
from cachegrind_bench.measure.session import ValgrindSetup
from cachegrind_bench.model.result import Status
from cachegrind_bench.suite.execute import Job, failed, set_up
from cachegrind_bench.suite.schedule import run_suite
from cachegrind_bench.valgrind.options import Geometry
from tests.unit.samples import benchmark, failed_benchmark, result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.model.result import Benchmark
    from cachegrind_bench.suite.schedule import Outcome


@pytest.fixture
def cancel() -> Iterator[Cancel]:
    made = Cancel()
    yield made
    made.close()


def no_plan() -> NoReturn:
    raise AssertionError("not asked for")


def job(name: str, plan: Callable[[], Plan] = no_plan, lane: int | None = None, **changes: Any) -> Job:
    values: dict[str, Any] = {"id": name, "command": ("true",), "cwd": None, "parameters": {}, "place": ""}
    return Job(spec=BenchmarkSpec(**{**values, **changes}), plan=plan, lane=lane)


def run(names: str, measure: Callable[[Job], Benchmark], cancel: Cancel, *, jobs: int = 2, **options: Any) -> Outcome:
    return run_suite([job(name) for name in names], measure, ThreadPoolExecutor(jobs), cancel, **options)


def test_results_come_in_the_order_of_the_jobs_whoever_ends_first(cancel: Cancel) -> None:
    def measure(item: Job) -> Benchmark:
        time.sleep(0.05 if item.spec.id == "a" else 0)
        return benchmark(id=item.spec.id)

    outcome = run("abcd", measure, cancel, jobs=4)
    assert [item.id for item in outcome.benchmarks] == ["a", "b", "c", "d"]
    assert (outcome.unfinished, outcome.interrupted) == ((), False)


def test_no_more_run_at_once_than_there_are_workers(cancel: Cancel) -> None:
    running, most, lock = 0, 0, threading.Lock()

    def measure(item: Job) -> Benchmark:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return benchmark(id=item.spec.id)

    run("abcdefgh", measure, cancel, jobs=3)
    assert most == 3


def test_a_failure_stops_nothing_unless_that_is_wanted(cancel: Cancel) -> None:
    def measure(item: Job) -> Benchmark:
        return failed_benchmark(id=item.spec.id) if item.spec.id == "a" else benchmark(id=item.spec.id)

    outcome = run("abc", measure, cancel, jobs=1)
    assert [item.status for item in outcome.benchmarks] == [Status.FAILED, Status.OK, Status.OK]


def test_failing_fast_ends_those_that_run_and_starts_no_other(cancel: Cancel) -> None:
    def measure(item: Job) -> Benchmark:
        if item.spec.id == "a":
            return failed_benchmark(id="a")
        found = cancellation()
        assert found is not None
        for _ in range(500):
            found.check()
            time.sleep(0.01)
        return benchmark(id=item.spec.id)

    outcome = run("abc", measure, cancel, jobs=2, fail_fast=True)
    assert [item.id for item in outcome.benchmarks] == ["a"]
    assert (outcome.unfinished, outcome.interrupted) == (("b", "c"), False)


def test_after_ctrl_c_what_finished_is_kept(cancel: Cancel) -> None:
    def measure(item: Job) -> Benchmark:
        if item.spec.id == "a":
            return benchmark(id="a")
        os.kill(os.getpid(), signal.SIGINT)
        found = cancellation()
        assert found is not None
        for _ in range(500):
            found.check()
            time.sleep(0.01)
        return benchmark(id=item.spec.id)

    outcome = run("abc", measure, cancel, jobs=1)
    assert [item.id for item in outcome.benchmarks] == ["a"]
    assert (outcome.unfinished, outcome.interrupted) == (("b", "c"), True)


def test_ctrl_c_amid_the_lock_of_a_job_does_not_keep_the_suite_from_its_end() -> None:
    program = """
        import threading, time
        from concurrent.futures import Future, ThreadPoolExecutor
        from cachegrind_bench.interruption import Cancel, interrupt
        from cachegrind_bench.suite.schedule import run_suite
        from tests.unit.samples import benchmark
        from tests.unit.test_execute import job

        class Condition(threading.Condition):
            "Of a future: Ctrl-C comes when this thread has just taken some of them."

            def __init__(self):
                super().__init__()
                self.acquire = self.__enter__

            def __enter__(self):
                global left
                taken = super().__enter__()
                if threading.current_thread() is threading.main_thread():
                    left -= 1
                    if not left:
                        interrupt()
                return taken

        class Made(Future):
            def __init__(self):
                super().__init__()
                self._condition = Condition()

        import concurrent.futures.thread
        concurrent.futures.thread._base.Future = Made

        def measure(item):
            time.sleep(0.01)
            return benchmark(id=item.spec.id)

        for left in range(1, 10):
            outcome = run_suite([job(name) for name in "abcdef"], measure, ThreadPoolExecutor(2), Cancel())
            assert outcome.interrupted
            assert len(outcome.benchmarks) + len(outcome.unfinished) == 6
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=Path(__file__).parents[2], check=True, timeout=30
    )


def test_an_interrupt_that_got_lost_is_seen_all_the_same(cancel: Cancel) -> None:
    whole = Cancel()

    def measure(item: Job) -> Benchmark:
        if item.spec.id == "a":
            return benchmark(id="a")
        whole.set()  # and nothing is raised, as while Python tidies up an object
        found = cancellation()
        assert found is not None
        for _ in range(500):
            found.check()
            time.sleep(0.01)
        return benchmark(id=item.spec.id)

    with whole.under():
        outcome = run("abc", measure, cancel, jobs=1)
    whole.close()
    assert [item.id for item in outcome.benchmarks] == ["a"]
    assert (outcome.unfinished, outcome.interrupted) == (("b", "c"), True)


def test_a_bug_in_a_job_is_not_a_failure_of_a_benchmark(cancel: Cancel) -> None:
    def measure(item: Job) -> Benchmark:
        raise ZeroDivisionError(item.spec.id)

    with pytest.raises(ZeroDivisionError):
        run("ab", measure, cancel)


@pytest.mark.parametrize(
    ("error", "status", "exit_status"),
    [
        (CommandFailedError("it failed", hint="look", exit_status=3), Status.FAILED, 3),
        (CommandTimeoutError("too slow"), Status.TIMEOUT, None),
        (MeasurementError("no"), Status.ERROR, None),
    ],
)
def test_a_failed_benchmark_reports_why_and_has_no_counts(
    error: MeasurementError, status: Status, exit_status: int | None
) -> None:
    valgrind_setup = ValgrindSetup(valgrind=None, geometry=None, environment=result().env)  # type: ignore[arg-type]  # not asked
    found = failed(job("a", tags=("quick",)).spec, valgrind_setup, error)
    assert (found.status, found.exit_status, found.counts, found.tags) == (status, exit_status, None, ("quick",))
    assert error.message in (found.error or "")


def test_a_proc_of_another_namespace_is_an_error_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachegrind_bench.measure.session.find", lambda *_: None)
    monkeypatch.setattr("os.path.realpath", lambda _: "/proc/self")
    with pytest.raises(MeasurementError, match="/proc is that of another PID namespace"):
        session.valgrind_setup(valgrind=None, geometry=Geometry(), environ={}, passed={})


class Told:
    def __init__(self) -> None:
        self.setups: list[str] = []

    def setting_up(self, command: str) -> None:
        self.setups.append(command)


def test_a_set_up_runs_once_for_all_that_share_it_and_a_broken_one_breaks_only_its_own(tmp_path: Path) -> None:
    jobs = [
        job("a", cwd=tmp_path, setup="echo x >> built"),
        job("b", cwd=tmp_path, setup="echo x >> built"),
        job("c", cwd=tmp_path, setup="echo no compiler >&2; exit 2"),
        job("d", cwd=tmp_path),
    ]
    told = Told()
    broken = set_up(jobs, dict(os.environ), told)  # type: ignore[arg-type]  # all that is asked of it
    assert (tmp_path / "built").read_text() == "x\n"
    assert told.setups == ["echo x >> built", "echo no compiler >&2; exit 2"]
    assert broken == {"c": "its setup failed with exit status 2: echo no compiler >&2; exit 2\nno compiler"}


def test_a_file_that_another_set_up_writes_over_breaks_what_names_it(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("by a table", encoding="utf-8")
    entries = [Entry(harness="go", keys={}, each=job("", setup=command).spec) for command in ("make r", "rm log")]
    jobs = [
        job("fast", cwd=tmp_path, command=("./p", "1"), setup="echo fast > p"),
        job("slow", cwd=tmp_path, command=("./p", "1"), setup="echo slow > p"),
        job("too", cwd=tmp_path, command=("./q", "1"), stdin=tmp_path / "p", setup="echo slow > p"),
        job("word", cwd=tmp_path, command=("./q", "--in=p"), setup="echo fast  > p"),
        job("built", cwd=tmp_path, command=("./r", "1"), entry=entries[0]),
        job("built by the same", cwd=tmp_path, command=("./r", "1"), entry=entries[1]),
        job("same", cwd=tmp_path, command=("./q", "1"), setup="echo same > q"),
        job("again", cwd=tmp_path, command=("./q", "1"), setup="rm -f q; echo same > q"),
        job("written", cwd=tmp_path, command=("true", "log"), setup="echo > log"),
        job("anew", cwd=tmp_path, command=("cat", "p"), setup="echo anew > p", prepare="echo anew > p"),
        job("slow again", cwd=tmp_path, command=("./p", "1"), setup="echo slow   > p; echo > r"),
        job("gone", cwd=tmp_path, command=("true",), setup="rm log"),
    ]
    broken = set_up(jobs, dict(os.environ), Told())  # type: ignore[arg-type]
    assert broken.keys() == {"fast", "built", "word"}
    assert f"another benchmark wrote over {tmp_path / 'p'}, with other contents" in broken["fast"]


def test_jobs_of_one_lane_never_run_at_once_and_all_of_them_do_run(cancel: Cancel) -> None:
    running: set[str] = set()
    together: set[frozenset[str]] = set()
    lock = threading.Lock()

    def measure(item: Job) -> Benchmark:
        with lock:
            running.add(item.spec.id)
            together.update(frozenset((item.spec.id, other)) for other in running - {item.spec.id})
        time.sleep(0.02)
        with lock:
            running.discard(item.spec.id)
        return benchmark(id=item.spec.id)

    jobs = [job(name, lane=1 if name in "abc" else None) for name in "abcdef"]
    outcome = run_suite(jobs, measure, ThreadPoolExecutor(3), cancel)
    assert [item.id for item in outcome.benchmarks] == list("abcdef")
    assert together
    assert not {frozenset(pair) for pair in ("ab", "ac", "bc")} & together


def test_a_job_that_waits_for_its_lane_is_not_begun_after_a_failure(cancel: Cancel) -> None:
    begun: list[str] = []

    def measure(item: Job) -> Benchmark:
        begun.append(item.spec.id)
        return failed_benchmark(id=item.spec.id)

    jobs = [job(name, lane=1) for name in "abc"]
    outcome = run_suite(jobs, measure, ThreadPoolExecutor(2), cancel, fail_fast=True)
    assert begun == ["a"]
    assert outcome.unfinished == ("b", "c")
