"""What the seal promises, seen from inside: the programs here print what they find, and two runs must find the same."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.hermetic.fake_proc import memory_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench, Finished

HEX = r"""
#include <stdio.h>
static void hex(FILE *out, const char *label, const unsigned char *bytes, int n) {
    fprintf(out, "%s ", label);
    for (int i = 0; i < n; i++) fprintf(out, "%02x", bytes[i]);
    fprintf(out, "\n");
    fflush(out);
}
"""

RANDOMNESS = (
    HEX
    + r"""
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <unistd.h>
static void device(const char *path) {
    unsigned char bytes[16] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (read(fd, bytes, 16) != 16) puts("short read");
    hex(stdout, path, bytes, 16);
    close(fd);
}
int main(void) {
    unsigned char bytes[16];
    puts("<<<");
    hex(stdout, "at_random", (unsigned char *)getauxval(AT_RANDOM), 16);
    for (int i = 0; i < 2; i++) {
        if (getrandom(bytes, 16, 0) != 16) puts("short getrandom");
        hex(stdout, i ? "second" : "first", bytes, 16);
    }
    device("/dev/urandom");
    device("/dev/random");
    FILE *file = fopen("/dev/urandom", "r");
    if (fread(bytes, 16, 1, file) != 1) puts("short fread");
    hex(stdout, "fopen", bytes, 16);
    puts(">>>");
    return 0;
}
"""
)

STATE = r"""
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>
static char *first_line(const char *path) {
    static char line[100];
    FILE *file = fopen(path, "r");
    if (!file || !fgets(line, sizeof line, file)) return "nothing\n";
    fclose(file);
    return line;
}
int main(void) {
    struct sysinfo info;
    if (sysinfo(&info)) return 1;
    printf("<<< uptime %ld load %lu", info.uptime, info.loads[0]);
    printf(" memory %ld of %ld pages\n", sysconf(_SC_AVPHYS_PAGES), sysconf(_SC_PHYS_PAGES));
    const char *paths[] = {"/proc/loadavg", "/proc/uptime", "/proc/meminfo"};
    for (int i = 0; i < 3; i++) printf("%s %s", paths[i], first_line(paths[i]));
    printf("/proc/meminfo, seen from the start again: %d\n", !strncmp(first_line("/proc/meminfo"), "MemTotal:", 9));
    puts(">>>");
    return 0;
}
"""

FAMILY = (
    HEX
    + r"""
#include <string.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>
static void draw(const char *label) {
    unsigned char bytes[16];
    if (getrandom(bytes, 16, 0) != 16) puts("short getrandom");
    hex(stdout, label, bytes, 16);
}
int main(int argc, char **argv) {
    int together = !strcmp(argv[1], "together"), twice = !strcmp(argv[1], "twice");
    int ends[2];
    puts("<<<");
    draw("parent");
    for (int i = 0; i < 3; i++) {
        if (pipe(ends)) return 1;
        fflush(stdout);
        if (fork() == 0) {
            if (twice && fork() != 0) _exit(0); /* orphans the grandchild */
            if (!together) close(ends[0]);
            char label[20];
            sprintf(label, "child%d", i);
            draw(label);
            draw(label);
            _exit(0);
        }
        close(ends[1]);
        char byte;
        if (!together && read(ends[0], &byte, 1)) return 1; /* ends when the last writer has ended */
    }
    while (wait(NULL) > 0) ;
    draw("parent");
    puts(">>>");
    return 0;
}
"""
)

THREADS = (
    HEX
    + r"""
#include <pthread.h>
#include <sys/random.h>
static unsigned char drawn[3][16];
static void *draw(void *place) { return (void *)(getrandom(place, 16, 0) == 16); }
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, draw, drawn[i]);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    puts("<<<");
    for (int i = 0; i < 3; i++) hex(stdout, "thread", drawn[i], 16);
    puts(">>>");
    return 0;
}
"""
)

MUCH = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
    static unsigned char buffer[1 << 16];
    int fd = open("/dev/urandom", O_RDONLY);
    long total = 0, n, blocks_of_zeros = 0;
    while (total < 20 << 20 && (n = read(fd, buffer, sizeof buffer)) > 0) {
        total += n;
        int sum = 0;
        for (int i = 0; i < 64; i++) sum += buffer[i];
        blocks_of_zeros += sum == 0;
    }
    printf("<<< %ld %ld >>>\n", total, blocks_of_zeros);
    return 0;
}
"""

CENSUS = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
extern char **environ;
static char kind(int fd) {
    struct stat s;
    if (fstat(fd, &s)) return '-';
    return S_ISFIFO(s.st_mode) ? 'p' : S_ISCHR(s.st_mode) ? 'c' : S_ISREG(s.st_mode) ? 'f' : '?';
}
int main(int argc, char **argv) {
    struct rlimit limit;
    long bytes = 0, count = 0;
    char c;
    puts("<<<");
    for (char **v = environ; *v; v++) { printf("variable %.*s\n", (int)strcspn(*v, "="), *v); bytes += strlen(*v) + 1; count++; }
    printf("block %ld bytes in %ld variables\n", bytes + strlen(argv[0]) + 1, count);
    getrlimit(RLIMIT_STACK, &limit); printf("stack %ld\n", (long)limit.rlim_cur);
    getrlimit(RLIMIT_NOFILE, &limit); printf("nofile %ld\n", (long)limit.rlim_cur);
    getrlimit(RLIMIT_CORE, &limit); printf("core %ld\n", (long)limit.rlim_cur);
    printf("tmpdir %s\n", getenv("TMPDIR"));
    int entries = 0;
    DIR *dir = opendir(getenv("TMPDIR"));
    for (struct dirent *e; dir && (e = readdir(dir));) entries += e->d_name[0] != '.';
    closedir(dir);
    printf("entries %d\n", entries);
    char path[300];
    snprintf(path, sizeof path, "%s/left-over", getenv("TMPDIR"));
    printf("own file %d\n", open(path, O_WRONLY | O_CREAT | O_EXCL, 0000) >= 0);
    snprintf(path, sizeof path, "%s/left-folder", getenv("TMPDIR"));
    printf("own folder %d\n", mkdir(path, 0000) == 0);
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    printf("cpus %d\n", CPU_COUNT(&set));
    CPU_ZERO(&set);
    CPU_SET(1, &set);
    printf("may go elsewhere %d\n", sched_setaffinity(0, sizeof set, &set) == 0);
    sched_getaffinity(0, sizeof set, &set);
    printf("cpu %d %d\n", CPU_ISSET(0, &set), sched_getcpu());
    printf("stdin %c %ld\n", kind(0), (long)read(0, &c, 1));
    printf("stdout %c stderr %c\n", kind(1), kind(2));
    printf("session of its own %d\n", getsid(0) == getpid());
    printf("terminal %d\n", open("/dev/tty", O_RDWR) >= 0);
    printf("personality %lx\n", (unsigned long)personality(0xffffffff));
    for (int fd = 3; fd < 256; fd++) if (fcntl(fd, F_GETFD) >= 0 && kind(fd) != 'f') printf("descriptor %d\n", fd);
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, 0, &blocked);
    for (int s = 1; s < 32; s++) {
        struct sigaction action;
        sigaction(s, 0, &action);
        if (action.sa_handler != SIG_DFL) printf("signal %d is not handled by default\n", s);
        if (sigismember(&blocked, s)) printf("signal %d is blocked\n", s);
    }
    puts(">>>");
    return 0;
}
"""

CLOCK = r"""
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
int main(void) {
    struct timespec wall, steady, end;
    struct timeval old;
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &steady);
    gettimeofday(&old, 0);
    long now = time(0), rounds = 0;
    do { clock_gettime(CLOCK_MONOTONIC, &end); rounds++; } while (end.tv_sec < steady.tv_sec + 1);
    printf("<<< %ld.%09ld %ld.%09ld %ld.%06ld %ld %ld >>>\n", (long)wall.tv_sec, wall.tv_nsec, (long)steady.tv_sec,
           steady.tv_nsec, (long)old.tv_sec, (long)old.tv_usec, now, rounds);
    return 0;
}
"""

SIGNALS = (
    HEX
    + r"""
#include <errno.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/time.h>
static volatile long alarms;
static void count(int s) { alarms++; }
int main(void) {
    struct itimerval every = {{0, 1000}, {0, 1000}};
    struct sigaction action = {.sa_handler = count};
    unsigned char bytes[16], all[16] = {0};
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &every, 0);
    for (int i = 0; i < 3000; i++) {
        if (getrandom(bytes, 16, 0) != 16) { puts("short getrandom"); i--; continue; }
        for (int j = 0; j < 16; j++) all[j] ^= bytes[j];
    }
    puts("<<<");
    hex(stdout, "all", all, 16);
    printf(">>> %ld\n", alarms);
    return 0;
}
"""
)

FILES = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    long read_bytes = 0;
    char buffer[64];
    for (int i = 0; i < 3000; i++) {
        int fd = open(argv[1], O_RDONLY);
        read_bytes += read(fd, buffer, sizeof buffer);
        close(fd);
    }
    int missing = open("/dev/urandom-of-another-name", O_RDONLY) < 0 && errno == ENOENT;
    int forbidden = open("/dev/urandom", O_RDONLY | O_DIRECTORY) < 0 && errno == ENOTDIR;
    printf("<<< %ld %d %d >>>\n", read_bytes, missing, forbidden);
    return 0;
}
"""

BAD_ADDRESSES = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static void call(long result) { printf("%ld/%d ", result, result < 0 ? errno : 0); }
int main(void) {
    char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    printf("<<< ");
    call(syscall(SYS_execve, "/bin/true", page + 4092, 0));
    call(syscall(SYS_execve, 1L, 1L, 0));
    call(syscall(435, page + 4092, 88));
    call(syscall(SYS_openat, -100, page + 4093, 0));
    call(syscall(SYS_getrandom, 8L, 100, 0));
    call(syscall(SYS_openat, -100, -1L, 0));
    call(syscall(SYS_getrandom, 1L << 63, 100, 0));
    call(syscall(SYS_sysinfo, 8L));
    puts(">>>");
    return 0;
}
"""


def lines(finished: Finished) -> dict[str, str]:
    """Return the lines a program wrote, by their first word."""
    return dict(line.split(" ", 1) for line in finished.said.splitlines())


# --- Randomness ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def randomness(once: Any, compile_c: CompileC) -> Finished:
    program = compile_c(RANDOMNESS)
    finished: Finished = once("randomness", lambda cg_bench: cg_bench.run(program))
    return finished


def test_every_source_of_randomness_gives_the_same_bytes_in_each_run(
    cg_bench: CgBench, randomness: Finished, compile_c: CompileC
) -> None:
    assert cg_bench.run(compile_c(RANDOMNESS)).said == randomness.said
    seal = randomness.benchmark["seal"]
    assert seal["randomness"]["state"] == seal["random_devices"]["state"] == "pinned"


def test_memory_and_load_are_those_of_an_idle_machine_in_each_run(cg_bench: CgBench, compile_c: CompileC) -> None:
    finished = cg_bench.run(compile_c(STATE))
    kilobytes = memory_bytes() // 1024
    pages = kilobytes // 4
    assert finished.said.splitlines() == [
        f"uptime 1 load 0 memory {pages} of {pages} pages",
        "/proc/loadavg 0.00 0.00 0.00 1/1 1",
        "/proc/uptime 1.00 1.00",
        f"/proc/meminfo MemTotal:       {kilobytes:>8} kB",
        "/proc/meminfo, seen from the start again: 1",
    ]
    script = "import re; print('<<<', dict(re.findall(r'(\\w+): +(\\d+) kB', open('/proc/meminfo').read())), '>>>')"
    fields = cg_bench.run(sys.executable, "-S", "-c", script).said
    assert f"'MemAvailable': '{kilobytes}'" in fields
    assert "'SwapFree': '0'" in fields


def test_random_bytes_look_random(randomness: Finished) -> None:
    found = lines(randomness)
    assert found.keys() == {"at_random", "first", "second", "/dev/urandom", "/dev/random", "fopen"}
    assert all(re.fullmatch("[0-9a-f]{32}", value) and len(set(value)) > 5 for value in found.values())
    assert len({found["at_random"], found["first"], found["second"], found["/dev/urandom"]}) == 4
    assert found["fopen"] == found["/dev/urandom"], "every opener reads from the beginning"


def test_randomness_stays_pinned_across_an_exec(cg_bench: CgBench, randomness: Finished, compile_c: CompileC) -> None:
    finished = cg_bench.run("sh", "-c", f"exec {compile_c(RANDOMNESS)}")
    assert finished.said == randomness.said


def test_a_second_exec_in_the_same_process_starts_the_stream_anew(
    cg_bench: CgBench, randomness: Finished, compile_c: CompileC
) -> None:
    program = compile_c(RANDOMNESS)
    script = f"import os; os.getrandom(5); os.execv({str(program)!r}, ['program'])"
    assert cg_bench.run(sys.executable, "-S", "-c", script).said == randomness.said


@pytest.mark.parametrize("how", ["in-turn", "together", "twice"])
def test_forked_children_draw_bytes_of_their_own_and_the_same_in_each_run(
    cg_bench: CgBench, compile_c: CompileC, how: str
) -> None:
    program = compile_c(FAMILY)
    runs = [cg_bench.run(program, how) for _ in range(3)]
    drawn = runs[0].said.splitlines()
    assert len(drawn) == len(set(drawn)) == 8, "parent and children share no bytes"
    assert {frozenset(finished.said.splitlines()) for finished in runs} == {frozenset(drawn)}
    if how == "in-turn":
        assert runs[1].said == runs[2].said == runs[0].said


def test_threads_draw_the_same_bytes_in_each_run(cg_bench: CgBench, compile_c: CompileC) -> None:
    program = compile_c(THREADS, "-O1", "-pthread")
    first, second = cg_bench.run(program), cg_bench.run(program)
    assert len(set(first.said.splitlines())) == 3
    # Which thread comes first, and so a few instructions of locking, is up to the kernel's scheduler.
    assert set(first.said.splitlines()) == set(second.said.splitlines())
    assert first.counts["Ir"] == pytest.approx(second.counts["Ir"], rel=1e-3)


def test_reading_twenty_megabytes_of_randomness_neither_ends_early_nor_hangs(
    cg_bench: CgBench, compile_c: CompileC
) -> None:
    total, _zeros = cg_bench.run(compile_c(MUCH), options=["--warmup", "0", "--timeout", "60"]).said.split()
    assert int(total) == 20 << 20


def test_a_program_showered_with_signals_gets_every_random_byte(cg_bench: CgBench, compile_c: CompileC) -> None:
    program = compile_c(SIGNALS)
    options = ["--warmup", "0", "--timeout", "60"]
    first, second = (cg_bench.run(program, options=options) for _ in range(2))
    assert first.said == second.said
    assert "short getrandom" not in first.stderr


def test_opening_thousands_of_ordinary_files_works(cg_bench: CgBench, compile_c: CompileC, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x" * 10)
    assert cg_bench.run(compile_c(FILES), file, options=["--timeout", "60"]).said == "30000 1 1"


def test_addresses_that_lead_nowhere_get_the_kernels_answers(cg_bench: CgBench, compile_c: CompileC) -> None:
    program = compile_c(BAD_ADDRESSES)
    alone = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    finished = cg_bench.run(program)
    assert finished.code == 0, finished.stderr
    assert alone.strip() in finished.stderr, "natively, in the warm-up"


# --- The clock -----------------------------------------------------------------------------------------------------------


def test_a_pinned_clock_reports_the_same_time_in_each_run(cg_bench: CgBench, compile_c: CompileC) -> None:
    program = compile_c(CLOCK)
    first, second = (cg_bench.run(program, options=["--pin-clock"]) for _ in range(2))
    assert first.said == second.said
    assert first.counts == second.counts
    wall, _steady, old, now, rounds = first.said.split()
    assert wall.startswith("1735689600.")
    assert old.startswith("1735689600.")
    assert now == "1735689600"
    assert 900 <= int(rounds) <= 1000, "a loop that waits for a second ends after a thousand readings"
    assert first.benchmark["seal"]["clock"]["state"] == "pinned"


def test_without_being_asked_the_clock_is_the_real_one(cg_bench: CgBench, compile_c: CompileC) -> None:
    finished = cg_bench.run(compile_c(CLOCK).parent / "program", options=["--warmup", "0"])
    assert int(finished.said.split()[3]) > 1735689600 + 86400
    assert finished.benchmark["seal"]["clock"]["state"] == "kept"


# --- What a program finds around itself ----------------------------------------------------------------------------------


@pytest.fixture
def census(once: Any, compile_c: CompileC) -> list[str]:
    program = compile_c(CENSUS)
    finished: Finished = once("census", lambda cg_bench: cg_bench.run(program))
    return finished.said.splitlines()


ALLOWED = {
    *("HOME", "PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR", "TZ", "LC_ALL"),
    *("LD_PRELOAD", "VALGRIND_LIB", "VALGRIND_LAUNCHER", "GODEBUG", "GOMAXPROCS", "MKL_CBWR"),
    *("GLIBC_TUNABLES", "PERL_HASH_SEED", "PERL_PERTURB_KEYS", "PYTHONHASHSEED"),
}


def test_the_program_sees_only_allowed_variables(census: list[str]) -> None:
    seen = {line.removeprefix("variable ") for line in census if line.startswith("variable ")}
    strange = {
        name
        for name in seen - ALLOWED
        if not name.startswith("CG_BENCH_PAD") and not name.endswith(("_THREADS", "_CPU_COUNT"))
    }
    assert not strange
    assert {"HOME", "PATH", "TMPDIR", "PYTHONHASHSEED"} <= seen


def test_limits_are_fixed(census: list[str]) -> None:
    assert {"stack 8388608", "nofile 1024", "core 0"} <= set(census)


def test_tmpdir_is_empty_and_private(census: list[str]) -> None:
    assert {"entries 0", "own file 1", "own folder 1"} <= set(census)
    (tmpdir,) = (line for line in census if line.startswith("tmpdir "))
    assert re.fullmatch(r"tmpdir /tmp/cg-bench\.\d\d/tmp", tmpdir)


def test_the_program_runs_on_one_cpu_without_a_terminal_in_a_session_of_its_own(census: list[str]) -> None:
    assert {"cpus 1", "may go elsewhere 1", "cpu 1 0", "terminal 0", "session of its own 1"} <= set(census)


def test_stdin_is_empty_and_the_outputs_are_pipes(census: list[str]) -> None:
    assert {"stdin c 0", "stdout p stderr p"} <= set(census)


def test_no_descriptor_of_ours_is_left_open_in_the_program(census: list[str]) -> None:
    assert not [line for line in census if line.startswith("descriptor ")]


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
def test_the_programs_outputs_are_pipes_where_ours_are_closed(
    cg_bench: CgBench, tmp_path: Path, closed: tuple[int, ...]
) -> None:
    def close() -> None:
        for number in closed:
            os.close(number)

    seen = tmp_path / "seen"
    look = f'out=$(readlink /proc/$$/fd/1); err=$(readlink /proc/$$/fd/2); echo "$out $err" > {seen}'
    cg_bench.run("sh", "-c", look, options=["-q", "--warmup", "0"], prepare=close)
    assert re.fullmatch(r"pipe:\S+ pipe:\S+\n", seen.read_text())


def test_nothing_of_the_surroundings_reaches_the_program(
    cg_bench: CgBench, compile_c: CompileC, census: list[str], files_left: Callable[[], list[str]]
) -> None:
    """Other limits, ignored and blocked signals as under nohup, a long HOME, a terminal: the program sees the same."""

    def disturb() -> None:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGCHLD])
        for limit, soft in ((resource.RLIMIT_STACK, 32 << 20), (resource.RLIMIT_NOFILE, 400)):
            resource.setrlimit(limit, (soft, resource.getrlimit(limit)[1]))
        os.umask(0o007)

    env = {"HOME": "/home/" + "x" * 300, "USER": "another", "GITHUB_REF": "main", "LD_BIND_NOW": "1", "PWD": "/"}
    found = cg_bench.run(compile_c(CENSUS), env=env, prepare=disturb, stdout="terminal").said.splitlines()
    ignored = re.compile(r"tmpdir /tmp/cg-bench\.\d\d/tmp")  # another run may have the first number
    assert [line for line in found if not ignored.fullmatch(line)] == [
        line for line in census if not ignored.fullmatch(line)
    ]
    assert files_left() == []


def test_a_variable_asked_for_reaches_the_program_and_the_block_stays_as_large(
    cg_bench: CgBench, compile_c: CompileC, census: list[str]
) -> None:
    options = ["--env", "WANTED", "--env", "SET=" + "v" * 200, "--env", "ABSENT"]
    found = cg_bench.run(compile_c(CENSUS), options=options, env={"WANTED": "yes"}).said.splitlines()
    assert {"variable WANTED", "variable SET"} <= set(found)
    assert "variable ABSENT" not in found
    assert [line for line in found if line.startswith("block")] == [line for line in census if line.startswith("block")]


COPIES = """
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    size_t bytes = strtoul(argv[1], 0, 10);
    char *from = calloc(1, bytes), *volatile to = malloc(bytes);
    for (int round = 0; round < 16; round++) { memset(to, round, bytes); memcpy(to, from, bytes); }
    return to[bytes - 1];
}
"""


def test_copies_cost_as_much_for_each_byte_whatever_their_size(cg_bench: CgBench, compile_c: CompileC) -> None:
    program = compile_c(COPIES)
    small, large, twice = (cg_bench.run(program, str(size)) for size in (1024, 65536, 131072))
    assert large.benchmark["seal"]["copies"]["state"] == "pinned"
    for_each_byte = (twice.counts["Ir"] - large.counts["Ir"]) / 65536 / 32
    assert for_each_byte < 0.15, "it was 1: each byte of `rep movsb` and `rep stosb` counts as an instruction"
    assert (large.counts["Ir"] - small.counts["Ir"]) / (65536 - 1024) / 32 < 0.15


def test_a_hard_limit_below_ours_is_reported_and_not_fatal(cg_bench: CgBench, compile_c: CompileC) -> None:
    def lower() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))

    finished = cg_bench.run(compile_c(CENSUS), prepare=lower, env={"CG_BENCH_REQUIRE_SEALED": None})
    limits = finished.benchmark["seal"]["limits"]
    assert limits["state"] == "unavailable"
    assert limits["why"]
    assert "stack 8388608" in finished.said
    assert "core 0" in finished.said


def test_what_a_program_leaves_in_tmpdir_is_gone_afterwards(cg_bench: CgBench, compile_c: CompileC) -> None:
    program = compile_c(CENSUS)
    finished = cg_bench.run(program, options=["--repeat", "2"])
    assert finished.said.count("entries 0") == 1
    assert finished.stderr.count("entries 0") == 3
    slot = re.search(r"tmpdir (\S+)/tmp", finished.stderr)
    assert slot is not None
    assert not subprocess.run(["find", slot[1], "-name", "left-*"], capture_output=True, check=False).stdout


def test_stdin_comes_from_the_file_that_was_given(cg_bench: CgBench, tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_text("<<< read this >>>\n")
    assert cg_bench.run("cat", options=["--stdin", str(file)]).said == "read this"
    assert cg_bench.run("cat", options=["-q"]).stderr == ""
