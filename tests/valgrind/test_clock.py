"""The pinned clocks as programs see them: each way to ask for the time fits the others, and so do waits."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench

pytestmark = pytest.mark.valgrind

CLOCKS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
static double of(clockid_t id) {
    struct timespec now;
    return clock_gettime(id, &now) ? -1 : (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
static void all(void) {
    static const clockid_t wall[] = {CLOCK_REALTIME, CLOCK_REALTIME_COARSE, CLOCK_TAI},
                           boot[] = {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME},
                           cpu[] = {CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
    for (int i = 0; i < 3; i++) printf("wall %.3f\n", of(wall[i]));
    for (int i = 0; i < 4; i++) printf("boot %.3f\n", of(boot[i]));
    for (int i = 0; i < 2; i++) printf("cpu %.3f\n", of(cpu[i]));
    clockid_t own;
    clock_getcpuclockid(0, &own);
    printf("cpu %.3f\n", of(own));
    struct timeval old;
    gettimeofday(&old, 0);
    printf("wall %.3f\nsecond %ld\n", (double)old.tv_sec + (double)old.tv_usec / 1e6, (long)time(0));
    struct tms used;
    printf("ticks %ld\n", (long)times(&used));
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("cpu %.3f\n", (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6);
    struct sysinfo info;
    sysinfo(&info);
    printf("up %ld\n", info.uptime);
    char line[4096], *more;
    FILE *file = fopen("/proc/uptime", "r");
    if (fgets(line, sizeof line, file)) printf("boot %.3f\n", strtod(line, &more));
    fclose(file);
    file = fopen("/proc/stat", "r");
    while (fgets(line, sizeof line, file))
        if (line[0] == 'b') printf("%s", line);
    fclose(file);
}
int main(void) {
    puts("<<<");
    all();
    all();
    puts(">>>");
    return 0;
}
"""


def test_every_clock_fits_the_others_and_moves_on(cg_bench: CgBench, compile_c: CompileC) -> None:
    finished = cg_bench.run(compile_c(CLOCKS), options=["--pin-clock", "--warmup", "0"])
    told = [(word, float(number)) for word, number in (line.split() for line in finished.said.splitlines())]
    booted = {number for word, number in told if word == "btime"}
    assert booted == {1_735_689_599}
    boot = booted.pop()
    # In hundredths of a second, as /proc/uptime has them.
    elapsed = [
        int((number - boot * (word == "wall")) * 100 + 0.01) for word, number in told if word in ("wall", "boot")
    ]
    assert len(elapsed) == 18
    assert elapsed == sorted(elapsed), "now less btime is the uptime, and it moves on with each reading"
    assert 100 <= elapsed[0] < elapsed[-1] < 120
    used = [number for word, number in told if word == "cpu"]
    assert used == sorted(used)
    assert 0 < used[0] < used[-1] < 0.2
    assert {word: number for word, number in told if word in ("second", "up")} == {"second": boot + 1, "up": 1}


UPTIME = """
import datetime, time
boot = next(int(line.split()[1]) for line in open("/proc/stat") if line.startswith("btime"))
print("<<<", datetime.datetime.fromtimestamp(boot), 1 <= time.time() - boot < 3, ">>>")
"""


def test_a_program_that_computes_how_long_the_machine_is_up_counts_the_same_in_each_run(cg_bench: CgBench) -> None:
    options = ["--pin-clock", "--repeat", "2"]
    finished = cg_bench.run(sys.executable, "-I", "-S", "-c", UPTIME, options=options)
    assert finished.said.endswith("23:59:59 True")
    first, second = (run["counts"] for run in finished.benchmark["runs"])
    assert first == second


WAITS = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static struct timespec start;
static long ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000;
}
static struct timespec in(clockid_t id, int seconds) {
    struct timespec t;
    clock_gettime(id, &t);
    t.tv_sec += seconds;
    return t;
}
static void say(const char *name, int result) { printf("%s %d %ld\n", name, result, ms() / 1000); }
#define SAY(name, result) say(name, (int)(result))
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int flag;
static void *signaller(void *unused) {
    sleep(2);
    pthread_mutex_lock(&mutex);
    flag = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    return unused;
}
static void caught(int number) { (void)number; }
int main(void) {
    puts("<<<");
    clock_gettime(CLOCK_MONOTONIC, &start);
    SAY("sleep", sleep(10));
    struct timespec t = in(CLOCK_REALTIME, 10);
    SAY("nanosleep", clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, 0));
    t = in(CLOCK_MONOTONIC, 10);
    SAY("nanosleep", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0));
    pthread_mutex_lock(&mutex);
    t = in(CLOCK_REALTIME, 10);
    SAY("cond", pthread_cond_timedwait(&cond, &mutex, &t) == ETIMEDOUT);
    sem_t sem;
    sem_init(&sem, 0, 0);
    t = in(CLOCK_REALTIME, 10);
    SAY("sem", sem_timedwait(&sem, &t) && errno == ETIMEDOUT);
    int ends[2];
    if (pipe(ends)) return 1;
    struct pollfd one = {ends[0], POLLIN, 99};
    SAY("poll", poll(&one, 1, 10000) == 0 && one.revents == 0);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    struct timeval tv = {10, 0};
    SAY("select", select(ends[0] + 1, &set, 0, 0, &tv) == 0 && !FD_ISSET(ends[0], &set) && tv.tv_sec == 0);
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
    SAY("epoll", epoll_wait(epoll, &event, 1, 10000));
    t = in(CLOCK_REALTIME, 10);
    pthread_t thread;
    pthread_create(&thread, 0, signaller, 0);
    int result = 0;
    while (!flag && !result) result = pthread_cond_timedwait(&cond, &mutex, &t);
    SAY("signalled", flag && !result);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, 0);
    if (!fork()) {
        sleep(3);
        _exit(write(ends[1], "x", 1) != 1);
    }
    SAY("written", epoll_wait(epoll, &event, 1, 10000));
    char byte;
    if (read(ends[0], &byte, 1) != 1) return 1;
    wait(0);
    struct sigaction action = {.sa_handler = caught};
    sigaction(SIGALRM, &action, 0);
    ualarm(50000, 0);
    struct timespec rest = {1000, 0};
    SAY("interrupted", nanosleep(&rest, &rest) == -1 && errno == EINTR);
    puts(">>>");
    return 0;
}
"""


def test_waits_take_no_time_and_end_when_they_would_have(cg_bench: CgBench, compile_c: CompileC) -> None:
    options = ["--pin-clock", "--warmup", "0", "--timeout", "60s"]
    first, second = (cg_bench.run(compile_c(WAITS, "-pthread"), options=options) for _ in range(2))
    told = [(name, int(result), int(seconds)) for name, result, seconds in map(str.split, first.said.splitlines())]
    assert told == [
        ("sleep", 0, 10),
        ("nanosleep", 0, 20),
        ("nanosleep", 0, 30),
        ("cond", 1, 40),
        ("sem", 1, 50),
        ("poll", 1, 60),
        ("select", 1, 70),
        ("epoll", 0, 80),
        ("signalled", 1, 82),  # by a thread that slept for two seconds
        ("written", 1, 85),  # by a child that slept for three
        ("interrupted", 1, 85),  # by an alarm, which goes by the real time
    ]
    assert first.benchmark["wall_ms"] < 60_000
    assert first.said == second.said
    assert first.counts["Ir"] == pytest.approx(second.counts["Ir"], rel=1e-2)


THREADS = """
import queue, threading, time
start, found = time.monotonic(), queue.Queue()
def work():
    for number in range(5):
        time.sleep(1)
        found.put(number)
thread = threading.Thread(target=work)
thread.start()
got, empty = [], 0
while len(got) < 5:
    try:
        got.append(found.get(timeout=0.4))
    except queue.Empty:
        empty += 1
thread.join()
try:
    found.get(timeout=30)
except queue.Empty:
    print("<<<", got, empty, int(time.monotonic() - start), ">>>")
"""


def test_time_outs_of_python_threads_are_the_same_in_each_run(cg_bench: CgBench) -> None:
    finished = cg_bench.run(sys.executable, "-I", "-S", "-c", THREADS, options=["--pin-clock", "--warmup", "0"])
    assert finished.said == "[0, 1, 2, 3, 4] 10 35"


TIMEOUT = """
import subprocess, time
start = time.monotonic()
try:
    subprocess.run(["sleep", "500"], timeout=2)
except subprocess.TimeoutExpired:
    print("<<<", int(time.monotonic() - start), ">>>")
"""


@pytest.mark.slow
def test_a_child_that_is_waited_for_in_vain_is_given_its_time(cg_bench: CgBench) -> None:
    finished = cg_bench.run(sys.executable, "-I", "-S", "-c", TIMEOUT, options=["--pin-clock", "--warmup", "0"])
    assert finished.said == "2"


BUSY = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static volatile int done;
static void *set(void *unused) {
    usleep(1000);
    done = 1;
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, set, 0);
    while (!done) usleep(0);
    puts("<<< done >>>");
    return pthread_join(thread, 0);
}
"""


def test_a_thread_that_is_busy_until_another_has_slept_does_not_wait_for_ever(
    cg_bench: CgBench, compile_c: CompileC
) -> None:
    finished = cg_bench.run(compile_c(BUSY, "-pthread"), options=["--pin-clock", "--warmup", "0", "--timeout", "60s"])
    assert finished.said == "done"
