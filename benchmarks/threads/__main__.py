"""How far counts of programs with threads vary, scheduling pinned or not: the table of docs/what-makes-runs-differ.md.

    python -m benchmarks.threads [--runs N] [--only NAME] [--journal FILE] [--work FOLDER] [--table]

Builds the programs of this folder and measures each N times in each variant, alternating. A cell is 0 if all nine
counts of all runs are the same. Otherwise it has the spread (max - min) / min of Ir and of the score, and how many runs
agree in all nine counts. The load is whatever else the machine does; the journal records it. A run that failed, or could
not be pinned because another cg-bench was on its CPU, stays in the journal but not in the table: it is repeated, up to N
times.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

SOURCES = Path(__file__).resolve().parent
DEFAULT, WITHOUT, CLOCK = "default", "without scheduling", "--pin-clock"
VARIANTS = (DEFAULT, WITHOUT, CLOCK)
# Root has the right to real-time scheduling by a capability, all others by a limit.
NO_RIGHT = ("prlimit", "--rtprio=0:0") if os.geteuid() else ("setpriv", "--bounding-set=-sys_nice")


class Program(NamedTuple):
    """A program of this folder, what builds it, if anything must, and a variable for it."""

    name: str
    command: str
    build: str = ""
    env: str = ""


OPENMP = "gcc -O2 -g -fopenmp threads/openmp.c -o build/openmp"
CARGO = "cargo build --release --locked --manifest-path=threads/rayon/Cargo.toml --target-dir=build/rayon"
GO = "go build -o build/maps threads/maps.go"
JAVA = "javac -d build threads/Work.java"
INTERPRETED = "java -Xint -XX:+UseG1GC -XX:-UsePerfData -cp build Work"
PYTHON = f"{shlex.quote(sys.executable)} threads/workers.py"
PROGRAMS = (
    Program("C++ queue", "build/queue", "g++ -O2 -g -pthread threads/queue.cpp -o build/queue"),
    Program("OpenMP", "build/openmp", OPENMP),
    Program("OpenMP, 4 threads", "build/openmp", OPENMP, "OMP_NUM_THREADS=4"),
    Program("rayon", "build/rayon/release/parallel", CARGO),
    Program("rayon, 4 threads", "build/rayon/release/parallel", CARGO, "RAYON_NUM_THREADS=4"),
    Program("Go", "build/maps", GO),
    Program("Go, recipe", "build/maps", GO, "GOGC=off"),
    *(Program(f"Python, {mode}", f"{PYTHON} {mode}") for mode in ("threads", "executor", "asyncio")),
    Program("Node, recipe", "node --single-threaded --predictable threads/work.js"),
    Program("Java, recipe", INTERPRETED, JAVA),
    Program("Node", "node threads/work.js"),
    Program("Java", "java -cp build Work", JAVA),
)


def prepare(program: Program, work: Path) -> bool:
    """Build a program; return False, and print why, where this machine lacks what it needs."""
    for tool in (shlex.split(command)[0] for command in (program.build, program.command) if command):
        if not tool.startswith("build/") and shutil.which(tool) is None:
            print(f"{program.name} is skipped: there is no {tool} here", file=sys.stderr)
            return False
    if program.build:
        (work / "build").mkdir(exist_ok=True)
        subprocess.run(program.build.split(), cwd=work, check=True, stdout=sys.stderr)
    return True


def measure(program: Program, variant: str, work: Path) -> dict[str, Any]:
    """Measure once, after a warm-up, and return what the journal keeps of it."""
    options = ["--env", program.env] if program.env else []
    options += ["--pin-clock"] if variant == CLOCK else []
    run = [sys.executable, "-m", "cachegrind_bench", "run", "-q", "--timeout", "300s", "-o", "-", *options]
    before, load = time.monotonic(), os.getloadavg()[0]
    argv = [*(NO_RIGHT if variant == WITHOUT else ()), *run, "--", *shlex.split(program.command)]
    done = subprocess.run(argv, cwd=work, check=False, stdout=subprocess.PIPE)
    if done.returncode:
        return {"failed": done.returncode}
    found = json.loads(done.stdout)["benchmarks"][0]
    return {
        "counts": found["counts"],
        "score": found["score"]["value"],
        "scheduling": found["seal"]["scheduling"],
        "load": round(load, 2),
        "seconds": round(time.monotonic() - before, 2),
    }


def valid(rows: list[dict[str, Any]], program: str, variant: str) -> list[dict[str, Any]]:
    """Return the runs of a program that succeeded, and were pinned if the variant pins."""
    own = [row for row in rows if (row["program"], row["variant"]) == (program, variant) and "failed" not in row]
    return [row for row in own if variant == WITHOUT or row["scheduling"]["state"] == "pinned"]


def cell(rows: list[dict[str, Any]], runs: int) -> str:
    """Return a cell of the table: the runs of one program in one variant."""
    if not rows:
        return "–"
    alike = Counter(json.dumps(row["counts"], sort_keys=True) for row in rows).most_common(1)[0][1]
    spreads = []
    for name, values in (("Ir", [row["counts"]["Ir"] for row in rows]), ("score", [row["score"] for row in rows])):
        share = (max(values) - min(values)) / min(values)
        spreads.append(f"{name} {share:.1e}".replace("e-0", "e-") if share else f"{name} 0")
    text = "0" if alike == len(rows) else f"{', '.join(spreads)}, {alike} agree"
    return text if len(rows) >= runs else f"{text} ({len(rows)} of {runs} runs)"


def table(rows: list[dict[str, Any]], runs: int) -> str:
    """Return the Markdown table of a journal."""
    lines = [f"| Program | {' | '.join(VARIANTS)} |", "| --- " * (len(VARIANTS) + 1) + "|"]
    for name in dict.fromkeys(row["program"] for row in rows):
        cells = [cell(valid(rows, name, variant), runs) for variant in VARIANTS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure what the journal lacks, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.threads", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="runs of each program in each variant")
    parser.add_argument("--only", action="append", help="only programs of this name")
    parser.add_argument("--journal", type=Path, default=Path("threads.jsonl"), help="what it has is not measured again")
    parser.add_argument("--work", type=Path, help="folder to build in, outside of any checkout; else a temporary one")
    parser.add_argument("--table", action="store_true", help="measure nothing, and print the journal's table")
    options = parser.parse_args()
    text = options.journal.read_text() if options.journal.exists() else ""
    rows = [json.loads(line) for line in text.splitlines()]
    done = {(row["program"], row["variant"], row["number"]) for row in rows}
    with tempfile.TemporaryDirectory() as temporary, options.journal.open("a") as journal:
        work = options.work or Path(temporary)
        shutil.copytree(SOURCES, work / "threads", ignore=shutil.ignore_patterns("__*"), dirs_exist_ok=True)
        wanted = [program for program in PROGRAMS if not options.only or program.name in options.only]
        for program in () if options.table else wanted:
            if not prepare(program, work):
                continue
            for number, variant in product(range(2 * options.runs), VARIANTS):
                key = {"program": program.name, "variant": variant, "number": number}
                if (*key.values(),) not in done and len(valid(rows, program.name, variant)) < options.runs:
                    rows.append(key | measure(program, variant, work))
                    journal.write(json.dumps(rows[-1], sort_keys=True) + "\n")
                    journal.flush()
    print(table(rows, options.runs))


if __name__ == "__main__":
    main()
