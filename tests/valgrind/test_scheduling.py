"""Which thread or process runs next is the same in each run, where this may be chosen; and what never waits is stopped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.hermetic.execution import SHARED
from cachegrind_bench.measure.axes import busy_cpus
from tests.valgrind.conftest import cpus_of_worker

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench, Finished

QUEUE = r"""
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int made, taken, done;
static long total;
static void *work(void *none) {
    pthread_mutex_lock(&lock);
    for (;;) {
        while (taken == made && !done) pthread_cond_wait(&ready, &lock);
        if (taken == made) break;
        long value = taken++;
        pthread_mutex_unlock(&lock);
        for (int i = 0; i < 500; i++) value = value * 31 % 1000003;
        pthread_mutex_lock(&lock);
        total += value;
    }
    pthread_mutex_unlock(&lock);
    return none;
}
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(threads + i, NULL, work, NULL);
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&lock);
        made++;
        pthread_mutex_unlock(&lock);
        pthread_cond_signal(&ready);
    }
    pthread_mutex_lock(&lock);
    done = 1;
    pthread_mutex_unlock(&lock);
    pthread_cond_broadcast(&ready);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("<<< %ld >>>\n", total);
    return 0;
}
"""
# Each child is left to the launcher, and ends while the threads of others do.
ORPHANS = r"""
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *none) { return none; }
int main(void) {
    for (int i = 0; i < 12; i++) {
        if (fork() == 0) {
            if (fork() == 0) {
                pthread_t threads[4];
                for (int j = 0; j < 4; j++) pthread_create(threads + j, NULL, work, NULL);
                pthread_exit(NULL);
            }
            _exit(0);
        }
        wait(NULL);
    }
    return 0;
}
"""
ONE_THREAD = """
#include <stdio.h>
int main(void) { long total = 0; for (int i = 0; i < 100000; i++) total += i % 7; printf("%ld\\n", total); return 0; }
"""
# Spins where it is measured, and not in the warm-up.
SPIN = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static void *work(void *none) { return none; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    for (const char *loaded = getenv("LD_PRELOAD"); loaded && strstr(loaded, "vgpreload");) ;
    return 0;
}
"""
# The wait is over by the clock that main has read; main works for longer than the kernel lets a real-time thread, and signals.
WORK = r"""
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static struct timespec end, now;
static volatile int waits, flag, result;
static void *waiter(void *none) {
    pthread_mutex_lock(&lock);
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec++;
    waits = 1;
    while (!flag && !result) result = pthread_cond_timedwait(&ready, &lock, &end);
    pthread_mutex_unlock(&lock);
    return none;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, waiter, NULL);
    pthread_mutex_lock(&lock);
    while (!waits) {
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){0, 1000}, NULL);
        pthread_mutex_lock(&lock);
    }
    do clock_gettime(CLOCK_REALTIME, &now); while (now.tv_sec < end.tv_sec || now.tv_nsec < end.tv_nsec);
    for (volatile long i = 0; i < WORK; i++) ;
    flag = 1;
    pthread_cond_signal(&ready);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    printf("<<< %s >>>\n", result == ETIMEDOUT ? "timed out" : "signalled");
    return 0;
}
"""
MAY = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))"


@pytest.fixture
def pinned() -> None:
    if subprocess.run([sys.executable, "-c", MAY], capture_output=True, check=False).returncode:
        pytest.skip("no right to real-time scheduling: sudo prlimit --pid $$ --rtprio=2:2")


@pytest.fixture
def without_right() -> list[str]:
    """Return the words in front of a command that take the right away."""
    if os.geteuid():
        return ["prlimit", "--rtprio=0:0"]
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv, which takes rights away from root")
    return ["setpriv", "--bounding-set=-sys_nice"]


def run_pinned(cg_bench: CgBench, program: Path, *options: str, busy: bool = False) -> Finished:
    """Run, on busy CPUs or not, until no other worker of pytest measures on the processor, as the kernel then decides."""
    tries = 10
    while True:
        with busy_cpus() if busy else nullcontext():
            finished = cg_bench.run(program, options=options)
        scheduling, tries = finished.benchmark["seal"]["scheduling"], tries - 1
        if scheduling["why"] != SHARED or not tries:
            assert scheduling == {"state": "pinned", "why": None}
            return finished


@pytest.mark.slow
@pytest.mark.usefixtures("pinned")
def test_threads_that_share_a_queue_take_turns_alike_under_load(cg_bench: CgBench, compile_c: CompileC) -> None:
    benchmark = run_pinned(cg_bench, compile_c(QUEUE, "-pthread"), "--repeat", "4", busy=True).benchmark
    first, *others = (run["counts"] for run in benchmark["runs"])
    assert all(other == first for other in others)


@pytest.mark.slow
@pytest.mark.usefixtures("pinned")
def test_two_runs_at_the_same_time_have_the_only_cpu_one_after_the_other(
    cg_bench: CgBench, compile_c: CompileC, tmp_path: Path
) -> None:
    program, before = str(compile_c(QUEUE, "-pthread")), ("taskset", "-c", str(max(cpus_of_worker())))
    files = [tmp_path / name for name in ("one.json", "other.json")]
    found: list[dict[str, Any]] = []
    states, tries = set[str](), 5
    while states != {"pinned"} and tries:  # until no other worker of pytest measures there for a minute
        with ThreadPoolExecutor(2) as both:
            for done in both.map(lambda file: cg_bench("run", "-o", str(file), "--", program, before=before), files):
                assert done.code == 0, done.stderr
        found = [json.loads(file.read_text())["benchmarks"][0] for file in files]
        states, tries = {one["seal"]["scheduling"]["state"] for one in found}, tries - 1
    assert states == {"pinned"}
    assert found[0]["counts"] == found[1]["counts"]


@pytest.mark.slow
@pytest.mark.usefixtures("pinned")
@pytest.mark.parametrize("rounds", [1, 300_000_000])
def test_how_long_a_thread_works_does_not_decide_whether_anothers_wait_times_out(
    cg_bench: CgBench, compile_c: CompileC, rounds: int
) -> None:
    program = compile_c(WORK, "-pthread", f"-DWORK={rounds}")
    finished = run_pinned(cg_bench, program, "--pin-clock", "--timeout", "60s")
    assert finished.said == "signalled"


@pytest.mark.slow
@pytest.mark.usefixtures("pinned")
def test_what_spins_for_ever_is_stopped_in_time(cg_bench: CgBench, compile_c: CompileC) -> None:
    finished = cg_bench.run(compile_c(SPIN, "-pthread"), options=["--timeout", "5s"])
    assert finished.code == 4
    assert "ran longer than 5 s" in finished.stderr


@pytest.mark.usefixtures("pinned")
def test_processes_whose_threads_end_beside_them_are_reaped(cg_bench: CgBench, compile_c: CompileC) -> None:
    finished = cg_bench.run(compile_c(ORPHANS, "-pthread"), options=["--timeout", "60s"])
    assert finished.benchmark["seal"]["scheduling"]["state"] == "kept"
    assert sum(process["counts"]["Ir"] for process in finished.benchmark["processes"]) > 0


@pytest.mark.unsealed
def test_without_the_right_threads_are_reported_and_one_thread_has_the_same_counts(
    cg_bench: CgBench, compile_c: CompileC, without_right: list[str]
) -> None:
    part = cg_bench.run(compile_c(QUEUE, "-pthread"), before=without_right).benchmark["seal"]["scheduling"]
    assert part == {"state": "unavailable", "why": "no right to real-time scheduling"}
    program = compile_c(ONE_THREAD)
    plain, sealed = cg_bench.run(program, before=without_right), cg_bench.run(program)
    assert plain.benchmark["seal"]["scheduling"]["state"] == "pinned"
    assert (plain.counts, plain.benchmark["key"]) == (sealed.counts, sealed.benchmark["key"])
