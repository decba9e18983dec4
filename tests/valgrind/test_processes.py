"""Programs that start others: each instruction is counted once, and where one is lost the result says so."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.hermetic import environment
from cachegrind_bench.hermetic.execution import Execution
from cachegrind_bench.measure.command import resolve
from cachegrind_bench.measure.session import valgrind_setup
from cachegrind_bench.valgrind.options import WHOLE, Geometry, Tool

if TYPE_CHECKING:
    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench, Finished

PARENT, CHILD = 1_000_000, 100_000

# `burn` costs exactly two instructions a round.
WORK = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void burn(long instructions) {
    long rounds = instructions / 2;
    if (rounds) __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
}
static long raw_fork(void) {
    long pid;
    __asm__ volatile("syscall" : "=a"(pid) : "a"(57L) : "rcx", "r11", "memory");
    return pid;
}
int main(int argc, char **argv) {
    const char *how = argv[1];
    long own = atol(argv[2]), childs = atol(argv[3]);
    char *again[] = {argv[0], "alone", argv[3], "0", 0};
    pid_t child = 0;
    burn(own);
    if (!strcmp(how, "alone")) return 0;
    if (!strcmp(how, "fork")) {
        if ((child = fork()) == 0) { burn(childs); _exit(0); }
    } else if (!strcmp(how, "raw")) {
        if ((child = raw_fork()) == 0) { burn(childs); syscall(SYS_exit_group, 0); }
    } else if (!strcmp(how, "fork+exec")) {
        if ((child = fork()) == 0) { execv(argv[0], again); _exit(1); }
    } else if (!strcmp(how, "vfork+exec")) {
        if ((child = vfork()) == 0) { execv(argv[0], again); _exit(1); }
    } else if (!strcmp(how, "posix_spawn")) {
        if (posix_spawn(&child, argv[0], 0, 0, again, environ)) return 1;
    } else if (!strcmp(how, "exec")) {
        execv(argv[0], again);
        return 1;
    } else if (!strcmp(how, "kill")) {
        int ends[2];
        char byte;
        if (pipe(ends)) return 1;
        if ((child = fork()) == 0) { burn(childs); if (write(ends[1], "x", 1)) pause(); }
        if (read(ends[0], &byte, 1) == 1) kill(child, SIGKILL);
    } else if (!strcmp(how, "daemon")) {
        if (fork() == 0) { setsid(); burn(childs); for (;;) pause(); }
        return 0;
    }
    int status;
    while (waitpid(child, &status, 0) > 0) ;
    return 0;
}
"""


def quick(finished: Finished) -> int:
    """Return the instructions of a run."""
    return finished.counts["Ir"]


# --- Forks and execs in C ------------------------------------------------------------------------------------------------


def test_a_forked_childs_work_is_counted_once_and_exactly(cg_bench: CgBench, compile_c: CompileC) -> None:
    program = compile_c(WORK)
    alone = cg_bench.run(program, "alone", "0", "0")
    idle = cg_bench.run(program, "fork", "0", "0")
    busy = cg_bench.run(program, "fork", str(PARENT), str(CHILD))
    assert busy.benchmark["processes_exact"] is True
    assert busy.benchmark["warnings"] == []
    work = PARENT + CHILD
    assert abs(quick(busy) - quick(idle) - work) <= 0.001 * work
    # What a fork itself costs, and that the child's start is not a copy of its parent's past.
    assert 0 < quick(idle) - quick(alone) < 10_000


@pytest.mark.parametrize("how", ["fork+exec", "vfork+exec", "posix_spawn"])
def test_an_executed_childs_work_is_added_and_the_parents_is_not_lost(
    cg_bench: CgBench, compile_c: CompileC, how: str
) -> None:
    program = compile_c(WORK)
    parent = cg_bench.run(program, "alone", str(PARENT), "0")
    child = cg_bench.run(program, "alone", str(CHILD), "0")
    both = cg_bench.run(program, how, str(PARENT), str(CHILD))
    idle = cg_bench.run(program, how, "0", "0")
    assert both.benchmark["processes_exact"] is True
    assert abs(quick(both) - quick(idle) - PARENT - CHILD) <= 0.001 * (PARENT + CHILD)
    assert 0 <= quick(both) - quick(parent) - quick(child) < 20_000


def test_what_was_counted_before_an_exec_is_kept(cg_bench: CgBench, compile_c: CompileC) -> None:
    program = compile_c(WORK)
    child = cg_bench.run(program, "alone", str(CHILD), "0")
    both = cg_bench.run(program, "exec", str(PARENT), str(CHILD))
    parent = cg_bench.run(program, "alone", str(PARENT), "0")
    assert both.benchmark["processes_exact"] is True
    assert abs(quick(both) - quick(parent) - quick(child)) <= 5_000


def test_repeated_runs_of_a_program_that_forks_agree(cg_bench: CgBench, compile_c: CompileC) -> None:
    program = compile_c(WORK)
    first, second = (cg_bench.run(program, "fork", str(PARENT), str(CHILD)) for _ in range(2))
    assert first.rows == second.rows


LOADING = 2_000  # instructions


@pytest.mark.parametrize("how", ["fork", "posix_spawn", "alone"])
def test_counts_but_the_loaders_are_the_same_with_and_without_a_warm_up(
    cg_bench: CgBench, compile_c: CompileC, how: str
) -> None:
    program = compile_c(WORK)
    warm = cg_bench.run(program, how, "50000", "10000")
    cold = cg_bench.run(program, how, "50000", "10000", options=["--warmup", "0"])
    # The warm-up has told the loader's list which libraries to put first, so it finds them in other steps.
    ours = [[row for row in found.rows if "main.c" in str(row) and "???" not in str(row)] for found in (cold, warm)]
    assert ours[0] == ours[1] != []
    assert abs(cold.counts["Ir"] - warm.counts["Ir"]) <= LOADING
    assert cold.benchmark["tool"] == warm.benchmark["tool"]
    names = [[process["executable"] for process in found.benchmark["processes"]] for found in (cold, warm)]
    assert names[0] == names[1]
    assert cold.benchmark["key"] == warm.benchmark["key"]


def test_a_fork_without_a_name_is_doubted(cg_bench: CgBench, compile_c: CompileC) -> None:
    finished = cg_bench.run(compile_c(WORK, "-O1", "-g", "-static"), "raw", str(PARENT), str(CHILD))
    assert finished.benchmark["processes_exact"] is False
    assert any("fork" in warning for warning in finished.benchmark["warnings"])


def test_a_fork_by_a_static_program_with_symbols_is_exact(cg_bench: CgBench, compile_c: CompileC) -> None:
    program = compile_c(WORK, "-O1", "-g", "-static")
    idle = cg_bench.run(program, "fork", "0", "0")
    busy = cg_bench.run(program, "fork", str(PARENT), str(CHILD))
    assert busy.benchmark["processes_exact"] is True
    assert abs(quick(busy) - quick(idle) - PARENT - CHILD) <= 0.001 * (PARENT + CHILD)


def test_the_lost_work_of_a_killed_child_is_reported(cg_bench: CgBench, compile_c: CompileC) -> None:
    finished = cg_bench.run(compile_c(WORK), "kill", str(PARENT), str(CHILD))
    assert finished.benchmark["processes_exact"] is False
    assert any("killed" in warning for warning in finished.benchmark["warnings"])
    assert PARENT < quick(finished) < PARENT + 300_000


@pytest.mark.slow
def test_a_daemon_left_running_is_ended_and_reported(cg_bench: CgBench, compile_c: CompileC) -> None:
    program = compile_c(WORK)
    finished = cg_bench.run(program, "daemon", str(PARENT), "31337", options=["--warmup", "0"])
    assert finished.benchmark["processes_exact"] is False
    assert any("still ran" in warning for warning in finished.benchmark["warnings"])
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"31337" in _read(path)]


def _read(path: Path) -> bytes:
    with contextlib.suppress(OSError):
        return path.read_bytes()
    return b""


# --- Shells and interpreters ---------------------------------------------------------------------------------------------


def test_a_shell_that_executes_another_program_has_its_work_counted_and_named(cg_bench: CgBench) -> None:
    script = "i=0; while [ $i -lt {} ]; do i=$((i+1)); done; exec true"
    little, much = (cg_bench.run("sh", "-c", script.format(rounds)) for rounds in (10, 2000))
    names = {Path(process["executable"]).name for process in much.benchmark["processes"]}
    assert len(names) == 2
    assert "true" in names
    assert much.benchmark["processes_exact"] is True
    assert quick(much) - quick(little) > 1990 * 200, "the loop's work is not lost by the exec"
    shares = [process["counts"]["Ir"] for process in much.benchmark["processes"]]
    assert sum(shares) == quick(much)


ALONE = """
import sys
def work(n):
    total = 0
    for i in range(n):
        total += i
    return total
if __name__ == "__main__":
    print([work(int(sys.argv[1])) for _ in range(4)])
"""
POOL = """
import multiprocessing, sys
def work(n):
    total = 0
    for i in range(n):
        total += i
    return total
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, [int(sys.argv[1])] * 4, chunksize=1))
        pool.close()
        pool.join()
"""


@pytest.mark.slow
def test_work_in_a_pool_of_python_processes_is_counted_once(cg_bench: CgBench, tmp_path: Path) -> None:
    script = tmp_path / "script" / "pool.py"
    script.parent.mkdir()
    script.write_text(POOL)
    little, much = (cg_bench.run(sys.executable, "-S", script, str(n)) for n in (10, 20_000))
    for finished in (little, much):
        assert finished.benchmark["processes_exact"] is True, finished.benchmark["warnings"]
    # The same work in one process: that all of it is in the total once, not twice and not by half, is what counts.
    script.write_text(ALONE)
    alone = [quick(cg_bench.run(sys.executable, "-S", script, str(n))) for n in (10, 20_000)]
    assert quick(much) - quick(little) == pytest.approx(alone[1] - alone[0], rel=0.05)
    script.write_text(POOL)
    assert quick(little) < _added_up(sys.executable, "-S", str(script), "10")


def _added_up(*words: str) -> int:
    """Return the instructions of all out files that Cachegrind writes for this command, added up."""
    environ = dict(os.environ)
    command = resolve(words, environ, Path.cwd())
    execution = Execution(
        argv=command.argv,
        executable=command.executable,
        variables=environment.compose(environ, environment.Request(values={}), {}),
        cwd="/",
    )
    with valgrind_setup(valgrind=None, geometry=Geometry(), environ=environ, passed={}).session(
        echo=lambda _: None
    ) as ready:
        return ready.runner.measure(execution, WHOLE, Tool.CACHEGRIND).accounts.profile.counts().Ir


# --- Launcher scripts ----------------------------------------------------------------------------------------------------


@pytest.fixture
def executable(tmp_path: Path) -> Executable:
    return Executable(tmp_path / "bin")


class Executable:
    """Makes executable files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def __call__(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    @property
    def first_on_path(self) -> dict[str, str | None]:
        return {"PATH": f"{self.folder}:{os.environ['PATH']}"}


def executables(finished: Finished) -> list[str]:
    return [process["executable"] for process in finished.benchmark["processes"]]


def test_a_script_is_run_by_its_interpreter_directly(cg_bench: CgBench, executable: Executable) -> None:
    (executable.folder / "python3").symlink_to(sys.executable)
    script = executable("script", "#!/usr/bin/env python3\nimport sys\nprint('<<<', sys.argv[1:], '>>>')\n")
    finished = cg_bench.run(script, "a b", env=executable.first_on_path)
    assert finished.said == "['a b']"
    assert finished.benchmark["tool"] == "cachegrind"
    assert executables(finished) == [str(executable.folder / "python3")]
    assert finished.benchmark["processes_exact"] is True


PYENV = """#!/bin/sh
case $1 in
    which) echo "{real}" ;;
    exec) shift 2; exec "{real}" "$@" ;;
esac
"""
SHIM = """#!/usr/bin/env bash
set -e
program="${{0##*/}}"
export PYENV_ROOT="/nowhere"
exec "{manager}" exec "$program" "$@"
"""
REAL = "import sys; print('<<<', sys.argv[1:], '>>>')"


@pytest.fixture
def shim(executable: Executable) -> Path:
    """Return a shim like pyenv's, named python3, in front of this Python."""
    manager = executable("pyenv", PYENV.format(real=sys.executable))
    return executable("python3", SHIM.format(manager=manager))


def test_a_version_managers_shim_is_resolved(cg_bench: CgBench, executable: Executable, shim: Path) -> None:
    finished = cg_bench.run("python3", "-S", "-c", REAL, "x", env=executable.first_on_path)
    assert finished.said == "['x']"
    assert executables(finished) == [sys.executable]
    assert finished.benchmark["tool"] == "cachegrind"
    assert any(str(shim) in warning for warning in finished.benchmark["warnings"])


def test_a_shim_behind_a_scripts_first_line_is_resolved_too(
    cg_bench: CgBench, executable: Executable, shim: Path
) -> None:
    script = executable("script", f"#!/usr/bin/env {shim.name}\n{REAL}\n")
    finished = cg_bench.run(script, "x", env=executable.first_on_path)
    assert finished.said == "['x']"
    assert executables(finished) == [sys.executable]
    assert finished.benchmark["tool"] == "cachegrind"


def test_a_launcher_script_that_is_not_known_is_named_in_a_warning(cg_bench: CgBench, executable: Executable) -> None:
    launcher = executable("launcher", '#!/bin/sh\nname=true\nexec "/bin/$name" "$@"\n')
    finished = cg_bench.run(launcher)
    assert len(executables(finished)) == 2
    (warning,) = finished.benchmark["warnings"]
    assert str(launcher) in warning
    assert "/bin/true" in warning
    assert finished.benchmark["processes_exact"] is True


def test_a_broken_shim_is_left_to_speak_for_itself(cg_bench: CgBench, executable: Executable) -> None:
    executable("pyenv", "#!/bin/sh\necho 'pyenv: no such command' >&2\nexit 127\n")
    executable("python3", SHIM.format(manager=executable.folder / "pyenv"))
    finished = cg_bench.run("python3", "-c", "pass", env=executable.first_on_path)
    assert finished.code == 4
    assert "pyenv: no such command" in finished.stderr
    assert "127" in finished.stderr


def test_a_program_with_setuid_is_not_run_under_valgrind_and_equal_warnings_are_one(
    cg_bench: CgBench, tmp_path: Path
) -> None:
    program = tmp_path / "privileged"
    shutil.copy("/bin/true", program)
    program.chmod(0o4755)
    finished = cg_bench.run("sh", "-c", f"{program}; {program}; {program}; true")
    (warning,) = (text for text in finished.benchmark["warnings"] if "(setuid)" in text)
    assert warning == f"{program} has more rights than its caller (setuid), so Valgrind did not run it (3 times)"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_program_that_drops_its_rights_cannot_write_its_counts_and_the_error_says_so(
    cg_bench: CgBench, compile_c: CompileC
) -> None:
    program = compile_c("#include <unistd.h>\nint main(void) { return setuid(65534); }")
    finished = cg_bench.run(program)
    assert finished.code == 4
    assert "may have changed its user (setuid)" in finished.stderr
