"""The recipes of docs/what-makes-runs-differ.md hold what they promise: repeated runs of Node, Java and Go agree closely.

The programs are small, but not so small that they are nothing but the runtime's start, whose threads follow the clock.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.valgrind.conftest import CgBench

pytestmark = pytest.mark.slow

REPEAT = 3

NODE = """
'use strict';
const counts = new Map();
for (let i = 0; i < 500; i++) { const word = 'w' + i * 7919 % 101; counts.set(word, (counts.get(word) || 0) + 1); }
console.log([...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 3).join(' '));
"""

JAVA = """
import java.util.HashMap;
public class Work {
  public static void main(String[] args) {
    HashMap<String, Integer> counts = new HashMap<>();
    for (int i = 0; i < 20000; i++) counts.merge("w" + i * 7919 % 101, 1, Integer::sum);
    System.out.println(counts.size());
  }
}
"""

# Fills no map: which of its seeds a map gets depends on the thread that happens to run the program.
GO = """
package main

import (
	"fmt"
	"sort"
	"strings"
)

func main() {
	composite := make([]bool, 800000)
	primes := []int{}
	for i := 2; i < len(composite); i++ {
		if !composite[i] {
			primes = append(primes, i)
			for j := i * 2; j < len(composite); j += i {
				composite[j] = true
			}
		}
	}
	words := []string{}
	for _, p := range primes {
		words = append(words, fmt.Sprintf("w%d", p*7919%100003))
	}
	sort.Strings(words)
	fmt.Println(len(primes), len(strings.Join(words, ",")))
}
"""


def program(name: str, *places: str) -> str:
    """Return the path of a program, or skip: no language's tools are needed to work on this project."""
    found = shutil.which(name) or next((place for place in places if Path(place).exists()), None)
    if found is None:
        pytest.skip(f"no {name} on PATH")
    return found


def build(argv: Sequence[str], folder: Path, needed: str) -> None:
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        pytest.skip(f"{needed} does not work here: {done.stderr.strip()[-300:]}")


def spread(cg_bench: CgBench, *command: str, options: Sequence[str] = ()) -> float:
    """Measure three times in one run, and return (max − min) / min of Ir."""
    finished = cg_bench.run(*command, options=["--repeat", str(REPEAT), *options])
    counts: list[int] = [run["counts"]["Ir"] for run in finished.benchmark["runs"]]
    assert len(counts) == REPEAT
    return (max(counts) - min(counts)) / min(counts)


def test_node_agrees_to_a_ten_thousandth(cg_bench: CgBench, tmp_path: Path) -> None:
    node = program("node")
    (tmp_path / "work.js").write_text(NODE)
    assert spread(cg_bench, node, "--single-threaded", "--predictable", str(tmp_path / "work.js")) <= 1e-4


def test_java_agrees_to_three_ten_thousandths(cg_bench: CgBench, tmp_path: Path) -> None:
    java, javac = program("java"), program("javac")
    (tmp_path / "Work.java").write_text(JAVA)
    build([javac, "-d", str(tmp_path), str(tmp_path / "Work.java")], tmp_path, "javac")
    flags = ("-Xint", "-XX:+UseG1GC", "-XX:-UsePerfData")
    assert spread(cg_bench, java, *flags, "-cp", str(tmp_path), "Work") <= 3e-4


def test_go_agrees_to_a_thousandth(cg_bench: CgBench, tmp_path: Path) -> None:
    go = program("go", "/usr/local/go/bin/go")
    (tmp_path / "work.go").write_text(GO)
    build([go, "build", "-o", "work", "work.go"], tmp_path, "go")
    assert spread(cg_bench, str(tmp_path / "work"), options=["--env", "GOGC=off"]) <= 1e-3
