"""However a run ends, nothing of it stays: no process, no file in the working directory, no scratch directory."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import CommandFailedError
from cachegrind_bench.harness.engine.loop import Loop
from cachegrind_bench.harness.engine.loop_runner import LoopRunner
from cachegrind_bench.hermetic.execution import Execution
from cachegrind_bench.measure.session import SCRATCH_BASE, valgrind_setup
from cachegrind_bench.valgrind.options import Geometry, Tool
from tests.valgrind.conftest import COMMAND, LIMIT_S, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from subprocess import Popen

    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench, Finished

pytestmark = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks at processes in /proc")

# Programs that do not end by themselves, by their first argument. The second is part of the names of the files that they
# leave in TMPDIR once they are at it.
MISBEHAVING = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static const char *marker;
static void mark(const char *role) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s-%s", getenv("TMPDIR"), marker, role);
    close(open(path, O_WRONLY | O_CREAT, 0600));
}
static void stay(const char *role) {
    mark(role);
    for (;;) pause();
}
// A child in the same session, a grandchild that is a daemon, and a parent; none of them ends when asked to.
static void family(void) {
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    if (fork() == 0) stay("child");
    if (fork() == 0) {
        setsid();
        if (fork() == 0) stay("daemon");
        _exit(0);
    }
    stay("parent");
}
static void children(void) {
    char role[20];
    for (int i = 0; i < 50; i++)
        if (fork() == 0) {
            snprintf(role, sizeof role, "%d", i);
            stay(role);
        }
}
static void closed(void) {
    mark("closed");
    for (int i = 0; i < 1024; i++) close(i);
    for (;;) pause();
}
static void hanging(void) {
    if (fork() == 0) {
        mark("hanging");
        for (;;) {}
    }
    wait(NULL);
}
static void printing(void) {
    char text[4096];
    memset(text, 'x', sizeof text);
    mark("printing");
    for (;;) write(1, text, sizeof text);
}
int main(int argc, char **argv) {
    marker = argv[2];
    switch (argv[1][0]) {
        case 'f': family(); break;
        case 'c': children(); break;
        case 'd': closed(); break;
        case 'h': hanging(); break;
        case 'p': printing(); break;
    }
}
"""
FILES = {"family": 3, "children": 50, "descriptors": 1, "hanging": 1, "printing": 1}
PATIENCE_S = 600
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
) -> Iterator[Callable[[str, str], tuple[Popen[bytes], Path]]]:
    """Return a function that starts a run and waits until the program is at it."""
    started: list[Popen[bytes]] = []

    def running(what: str, warmup: str) -> tuple[Popen[bytes], Path]:
        output = str(cg_bench.folder / "result.json")
        words = ["run", "--warmup", warmup, "-o", output, "--", str(compile_c(MISBEHAVING)), what, marker]
        run = cg_bench.start(*words)
        started.append(run)

        def complete() -> bool:
            assert run.poll() is None, run.communicate()
            return len(written(marker)) == FILES[what]

        wait_for(complete, "the program did not get going")
        return run, written(marker)[0].parent

    yield running
    for run in started:
        with suppress(ProcessLookupError):
            run.kill()
        run.communicate()


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


ENDS = [
    *(("family", warmup, name) for warmup in "10" for name in CODES),
    *((what, "1", name) for what in FILES if what != "family" for name in ("SIGINT", "SIGKILL")),
]


@pytest.mark.parametrize("end", ENDS, ids="-".join)
def test_a_run_ended_by_a_signal_leaves_nothing_behind(
    cg_bench: CgBench,
    running: Callable[[str, str], tuple[Popen[bytes], Path]],
    marker: str,
    end: tuple[str, str, str],
) -> None:
    what, warmup, name = end
    run, temporary = running(what, warmup)
    run.send_signal(signal.Signals[name])
    _stdout, stderr = run.communicate(timeout=PATIENCE_S)
    assert run.returncode in CODES[name]
    assert_nothing_left(cg_bench, marker, temporary)
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
    cg_bench: CgBench, running: Callable[[str, str], tuple[Popen[bytes], Path]], marker: str
) -> None:
    run, temporary = running("family", "0")
    for _ in range(3):  # impatient users press it more than once
        with suppress(ProcessLookupError):
            os.kill(run.pid, signal.SIGINT)
        time.sleep(0.05)
    assert run.wait(PATIENCE_S) in {130, -2}
    assert_nothing_left(cg_bench, marker, temporary)


TIMEOUTS = [("family", "1"), ("family", "0"), ("descriptors", "1"), ("hanging", "0"), ("printing", "1")]


@pytest.mark.parametrize(("what", "warmup"), TIMEOUTS)
def test_a_timeout_ends_the_whole_tree(
    cg_bench: CgBench, compile_c: CompileC, marker: str, what: str, warmup: str
) -> None:
    finished = cg_bench.run(compile_c(MISBEHAVING), what, marker, options=["-q", "--timeout", "2", "--warmup", warmup])
    assert finished.code == 4
    assert "ran longer than 2 s" in finished.stderr
    assert "--timeout" in finished.stderr
    assert_nothing_left_of(finished, cg_bench, marker)


def assert_nothing_left_of(finished: Finished, cg_bench: CgBench, marker: str) -> None:
    assert "Traceback" not in finished.stderr
    assert finished.result is None
    assert processes(marker) == []
    assert written(marker) == []
    assert os.listdir(cg_bench.cwd) == []


def test_children_that_outlive_the_program_are_ended_and_reported(
    cg_bench: CgBench, compile_c: CompileC, marker: str
) -> None:
    finished = cg_bench.run(compile_c(MISBEHAVING), "children", marker, options=["--warmup", "0"])
    assert finished.code == 0
    assert "50 process(es) still ran long after the command had ended" in finished.stdout
    assert processes(marker) == []


def test_a_program_that_fills_its_disk_fails_for_that_reason(cg_bench: CgBench, marker: str) -> None:
    script = f'mount -t tmpfs -o size=1m {marker} . && cd . && exec "$@"'
    before = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh"]
    if subprocess.run([*before[:5], f"cd '{cg_bench.cwd}' && {script}", "sh", "true"], check=False).returncode != 0:
        pytest.skip("needs a mount namespace of its own (unshare), for a small disk")
    finished = cg_bench.run("sh", "-c", f"exec head -c 9000000 /dev/zero >{marker}", before=before)
    assert finished.code == 4
    assert "No space left on device" in finished.stderr
    assert_nothing_left_of(finished, cg_bench, marker)


def test_a_program_that_runs_out_of_memory_fails_for_that_reason(cg_bench: CgBench, marker: str) -> None:
    code = f"x = [b'{marker}']\ntry:\n  while True: x.append(bytes(1 << 26))\nexcept MemoryError: exit('no memory')"
    finished = cg_bench.run("python3", "-c", code, before=["prlimit", "--data=2000000000"])
    assert finished.code == 4
    assert "no memory" in finished.stderr
    assert_nothing_left_of(finished, cg_bench, marker)


_GIGABYTE = ("dd", "if=/dev/zero", "bs=1M", "count=1000", "status=none")


@pytest.mark.slow
def test_a_program_that_prints_a_gigabyte_is_measured(cg_bench: CgBench) -> None:
    output = cg_bench.folder / "result.json"
    words = [*COMMAND, "run", "-q", "-o", str(output), "--", *_GIGABYTE]
    subprocess.run(words, cwd=cg_bench.cwd, env=environment({}), stderr=subprocess.DEVNULL, timeout=LIMIT_S, check=True)
    assert output.exists()


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
    cg_bench: CgBench, running: Callable[[str, str], tuple[Popen[bytes], Path]], marker: str
) -> None:
    run, temporary = running("family", "0")
    run.kill()
    assert_nothing_left(cg_bench, marker, temporary)
    assert cg_bench.run("true").code == 0


def test_what_a_jvm_that_is_killed_leaves_in_tmp_is_removed(tmp_path: Path) -> None:
    environ = {"PATH": os.defpath, "HOME": "/nonexistent"}
    setup = valgrind_setup(valgrind=None, geometry=Geometry(), environ=environ, passed={})
    code = f"name=hs_c7_pid$$.log; > /tmp/$name; > /tmp/$name.other; echo $name > {tmp_path}/name; kill -9 $$"
    loop = Loop(words={}, native=(), log=("-c", code))
    execution = Execution(argv=("/bin/sh",), executable="/bin/sh", variables=environ, cwd="/")
    with setup.session(echo=lambda _chunk: None) as ready, pytest.raises(CommandFailedError):
        LoopRunner(ready.runner, loop).measure(execution, loop.collect, Tool.CALLGRIND)
    left = Path("/tmp", (tmp_path / "name").read_text().strip())
    other = left.with_name(f"{left.name}.other")
    assert (left.exists(), other.exists()) == (False, True)
    other.unlink()
