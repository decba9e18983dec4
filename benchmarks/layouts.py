"""What the place in memory does to scores: the tables of docs/memory-layouts.md.

    python benchmarks/layouts.py [COUNT]

Measures real programs in the layouts of `--layouts`, and with the stack, or the heap and the libraries, moved alone. Then
moves heap and libraries by a page, as a library that grows would, and tries what was not taken: settings of the C library,
which change the work. Spreads are (max - min) / min.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from msgspec.structs import replace

from cachegrind_bench.hermetic import environment
from cachegrind_bench.hermetic.execution import Execution
from cachegrind_bench.measure.command import Command
from cachegrind_bench.measure.plan import Plan, execution_of
from cachegrind_bench.measure.session import valgrind_setup
from cachegrind_bench.model.metrics import DEFAULT_MODEL
from cachegrind_bench.valgrind import runner as runner_module
from cachegrind_bench.valgrind.options import WHOLE, Cache, Geometry, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cachegrind_bench.hermetic.environment import Layout
    from cachegrind_bench.model.metrics import Counts
    from cachegrind_bench.valgrind.runner import Runner

SENSITIVE = (Path(__file__).resolve().parent.parent / "tests/data/programs/sensitive.c").read_text()
QSORT = r"""
#include <stdlib.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void) {
    int n = 40000, *numbers = malloc(n * sizeof *numbers);
    unsigned seed = 1;
    for (int i = 0; i < n; i++) numbers[i] = (seed = seed * 1103515245u + 12345u) >> 8;
    qsort(numbers, n, sizeof *numbers, compare);
    return numbers[0] < 0;
}
"""
BEYOND_LL = r"""
#include <stdlib.h>
int main(void) {
    int n = 9 << 10;
    char **blocks = malloc(n * sizeof *blocks);
    unsigned seed = 1;
    for (int i = 0; i < n; i++) blocks[i] = calloc(1, 1008);
    for (int round = 0; round < 60000; round++) {
        volatile char *block = blocks[((seed = seed * 1103515245u + 12345u) >> 8) % n];
        for (int i = 0; i < 1008; i += 64) block[i]++;
    }
    return 0;
}
"""
JSON = """
import json
words = {f"word{i * 7919 % 1009}": [i, str(i)] for i in range(3000)}
again = json.loads(json.dumps(words))
print(sum(item[0] for item in again.values()))
"""
PERL = """
my %count; $count{"word" . ($_ * 7919 % 4099)}++ for 1 .. 20000;
print join(",", map { "$_=$count{$_}" } sort keys %count) =~ tr/,//, "\\n";
"""
LARGE_L1 = Geometry(I1=Cache(65536, 4, 64), D1=Cache(65536, 4, 64))
STACK, HEAP, BOTH = "stack", "heap and libraries", "both: --layouts"
ALLOCATOR = {
    "glibc.malloc.mmap_threshold": [str(131072 * factor) for factor in range(1, 9)],
    "glibc.malloc.top_pad": [str(131072 + 4096 * factor) for factor in range(8)],
    "glibc.rtld.optional_static_tls": [f"{512 + 64 * factor:04}" for factor in range(8)],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to measure."""

    name: str
    command: tuple[str, ...]


def programs(folder: Path) -> Iterator[Program]:
    """Yield those programs that there are here."""
    lines = folder / "lines"
    lines.write_text("".join(f"{i * 7919 % 20011} some text {i}\n" for i in range(1, 20001)))
    for name, source in (("C: built to be sensitive", SENSITIVE), ("C: qsort", QSORT), ("C: beyond LL", BEYOND_LL)):
        if shutil.which("gcc"):
            path = folder / name.replace(" ", "_").replace(":", "")
            subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", str(path)], input=source.encode(), check=True)
            yield Program(name=name, command=(str(path),))
    for name, words in (("sort", [str(lines)]), ("gzip", ["-c", str(lines)])):
        if found := shutil.which(name):
            yield Program(name=name, command=(found, *words))
    for name, source in (("python3", JSON), ("perl", PERL)):
        if found := shutil.which(name, path="/usr/bin"):
            script = folder / name / "script"  # in a folder that stays as it is
            script.parent.mkdir()
            script.write_text(source)
            yield Program(name=name, command=(os.path.realpath(found), str(script)))


def execution(program: Program, folder: Path) -> Execution:
    """Return what executes this program."""
    command = Command(typed=program.command, argv=program.command, executable=program.command[0])
    return execution_of(Plan(command=command, cwd=folder, environ={"PATH": "/usr/bin:/bin", "HOME": "/root"}))


def only(moved: str) -> Callable[[int], Layout]:
    """Return the layouts with just this moved."""
    still = {STACK: {"pages": 0}, HEAP: {"stack": 0}, BOTH: {}}[moved]
    return lambda number: replace(environment.layout(number), **still)


def spreads(counts: Sequence[Counts]) -> str:
    """Return the spreads of score, Ir and misses as cells of a table."""

    def spread(weigh: Callable[[Counts], int]) -> str:
        values = [weigh(item) for item in counts]
        share = 100 * (max(values) - min(values)) / max(min(values), 1)
        return f"{share:.2g} %" if share < 99.5 else f"{share:,.0f} %"

    columns: tuple[Callable[[Counts], int], ...] = (
        DEFAULT_MODEL.score,
        instructions,
        lambda item: item.I1mr,
        lambda item: item.D1mr + item.D1mw,
        lambda item: item.ram_hits,
    )
    return " | ".join(spread(column) for column in columns)


def in_layouts(runner: Runner, execution: Execution, meaning: Callable[[int], Layout], number: int) -> list[Counts]:
    """Measure in so many layouts, which mean this."""
    with mock.patch.object(runner_module, "layout", meaning):
        return [counts_of(runner, execution._replace(layout=layout)) for layout in range(number)]


def grown(runner: Runner, found: Sequence[tuple[Program, Execution]], number: int) -> None:
    """Compare with heap and libraries one page higher, as where a library in front has grown, layout by layout."""
    print(f"\nHeap and libraries one page higher, in {number} layouts\n")
    print("| program | score, layout 0 | Ir, layout 0 | score, median | Ir, median | layouts where Ir rose | fell |")
    print("| --- " * 7 + "|")
    for program, wanted in found:
        before = in_layouts(runner, wanted, environment.layout, number)
        after = in_layouts(runner, wanted, a_page_higher, number)
        pairs = list(zip(before, after, strict=True))
        score, ir = (
            [100 * (weigh(new) - weigh(old)) / weigh(old) for old, new in pairs]
            for weigh in (DEFAULT_MODEL.score, instructions)
        )
        shares = (score[0], ir[0], statistics.median(score), statistics.median(ir))
        cells = [f"{share:+.2g} %" if share else "0" for share in shares]
        print(
            f"| {program.name} | {' | '.join(cells)} | {sum(x > 0 for x in ir)} | {sum(x < 0 for x in ir)} |",
            flush=True,
        )


def a_page_higher(number: int) -> Layout:
    """Return this layout with heap and libraries one page higher than it means."""
    meant = environment.layout(number)
    return replace(meant, pages=meant.pages + 1)


def instructions(counts: Counts) -> int:
    """Return the number of instructions."""
    return counts.Ir


def counts_of(runner: Runner, execution: Execution) -> Counts:
    """Measure once."""
    return runner.measure(execution, WHOLE, Tool.CACHEGRIND).accounts.profile.counts()


def table(title: str, name: str) -> None:
    """Begin a table."""
    print(f"\n{title}\n\n| program | {name} | score | Ir | I1 misses | D1 misses | RAM hits |\n| --- {'| --- ' * 6}|")


def main() -> None:
    """Print the tables."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = list(programs(folder))
        (cwd := folder / "cwd").mkdir()
        for title, geometry in (("default caches", Geometry()), ("I1 and D1 of 64 KiB, 4 ways", LARGE_L1)):
            with valgrind_setup(valgrind=None, geometry=geometry, environ=os.environ, passed={}).session(
                echo=lambda _: None
            ) as ready:
                table(f"Spread over {number} layouts, {title}", "moved")
                for program in found:
                    wanted = execution(program, cwd)._replace(cpu=ready.cpu)
                    for moved in (STACK, HEAP, BOTH) if geometry == Geometry() else (HEAP,):
                        row = spreads(in_layouts(ready.runner, wanted, only(moved), number))
                        print(f"| {program.name} | {moved} | {row} |", flush=True)
        with valgrind_setup(valgrind=None, geometry=Geometry(), environ=os.environ, passed={}).session(
            echo=lambda _: None
        ) as ready:
            wanted_of = [(program, execution(program, cwd)._replace(cpu=ready.cpu)) for program in found]
            grown(ready.runner, wanted_of, number)
            table("Not taken: settings of the C library, in 8 steps and against none", "setting")
            for program, plain in wanted_of:
                for setting, values in ALLOCATOR.items():
                    tuned = [
                        plain._replace(variables={**plain.variables, "GLIBC_TUNABLES": f"{setting}={value}"})
                        for value in values
                    ]
                    row = spreads([counts_of(ready.runner, item) for item in (plain, *tuned)])
                    print(f"| {program.name} | `{setting}` | {row} |", flush=True)


if __name__ == "__main__":
    main()
