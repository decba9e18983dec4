"""`--estimate` counts mispredicted branches in the same execution, and changes nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench

# As many instructions with either order of the data; their branches are predictable in one of them.
PROGRAM = r"""
#include <stdio.h>
static unsigned char data[20000];
__attribute__((noinline)) static void odd(long *sum) { __asm__ volatile("" : : "r"(sum) : "memory"); *sum += 3; }
__attribute__((noinline)) static void even(long *sum) { __asm__ volatile("" : : "r"(sum) : "memory"); *sum += 5; }
int main(void) {
    unsigned seed = 1;
    long sum = 0;
    for (int i = 0; i < 20000; i++) {
        seed = seed * 1103515245 + 12345;
        data[i] = RANDOM ? seed >> 16 & 1 : i & 1;
    }
    for (int i = 0; i < 20000; i++) if (data[i]) odd(&sum); else even(&sum);
    printf("%ld\n", sum);
    return 0;
}
"""


def test_nothing_but_branches_is_counted_in_addition(cg_bench: CgBench, compile_c: CompileC) -> None:
    program = compile_c(PROGRAM, "-DRANDOM=1")
    plain, found = cg_bench.run(program).benchmark, cg_bench.run(program, options=["--estimate"]).benchmark
    assert (found["counts"], found["score"], found["key"]) == (plain["counts"], plain["score"], plain["key"])
    assert "branches" not in plain
    assert 5000 < found["branches"]["Bcm"] < found["branches"]["Bc"]
    assert cg_bench.run(program, options=["--estimate"]).benchmark["branches"] == found["branches"]


@pytest.mark.slow
def test_mispredicted_branches_are_seen_where_the_score_is_not_moved(cg_bench: CgBench, compile_c: CompileC) -> None:
    for name, value in (("base", 0), ("candidate", 1)):
        program = compile_c(PROGRAM, f"-DRANDOM={value}")
        words = ["run", "-q", "--estimate", "--id", "it", "-o", f"{name}.json", "--", str(program)]
        assert cg_bench(*words).code == 0
    text = cg_bench("diff", "base.json", "candidate.json", "--threshold", "25%").stdout
    assert " % (mispredicted branches +" in text
    assert "): changes like this moved the time by " in text
    found = json.loads(cg_bench("diff", "base.json", "candidate.json", "--json", "-").stdout)["benchmarks"][0][
        "estimate"
    ]
    assert sum(found["terms"].values()) == found["candidate"] - found["base"] > 80 * 5000
    assert found["most_ppm"]["low"] < found["half_ppm"]["low"] < found["change_ppm"]
    assert "  estimate " in cg_bench("show", "candidate.json").stdout


@pytest.mark.slow
@pytest.mark.parametrize("part", [["--toggle", "main"], ["--call-tree"]])
def test_callgrind_counts_branches_as_cachegrind_does(cg_bench: CgBench, compile_c: CompileC, part: list[str]) -> None:
    program = compile_c(PROGRAM, "-DRANDOM=1")
    whole = cg_bench.run(program, options=["--estimate"]).benchmark["branches"]
    found = cg_bench.run(program, options=["--estimate", *part]).benchmark["branches"]
    assert 0.7 * whole["Bcm"] < found["Bcm"] <= whole["Bcm"]


@pytest.mark.slow
def test_a_stored_result_without_branches_is_not_reused_for_an_estimate(cg_bench: CgBench) -> None:
    (cg_bench.cwd / "cg-bench.toml").write_text('[[benchmark]]\nid = "true"\ncommand = "/bin/true"\n', encoding="utf-8")
    for options, reused in (([], False), (["--estimate"], False), (["--estimate"], True)):
        done = cg_bench("run", "--cached", *options, "-o", "r.json")
        assert ("re-used" in done.stderr) is reused, done.stderr
    assert "branches" in json.loads((cg_bench.cwd / "r.json").read_text("utf-8"))["benchmarks"][0]
