"""The oldest and the newest Valgrind that we promise: both work, and where the counters mean the same they agree."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.hermetic import environment
from cachegrind_bench.hermetic.execution import Execution
from cachegrind_bench.measure.session import valgrind_setup
from cachegrind_bench.model.metrics import DEFAULT_MODEL
from cachegrind_bench.valgrind.options import WHOLE, Geometry, Tool

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cachegrind_bench.model.metrics import Counts
    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench

C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
int main(void) {
    int n = 10000;
    char **words = malloc(n * sizeof *words);
    unsigned seed = 1;
    for (int i = 0; i < n; i++) {
        words[i] = malloc(24);
        snprintf(words[i], 24, "%08x", seed = seed * 1103515245u + 12345u);
    }
    qsort(words, n, sizeof *words, compare);
    puts(words[n / 2]);
    return 0;
}
"""


def test_repeated_runs_agree_under_every_version(cg_bench: CgBench, compile_c: CompileC, each_valgrind: Path) -> None:
    program = compile_c(C)
    first, second = (cg_bench.run(program, options=["--valgrind", str(each_valgrind)]) for _ in range(2))
    assert first.counts == second.counts
    assert first.rows == second.rows
    assert first.counts["Ir"] > 10_000_000


def test_every_version_seals_alike(cg_bench: CgBench, compile_c: CompileC, each_valgrind: Path) -> None:
    finished = cg_bench.run(compile_c(C), options=["--valgrind", str(each_valgrind), "--require-sealed"])
    assert {part["state"] for part in finished.benchmark["seal"].values()} <= {"pinned", "kept"}


def test_every_version_counts_the_work_of_forked_children_once(
    cg_bench: CgBench, each_valgrind: Path, compile_c: CompileC
) -> None:
    program = compile_c(FORK)
    counts = [cg_bench.run(program, str(rounds), options=["--valgrind", str(each_valgrind)]) for rounds in (0, 500_000)]
    assert [finished.benchmark["processes_exact"] for finished in counts] == [True, True]
    assert abs(counts[1].counts["Ir"] - counts[0].counts["Ir"] - 2_000_000) <= 2_000


FORK = r"""
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    long rounds = atol(argv[1]), again = rounds;
    if (rounds) __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(again) : : "cc");
    if (fork() == 0) {
        if (rounds) __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
        _exit(0);
    }
    wait(0);
    return 0;
}
"""


def test_valgrind_may_be_named_by_a_variable(
    cg_bench: CgBench, compile_c: CompileC, valgrind_versions: Mapping[str, Path]
) -> None:
    finished = cg_bench.run(compile_c(C), env={"CG_BENCH_VALGRIND": str(valgrind_versions["3.24"])})
    assert finished.result is not None
    assert finished.result["env"]["fields"]["valgrind"].startswith("3.24")


@pytest.mark.parametrize("flags", [("-O1", "-g"), ("-O1", "-g", "-static")], ids=["dynamic", "static"])
def test_the_installed_and_the_newest_version_agree_in_an_equal_environment(
    cg_bench: CgBench, compile_c: CompileC, valgrind_versions: Mapping[str, Path], flags: tuple[str, ...]
) -> None:
    program = compile_c(C, *flags)
    old, new = (
        cg_bench.run(program, options=["--valgrind", str(valgrind_versions[version])])
        for version in ("installed", "3.24")
    )
    assert old.counts["Ir"] == new.counts["Ir"]
    for event, count in old.counts.items():
        assert abs(count - new.counts[event]) <= 2, event
    assert old.result is not None
    assert new.result is not None
    assert old.result["env"]["key"] != new.result["env"]["key"], "two versions are not compared unknowingly"


def _measured(valgrind: Path, program: Path, tool: Tool) -> Counts:
    environ = dict(os.environ)
    execution = Execution(
        argv=(str(program),),
        executable=str(program),
        variables=environment.compose(environ, environment.Request(values={}), {}),
        cwd="/",
    )
    with valgrind_setup(valgrind=str(valgrind), geometry=Geometry(), environ=environ, passed={}).session(
        echo=lambda _: None
    ) as ready:
        return ready.runner.measure(execution, WHOLE, tool).accounts.profile.counts()


@pytest.mark.parametrize("flags", [("-O1", "-g"), ("-O2", "-g", "-static")], ids=["dynamic", "static"])
def test_cachegrind_counts_only_what_ran_as_callgrind_does(
    compile_c: CompileC, each_valgrind: Path, flags: tuple[str, ...]
) -> None:
    program = compile_c(C, *flags)
    cachegrind = _measured(each_valgrind, program, Tool.CACHEGRIND)
    callgrind = _measured(each_valgrind, program, Tool.CALLGRIND)
    assert abs(cachegrind.Ir - callgrind.Ir) <= 10
    assert DEFAULT_MODEL.score(cachegrind) == pytest.approx(DEFAULT_MODEL.score(callgrind), rel=0.001)
