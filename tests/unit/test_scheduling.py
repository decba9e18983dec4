"""Who shares a CPU gives the real-time priority up, and so does who starves another of its own threads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

MAY = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))"
# Patched to need no minute, on the last CPU; both end with this process, whatever happens.
BEGIN = """
import os, signal, sys, time
from cachegrind_bench.hermetic import kernel, scheduling
kernel.end_with_parent()
signal.alarm(60)
scheduling._WAIT_S, scheduling._LOOK_S, scheduling._LOOKS = 0.2, 0.1, 3
CPU = max(os.sched_getaffinity(0))
os.sched_setaffinity(0, {CPU})
scheduling._NAME = "\\0cg-bench-test/{cpu}/{number}"
"""
SHARED = """
one = scheduling.Scheduling(CPU, wanted=True)
sleeper = os.fork()
if sleeper == 0:
    scheduling.become_program(pinned=one.pinned)
    time.sleep(60)
print(one.pinned)
one.lower()
two = scheduling.Scheduling(CPU, wanted=False)
print(two.why)
one.meet()
print(one.why, os.sched_getscheduler(sleeper) == os.SCHED_OTHER)
os.kill(sleeper, 9)
"""
ALONE = """
usual = scheduling.Scheduling(CPU, wanted=False)
os.sched_getaffinity = lambda pid: {CPU, CPU + 1}
alone = scheduling.Scheduling(CPU, wanted=True)
alone.lower()
again = scheduling.Scheduling(CPU, wanted=True)
again.lower()
print(usual.cpu == CPU, alone.cpu == CPU + 1, alone.why, again.cpu == CPU, again.why)
again.claim.close()
usual.claim.close()
last = scheduling.Scheduling(CPU + 1, wanted=True)
print(last.cpu == CPU, last.why, alone.claim.getsockname()[-2:])
"""
STARVED = """
one = scheduling.Scheduling(CPU, wanted=True)
pids = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        kernel.end_with_parent()
        scheduling.become_program(pinned=one.pinned)
        while True:
            pass
    pids.append(pid)
while one.why is None:
    time.sleep(0.05)
    one.look()
print(one.why, {os.sched_getscheduler(pid) == os.SCHED_RR for pid in pids})
one.end()
for pid in pids:
    os.kill(pid, 9)
"""

pytestmark = pytest.mark.skipif(
    subprocess.run([sys.executable, "-c", MAY], capture_output=True, check=False).returncode != 0,
    reason="no right to real-time scheduling",
)


def said(program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + program],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        cwd=os.getcwd(),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_run_gives_way_to_another_one_on_its_cpu() -> None:
    usual = "the usual scheduling, as no warm-up showed that it is one process with threads"
    assert said(SHARED) == ["True", usual, "another run of cg-bench is on this CPU True"]


@pytest.mark.slow
def test_a_run_that_would_share_its_cpu_uses_another_one() -> None:
    shared = "another run of cg-bench is on this CPU"
    assert said(ALONE) == [f"True True None True {shared}", "True None b'/0'"]


def test_processes_of_which_one_starves_take_turns() -> None:
    (line,) = said(STARVED)
    assert line.startswith("a thread or process waited for a minute")
    assert line.endswith("{True}")
