"""The promise: repeated runs agree in all nine counts and in every row of the profile, whatever goes on around them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import CompileC, CompileRust
    from tests.valgrind.conftest import CgBench, Finished

    Measure = Callable[..., Finished]

LANGUAGES = ("c", "rust", "python", "numpy", "perl")

C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(int argc, char **argv) {
    int n = 40000, *numbers = malloc(n * sizeof *numbers);
    char *words[200];
    unsigned seed = 1;
    for (int i = 0; i < n; i++) numbers[i] = (seed = seed * 1103515245u + 12345u) >> 8;
    qsort(numbers, n, sizeof *numbers, compare);
    for (int i = 0; i < 200; i++) { words[i] = malloc(i * 37 + 1); memset(words[i], i, i * 37); }
    for (int i = 0; i < 200; i += 2) free(words[i]);
    /* The addresses of stack and heap decide how long this takes. */
    unsigned long spread = ((unsigned long)&seed ^ (unsigned long)numbers) % 4096;
    for (volatile unsigned long i = 0; i < spread; i++) ;
    printf("%d %lu %s\n", numbers[n / 2], spread, getenv("HOME") ? "home" : "none");
    return 0;
}
"""

RUST = r"""
use std::collections::HashMap;
fn main() {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for i in 0..20000u32 { *counts.entry(format!("key{}", i.wrapping_mul(2654435761) % 4096)).or_insert(0) += 1; }
    let first: Vec<&String> = counts.keys().take(3).collect();
    println!("{} {:?}", counts.len(), first);
}
"""

PYTHON = """
import json, os, random
words = {f"word{i * 7919 % 1009}" for i in range(2000)}
first = next(iter(words))
numbers = sorted(random.random() for _ in range(2000))
path = os.path.join(os.environ["TMPDIR"], "words")  # not by tempfile, which asks for the working directory's name
with open(path, "w+") as file:
    json.dump(sorted(words), file)
    file.seek(0)
    again = json.load(file)
print(first, len(again), os.urandom(4), numbers[0], sum(id(object()) % 4096 for _ in range(10)))
"""

NUMPY = """
import numpy as np
a = np.random.default_rng().random((60, 60))
b = np.linalg.solve(a + 60 * np.eye(60), a @ a)
print(b.sum(), np.sort(a.ravel())[:2], {str(x) for x in range(5)})
"""

PERL = r"""
my %count; $count{"word" . ($_ * 7919 % 4099)}++ for 1 .. 20000;
my @keys = (keys %count)[0 .. 2];
my $text = join ",", map { "$_=$count{$_}" } sort keys %count;
my $n = () = $text =~ /word(\d+)=\d+/g;
print "$n @keys ", rand() > 0, "\n";
"""


@pytest.fixture
def command(request: pytest.FixtureRequest, language: str, shared_folder: Path) -> list[str]:
    """Return the command that runs the program of this language."""
    if language == "c":
        compile_c: CompileC = request.getfixturevalue("compile_c")
        return [str(compile_c(C))]
    if language == "rust":
        compile_rust: CompileRust = request.getfixturevalue("compile_rust")
        return [str(compile_rust(RUST))]
    text, suffix, interpreter = {
        "python": (PYTHON, "py", sys.executable),
        "numpy": (NUMPY, "py", sys.executable),
        "perl": (PERL, "pl", "perl"),
    }[language]
    # In a folder of its own: Python lists the script's folder when it imports, so new files there would count.
    folder = shared_folder / f"of-{language}"
    if not folder.exists():
        temporary = shared_folder / f"{language}.{os.getpid()}"
        temporary.mkdir()
        (temporary / f"program.{suffix}").write_text(text)
        with contextlib.suppress(OSError):  # another worker was faster
            temporary.rename(folder)
    script = folder / f"program.{suffix}"
    return [interpreter, str(script)]


@pytest.fixture
def base(once: Any, language: str, command: list[str]) -> Finished:
    """Return the one run that all others are compared with."""
    finished: Finished = once(f"base-{language}", lambda cg_bench: cg_bench.run(*command))
    return finished


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def assert_equal(base: Finished, other: Finished) -> None:
    """Compare counts and profiles; on a difference, name the functions whose counts moved."""
    if other.counts == base.counts and other.rows == base.rows:
        return
    known = {(file, name): counts for file, name, *counts in base.rows}
    moved = [
        f"{name} ({file}): {known.get((file, name))} -> {counts}"
        for file, name, *counts in other.rows
        if known.get((file, name)) != counts
    ]
    missing = known.keys() - {(file, name) for file, name, *_ in other.rows}
    pytest.fail("\n".join([str(base.counts), str(other.counts), *moved[:30], f"missing: {sorted(missing)[:10]}"]))


every_language = pytest.mark.parametrize("language", LANGUAGES)
# NumPy takes longer than all others together, and is Python with more to import.
all_but_numpy = pytest.mark.parametrize("language", [language for language in LANGUAGES if language != "numpy"])


@pytest.mark.slow
@every_language
def test_repeated_runs_agree_in_everything(cg_bench: CgBench, base: Finished, command: list[str]) -> None:
    assert_equal(base, cg_bench.run(*command))


@pytest.mark.slow
@pytest.mark.parametrize("language", ["c", "python"])
def test_executions_within_one_run_agree_too(cg_bench: CgBench, base: Finished, command: list[str]) -> None:
    finished = cg_bench.run(*command, options=["--repeat", "2"])
    assert [run["counts"] for run in finished.benchmark["runs"]] == [base.counts, base.counts]


@every_language
def test_four_busy_loops_beside_change_nothing(cg_bench: CgBench, base: Finished, command: list[str]) -> None:
    with busy_loops(4):
        assert_equal(base, cg_bench.run(*command))


@all_but_numpy
def test_a_working_directory_two_levels_deeper_changes_nothing(
    cg_bench: CgBench, base: Finished, command: list[str]
) -> None:
    deeper = cg_bench.cwd / "two levels" / "deeper-than-before"
    deeper.mkdir(parents=True)
    assert_equal(base, cg_bench.run(*command, cwd=deeper))


@pytest.mark.slow
@every_language
def test_variables_of_a_ci_service_another_user_and_tmpdir_change_nothing(
    cg_bench: CgBench, base: Finished, command: list[str], tmp_path: Path
) -> None:
    elsewhere = tmp_path / "another place for temporary files"
    elsewhere.mkdir()
    changes = {f"GITHUB_{'ABCDEFGH'[i % 8] * (i + 1)}": "x" * i * 7 for i in range(40)}
    changes |= {"USER": "somebody-else", "LOGNAME": "somebody-else", "TMPDIR": str(elsewhere), "LANG": "de_DE.UTF-8"}
    assert_equal(base, cg_bench.run(*command, env=changes))


@pytest.mark.slow
@all_but_numpy
@pytest.mark.parametrize("stdout", ["terminal", "file"])  # the base run's is a pipe
def test_the_kind_of_our_stdout_changes_nothing(
    cg_bench: CgBench, base: Finished, command: list[str], stdout: str
) -> None:
    finished = cg_bench.run(*command, stdout=stdout)
    assert "score" in finished.stdout
    assert_equal(base, finished)


# Strings that a program makes of a path move its heap, and with it what lies across a line or a page; HOME and PATH are
# handed on in a constant length for that reason.
CLOSE = 1e-4


@all_but_numpy
def test_another_home_stays_within_a_ten_thousandth(
    cg_bench: CgBench, base: Finished, command: list[str], tmp_path: Path
) -> None:
    home = tmp_path.joinpath("home", *["of-a-user-with-a-rather-long-name"] * 3)
    home.mkdir(parents=True)
    finished = cg_bench.run(*command, env={"HOME": str(home)})
    assert abs(finished.counts["Ir"] - base.counts["Ir"]) <= CLOSE * base.counts["Ir"]


@all_but_numpy
def test_another_path_stays_within_a_ten_thousandth(
    cg_bench: CgBench, base: Finished, command: list[str], tmp_path: Path
) -> None:
    finished = cg_bench.run(*command, env={"PATH": f"{os.environ['PATH']}:{tmp_path}/one/more"})
    assert abs(finished.counts["Ir"] - base.counts["Ir"]) <= CLOSE * base.counts["Ir"]


# A program's own path costs instructions at its start: the loader looks for the last slash, Rust reads /proc/self/maps,
# and Python joins the folder of the script with the name of every module it imports (NumPy: hundreds).
PER_CHARACTER = {"c": 5, "rust": 120, "python": 1500, "numpy": 10_000, "perl": 300}
# What the one character takes that makes perl's names outgrow a piece of memory: seen to be 40,600.
STEP = {"perl": 41_000}


def moved(command: list[str], checkout: Path) -> list[str]:
    """Return the command with its program copied to another checkout."""
    checkout.mkdir(parents=True)
    return [*command[:-1], str(shutil.copy(command[-1], str(checkout)))]


@all_but_numpy
def test_a_checkout_moved_to_a_path_of_the_same_length_stays_within_a_hundredth_of_a_percent(
    cg_bench: CgBench, base: Finished, language: str, command: list[str], shared_folder: Path
) -> None:
    there = moved(command, shared_folder / Path(command[-1]).parent.name[::-1])
    other = abs(len(there[-1]) - len(command[-1]))  # of compiled programs, which lie elsewhere; else 0
    finished = cg_bench.run(*there)
    allowed = PER_CHARACTER[language] * other + 1.5 * CLOSE * base.counts["Ir"]  # 0.01 %, rounded
    assert abs(finished.counts["Ir"] - base.counts["Ir"]) <= allowed


@every_language
def test_a_checkout_moved_to_a_longer_path_costs_a_few_instructions_for_each_character(
    cg_bench: CgBench, base: Finished, language: str, command: list[str], shared_folder: Path
) -> None:
    there = moved(command, shared_folder / f"moved-{language}" / "and-under-a-longer-path")
    longer = len(there[-1]) - len(command[-1])
    difference = abs(cg_bench.run(*there).counts["Ir"] - base.counts["Ir"])
    allowed = PER_CHARACTER[language] * abs(longer) + STEP.get(language, 0) + CLOSE * base.counts["Ir"]
    assert difference <= allowed


def test_the_model_ir_counts_the_same_instructions_without_simulating_caches(cg_bench: CgBench) -> None:
    full, only_ir = (cg_bench.run("/bin/true", options=options).counts for options in ((), ("--model", "ir")))
    assert only_ir["Ir"] == full["Ir"]
    assert {name for name, count in only_ir.items() if count} == {"Ir"}
