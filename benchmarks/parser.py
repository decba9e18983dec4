"""How fast an out file is read: our parser against the `cg_annotate` that came with Valgrind. Run by hand.

    python benchmarks/parser.py [--cg-annotate PROGRAM] [OUT_FILE]

Both sides are whole processes, start-up included, that read the same file. `cg_annotate` is told to annotate no source and to
list only functions above its highest threshold, so that little but reading is left. Ours makes the whole profile and checks
that it adds up.
Without OUT_FILE a real one of over 5 MB is made: Cachegrind with the cache simulation over a C program of many functions,
written and compiled for the purpose with debug information.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUNCTIONS = 14_000
SMALLEST = 5_000_000
ROUNDS = 7
GEOMETRY = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"]
OURS = """
import sys
from pathlib import Path
from cachegrind_bench.valgrind.out_file import parse_cachegrind
parse_cachegrind(Path(sys.argv[1]))
"""


def source() -> str:
    """Write a program of many functions of three to thirty lines that reads, writes and branches, and calls them all."""
    parts = ["static volatile unsigned long cell[4096];"]
    for number in range(FUNCTIONS):
        lines = [f"static __attribute__((noinline)) unsigned long function_number_{number}(unsigned long x)", "{"]
        for step in range(3 + number * 7 % 28):
            place = (number * 13 + step * 64) % 4096
            kinds = (
                f"x += cell[{place}];",
                f"cell[{place}] = x;",
                "if (x & 3) x ^= x >> 3;",
                f"x = x * {2 * step + 3};",
            )
            lines.append("    " + kinds[(number + step) % len(kinds)])
        parts += [*lines, "    return x;", "}"]
    calls = [f"    x = function_number_{number}(x);" for number in range(FUNCTIONS)]
    return "\n".join([*parts, "int main(void)", "{", "    unsigned long x = 1;", *calls, "    return x == 0;", "}", ""])


def make_out_file(folder: Path) -> Path:
    """Compile that program and measure it."""
    (folder / "many.c").write_text(source(), encoding="utf-8")
    print(f"compiling {FUNCTIONS} functions ...", flush=True)
    subprocess.run(["gcc", "-O0", "-g", "-o", "many", "many.c"], cwd=folder, check=True)
    out = folder / "many.cgout"
    print("running Cachegrind ...", flush=True)
    own = ["valgrind", "--tool=cachegrind", *GEOMETRY, f"--cachegrind-out-file={out}", "--log-file=/dev/null"]
    subprocess.run([*own, "./many"], cwd=folder, check=True)
    return out


def least_work(program: str) -> list[str]:
    """Return the options that make this cg_annotate do the least beyond reading the file."""
    # The Perl one prints its help and exits with 255.
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    # The Perl one (to 3.20) annotates with --auto, the Python one (from 3.21) with --annotate; 20 is the most both take.
    no_sources = "--no-annotate" if "--no-annotate" in text.stdout + text.stderr else "--auto=no"
    return [program, no_sources, "--threshold=20"]


def seconds(command: list[str], environ: dict[str, str]) -> float:
    """Time one process from start to end."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environ)
    return time.perf_counter() - start


def main() -> None:
    """Time both in turn and print the best of each, and how they compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out_file", type=Path, nargs="?", metavar="OUT_FILE")
    parser.add_argument("--cg-annotate", default="cg_annotate", metavar="PROGRAM")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = options.out_file or make_out_file(Path(folder))
        size = out.stat().st_size
        if size <= SMALLEST:
            print(f"warning: {out} has only {size / 1e6:.1f} MB", file=sys.stderr)
        environ = os.environ | {"PYTHONPATH": str(ROOT)}
        theirs = [*least_work(options.cg_annotate), str(out)]
        ours = [sys.executable, "-c", OURS, str(out)]
        lines = out.read_bytes().count(b"\n")
        print(f"file      {size / 1e6:.1f} MB, {lines} lines")
        print(f"theirs    {shlex.join(theirs[:-1])} FILE")
        print(f"ours      {Path(sys.executable).name} -c 'parse_cachegrind(FILE)'")
        times = [(seconds(theirs, environ), seconds(ours, environ)) for _ in range(ROUNDS)]
        their_best, our_best = (min(column) for column in zip(*times, strict=True))
        print(f"best of {ROUNDS}, alternating, whole processes: theirs {their_best:.3f} s, ours {our_best:.3f} s")
        print(f"ratio     ours takes {our_best / their_best:.2f} of the time of cg_annotate")


if __name__ == "__main__":
    main()
