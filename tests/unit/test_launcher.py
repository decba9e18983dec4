"""What the launcher finds of a process tree that it has to end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cachegrind_bench.hermetic import launch
from cachegrind_bench.hermetic.execution import Execution, packed
from cachegrind_bench.hermetic.process_memory import descendants_of
from cachegrind_bench.hermetic.scratch import scratch

# The first thread ends (SYS_exit) and leaves the process to another: what `pthread_exit` in `main` does.
WITHOUT_FIRST_THREAD = """
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).syscall(ctypes.c_long({"x86_64": 60}.get(os.uname().machine, 93)), ctypes.c_long(0))
"""


@pytest.mark.parametrize(("code", "living"), [("pass", False), (WITHOUT_FIRST_THREAD, True)])
def test_a_zombie_is_living_while_it_has_threads(code: str, living: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", code]) as child:
        try:
            deadline = time.monotonic() + 20
            while b") Z " not in Path(f"/proc/{child.pid}/stat").read_bytes():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert (child.pid in descendants_of(os.getpid())) is living
        finally:
            child.kill()


def test_a_process_that_outlives_the_launcher_and_writes_for_ever_does_not_keep_the_run_from_its_end() -> None:
    report_in, report_out = os.pipe()
    os.close(report_out)  # the launcher was killed
    heard = bytearray()
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as survivor:
        assert survivor.stdout is not None
        try:
            survivor.stdout.read(1 << 20)  # it is at work
            sinks = {survivor.stdout.fileno(): True, report_in: False}
            tail, report = launch._pump(sinks, report_in, heard.extend)
        finally:
            survivor.kill()
    os.close(report_in)
    assert report == b""
    assert heard.endswith(tail)


def test_the_launcher_ends_at_once_not_by_pythons_end_in_which_its_alarm_would_kill_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "_CODE", f"import atexit;atexit.register(print,'the end of Python');{launch._CODE}")
    heard = bytearray()
    with scratch(tmp_path) as found:
        found.renew()
        outcome = launch.launch(Execution(("/bin/true",), {}, "/"), found, echo=heard.extend)
    assert outcome.exit_status == 0
    assert not heard


def test_the_scratch_folder_goes_where_cg_bench_is_gone_when_the_program_has_ended(tmp_path: Path) -> None:
    report_in, report_out = os.pipe()
    os.close(report_in)
    with scratch(tmp_path) as found:
        found.renew()
        (found.tmp / "left").touch()
        argv = [sys.executable, "-I", "-S", "-X", "utf8", "-c", launch._CODE, str(report_out), str(found.lock)]
        descriptors = report_out, found.lock
        with subprocess.Popen(argv, stdin=subprocess.PIPE, pass_fds=descriptors) as launcher:
            assert launcher.stdin is not None
            launcher.stdin.write(packed(Execution(("/bin/true",), {}, "/", scratch=str(found.path))))
            launcher.stdin.flush()  # and it stays open
            assert launcher.wait(600) == 1
        os.close(report_out)
        assert not found.path.exists()
