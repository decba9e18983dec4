"""`--call-tree`: a planted change is explained by calls, with the right function, cause and caller, and parts that add up."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import CompileC, CompileRust
    from tests.valgrind.conftest import CgBench, Finished

CALLS = ROOT / "tests" / "data" / "native" / "calls.c"

CXX = """
#include <cstdio>
#include <memory>
#include <vector>
struct Shape { virtual ~Shape() = default; virtual long area(long size) const = 0; };
struct Square : Shape { __attribute__((noinline)) long area(long size) const override {
    long sum = 0; for (long i = 0; i < size; i++) sum += i ^ size; return sum; } };
namespace plan {
template <typename T> __attribute__((noinline)) long total(const std::vector<std::unique_ptr<T>> &shapes, int times) {
    long sum = 0;
    for (int i = 0; i < times; i++) for (const auto &shape : shapes) sum += shape->area(40);
    return sum;
}
}
int main() {
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int i = 0; i < 10; i++) shapes.push_back(std::make_unique<Square>());
    std::printf("%ld\\n", plan::total(shapes, TIMES));
}
"""

RUST = """
#[inline(never)]
fn mix(seed: u64) -> u64 { (0..20).fold(seed, |sum, step| std::hint::black_box(sum.rotate_left(7) ^ step)) }
#[inline(never)]
fn digest(words: &[u64]) -> u64 { words.iter().map(|word| mix(*word)).sum() }
fn main() {
    let words: Vec<u64> = (0..option_env!("WORDS").map_or(200, |text| text.parse().unwrap())).collect();
    println!("{}", digest(&words));
}
"""


def measured(cg_bench: CgBench, program: Path, *options: str) -> Path:
    """Measure with calls, under the id `calls`, and return the result file."""
    target = cg_bench.folder / f"{len(list(cg_bench.folder.iterdir()))}.json"
    found = cg_bench("run", "-q", "--call-tree", "--id", "calls", "-o", str(target), *options, "--", str(program))
    assert found.code == 0, found.stderr
    return target


def compared(cg_bench: CgBench, base: Path, candidate: Path) -> tuple[Finished, dict[str, Any]]:
    """Compare, check that all adds up to the difference of the counts, and return the only benchmark."""
    document = cg_bench.folder / "document.json"
    found = cg_bench("diff", str(base), str(candidate), "--json", str(document))
    (benchmark,) = json.loads(document.read_bytes())["benchmarks"]
    calls = benchmark["calls"]
    assert calls["total"] == benchmark["explanation"]["total"]["delta"]["Ir"]
    assert sum(row["blame"] for row in calls["functions"]) + calls["rest"] + calls["top"] == calls["total"]
    for row in calls["functions"]:
        assert row["by_calls"] + row["by_cost"] == row["candidate"]["ir"] - row["base"]["ir"]
    return found, benchmark


LINE = re.compile(r"(?<=main\.c):\d+(?=\))")  # where compilers let a function begin is theirs to say
PLANTS = {
    "-DWORDS=3000": "contains (main.c) is called 3,000 instead of 503 times, from count (main.c)",
    "-DROUNDS=4": "each call of contains (main.c) costs",
    "-DROW=9000": "in its own code, called from fill (main.c)",
    "-DDEPTH=18": "fib (main.c) is called 8,361 instead of 465 times, from itself",
}


@pytest.mark.slow
def test_planted_changes_are_explained(cg_bench: CgBench, compile_c: CompileC) -> None:
    base = measured(cg_bench, compile_c(CALLS, "-O1", "-g", "-fno-builtin"))
    for plant, said in PLANTS.items():
        candidate = measured(cg_bench, compile_c(CALLS, "-O1", "-g", "-fno-builtin", plant))
        found, benchmark = compared(cg_bench, base, candidate)
        cause = benchmark["cause"]
        assert said in LINE.sub("", cause["text"])
        assert (LINE.search(cause["text"]) is not None) == ("(main.c)" in said)
        assert cause["text"] in found.stdout.splitlines()[-1]
        assert said in LINE.sub("", cg_bench("diff", str(base), str(candidate), "--format", "github").stdout)
        back = compared(cg_bench, candidate, base)[1]["cause"]
        assert (back["kind"], back["function"]["function"]) == (cause["kind"], cause["function"]["function"])


ALLOCATING = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static int split(int words) {
    int sum = 0;
    for (int word = 0; word < words; word++) {
        char *copy = malloc(word + 1);
        *(volatile char *)copy = 1;
        copy = realloc(copy, word + 50);
        sum += *(volatile char *)copy;
        free(copy);
    }
    return sum;
}
int main(void) { printf("%d\\n", split(WORDS)); return 0; }
"""


def test_allocations_are_counted_with_who_makes_them(cg_bench: CgBench, compile_c: CompileC) -> None:
    base, candidate = (
        measured(cg_bench, compile_c(ALLOCATING, "-O1", "-g", "-fno-builtin", f"-DWORDS={words}"))
        for words in (100, 900)
    )
    found = cg_bench("diff", str(base), str(candidate))
    said = re.compile(r"1,600 more allocations \(\d+ → 1,\d+\), from split \(main\.c:\d+\)")
    assert said.search(found.stdout)
    assert "more free" not in found.stdout  # realloc moves what there is
    # glibc 2.43 frees something of its own when a program ends.
    assert re.search(
        r"allocations +1,801 +1,800 by split, 90[01] calls of free", cg_bench("show", str(candidate)).stdout
    )
    held = cg_bench("diff", str(base), str(candidate), "--threshold=9999%", "--threshold-allocations=10%")
    assert (held.code, said.search(held.stdout.splitlines()[-1]) is None) == (1, False)
    assert cg_bench("diff", str(candidate), str(base), "--threshold-allocations=0%", "--max-drop=99%").code == 0


DEAR = """
#include <stdio.h>
#include <stdlib.h>
void *kept[8];
int main(void) {
    for (int at = 0; at < 8; at++) kept[at] = malloc(100 + at * 300);
    unsigned sum = 1;
    for (unsigned word = 0; word < 20000; word++) {
        for (int step = 0; step < 20; step++) sum = sum * 31 + (word ^ step);
#ifdef COPIED
        char *volatile copy = malloc(24);
        *copy = (char)word;
        sum += *copy;
        free(copy);
#endif
    }
    printf("%u\\n", sum);
}
"""


@pytest.mark.slow
def test_allocations_are_blamed_for_what_they_cost_and_named_first(cg_bench: CgBench, compile_c: CompileC) -> None:
    base, candidate = (measured(cg_bench, compile_c(DEAR, "-O1", "-g", *more)) for more in ([], ["-DCOPIED"]))
    found, benchmark = compared(cg_bench, base, candidate)
    calls = benchmark["calls"]
    by_name = {row["function"]: row for row in calls["functions"]}
    assert calls["functions"][0]["function"] == "main"
    assert 400_000 < by_name["malloc"]["by_calls"] <= by_name["malloc"]["candidate"]["ir"]
    assert all(abs(row[part]) <= calls["total"] * 1.01 for row in by_name.values() for part in ("by_calls", "blame"))
    said = re.compile(r"20,000 more allocations \(\d+ → 20,0\d\d\), from main \(main\.c:\d+\)")
    assert said.search(found.stdout.splitlines()[-1])
    (remark,) = (line for line in found.stdout.splitlines() if said.search(line) and "of the difference" in line)
    assert 80 < float(remark.split(" % of the difference")[0].split()[-1]) < 100
    assert by_name["malloc"]["by_calls"] + by_name["free"]["by_calls"] == pytest.approx(
        benchmark["cause"]["ir"], rel=0.01
    )


@pytest.mark.slow
def test_held_allocations_are_recorded_by_whatever_measures(
    cg_bench: CgBench, compile_c: CompileC, tmp_path: Path
) -> None:
    base, more = (str(compile_c(ALLOCATING, "-O1", "-g", "-fno-builtin", f"-DWORDS={words}")) for words in (100, 102))
    configuration = cg_bench.cwd / "cg-bench.toml"
    target = tmp_path / "base.json"
    assert cg_bench("run", "-q", "--id", "split", "-o", str(target), "--", base).code == 0
    held = "--id", "split", "--threshold=99%", "--threshold-allocations=split=0%"
    unknown = cg_bench("check", *held, "--base", str(target), "--", more)
    assert (unknown.code, "no calls are recorded of the base (run --call-tree)" in unknown.stdout) == (0, True)
    configuration.write_text('threshold-allocations = "split=0%"')
    assert cg_bench("run", "-q", "--id", "split", "-o", str(target), "--", base).code == 0
    worse = cg_bench("check", "-q", "--threshold=99%", "--base", str(target), "--", more)
    assert worse.code == 1
    assert "4 more allocations (201 → 205), from split (main.c:" in worse.stdout
    tables = (
        f'[[benchmark]]\nid = "{name}"\ncommand = ["{more}"]\nlimit = "{name}=204"\n' for name in ("Dw", "allocations")
    )
    configuration.write_text("".join(tables))
    suite = cg_bench("run", "-o", str(target))
    assert "allocations: allocations 205 exceeds the limit of 204" in suite.stdout
    has_calls = ["calls" in item for item in json.loads(target.read_bytes())["benchmarks"]]
    assert has_calls == [False, True]


def test_calls_are_of_the_execution_that_was_counted(cg_bench: CgBench, compile_c: CompileC) -> None:
    target = measured(cg_bench, compile_c(CALLS, "-O1", "-g", "-fno-builtin"))
    (benchmark,) = json.loads(target.read_bytes())["benchmarks"]
    assert (benchmark["tool"], benchmark["warnings"]) == ("cachegrind", [])
    assert sum(row[3] for row in benchmark["calls"]["functions"]) == benchmark["counts"]["Ir"]


def test_calls_outside_of_what_is_counted_do_not_count(cg_bench: CgBench, tmp_path: Path) -> None:
    source, include = CALLS.with_name("partly.c"), ROOT / "cachegrind_bench" / "include"
    numbers = {"--regions": 3, "--toggle=count": 6}  # how often `count` is called within
    sides: dict[str, list[Path]] = {option: [] for option in numbers}
    for words in (503, 3000):
        program = tmp_path / f"partly{words}"
        subprocess.run(["gcc", "-O1", "-g", f"-I{include}", f"-DWORDS={words}", "-o", program, source], check=True)
        for option, files in sides.items():
            files.append(measured(cg_bench, program, option))
    for option, times in numbers.items():
        cause = compared(cg_bench, *sides[option])[1]["cause"]
        assert (cause["base"]["calls"], cause["candidate"]["calls"]) == (503 * times, 3000 * times)


def test_a_function_of_libc_is_named_with_its_caller_wherever_callgrind_counts(
    cg_bench: CgBench, compile_c: CompileC
) -> None:
    programs = (
        compile_c(CALLS, "-O1", "-g", "-fno-builtin"),
        compile_c(CALLS, "-O1", "-g", "-fno-builtin", "-DROW=9000"),
    )
    said: list[str] = []
    for options in (["--toggle", "fill"], []):
        files = [cg_bench.folder / f"{len(options)}{number}.json" for number in range(2)]
        for program, target in zip(programs, files, strict=True):
            assert cg_bench("run", "-q", "--id", "x", *options, "-o", str(target), "--", str(program)).code == 0
        found = cg_bench("diff", *map(str, files), "--threshold", "0.1%")
        assert "called from" not in found.stdout  # calls of libc alone are no explanation
        said.append(found.stdout.splitlines()[-1].rpartition("most of it in ")[2])
    assert [text.partition(" ")[2] for text in said] == ["(from fill)", "(libc)"]
    assert "memset" in said[0]


def test_calls_of_a_program_that_starts_processes_come_with_its_counts(cg_bench: CgBench, tmp_path: Path) -> None:
    script = tmp_path / "twice"
    script.write_text("#!/bin/sh\nfor word in a b c; do /bin/echo $word; done\n", encoding="utf-8")
    script.chmod(0o755)
    target = measured(cg_bench, script)
    (benchmark,) = json.loads(target.read_bytes())["benchmarks"]
    assert (benchmark["tool"], benchmark["warnings"]) == ("callgrind", [])
    assert sum(row[3] for row in benchmark["calls"]["functions"]) == benchmark["counts"]["Ir"]


@pytest.mark.slow
def test_methods_and_templates_of_cxx_are_named_as_in_the_source(cg_bench: CgBench, tmp_path: Path) -> None:
    source = tmp_path / "shapes.cc"
    source.write_text(CXX, encoding="utf-8")
    found: list[Path] = []
    for times in (50, 90):
        program = tmp_path / f"shapes{times}"
        subprocess.run(["g++", "-std=c++17", "-O1", "-g", f"-DTIMES={times}", "-o", program, source], check=True)
        found.append(measured(cg_bench, program))
    base, candidate = found
    cause = compared(cg_bench, base, candidate)[1]["cause"]
    assert cause["function"]["function"].startswith("Square::area(long) const")
    assert (cause["base"]["calls"], cause["candidate"]["calls"]) == (500, 900)
    assert cause["caller"]["function"].startswith("long plan::total<Shape>(")


def test_functions_of_rust_are_named_as_in_the_source(cg_bench: CgBench, compile_rust: CompileRust) -> None:
    base, candidate = (
        measured(cg_bench, compile_rust(RUST.replace('option_env!("WORDS")', f'Some("{words}")')))
        for words in (200, 900)
    )
    # Rust looks for its stack in a list of its memory, which is the same under both tools.
    assert not any(json.loads(file.read_bytes())["benchmarks"][0]["warnings"] for file in (base, candidate))
    cause = compared(cg_bench, base, candidate)[1]["cause"]
    assert cause["function"]["function"].endswith("::mix")
    assert (cause["base"]["calls"], cause["candidate"]["calls"]) == (200, 900)
    assert cause["caller"]["function"].endswith("::digest")
