"""`cg-bench growth`: what is refused, and a program whose growth is found, in a command and in a suite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine
    from tests.conftest import CompileC

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
#include <stdlib.h>
__attribute__((noinline)) static void pairs(int n) { for (int i = 0; i < n; i++) for (volatile int j = 0; j < i; j++); }
int main(int c, char **v) { pairs(atoi(v[c - 1])); }
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sizes", "4,3,2,1", "--", "/bin/true", "{size}"], "--sizes must ascend"),
        (["--sizes", "1,2,3", "--", "/bin/true", "{size}"], "4 to 64 numbers, not 3"),
        (["--sizes", "1..8x2", "--", "/bin/true"], "{size} is not in the command"),
        (["--sizes", "1..8x2", "--bound", "n!", "--", "/bin/true", "{size}"], "is not a class of growth"),
        (["--", "/bin/true", "{size}"], "--sizes"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_sentence(cg_bench: CommandLine, words: list[str], said: str) -> None:
    told = cg_bench("growth", *words)
    assert told.code == 2
    assert said in told.err.splitlines()[0]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("sizes = [4, 3, 2, 1]", "sizes must ascend"),
        ('sizes = "1..4x2"', "4 to 64 numbers, not 3"),
        ("sizes = [1, 2, 3, 4.5]", "sizes"),
        ('sizes = "1..8x2"\ngrowth = "n!"', "not a class of growth"),
        ('growth = "n"', "growth is for a benchmark with sizes"),
        ('sizes = "1..8x2"\nparameters = { size = [1] }', "a second time"),
        ('sizes = "1..8x2"\npredict = 0', "predict must be from 1"),
    ],
)
def test_a_configuration_is_refused_with_the_line(cg_bench: CommandLine, keys: str, said: str) -> None:
    Path("cg-bench.toml").write_text(f'[[benchmark]]\nid = "x"\ncommand = ["/bin/true", "{{size}}"]\n{keys}\n')
    told = cg_bench("list")
    assert told.code == 2
    assert "cg-bench.toml" in told.err
    assert said in told.err


def test_sizes_that_are_used_nowhere_are_refused(cg_bench: CommandLine) -> None:
    Path("cg-bench.toml").write_text('[[benchmark]]\nid = "x"\ncommand = ["/bin/true"]\nsizes = "1..8x2"\n')
    told = cg_bench("list")
    assert (told.code, "'size' is never used" in told.err) == (2, True)


@pytest.mark.valgrind
@pytest.mark.slow
def test_a_quadratic_function_is_found_and_held_to_its_bound(cg_bench: CommandLine, compile_c: CompileC) -> None:
    program = str(compile_c(PROGRAM))
    words = ["-o", "r.json", "--sizes", "100..800x2", "--format", "json"]
    told = cg_bench("growth", *words, "--bound", "n log n", "--predict", "10000", "--", program, "{size}")
    assert told.code == 1
    (group,) = json.loads(told.out)["growth"]
    assert (group["growth"], group["functions"][0]["function"]) == ("n²", "pairs")
    shown = cg_bench("show", "r.json")
    assert "grows with n²" in shown.out
    assert "exceeds the bound n log n" in shown.out
    differs = cg_bench("diff", "r.json", "r.json")
    assert differs.code == 1
    assert "program (growth) (grows with n², which exceeds the bound n log n)" in differs.out


@pytest.mark.valgrind
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes", "growth"),
    [
        ("merge_sort", "1000..16000x2", "n log n"),
        ("binary_search", "1000..16000x2", "log n"),
        ("fibonacci", "12..20+2", "2^n"),
        ("trial_division", "1000..8000x2", "n^1.5"),
    ],
)
def test_programs_of_the_textbook_get_their_class(
    cg_bench: CommandLine, compile_c: CompileC, name: str, sizes: str, growth: str
) -> None:
    program = compile_c(ROOT / "benchmarks" / "growth" / "programs.c")
    told = cg_bench("growth", "--sizes", sizes, "--format", "json", "--", str(program), name, "{size}")
    (group,) = json.loads(told.out)["growth"]
    assert (group["fits"]["Ir"]["growth"], group["fits"]["Ir"]["clear"]) == (growth, True)
