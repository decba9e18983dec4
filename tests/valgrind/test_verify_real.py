"""The noise hunter and the doctor on real programs: they hold, or the cause is named."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench

PROGRAM = """
#include <stdio.h>
static volatile unsigned long sum;
__attribute__((noinline)) void burn(long n) { for (long i = 0; i < n; i++) sum += i; }
int main(void) { burn(100000); puts("done"); return 0; }
"""
SETS = """
names = {f"name{i}" for i in range(300)}
places = {}
for name in names:
    places[name] = len(places)
"""
LISTS = """
import os, pwd
pwd.getpwuid(os.getuid())
for name in os.listdir("/usr/lib"):
    if name == "os-release":
        break
"""
CLOCK = """
import time
n = int(time.time() * 1000) % 1000
t = 0
for i in range(n * 10):
    t += i
"""
STOPWATCH = """
import time
start = time.perf_counter()
rounds = 0
while time.perf_counter() - start < 0.02 or time.monotonic() < 0:
    rounds += 1
"""
PYTHON = next(
    (path for path in ("/usr/bin/python3", shutil.which("python3")) if path and os.path.exists(path)), "python3"
)


def verify(cg_bench: CgBench, *words: str | Path, code: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the hunt and return its document, and its axes by name."""
    finished = cg_bench("verify", "--format", "json", *map(str, words))
    assert finished.code == code, finished.stdout + finished.stderr
    document = json.loads(finished.stdout)
    return document, {axis["axis"]: axis for axis in document["axes"]}


def script(cg_bench: CgBench, text: str) -> Path:
    folder = cg_bench.folder / "script"
    folder.mkdir()
    (folder / "script.py").write_text(text)
    return folder / "script.py"


@pytest.mark.slow
def test_a_c_program_holds_on_all_axes(cg_bench: CgBench, compile_c: CompileC) -> None:
    document, axes = verify(cg_bench, "--", compile_c(PROGRAM), code=0)
    free = ("repeat", "environment", "cwd", "load", "aslr", "random", "hash-seed", "clock")
    assert {key: axes[key]["verdict"] for key in free} == dict.fromkeys(free, "held")
    assert axes["cpu"]["verdict"] in ("held", "skipped")
    assert axes["stdout"]["verdict"] in ("held", "depends")
    assert document["held"]
    assert os.listdir(cg_bench.cwd) == []


@pytest.mark.slow
def test_python_without_its_hash_seed_is_named_as_the_cause(cg_bench: CgBench) -> None:
    words = ("--only", "random", "--only", "hash-seed", "--", PYTHON, "-S", "-I", script(cg_bench, SETS))
    document, axes = verify(cg_bench, *words, code=0)
    assert axes["repeat"]["verdict"] == "held"
    assert axes["random"]["verdict"] == "depends"
    assert axes["random"]["cause"].startswith("Python with -I ignores PYTHONHASHSEED")
    assert axes["random"]["difference"]["functions"]
    assert axes["hash-seed"]["verdict"] == "held"
    assert "-I ignores PYTHONHASHSEED" in document["conclusion"]


@pytest.mark.slow
def test_the_same_script_with_its_hash_seed_depends_on_that_instead(cg_bench: CgBench) -> None:
    words = ("--only", "random", "--only", "hash-seed", "--", PYTHON, "-S", script(cg_bench, SETS))
    _document, axes = verify(cg_bench, *words, code=0)
    assert axes["random"]["verdict"] == "held"
    assert axes["hash-seed"]["verdict"] == "depends"


@pytest.mark.slow
def test_the_users_of_a_machine_and_the_order_of_its_directories_are_tried(cg_bench: CgBench) -> None:
    only = ("--only", "users", "--only", "directories", "--only", "locales")
    _document, axes = verify(cg_bench, *only, "--", PYTHON, "-S", script(cg_bench, LISTS), code=0)
    assert {key: axis["verdict"] for key, axis in axes.items()} == {
        "repeat": "held",
        "locales": "held",
        "users": "depends",
        "directories": "depends",
    }


@pytest.mark.slow
@pytest.mark.parametrize("text", [CLOCK, STOPWATCH], ids=["time", "perf_counter"])
def test_a_clock_read_into_a_loop_count_is_named_as_the_cause(cg_bench: CgBench, text: str) -> None:
    words = ("--only", "clock", "--only", "aslr", "--", PYTHON, "-S", script(cg_bench, text))
    document, axes = verify(cg_bench, *words, code=1)
    assert axes["clock"]["verdict"] == "moved"
    assert axes["clock"]["difference"]["functions"]
    # Two readings of the clock may give the same count by chance; the comparison of pinned clocks does not.
    assert "clock" in document["conclusion"]
    if axes["repeat"]["verdict"] == "moved":
        assert axes["repeat"]["cause"].startswith("the clock")
        assert axes["aslr"]["verdict"] == "held"


def test_a_pinned_clock_mends_it(cg_bench: CgBench) -> None:
    words = ("--pin-clock", "--only", "repeat", "--", PYTHON, "-S", script(cg_bench, CLOCK))
    document, _axes = verify(cg_bench, *words, code=0)
    assert document["held"]


def test_a_command_that_fails_is_exit_4_with_its_words(cg_bench: CgBench) -> None:
    finished = cg_bench("verify", "--only", "repeat", "--", "sh", "-c", "echo chatter; echo alas >&2; exit 3")
    assert finished.code == 4
    assert "alas" in finished.stderr
    assert finished.stdout == ""


def test_the_output_of_the_program_is_not_repeated(cg_bench: CgBench) -> None:
    finished = cg_bench("verify", "--only", "aslr", "--", "echo", "chatter")
    assert finished.code == 0, finished.stderr
    assert finished.stdout.count("chatter") == 1  # the command's own words, in the heading
    assert "chatter" not in finished.stderr


def test_the_doctor_finds_this_machine_able_to_measure(cg_bench: CgBench) -> None:
    finished = cg_bench("doctor", "--format", "json")
    assert finished.code == 0, finished.stdout + finished.stderr
    checks = {check["name"]: check for check in json.loads(finished.stdout)["checks"]}
    assert checks["Valgrind"]["level"] == "ok"
    assert "identical" in checks["measuring"]["found"]
    for part in ("aslr", "environment", "randomness", "random devices", "cpu", "output", "tmpdir", "clock"):
        assert checks[part]["level"] == "ok", checks[part]


def test_the_doctor_helps_without_valgrind(cg_bench: CgBench, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "apt-get").symlink_to("/bin/true")
    finished = cg_bench("doctor", env={"PATH": str(tools), "CG_BENCH_VALGRIND": None})
    assert finished.code == 4
    assert "apt-get install valgrind" in finished.stdout
    assert "✓ randomness" in finished.stdout
