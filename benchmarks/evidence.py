"""What the evidence for an explanation costs: run by hand on a quiet machine.

    python benchmarks/evidence.py [REPEATS]

Alternates all variants in one run, and prints ratios of the best CPU times. The promise: calls recorded in an execution under
Callgrind cost at most 1.3 times one without, and `cg-bench check` of a regression, explained, 2.5 times one that finds nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

CG_BENCH = [sys.executable, "-m", "cachegrind_bench"]
CALLS = """
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) static long mix(long seed) {
    for (int step = 0; step < 20; step++) seed = seed * 7 ^ step;
    return seed;
}
int main(void) {
    long sum = 0;
    if (CHILD && fork()) return wait(0) < 0;
    for (long word = 0; word < WORDS; word++) sum += mix(word);
    printf("%ld\\n", sum);
    return 0;
}
"""
PYTHON = """
import json, os
if os.fork():
    os.wait()
else:
    for _ in range(60):
        json.loads(json.dumps([{"row": row, "name": str(row)} for row in range(100)], indent=1))
"""


def main() -> None:
    """Print one line for each ratio."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "main.c").write_text(CALLS)
        for program, words, child in ("forks", 300_000, 1), ("base", 300_000, 0), ("slower", 400_000, 0):
            compiler = ["gcc", "-O1", "-g", f"-DWORDS={words}", f"-DCHILD={child}", "-o", program, "main.c"]
            subprocess.run(compiler, cwd=folder, check=True)
        for program, command in {"C": ["./forks"], "Python": [sys.executable, "-c", PYTHON]}.items():
            run = [*CG_BENCH, "run", "-q", "--warmup", "0", "-o", "result.json"]
            without, calls = _best(repeats, folder, [[*run, "--", *command], [*run, "--call-tree", "--", *command]])
            print(
                f"{program}, which starts a process: with calls {calls:.2f} s, without {without:.2f} s, ratio {calls / without:.2f}"
            )
        subprocess.run(
            [*CG_BENCH, "run", "-q", "--call-tree", "--id", "x", "-o", "base.json", "--", "./base"],
            cwd=folder,
            check=True,
        )
        check = [*CG_BENCH, "check", "-q", "--base", "base.json", "--id", "x", "--"]
        green, red = _best(repeats, folder, [[*check, "./base"], [*check, "./slower"]])
        print(f"check: a regression {red:.2f} s, none {green:.2f} s, ratio {red / green:.2f}")


def _best(repeats: int, folder: Path, commands: list[list[str]]) -> list[float]:
    """Return the least CPU time of each command, in seconds; they take turns."""
    times: list[list[float]] = [[] for _ in commands]
    for _ in range(repeats):
        for found, command in zip(times, commands, strict=True):
            before = os.times()
            subprocess.run(command, check=False, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True)
            after = os.times()
            found.append(after[2] + after[3] - before[2] - before[3])
    return [min(found) for found in times]


if __name__ == "__main__":
    main()
