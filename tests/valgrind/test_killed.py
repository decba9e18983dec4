"""However a run ends, nothing of it stays: no process, no file in the working directory, no scratch directory."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import CommandFailedError
from cachegrind_bench.measure.session import SCRATCH_BASE, valgrind_setup
from cachegrind_bench.valgrind.options import Collect, Geometry, Loop, Tool
from cachegrind_bench.valgrind.runner import Target
from tests.valgrind.test_refused import SECCOMP, refusing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from subprocess import Popen

    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench

pytestmark = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks at processes in /proc")

# A child in the same session, a grandchild that is a daemon, and three that never end; each leaves a file in TMPDIR.
FAMILY = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void stay(const char *marker, const char *role) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s-%s", getenv("TMPDIR"), marker, role);
    close(open(path, O_WRONLY | O_CREAT, 0600));
    for (;;) pause();
}
int main(int argc, char **argv) {
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    if (fork() == 0) stay(argv[1], "child");
    if (fork() == 0) {
        setsid();
        if (fork() == 0) stay(argv[1], "daemon");
        _exit(0);
    }
    stay(argv[1], "parent");
}
"""
PATIENCE_S = 20
CODES = {"SIGKILL": {-9}, "SIGTERM": {-15, 143}, "SIGINT": {130}}


@pytest.fixture
def marker() -> str:
    """Return a word that only processes and files of this test bear."""
    return f"marker-{uuid.uuid4().hex}"


def processes(marker: str) -> list[int]:
    """Return the processes with this word among their arguments."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if marker.encode() in (folder / "cmdline").read_bytes() and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found


def written(marker: str) -> list[Path]:
    """Return the files of the family in the scratch directory, which the program itself sees at another path."""
    return list(SCRATCH_BASE.glob(f"cg-bench.*/tmp/{marker}-*"))


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.fixture
def running(
    cg_bench: CgBench, compile_c: CompileC, marker: str
) -> Iterator[Callable[[str], tuple[Popen[bytes], Path]]]:
    """Return a function that starts a run and waits until the program's family is complete."""
    started: list[Popen[bytes]] = []

    def running(warmup: str) -> tuple[Popen[bytes], Path]:
        output = str(cg_bench.folder / "result.json")
        run = cg_bench.start("run", "--warmup", warmup, "-o", output, "--", str(compile_c(FAMILY)), marker)
        started.append(run)

        def complete() -> bool:
            assert run.poll() is None, run.communicate()
            return len(written(marker)) == 3

        wait_for(complete, "the program did not get going")
        return run, written(marker)[0].parent

    yield running
    for run in started:
        with suppress(ProcessLookupError):
            run.kill()
        run.communicate()
    for pid in processes(marker):  # nothing, except where the launcher itself was killed
        os.kill(pid, signal.SIGKILL)


def named_below(folder: Path, pattern: str) -> list[Path]:
    """Return the files of such a name; another run may be taking its folder away meanwhile."""
    while True:
        with suppress(FileNotFoundError):
            return list(folder.rglob(pattern))


def assert_nothing_left(cg_bench: CgBench, marker: str, temporary: Path) -> None:
    wait_for(lambda: not processes(marker), f"still running: {processes(marker)}")
    # The directory itself may be another run's by now.
    wait_for(lambda: not named_below(temporary.parent, f"{marker}-*"), "files in the scratch directory")
    assert os.listdir(cg_bench.cwd) == []
    assert not (cg_bench.folder / "result.json").exists()


@pytest.mark.parametrize("warmup", ["1", "0"], ids=["in the warm-up", "under Valgrind"])
@pytest.mark.parametrize("name", CODES)
def test_a_run_ended_by_a_signal_leaves_nothing_behind(
    cg_bench: CgBench,
    running: Callable[[str], tuple[Popen[bytes], Path]],
    marker: str,
    name: str,
    warmup: str,
) -> None:
    run, temporary = running(warmup)
    assert len(processes(marker)) >= 4  # cg-bench itself is one of them
    run.send_signal(signal.Signals[name])
    assert run.wait(PATIENCE_S) in CODES[name]
    assert_nothing_left(cg_bench, marker, temporary)
    _stdout, stderr = run.communicate()
    assert b"Traceback" not in stderr
    if name == "SIGINT":
        assert b"interrupted" in stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_run_that_is_told_to_end_cleans_up(cg_bench: CgBench, tmp_path: Path, number: signal.Signals) -> None:
    prepared, cleaned = tmp_path / "prepared", tmp_path / "cleaned"
    options = ["-q", "--prepare", f"touch {prepared}", "--cleanup", f"sleep 0.3; touch {cleaned}"]
    run = cg_bench.start("run", *options, "--", "sleep", "60")
    wait_for(prepared.exists, "the preparation did not run")
    for _ in range(5):  # a closing terminal and its shell both send one
        run.send_signal(number)
        time.sleep(0.02)
    assert run.wait(PATIENCE_S) == (130 if number == signal.SIGINT else -number)
    assert cleaned.exists()
    run.communicate()


def test_ctrl_c_in_a_terminal_which_signals_the_whole_group_leaves_nothing_behind(
    cg_bench: CgBench, running: Callable[[str], tuple[Popen[bytes], Path]], marker: str
) -> None:
    run, temporary = running("0")
    for _ in range(3):  # impatient users press it more than once
        with suppress(ProcessLookupError):
            os.kill(run.pid, signal.SIGINT)
        time.sleep(0.05)
    assert run.wait(PATIENCE_S) in {130, -2}
    assert_nothing_left(cg_bench, marker, temporary)


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def family_of(run: Popen[bytes]) -> list[int]:
    """Return the guard, the launcher and the program, once all of them are there."""
    found = [run.pid]
    while below := children(found[-1])[:1]:
        found += below
    return found[1:4] if len(found) > 3 else []


@pytest.mark.parametrize("warmup", ["1", "0"], ids=["in the warm-up", "under Valgrind"])
@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_launcher_that_is_stopped_or_killed_is_reported_and_everything_ends(
    cg_bench: CgBench,
    running: Callable[[str], tuple[Popen[bytes], Path]],
    marker: str,
    number: signal.Signals,
    warmup: str,
) -> None:
    run, temporary = running(warmup)
    _guard, launcher, _program = family_of(run)
    os.kill(launcher, number)
    assert run.wait(PATIENCE_S) == 4
    assert f"the launcher was {'stopped' if number == signal.SIGSTOP else 'killed'}".encode() in run.communicate()[1]
    assert_nothing_left(cg_bench, marker, temporary)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
@pytest.mark.parametrize("attack", ["stop the guard", "kill the guard", "stop guard and launcher"])
def test_without_its_guard_the_launcher_ends_everything(
    cg_bench: CgBench,
    running: Callable[[str], tuple[Popen[bytes], Path]],
    marker: str,
    attack: str,
    name: str,
) -> None:
    run, temporary = running("1")
    guard, launcher, _program = family_of(run)
    os.kill(guard, signal.SIGKILL if attack.startswith("kill") else signal.SIGSTOP)
    if "launcher" in attack:  # the kernel wakes each of them when its parent ends
        os.kill(launcher, signal.SIGSTOP)
    run.send_signal(signal.Signals[name])
    try:
        assert run.wait(PATIENCE_S) in CODES[name]
        assert_nothing_left(cg_bench, marker, temporary)
    finally:
        for pid in (guard, launcher):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_a_cg_bench_that_is_killed_when_the_launcher_is_already_gone_leaves_nothing_behind(
    cg_bench: CgBench, running: Callable[[str], tuple[Popen[bytes], Path]], marker: str
) -> None:
    run, temporary = running("1")
    _guard, launcher, program = family_of(run)
    os.kill(run.pid, signal.SIGSTOP)
    os.kill(launcher, signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{program}").exists(), "the guard did not end the program")
    time.sleep(0.3)  # for the guard to say so
    run.kill()
    assert run.wait(PATIENCE_S) == -signal.SIGKILL
    assert_nothing_left(cg_bench, marker, temporary)


def test_a_stopped_guard_does_not_keep_a_run_from_its_end(cg_bench: CgBench, marker: str) -> None:
    run = cg_bench.start("run", "-q", "--timeout", "2", "--", "sh", "-c", "sleep 60; true", marker)
    wait_for(lambda: family_of(run), "the program did not get going")
    guard, _launcher, _program = family_of(run)
    os.kill(guard, signal.SIGSTOP)
    assert run.wait(PATIENCE_S) == 4
    assert b"ran longer than 2 s" in run.communicate()[1]
    assert processes(marker) == []


PARENT_OF = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>
static pid_t parent_of(pid_t pid) {
    char path[40];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    fscanf(file, "%*d %*s %*c %d", &parent);
    return parent;
}
"""

# Everything that a program can do to the launcher with one call, harmless where it is not refused but for the first ones.
ATTACKS = (
    PARENT_OF
    + r"""
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <asm/sockios.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#define REFUSED(call) if ((call) != -1 || errno != EPERM) return puts(#call), 1
int main(void) {
    pid_t launcher = getppid();
    struct rlimit limit = {1, 1};
    char byte = 0;
    struct iovec here = {&byte, 1}, there = {main, 1};
    REFUSED(kill(launcher, SIGSTOP));
    REFUSED(kill(launcher, SIGKILL));
    REFUSED(kill(-launcher, SIGSTOP));
    REFUSED(kill(-1, SIGURG));
    REFUSED(syscall(SYS_tkill, launcher, SIGURG));
    REFUSED(syscall(SYS_tgkill, launcher, launcher, SIGURG));
    REFUSED(ptrace(PTRACE_ATTACH, launcher, 0, 0));
    REFUSED(prlimit(launcher, RLIMIT_CPU, &limit, NULL));
    struct sched_param idle = {0};
    REFUSED(sched_setscheduler(launcher, SCHED_IDLE, &idle));
    REFUSED(setpriority(PRIO_PROCESS, launcher, 19));
    REFUSED(setpriority(PRIO_USER, 0, 19));
    REFUSED(syscall(SYS_ioprio_set, 1, launcher, 3 << 13));
    unsigned long any = -1;
    REFUSED(syscall(SYS_sched_setaffinity, launcher, sizeof any, &any));
    REFUSED(process_vm_writev(launcher, &here, 1, &there, 1, 0));
    int ends[2], number = launcher;
    struct f_owner_ex owner = {F_OWNER_PID, launcher};
    if (pipe(ends)) return 1;
    REFUSED(fcntl(ends[0], F_SETOWN, launcher));
    REFUSED(fcntl(ends[0], F_SETOWN, -launcher));
    if (fcntl(ends[0], F_SETOWN_EX, &owner) != -1 || ioctl(ends[0], FIOSETOWN, &number) != -1) return 1;
    if (fcntl(ends[0], F_SETOWN, getpid())) return 1;
    int there_is = syscall(SYS_pidfd_open, launcher, 0);
    if (there_is >= 0 && syscall(SYS_pidfd_getfd, there_is, 0, 0) != -1) return puts("pidfd_getfd"), 1;
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/task", parent_of(parent_of(launcher)));
    DIR *threads = opendir(path);  // of cg-bench
    for (struct dirent *entry; (entry = readdir(threads));)
        if ((number = atoi(entry->d_name))) {
            REFUSED(kill(number, SIGURG));
            REFUSED(syscall(SYS_tkill, number, SIGURG));
        }
    for (pid_t above = launcher; above; above = parent_of(above)) REFUSED(kill(above, SIGURG));  // one may be `cg-bench ab`
    signal(SIGUSR1, SIG_IGN);
    return kill(launcher, 0) || kill(getpid(), SIGUSR1) || kill(0, SIGUSR1);
}
"""
)


@pytest.mark.parametrize(
    "before",
    [
        pytest.param([], id="filter with a listener"),
        pytest.param(refusing(SECCOMP), marks=pytest.mark.unsealed, id="plain filter"),
    ],
)
def test_a_program_cannot_stop_or_end_the_launcher(cg_bench: CgBench, compile_c: CompileC, before: list[str]) -> None:
    finished = cg_bench.run(compile_c(ATTACKS), options=["--timeout", "5"], before=before)
    assert finished.code == 0, finished.stderr


# Signals the first thread of cg-bench that is newer than the filter; the signal is harmless.
LATER = """
import os, signal, sys, time
def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
cg_bench = parent(parent(os.getppid()))
threads = set(os.listdir(f"/proc/{cg_bench}/task"))
open("ready", "w").close()
for _ in range(2000):
    for thread in {*os.listdir(f"/proc/{cg_bench}/task")} - threads:
        try:
            os.kill(int(thread), signal.SIGURG)
        except ProcessLookupError:
            continue
        except PermissionError:
            os.kill(os.getpid(), signal.SIGURG)
            sys.exit()
        sys.exit(f"{thread} of {cg_bench} was signalled")
    time.sleep(0.01)
sys.exit("cg-bench has started no thread")
"""


@pytest.mark.skipif(
    len(os.sched_getaffinity(0)) == 1, reason="on one CPU there is one job, and no thread begins while it is measured"
)
def test_a_thread_of_cg_bench_that_is_newer_than_the_filter_is_not_signalled(cg_bench: CgBench) -> None:
    (cg_bench.cwd / "later.py").write_text(LATER)
    wait = "sh -c 'until [ -e ready ]; do sleep 0.1; done'"
    others = [f'[[benchmark]]\nid = "{number}"\ncommand = ["true"]\nprepare = "{wait}"\n' for number in range(5)]
    (cg_bench.cwd / "cg-bench.toml").write_text(
        f'[[benchmark]]\nid = "a"\ncommand = [{json.dumps(sys.executable)}, "later.py"]\n{"".join(others)}'
    )
    every = os.sched_getaffinity(0)  # and not those of this worker alone
    finished = cg_bench("run", "-j", "2", "--warmup", "0", prepare=lambda: os.sched_setaffinity(0, every))
    assert finished.code == 0, finished.stdout + finished.stderr


# Has the timers of what watches over it be late by centuries; not cg-bench's own, which ends with them.
LATE_TIMERS = """
import os, time
pid = os.getppid()
for _ in range(2):
    with open(f"/proc/{pid}/timerslack_ns", "w") as file:
        file.write("9000000000000000000")
    pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
time.sleep(1000)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change the timers of another process")
def test_a_program_cannot_have_the_launcher_be_late(cg_bench: CgBench) -> None:
    finished = cg_bench.run(sys.executable, "-c", LATE_TIMERS, options=["--timeout", "2"])
    assert finished.code == 4
    assert "the command ran longer than 2 s" in finished.stderr  # and no guard had to end it


# Stops or kills the launcher, with `b` its guard as well, without the filter that refuses it. There is a daemon by then.
UNFILTERED = (
    PARENT_OF
    + r"""
#include <signal.h>
#include <unistd.h>
int main(int argc, char **argv) {
    pid_t launcher = getppid(), guard = parent_of(launcher);
    if (fork() == 0) {
        setsid();
        if (fork() == 0) for (;;) pause();
        _exit(0);
    }
    usleep(100000);
    if (argv[2][0] == 'b') kill(guard, SIGSTOP);
    kill(launcher, argv[1][0] == 's' ? SIGSTOP : SIGKILL);
    for (;;) pause();
}
"""
)
PRCTL, SECCOMP_MODE_FILTER = 157, 2
NO_FILTER = [*refusing(SECCOMP), *refusing(PRCTL, SECCOMP_MODE_FILTER)]


@pytest.mark.unsealed
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_program_whose_calls_are_not_filtered_ends_with_the_launcher_that_it_stops(
    cg_bench: CgBench, compile_c: CompileC, marker: str, how: str
) -> None:
    finished = cg_bench.run(compile_c(UNFILTERED), how, "one", marker, options=["--timeout", "5"], before=NO_FILTER)
    assert finished.code == 4
    assert "the launcher was" in finished.stderr
    wait_for(lambda: not processes(marker), f"still running: {processes(marker)}")


@pytest.mark.unsealed
def test_a_program_that_stops_both_launcher_and_guard_ends_without_a_time_limit(
    cg_bench: CgBench, compile_c: CompileC, marker: str
) -> None:
    finished = cg_bench.run(compile_c(UNFILTERED), "stop", "both", marker, before=NO_FILTER)
    assert finished.code == 4
    assert "the launcher was stopped" in finished.stderr
    wait_for(lambda: not processes(marker), f"still running: {processes(marker)}")


LATE = """
import sys
from cachegrind_bench.hermetic import launch
launch._LATEST_S, launch._LONGEST_WAIT_S = 1.0, 3600.0  # it does not look whether the guard was stopped
from cachegrind_bench.cli.main import main
sys.argv[:] = sys.argv[3:]  # behind `python -m`
main()
"""


@pytest.mark.unsealed
def test_a_program_whose_guard_stays_stopped_with_its_launcher_ends_after_the_time_out(
    cg_bench: CgBench, compile_c: CompileC, marker: str
) -> None:
    before = [*NO_FILTER, sys.executable, "-c", LATE]
    finished = cg_bench.run(compile_c(UNFILTERED), "stop", "both", marker, options=["--timeout", "1"], before=before)
    assert finished.code == 4
    assert "both were stopped" in finished.stderr
    wait_for(lambda: not processes(marker), f"still running: {processes(marker)}")


STOPPED_AT_ONCE = """
import os, signal, sys
from cachegrind_bench import process
def start_stopped(*given, start=process.start, **more):
    child = start(*given, **more)
    os.kill(child.pid, signal.SIGSTOP)
    return child
process.start = start_stopped
from cachegrind_bench.cli.main import main
sys.argv[:] = sys.argv[3:]  # behind `python -m`
main()
"""


def test_a_guard_that_is_stopped_before_it_has_a_launcher_goes_on(cg_bench: CgBench) -> None:
    finished = cg_bench.run("true", before=[sys.executable, "-c", STOPPED_AT_ONCE])
    assert finished.code == 0, finished.stderr


@pytest.mark.parametrize("warmup", ["1", "0"], ids=["in the warm-up", "under Valgrind"])
def test_a_timeout_ends_the_whole_tree(cg_bench: CgBench, compile_c: CompileC, marker: str, warmup: str) -> None:
    finished = cg_bench.run(compile_c(FAMILY), marker, options=["--timeout", "2", "--warmup", warmup])
    assert finished.code == 4
    assert "ran longer than 2 s" in finished.stderr
    assert "--timeout" in finished.stderr
    assert "Traceback" not in finished.stderr
    assert finished.result is None
    assert processes(marker) == []
    assert os.listdir(cg_bench.cwd) == []


@pytest.mark.parametrize("option", ["--prepare", "--cleanup"])
def test_daemons_that_a_preparation_or_clean_up_starts_end_with_it(cg_bench: CgBench, marker: str, option: str) -> None:
    daemon = f"setsid sh -c 'sleep 60; : {marker}' >/dev/null 2>&1 & sleep 0.3"
    assert cg_bench.run("true", options=[option, daemon, "--warmup", "0"]).code == 0
    assert processes(marker) == []


@pytest.mark.parametrize("option", ["--prepare", "--cleanup"])
def test_a_timeout_ends_a_preparation_or_clean_up_with_all_that_it_started(
    cg_bench: CgBench, marker: str, option: str
) -> None:
    slow = f"setsid sh -c 'sleep 60; : {marker}' & sleep 60"
    finished = cg_bench.run("true", options=[option, slow, "--timeout", "5", "--warmup", "0"])
    assert finished.code == 4
    assert f"the {option} command ran longer than 5 s and was stopped: {slow}\n  give it more time" in finished.stderr
    assert processes(marker) == []


def test_a_run_that_is_killed_leaves_nothing_of_its_preparation(cg_bench: CgBench, marker: str) -> None:
    run = cg_bench.start("run", "-q", "--prepare", f"setsid sh -c 'sleep 60; : {marker}' & sleep 60", "--", "true")
    wait_for(lambda: len(processes(marker)) >= 3, "the preparation did not run")  # cg-bench, its shell, and the daemon
    run.kill()
    run.communicate()
    wait_for(lambda: not processes(marker), f"still running: {processes(marker)}")


def test_the_next_run_uses_the_directory_that_a_killed_one_left(
    cg_bench: CgBench, running: Callable[[str], tuple[Popen[bytes], Path]], marker: str
) -> None:
    run, temporary = running("0")
    run.kill()
    assert_nothing_left(cg_bench, marker, temporary)
    assert cg_bench.run("true").code == 0


def test_what_a_jvm_that_is_killed_leaves_in_tmp_is_removed(tmp_path: Path) -> None:
    environ = {"PATH": os.defpath, "HOME": "/nonexistent"}
    setup = valgrind_setup(valgrind=None, geometry=Geometry(), environ=environ, passed={})
    code = f"name=hs_c7_pid$$.log; > /tmp/$name; > /tmp/$name.other; echo $name > {tmp_path}/name; kill -9 $$"
    collect = Collect.inside(loop=Loop(words={}, native=(), log=("-c", code)))
    target = Target(argv=("/bin/sh",), executable="/bin/sh", variables=environ, cwd="/", collect=collect)
    with setup.session(echo=lambda _chunk: None) as ready, pytest.raises(CommandFailedError):
        ready.runner.execute(target, Tool.CALLGRIND)
    left = Path("/tmp", (tmp_path / "name").read_text().strip())
    other = left.with_name(f"{left.name}.other")
    assert (left.exists(), other.exists()) == (False, True)
    other.unlink()
