"""Benchmarks of other frameworks: how long they take, also next to gungraun, and whether they repeat.

    python -m benchmarks.harnesses gungraun [--rounds 3] [--runner gungraun-runner]
    python -m benchmarks.harnesses costs criterion=. google-benchmark=build/bench …     in the folder of a project
    python -m benchmarks.harnesses repeat criterion=. … [--runs 20]

`gungraun` builds the package in this folder, and measures its forty functions by Criterion and cg-bench, then by gungraun, in turns.
It needs Cargo and `cargo install gungraun-runner --version 0.20.0`. `costs` has one run measure all that a harness lists, one
after the other, and `repeat` many runs next to two busy loops.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HERE = Path(__file__).resolve().parent
CG_BENCH = str(Path(sys.executable).with_name("cg-bench"))
MANIFEST = f"--manifest-path={HERE / 'Cargo.toml'}"
BUSY = (sys.executable, "-c", "while True: pass")


def taken(words: Sequence[str], environ: Mapping[str, str]) -> tuple[float, float]:
    """Run a command that has to succeed; return its seconds, and those of CPU time of all that it started."""
    before, begun = os.times(), time.monotonic()
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    took, after = time.monotonic() - begun, os.times()
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return took, used


def gungraun(rounds: int, runner: str, target: Path, folder: Path) -> None:
    """Print what forty functions take, in medians of alternating rounds."""
    environ = {**os.environ, "CARGO_TARGET_DIR": str(target), "GUNGRAUN_RUNNER": runner, "CARGO_TERM_QUIET": "true"}
    taken(("cargo", "bench", "--no-run", MANIFEST), environ)
    result = folder / "result.json"
    entry = (str(HERE), "--bench=with_criterion")
    run = (CG_BENCH, "run", "-q", "-o", str(result), "--harness", "criterion", "--", *entry)
    theirs = ("cargo", "bench", MANIFEST, "--bench=with_gungraun")
    ways = {
        "gungraun": theirs,
        "gungraun --parallel=auto": (*theirs, "--", "--parallel=auto"),
        "cg-bench run": run,
        "cg-bench run, on one CPU": ("taskset", "-c", str(min(os.sched_getaffinity(0))), *run),
    }
    rows = [[taken(words, environ) for words in ways.values()] for _ in range(rounds)]
    first: tuple[float, ...] | None = None
    print(f"{len(measured(result))} functions, medians of {rounds} rounds, and parts of the first row")
    print(f"{'':28}{'seconds':>16}{'of CPU time':>16}")
    for name, column in zip(ways, zip(*rows, strict=True), strict=True):
        medians = tuple(statistics.median(values) for values in zip(*column, strict=True))
        first = first or medians
        cells = (f"{value:9.1f} {value / part:6.2f}" for value, part in zip(medians, first, strict=True))
        print(f"{name:28}{''.join(cells)}", flush=True)


def measured(result: Path) -> dict[str, dict[str, Any]]:
    """Return the benchmarks of a result by their ids."""
    return {item["id"]: item for item in json.loads(result.read_bytes())["benchmarks"]}


def asked(entry: str, result: Path, *options: str) -> tuple[str, ...]:
    """Return the words that measure HARNESS=COMMAND with these options."""
    name, _, command = entry.partition("=")
    return (CG_BENCH, "run", "-q", "-o", str(result), *options, "--harness", name, "--", *command.split())


def costs(entries: Sequence[str], folder: Path) -> None:
    """Print the CPU time that a benchmark takes, and the part of it that is not for what is counted."""
    print(f"{'harness':20}{'benchmarks':>11}{'listing':>9}{'each, CPU s':>13}{'counted, million instructions':>31}")
    for entry in entries:
        result = folder / "result.json"
        nothing = asked(entry, result, "--shard", "1000/1000")
        taken(nothing, os.environ)  # may build
        _, listing = taken(nothing, os.environ)
        _, whole = taken(asked(entry, result, "-j", "1"), os.environ)
        found = measured(result).values()
        counted = sum(item["counts"]["Ir"] * item["iterations"] / 1000 for item in found) / len(found) / 1e6
        each = (whole - listing) / len(found)
        print(f"{entry.partition('=')[0]:20}{len(found):11}{listing:9.2f}{each:13.2f}{counted:31.1f}", flush=True)


@contextmanager
def load(loops: int) -> Iterator[None]:
    """Keep the CPUs busy."""
    busy = [subprocess.Popen(BUSY) for _ in range(loops)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def repeat(entries: Sequence[str], runs: int, folder: Path) -> None:
    """Print how many benchmarks have the same nine counts in all runs, and how far the others spread."""
    for entry in entries:
        result = folder / "result.json"
        found: dict[str, list[dict[str, int]]] = {}
        with load(2):
            for _ in range(runs):
                taken(asked(entry, result), os.environ)
                for name, item in measured(result).items():
                    found.setdefault(name, []).append({**item["counts"], "score": item["score"]["value"]})
        same = sum(all(counts == rows[0] for counts in rows) and len(rows) == runs for rows in found.values())
        print(f"{entry.partition('=')[0]}: {same} of {len(found)} identical in {runs} runs", flush=True)
        for name, rows in found.items():
            spread = {key: max(row[key] for row in rows) - min(row[key] for row in rows) for key in rows[0]}
            if any(spread.values()):
                parts = {key: f"{value / max(1, rows[0][key]):.1e}" for key, value in spread.items() if value}
                print(f"  {name}: {' '.join(f'{key} {part}' for key, part in parts.items())}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.harnesses", description=__doc__)
    parser.add_argument("what", choices=("gungraun", "costs", "repeat"))
    parser.add_argument("entries", nargs="*", metavar="HARNESS=COMMAND", help="as of 'cg-bench run --harness'")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--runner", default=shutil.which("gungraun-runner") or "gungraun-runner")
    parser.add_argument("--target", type=Path, help="folder for what Cargo builds, to be used again")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.what == "gungraun":
            gungraun(given.rounds, given.runner, (given.target or folder).resolve(), folder)
        elif given.what == "costs":
            costs(given.entries, folder)
        else:
            repeat(given.entries, given.runs, folder)


if __name__ == "__main__":
    main()
