"""Each failure is a clear sentence and the right exit code, and leaves neither a result nor any other file."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import FileFormatError, MeasurementError
from cachegrind_bench.valgrind import runner

if TYPE_CHECKING:
    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench, Finished

USAGE, MEASUREMENT = 2, 4

SIMPLE = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    const char *how = argv[1];
    fprintf(stderr, "last words\n");
    if (argc > 2 && !strcmp(how, "fail")) fprintf(stderr, "%s is not set\n", argv[2]);
    if (!strcmp(how, "fail")) return 7;
    if (!strcmp(how, "segv")) raise(SIGSEGV);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(how, "touch")) fclose(fopen(argv[2], "w"));
    if (!strcmp(how, "sleep")) sleep(60);
    return 0;
}
"""

# EVEX-encoded vaddps; not executed natively, where the host may well have AVX-512: the warm-up is left out.
AVX512 = r"""
int main(void) {
    __asm__ volatile(".byte 0x62, 0xf1, 0x7c, 0x48, 0x58, 0xc0");
    return 0;
}
"""
ILLEGAL = r"""
int main(void) {
    __asm__ volatile("ud2");
    return 0;
}
"""


def assert_failed(cg_bench: CgBench, finished: Finished, code: int, *words: str) -> None:
    """The exit code, one error line, these words on stderr, and nothing left or written."""
    assert finished.code == code, finished.stderr
    assert "Traceback" not in finished.stderr
    assert sum(line.startswith("cg-bench: error:") for line in finished.stderr.splitlines()) == 1, finished.stderr
    for word in words:
        assert word in finished.stderr, finished.stderr
    assert finished.result is None
    assert finished.stdout == ""
    assert os.listdir(cg_bench.cwd) == []
    left = [path.name for path in cg_bench.folder.iterdir() if path.name.startswith((".result", "result"))]
    assert not left


# --- The command ---------------------------------------------------------------------------------------------------------


def test_a_command_that_does_not_exist(cg_bench: CgBench) -> None:
    assert_failed(cg_bench, cg_bench.run("no-such-program"), USAGE, "command not found: no-such-program", "PATH")
    assert_failed(cg_bench, cg_bench.run("./no-such-program"), USAGE, "command not found: ./no-such-program")
    assert_failed(cg_bench, cg_bench.run("/dev/null/x"), USAGE, "command not found")


def test_a_command_that_is_not_executable(cg_bench: CgBench, tmp_path: Path) -> None:
    file = tmp_path / "a file"
    file.write_text("#!/bin/sh\n")
    assert_failed(cg_bench, cg_bench.run(file), USAGE, "cannot execute", "permission denied", "chmod +x")


def test_a_directory_for_a_command(cg_bench: CgBench, tmp_path: Path) -> None:
    assert_failed(cg_bench, cg_bench.run(tmp_path), USAGE, "it is a directory")


def test_a_command_with_setuid(cg_bench: CgBench, compile_c: CompileC) -> None:
    program = compile_c("int main(void) { return 0; }")
    program.chmod(0o4755)
    for option in ("--warmup=1", "--ignore-exit-status"):
        finished = cg_bench("run", option, "--", str(program))
        assert finished.code == 4
        assert "Valgrind runs no program that has more rights than its caller (setuid)" in finished.stderr
        assert "--ignore-exit-status" not in finished.stderr


@pytest.mark.parametrize(
    ("command", "warning"),
    [
        (
            'ls nowhere; echo took $$ ms, 0 errors; [ -z "$LD_PRELOAD" ] || echo cannot open cache',
            ": cannot open cache",
        ),
        ('[ -z "$LD_PRELOAD" ]', "exit status 1 under Valgrind, and 0 without"),
    ],
)
def test_what_goes_wrong_under_valgrind_only_is_a_warning(cg_bench: CgBench, command: str, warning: str) -> None:
    benchmark = cg_bench.run("sh", "-c", command, options=["--ignore-exit-status"]).benchmark
    assert [warning in text for text in benchmark["warnings"] if "ignored" not in text] == [True]


ZAP = 'void zap(void) { __asm__ volatile(".byte 0x62, 0xf1, 0x7d, 0x48, 0xef, 0xc0"); } int main(void) { zap(); return 0; }'


def test_an_instruction_that_valgrind_does_not_know_is_reported_with_its_function(
    cg_bench: CgBench, compile_c: CompileC
) -> None:
    program = str(compile_c(ZAP, "-g"))
    for command in ([program], ["sh", "-c", f"{program}; exit $?"]):
        finished = cg_bench("run", "--warmup=0", "--", *command)
        assert finished.code == 4
        assert re.search(r"an AVX-512 instruction in zap \(.*\.c:1\) that Valgrind cannot simulate", finished.stderr)


def test_a_script_whose_interpreter_is_missing(cg_bench: CgBench, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert_failed(cg_bench, cg_bench.run(script), USAGE, "/no/such/interpreter", "missing")


@pytest.mark.parametrize("warmup", ["0", "1"])
def test_an_executable_file_that_is_not_a_program(cg_bench: CgBench, tmp_path: Path, warmup: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"\x7fELF but not really")
    file.chmod(0o755)
    assert_failed(cg_bench, cg_bench.run(file, options=["--warmup", warmup]), MEASUREMENT, str(file))


@pytest.mark.parametrize("warmup", ["0", "1"])
def test_a_failing_command(cg_bench: CgBench, compile_c: CompileC, warmup: str) -> None:
    finished = cg_bench.run(
        *(compile_c(SIMPLE), "fail", "A_VARIABLE_OF_MINE"),
        options=["--warmup", warmup],
        env={"A_VARIABLE_OF_MINE": "secret-value", "ANOTHER": "1"},
    )
    where = "without Valgrind" if warmup == "1" else "under Valgrind"
    assert_failed(
        cg_bench,
        finished,
        MEASUREMENT,
        f"exit status 7 {'in the warm-up, ' if warmup == '1' else ''}{where}",
        "\nlast words\n",
        "A_VARIABLE_OF_MINE",
        "--env",
        "--ignore-exit-status",
    )
    assert "secret-value" not in finished.stderr
    assert "ANOTHER" not in finished.stderr, "which the output does not speak of"
    assert finished.stderr.count("last words") == 1, "the failing warm-up ends the run, and what it wrote is shown once"


def test_a_failing_command_can_be_measured_on_request(cg_bench: CgBench, compile_c: CompileC) -> None:
    finished = cg_bench.run(compile_c(SIMPLE), "fail", options=["--ignore-exit-status"])
    assert finished.benchmark["exit_status"] == 7
    assert finished.counts["Ir"] > 100_000
    assert any("exit status 7" in warning for warning in finished.benchmark["warnings"])


@pytest.mark.parametrize(("how", "name"), [("segv", "SIGSEGV"), ("abort", "SIGABRT"), ("kill", "SIGKILL")])
@pytest.mark.parametrize("warmup", ["0", "1"])
def test_a_command_killed_by_a_signal(cg_bench: CgBench, compile_c: CompileC, how: str, name: str, warmup: str) -> None:
    finished = cg_bench.run(compile_c(SIMPLE), how, options=["--warmup", warmup])
    assert_failed(cg_bench, finished, MEASUREMENT, name, "\nlast words\n")
    assert finished.stderr.count("last words") == 1


def test_an_avx512_instruction(cg_bench: CgBench, compile_c: CompileC) -> None:
    finished = cg_bench.run(compile_c(AVX512), options=["--warmup", "0"])
    assert_failed(cg_bench, finished, MEASUREMENT, "AVX-512", "0x62 0xF1", "-march=x86-64-v3")


def test_an_instruction_that_no_machine_has(cg_bench: CgBench, compile_c: CompileC) -> None:
    finished = cg_bench.run(compile_c(ILLEGAL), options=["--warmup", "0"])
    assert_failed(cg_bench, finished, MEASUREMENT)
    assert "AVX-512" not in finished.stderr
    assert "SIGILL" in finished.stderr or "cannot simulate" in finished.stderr


def test_a_timeout(cg_bench: CgBench, compile_c: CompileC) -> None:
    finished = cg_bench.run(compile_c(SIMPLE), "sleep", options=["--timeout", "500ms"])
    assert_failed(cg_bench, finished, MEASUREMENT, "ran longer than 0.5 s", "--timeout")


WITHOUT_FIRST_THREAD = r"""
#include <pthread.h>
#include <unistd.h>
static void *stay(void *unused) { for (;;) sleep(60); return unused; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, stay, 0);
    pthread_exit(0);
}
"""


@pytest.mark.parametrize("warmup", ["0", "1"])
def test_a_timeout_of_a_program_that_goes_on_without_its_first_thread(
    cg_bench: CgBench, compile_c: CompileC, warmup: str
) -> None:
    program = compile_c(WITHOUT_FIRST_THREAD, "-O1", "-pthread")
    finished = cg_bench.run(program, options=["--timeout", "1", "--warmup", warmup])
    assert_failed(cg_bench, finished, MEASUREMENT, "ran longer than 1 s")


# --- Options -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "output",
    ["no/such/folder/result.json", ".", "/proc/result.json", "/dev/full/x"],
    ids=["no folder", "a directory", "not writable", "not a folder"],
)
def test_an_output_that_cannot_be_written_is_found_before_the_command_runs(
    cg_bench: CgBench, compile_c: CompileC, tmp_path: Path, output: str
) -> None:
    trace = tmp_path / "it-ran"
    finished = cg_bench("run", "-o", output, "--", str(compile_c(SIMPLE)), "touch", str(trace))
    assert_failed(cg_bench, finished, USAGE, f"cannot write {output}")
    assert not trace.exists()
    assert "last words" not in finished.stderr


def test_an_earlier_result_survives_a_failed_run(cg_bench: CgBench, compile_c: CompileC, tmp_path: Path) -> None:
    output = tmp_path / "earlier.json"
    output.write_text('{"earlier": true}')
    finished = cg_bench("run", "-o", str(output), "--", str(compile_c(SIMPLE)), "fail")
    assert finished.code == MEASUREMENT
    assert json.loads(output.read_text()) == {"earlier": True}


def test_no_command_at_all(cg_bench: CgBench) -> None:
    finished = cg_bench("run")
    assert finished.code == USAGE
    assert "Traceback" not in finished.stderr


def test_a_stdin_file_that_disappears_before_the_program_starts(cg_bench: CgBench, tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_text("x")
    finished = cg_bench.run("cat", options=["--stdin", str(file), "--prepare", f"rm {file}"])
    assert_failed(cg_bench, finished, MEASUREMENT, "input", "No such file")


@pytest.mark.parametrize("option", ["--prepare", "--cleanup"])
def test_a_failing_preparation_or_clean_up(cg_bench: CgBench, option: str) -> None:
    finished = cg_bench.run("true", options=[option, "echo the reason >&2; exit 3"])
    assert_failed(cg_bench, finished, MEASUREMENT, f"the {option} command failed with exit status 3", "the reason")


# --- Valgrind ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def without_valgrind(tmp_path: Path) -> dict[str, str | None]:
    """Return a PATH with a program to measure and a package manager, and no Valgrind."""
    folder = tmp_path / "path"
    folder.mkdir()
    for name in ("true", "sh"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    manager = folder / "apt-get"
    manager.write_text("#!/bin/sh\n")
    manager.chmod(0o755)
    return {"PATH": str(folder)}


def test_a_missing_valgrind(cg_bench: CgBench, without_valgrind: dict[str, str | None]) -> None:
    finished = cg_bench.run("true", env=without_valgrind)
    assert_failed(
        cg_bench, finished, MEASUREMENT, "Valgrind was not found", "apt-get install valgrind", "--valgrind PATH"
    )


def test_a_missing_valgrind_on_a_system_we_do_not_know(
    cg_bench: CgBench, without_valgrind: dict[str, str | None]
) -> None:
    (Path(str(without_valgrind["PATH"])) / "apt-get").unlink()
    finished = cg_bench.run("true", env=without_valgrind)
    words = ("Valgrind was not found", "install it, with the debug symbols of the C library", "--valgrind PATH")
    assert_failed(cg_bench, finished, MEASUREMENT, *words)
    assert not re.search("apt|dnf|pacman|apk|zypper", finished.stderr), "there is none of them"


@pytest.mark.parametrize("by", ["option", "environment"])
def test_a_given_valgrind_that_is_not_there(cg_bench: CgBench, by: str) -> None:
    options = ["--valgrind", "/no/such/valgrind"] if by == "option" else []
    env = {} if by == "option" else {"CG_BENCH_RUN_VALGRIND": None, "CG_BENCH_VALGRIND": "/no/such/valgrind"}
    finished = cg_bench.run("true", options=options, env=env)
    assert_failed(cg_bench, finished, MEASUREMENT, "Valgrind was not found at '/no/such/valgrind'")


def test_a_valgrind_that_is_some_other_program(cg_bench: CgBench) -> None:
    finished = cg_bench.run("true", options=["--valgrind", "/bin/true"])
    assert_failed(cg_bench, finished, MEASUREMENT, "/bin/true")


def test_a_wrapper_script_whose_launcher_cannot_be_found(cg_bench: CgBench, tmp_path: Path) -> None:
    wrapper = tmp_path / "valgrind"
    wrapper.write_text('#!/bin/sh\nexec "$VALGRIND_HOME/bin/valgrind" "$@"\n')
    wrapper.chmod(0o755)
    finished = cg_bench.run("true", options=["--valgrind", str(wrapper)])
    assert_failed(cg_bench, finished, MEASUREMENT, "wrapper script", "valgrind.bin")


VANDAL = """
import glob, os, sys
# Do to the out file, from inside the measured program, what a full disk or a crash does.
folder = os.path.join(os.path.dirname(os.environ["TMPDIR"]), "out")
if sys.argv[1] == "unwritable":
    os.mkdir(os.path.join(folder, f"out.{os.getpid()}"))
elif sys.argv[1] == "no-folder":
    os.rename(folder, folder + ".gone")
"""


@pytest.mark.parametrize("how", ["unwritable", "no-folder"])
def test_an_out_file_that_valgrind_did_not_write(cg_bench: CgBench, tmp_path: Path, how: str) -> None:
    script = tmp_path / "script" / "vandal.py"
    script.parent.mkdir()
    script.write_text(VANDAL)
    options = ["--warmup", "0"]
    assert_failed(cg_bench, cg_bench.run(sys.executable, "-S", script, how, options=options), MEASUREMENT, "out file")


def test_an_out_file_without_space_is_reported_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = SimpleNamespace(f_bavail=0)
    monkeypatch.setattr("cachegrind_bench.valgrind.runner.os.statvfs", {str(tmp_path): full}.__getitem__)
    with pytest.raises(MeasurementError, match=f"no space is left for {tmp_path}/out.1$"), runner.reading_out_files():
        raise FileFormatError("the file is empty", path=str(tmp_path / "out.1"))


def test_an_error_of_out_files_without_a_name_is_that_error_alone() -> None:
    alone = "^Valgrind's out file cannot be used: No space left on device$"
    with pytest.raises(MeasurementError, match=alone), runner.reading_out_files():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
