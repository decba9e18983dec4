"""Source lines, recorded for real: the same counts with them and without, and the lines named that were changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.compare.lines import line_deltas
from cachegrind_bench.model.codec import decode
from cachegrind_bench.model.metrics import ZERO, Counts

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.compare.lines import LineDelta
    from cachegrind_bench.model.metrics import Profile
    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench

# `work` has its own lines and one that is inlined; MORE is the line that gets costlier, ABOVE and INSIDE get new lines.
PROGRAM = """\
#include <unistd.h>
/* ABOVE */
static volatile unsigned long cell[64];
static inline __attribute__((always_inline)) void note(unsigned long n) {
    cell[2] = n;
}
__attribute__((noinline)) unsigned long work(unsigned long rounds) {
    unsigned long sum = 0;
    for (unsigned long i = 0; i < rounds; i++) {
        cell[0] = i;
        /* INSIDE */
        sum += i * 3;/* MORE */
        note(sum);
        if (i & 1)
            cell[1] += sum;
    }
    return sum;
}
int main(void) {
    /* FORK */
    return work(1000) == 0;
}
"""
MORE = "sum += cell[3];"
FORK = "if (fork() == 0) _exit(work(100) == 0);"


def line_of(source: str, text: str) -> int:
    (number,) = [number for number, line in enumerate(source.splitlines(), 1) if text in line]
    return number


def recorded(cg_bench: CgBench, program: Path, *options: str) -> Profile:
    """Measure and read the result file again."""
    output = cg_bench.folder / "recorded.json"
    finished = cg_bench("run", "--quiet", "-o", str(output), *options, "--", str(program))
    assert finished.code == 0, finished.stderr
    profile = decode(output.read_bytes(), "recorded.json").benchmarks[0].profile
    assert profile is not None
    return profile


def keys(profile: Profile, name: str = "work") -> list[tuple[str, str]]:
    found = [(row.file, row.name) for row in profile.functions if row.name == name]
    assert found
    return found


def cost(profile: Profile, name: str = "work") -> Counts:
    return sum((Counts.of(row.counts) for row in profile.functions if row.name == name), ZERO)


def moved(found: tuple[LineDelta, ...]) -> list[tuple[int | None, int | None]]:
    return [(delta.base_line, delta.candidate_line) for delta in found if delta.delta.Ir or delta.delta.Dr]


@pytest.mark.parametrize("changed", ["", FORK], ids=["one process, by Cachegrind", "two, by Callgrind"])
def test_recording_lines_changes_no_count_and_the_lines_add_up(
    cg_bench: CgBench, compile_c: CompileC, changed: str
) -> None:
    program = compile_c(PROGRAM.replace("/* FORK */", changed))
    plain, profile = recorded(cg_bench, program), recorded(cg_bench, program, "--lines")
    assert plain.lines == ()
    assert profile.functions == plain.functions
    assert {row.line for row in profile.lines if row.name == "work"} >= {
        line_of(PROGRAM, text) for text in ("cell[0] = i", "cell[2] = n", "cell[1] += sum")
    }
    found = line_deltas(profile, profile, keys(profile), keys(profile))
    assert sum((delta.base for delta in found), ZERO) == cost(profile)
    assert moved(found) == []


@pytest.mark.parametrize("flags", [("-O0", "-g"), ("-O1", "-g")], ids=["unoptimised", "optimised"])
def test_the_line_that_became_costlier_is_named_though_lines_were_inserted_above(
    cg_bench: CgBench, compile_c: CompileC, flags: tuple[str, ...]
) -> None:
    changed = PROGRAM.replace("/* ABOVE */", "\n\n\n").replace("/* MORE */", MORE)
    base = recorded(cg_bench, compile_c(PROGRAM, *flags), "--lines")
    candidate = recorded(cg_bench, compile_c(changed, *flags), "--lines")
    found = line_deltas(base, candidate, keys(base), keys(candidate))
    assert moved(found) == [(line_of(PROGRAM, "/* MORE */"), line_of(changed, MORE))]
    assert sum((delta.delta for delta in found), ZERO) == cost(candidate) - cost(base)
    (delta,) = [delta.delta for delta in found if delta.delta.Ir]
    assert delta.Dr >= 1000
    assert {delta.candidate_file for delta in found} == {"main.c"}


def test_a_line_inserted_within_is_named_as_the_only_new_one(cg_bench: CgBench, compile_c: CompileC) -> None:
    changed = PROGRAM.replace("/* INSIDE */", "\n        cell[5] = cell[4] + i;\n")
    base = recorded(cg_bench, compile_c(PROGRAM, "-O0", "-g"), "--lines")
    candidate = recorded(cg_bench, compile_c(changed, "-O0", "-g"), "--lines")
    found = line_deltas(base, candidate, keys(base), keys(candidate))
    assert moved(found) == [(None, line_of(changed, "cell[5]"))]
    assert sum((delta.delta for delta in found), ZERO) == cost(candidate) - cost(base)
