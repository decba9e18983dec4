"""Interrupting threads that wait for programs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from cachegrind_bench import process
from cachegrind_bench.interruption import Cancel, beside, cancellation, held, interrupt, uninterrupted
from tests.unit.test_process import wait_until_gone


def test_a_thread_that_waits_for_a_program_is_interrupted_and_the_program_ends(tmp_path: Path) -> None:
    cancel, seen = Cancel(), list[BaseException]()

    def work() -> None:
        try:
            with cancel.under():
                process.run(  # noqa: S604 - it writes its own pid
                    ["echo $$ > pid; exec sleep 60"], env={"PATH": os.environ["PATH"]}, cwd=tmp_path, shell=True
                )
        except BaseException as error:  # noqa: BLE001 - it is what this is about
            seen.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    pid = tmp_path / "pid"
    while not (pid.exists() and pid.read_text()):
        time.sleep(0.01)
    cancel.set()
    cancel.set()
    thread.join(10)
    assert [type(error) for error in seen] == [KeyboardInterrupt]
    assert wait_until_gone(int(pid.read_text()))
    cancel.close()


def test_what_was_cancelled_before_does_not_begin() -> None:
    cancel = Cancel()
    cancel.set()
    with cancel.under(), pytest.raises(KeyboardInterrupt):
        process.run(["sleep", "60"], env=None)
    cancel.close()


def test_tidying_up_is_not_interrupted() -> None:
    cancel = Cancel()
    cancel.set()
    with cancel.under(), uninterrupted():
        assert not isinstance(cancellation(), Cancel)
        assert process.run(["sleep", "0.1"], env=None).status == 0
    assert cancellation() is None
    cancel.close()


def test_tidying_up_is_ended_by_a_second_interrupt_only() -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    with uninterrupted():
        tidying = cancellation()
        assert tidying is not None
        tidying.check()
        with pytest.raises(KeyboardInterrupt):
            interrupt()
        with pytest.raises(KeyboardInterrupt):
            tidying.check()
    with uninterrupted():  # what is tidied up only now, by a third
        assert process.run(["true"], env=None).status == 0


def test_the_first_interrupt_waits_for_the_end_of_tidying_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachegrind_bench.interruption._Held.interrupts", 0)
    done: list[str] = []

    def work() -> None:
        with uninterrupted():
            with uninterrupted(), held():
                interrupt()
            assert process.run(["true"], env=None).status == 0
            done.append("tidied up")
        done.append("after")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["tidied up"]
    with uninterrupted(), pytest.raises(KeyboardInterrupt):
        interrupt()  # the second


def test_an_interrupt_waits_for_the_end_of_what_must_not_be_cut_short() -> None:
    done: list[str] = []

    def work() -> None:
        with held():
            with held():
                interrupt()
                done.append("inner")
            done.append("outer")
        done.append("after")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inner", "outer"]
    with held():
        pass  # it was raised once
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_other_threads_hold_nothing_back_from_the_main_thread() -> None:
    holding, end = threading.Event(), threading.Event()

    def hold() -> None:
        with held():
            holding.set()
            end.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait(10)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupt()
    finally:
        end.set()
        thread.join()


def test_an_interrupt_amid_an_import_leaves_no_lock_taken(tmp_path: Path) -> None:
    for number in range(1000):
        (tmp_path / f"module{number}.py").touch()
    program = """
        import importlib, signal, threading
        from cachegrind_bench.interruption import interrupt, is_postponed

        importing, interrupted = False, 0

        def handler(*signal):
            global importing
            if importing and not is_postponed(*signal):
                importing = False
                interrupt()

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
        for number in range(1000):
            try:
                importing = True
                importlib.import_module(f"module{number}")
                importing = False
            except KeyboardInterrupt:
                interrupted += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert interrupted, "it was too quick"
        thread = threading.Thread(target=importlib.import_module, args=("this",), daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        check=True,
        env={**os.environ, "PYTHONPATH": f"{Path(process.__file__).parent.parent}:{tmp_path}"},
        timeout=60,
        stdout=subprocess.DEVNULL,
    )


def test_what_waits_for_a_program_meanwhile_does_not_outlive_an_interruption() -> None:
    sleeping = partial(process.run, ["sleep", "60"], env=None)
    with pytest.raises(KeyboardInterrupt), beside(sleeping) as future:
        raise KeyboardInterrupt
    assert isinstance(future.exception(0), KeyboardInterrupt)


def test_what_is_done_meanwhile_is_waited_for() -> None:
    with beside(lambda: 7) as future:
        assert future.result() == 7
