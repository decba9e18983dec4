"""What parallel jobs gain, and that they change no count: the suite in this folder with `-j 1` and `-j 2`. Run by hand.

    python benchmarks/suite/measure.py [-k EXPR] [--rounds N] [--keep FOLDER]

First the suite runs with `-j 1` on the first CPU alone, untimed: that builds what is missing, fills the caches of the disk and
lets cg-bench learn how long each benchmark takes. Then `-j 1` and `-j 2` take turns with all CPUs; a time is that of a whole
`cg-bench run`, the best of the rounds. Two CPUs that do nothing else are needed for a time worth telling: the promise is a
ratio of at most 0.55. All `benchmarks` sections must be identical, apart from `wall_ms`; where one is not, exit status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUITE = Path(__file__).resolve().parent
PROGRAMS = (
    "make",
    "cc",
    "rustc",
    "gzip",
    "bzip2",
    "xz",
    "sort",
    "awk",
    "perl",
    "sed",
    "grep",
    "tar",
    "xargs",
    "sqlite3",
    "bc",
)
PROMISE = 0.55


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the suite: the benchmarks of its result file by id, the strings of their profiles, and its time."""

    name: str
    benchmarks: dict[str, dict[str, Any]]
    strings: list[str]
    wall_ms: int
    seconds: float


def run(name: str, path: Path, jobs: int, more: list[str]) -> Run:
    """Run the suite and read its result file."""
    print(f"{name} ...", flush=True)
    command = [sys.executable, "-m", "cachegrind_bench", "run", "-q", "-j", str(jobs), "-o", str(path), *more]
    start = time.perf_counter()
    code = subprocess.run(command, cwd=SUITE, check=False).returncode
    seconds = time.perf_counter() - start
    if code != 0:
        sys.exit(f"cg-bench ended with {code}")
    document = json.loads(path.read_text(encoding="utf-8"))
    benchmarks = {item["id"]: item for item in document["benchmarks"]}
    wall_ms = sum(item.pop("wall_ms") for item in benchmarks.values())
    return Run(name=name, benchmarks=benchmarks, strings=document["strings"], wall_ms=wall_ms, seconds=seconds)


def on_first_cpu(path: Path, more: list[str]) -> Run:
    """Run the suite on another CPU than the one `-j 1` takes, which is the last."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        return run(f"-j 1 on CPU {min(allowed)} alone", path, 1, more)
    finally:
        os.sched_setaffinity(0, allowed)


def differences(base: Run, other: Run) -> list[str]:
    """Return what of the `benchmarks` sections is not the same, one line for each benchmark."""
    found = [f"{name}: only in one of them" for name in sorted(base.benchmarks.keys() ^ other.benchmarks.keys())]
    for name in sorted(base.benchmarks.keys() & other.benchmarks.keys()):
        one, two = base.benchmarks[name], other.benchmarks[name]
        fields = sorted(key for key in one.keys() | two.keys() if one.get(key) != two.get(key))
        if fields:
            found.append(f"{name}: {', '.join(fields)}; counts {one['counts']} and {two['counts']}")
    # Profiles hold places in this list.
    return found or ([] if base.strings == other.strings else ["the names in the profiles"])


def compared(runs: list[Run]) -> bool:
    """Print how all runs compare with the first; tell whether they are the same."""
    base, *others = runs
    same = True
    for other in others:
        found = differences(base, other)
        same = same and not found
        print(f"{base.name} / {other.name}: {'identical' if not found else 'NOT identical'} apart from wall_ms")
        for line in found:
            print(f"  {line}")
    return same


def main() -> None:
    """Run, print the times, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", dest="expression", metavar="EXPR", help="only benchmarks whose ids fit")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="default: %(default)s")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the result files here")
    options = parser.parse_args()
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        sys.exit(f"please install: {', '.join(missing)}")
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("needs two CPUs")
    more = ["-k", options.expression] if options.expression else []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        runs = [on_first_cpu(folder / "first-cpu.json", more)]
        for number in range(1, options.rounds + 1):
            for jobs in (1, 2):
                name = f"-j {jobs}, round {number}"
                runs.append(run(name, folder / f"jobs-{jobs}-round-{number}.json", jobs, more))
                print(
                    f"  {runs[-1].seconds:.1f} s, of which under Valgrind {runs[-1].wall_ms / 1000:.1f} s of all jobs"
                )
    one, two = (min(item.seconds for item in runs[start::2]) for start in (1, 2))
    print(f"{len(runs[0].benchmarks)} benchmarks: -j 1 {one:.1f} s, -j 2 {two:.1f} s")
    print(f"ratio {two / one:.3f} (promised: at most {PROMISE})")
    sys.exit(0 if compared(runs) else 1)


if __name__ == "__main__":
    main()
