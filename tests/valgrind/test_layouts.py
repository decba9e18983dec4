"""Memory layouts with real programs: the first is the usual one, each repeats exactly, and the work stays the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.conftest import CompileC
    from tests.valgrind.conftest import CgBench, Finished

LAYOUTS = 5
SENSITIVE = (ROOT / "tests/data/programs/sensitive.c").read_text()
PLACES = r"""
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    int local;
    printf("<<<%lx %lx %lx>>>\n", (long)&local, (long)malloc(100), (long)&printf);
    return 0;
}
"""
PYTHON = """
import json
words = {f"word{i}": [i, str(i)] for i in range(300)}
print(len(json.loads(json.dumps(words))))
"""


@pytest.fixture(params=["c", "python"])
def command(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    if request.param == "c":
        compile_c: CompileC = request.getfixturevalue("compile_c")
        return [str(compile_c(SENSITIVE))]
    folder = tmp_path / "script"
    folder.mkdir()
    (folder / "words.py").write_text(PYTHON)
    return ["/usr/bin/python3", "-S", str(folder / "words.py")]


def runs(finished: Finished) -> list[dict[str, Any]]:
    return list(finished.benchmark["runs"])


def spread(values: Iterable[int]) -> float:
    ordered = sorted(values)
    return (ordered[-1] - ordered[0]) / ordered[0]


def score(counts: dict[str, int]) -> int:
    last = counts["ILmr"] + counts["DLmr"] + counts["DLmw"]
    first = counts["I1mr"] + counts["D1mr"] + counts["D1mw"]
    return counts["Ir"] + counts["Dr"] + counts["Dw"] + 4 * first + 25 * last


@pytest.mark.slow
def test_layouts_repeat_exactly_and_two_results_of_them_are_equal(cg_bench: CgBench, command: list[str]) -> None:
    options = ["--id", "program", "--layouts", str(LAYOUTS)]
    usual = cg_bench.run(*command)
    first, second = (cg_bench.run(*command, options=options) for _ in range(2))
    assert [run["layout"] for run in runs(first)] == list(range(LAYOUTS))
    assert runs(first)[0] == {"layout": 0, "counts": usual.counts}
    assert runs(first) == runs(second)
    assert first.rows == second.rows
    assert first.benchmark["key"] == usual.benchmark["key"]

    ordered = sorted((run["counts"] for run in runs(first)), key=lambda counts: (score(counts), counts["Ir"]))
    assert first.counts == ordered[LAYOUTS // 2]
    assert "layouts" in first.stdout
    assert "noise" not in first.stdout

    files = [str(cg_bench.folder / f"result{number}.json") for number in (2, 3)]
    told = cg_bench("diff", *files, "--format", "json")
    assert told.code == 0, told.stderr
    (compared,) = json.loads(told.stdout)["benchmarks"]
    assert (compared["state"], compared["layouts"]) == ("unchanged", LAYOUTS)


def test_misses_move_and_the_work_does_not(cg_bench: CgBench, compile_c: CompileC) -> None:
    found = runs(cg_bench.run(compile_c(SENSITIVE), options=["--layouts", str(LAYOUTS)]))
    assert spread(score(run["counts"]) for run in found) > 0.05
    assert spread(run["counts"]["Ir"] for run in found) < 0.0005


def test_each_layout_puts_stack_heap_and_libraries_elsewhere(cg_bench: CgBench, compile_c: CompileC) -> None:
    finished = cg_bench.run(compile_c(PLACES), options=["--warmup", "0", "--layouts", str(LAYOUTS)])
    assert finished.code == 0, finished.stderr
    told = [part.partition(">>>")[0].split() for part in finished.stderr.split("<<<")[1:]]
    stacks, heaps, libraries = (set(column) for column in zip(*told, strict=True))
    assert (len(stacks), len(heaps), len(libraries)) == (LAYOUTS, LAYOUTS, LAYOUTS)
    assert len({int(place, 16) % 4096 // 64 for place in stacks}) == LAYOUTS
    # Within a page, heap and libraries stay where they are.
    for places in (heaps, libraries):
        assert len({int(place, 16) % 4096 for place in places}) == 1


@pytest.mark.slow
def test_programs_that_start_others_have_layouts_too(cg_bench: CgBench) -> None:
    finished = cg_bench.run("sh", "-c", "/bin/true; /bin/true", options=["--layouts", "2", "--repeat", "2"])
    assert finished.benchmark["tool"] == "callgrind"
    found = runs(finished)
    assert [run["layout"] for run in found] == [0, 0, 1, 1]
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert "all nine counts of 4 runs are identical within each layout" in finished.stdout


def test_a_base_of_one_layout_compares_with_several(cg_bench: CgBench) -> None:
    for number in (1, 2):
        assert cg_bench.run("/bin/true", options=["--layouts", str(number)]).code == 0
    told = cg_bench("diff", *(str(cg_bench.folder / f"result{number}.json") for number in (1, 2)))
    assert told.code == 0, told.stderr
    assert "unchanged" in told.stdout
